import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { it } from 'node:test'
import fc from 'fast-check'
import stringWidth from 'string-width'
import { splitWords } from '../../cli/inbox/commands.ts'
import { readDrafts, writeDrafts } from '../../cli/inbox/drafts.ts'
import { drawScreen } from '../../cli/inbox/screen.ts'
import { createState, type Draft, emptyDraft } from '../../cli/inbox/state.ts'
import { runCommandLine } from '../../cli/main.ts'

it('wcrm inbox: without a terminal exits with 2', async () => {
  const stderr = new PassThrough()
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr, env: {} }
  assert.equal(await runCommandLine(['inbox'], io), 2)
  assert.match((await stderr.end().toArray()).join(''), /needs a terminal/)
})

it('wcrm inbox: drafts are kept for their owner alone, whatever the file holds', () => {
  const home = mkdtempSync(join(tmpdir(), 'wcrm-inbox-'))
  try {
    const env = { XDG_CONFIG_HOME: home }
    const draft: Draft = { kind: 'note', text: 'Grüße\n漢', at: 3 }
    writeDrafts(
      env,
      'a',
      new Map([
        ['7', draft],
        ['8', emptyDraft],
      ]),
    )
    writeDrafts(env, 'b', new Map([['7', { ...draft, text: 'other' }]]))
    assert.deepEqual(readDrafts(env, 'a'), new Map([['7', draft]]))
    assert.equal(statSync(join(home, 'wcrm', 'drafts.json')).mode & 0o077, 0)
    assert.deepEqual(readDrafts({ XDG_CONFIG_HOME: '/nonexistent' }, 'a'), new Map())
  } finally {
    rmSync(home, { recursive: true })
  }
})

it('wcrm inbox: the screen has exactly its size, whatever customers wrote', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 })
  const size = fc.tuple(fc.integer({ min: 60, max: 200 }), fc.integer({ min: 15, max: 50 }))
  fc.assert(
    fc.property(text, text, size, fc.boolean(), (name, words, [width, height], isOpen) => {
      const state = createState(
        {
          me: { staffId: '1', name: 'Mara', workspace: 'Demo', test: false, hidesPhones: false },
          scopes: [],
          zone: 'UTC',
          clockOffset: 0,
        },
        new Map(),
      )
      const conversation = {
        id: '1',
        state: 'open' as const,
        contact: { id: '1', name, phone: '15550100042' },
        channel: { id: '1', name: words, type: 'chatapp' },
        assignee: null,
        team_id: null,
        reply_status: 'incoming_no_reply',
        tags: [{ name: words }],
        unread_count: 1,
        waiting_since: '2026-10-01T09:30:00.000Z',
        sla: { status: 'breached' },
        window: { applies: true, open: true, closes_at: '2026-10-01T10:30:00.000Z' },
        last_message: { text: words, type: 'TEXT', direction: 'inbound', status: 'received' },
      }
      Object.assign(state, { rows: [conversation], selected: '1', isLoading: false, notice: words })
      if (isOpen) {
        state.focus = 'composer'
        state.thread = { id: '1', conversation, messages: [], isLoading: false, at: undefined, scrolled: 0 }
        state.drafts.set('1', { kind: 'reply', text: words, at: 0 })
      }
      const lines = drawScreen(state, { width, height, color: false })
      assert.equal(lines.length, height)
      for (const line of lines) assert.ok(stringWidth(line) <= width, JSON.stringify(line))
    }),
  )
})

it('wcrm inbox: a line is split into words as a shell does', () => {
  assert.deepEqual(splitWords(`contacts search "Ada L" --filter '{"a": 1}' x"y z"`), [
    'contacts',
    'search',
    'Ada L',
    '--filter',
    '{"a": 1}',
    'xy z',
  ])
})
