import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { it } from 'node:test'
import type { Key } from 'ink'
import fc from 'fast-check'
import stringWidth from 'string-width'
import { splitWords, pressKey } from '../../cli/inbox/keys.ts'
import { readDrafts, writeDrafts } from '../../cli/inbox/run.ts'
import { drawScreen } from '../../cli/inbox/screen.ts'
import type { Inbox } from '../../cli/inbox/data.ts'
import { createState, type Draft, emptyDraft, type InboxState } from '../../cli/inbox/state.ts'
import { runCommandLine } from '../../cli/main.ts'
import { makeConversation } from './inbox-fixture.ts'
import type { ThreadMessage } from '../../cli/thread.ts'

it('wcrm inbox: without a terminal exits with 2', async () => {
  const stderr = new PassThrough()
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr, env: {} }
  assert.equal(await runCommandLine(['inbox'], io), 2)
  assert.match((await stderr.end().toArray()).join(''), /needs a terminal/)
})

it('wcrm inbox: a terminal that cannot move its cursor exits with 2', async () => {
  const stream = () => Object.assign(new PassThrough(), { isTTY: true })
  const stderr = stream()
  const io = { stdin: stream(), stdout: stream(), stderr, env: { TERM: 'dumb' } }
  assert.equal(await runCommandLine(['inbox'], io), 2)
  assert.match((await stderr.end().toArray()).join(''), /^Error: [^]*TERM=dumb/)
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

/** An inbox of a key that reads. */
const createMaraState = () =>
  createState(
    {
      me: { staffId: '1', name: 'Mara', workspace: 'Demo', test: false, hidesPhones: false },
      scopes: [],
      zone: 'UTC',
      clockOffset: 0,
    },
    new Map(),
  )

it('wcrm inbox: the screen has exactly its size, whatever customers wrote', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 })
  const size = fc.tuple(fc.integer({ min: 60, max: 200 }), fc.integer({ min: 15, max: 50 }))
  fc.assert(
    fc.property(text, text, size, fc.boolean(), (name, words, [width, height], isOpen) => {
      const state = createMaraState()
      const conversation = makeConversation(name, words)
      Object.assign(state, { rows: [conversation], highlighted: '1', isLoading: false, notice: words })
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

/** Presses keys of an inbox that calls no server. */
const createPress = (state: InboxState) => {
  const inbox = { state, changed: () => {} } as unknown as Inbox
  return (input: string, key: Partial<Key> = {}): void =>
    pressKey(inbox, input, key as Key, { quit: () => {}, suspend: () => {}, width: 120, height: 24 })
}

const draw = (state: InboxState, width: number, height = 24): string =>
  drawScreen(state, { width, height, color: false }).join('\n')

it('wcrm inbox: small terminals show what is live, and the whole help', () => {
  const state = createMaraState()
  const press = createPress(state)
  state.counts = ['1000+', '12', '1000+']
  assert.match(draw(state, 80).split('\n')[0]!, / 6 Closed +live$/)
  assert.match(draw(state, 60, 15).split('\n')[0]!, /^\[1 Queue 1000\+\] 2 \(12\) .* live$/)
  state.lostAt = Date.now()
  assert.match(draw(state, 80).split('\n')[0]!, / reconnecting since \d\d:\d\d:\d\d$/)
  assert.match(
    draw(Object.assign(createMaraState(), { fatal: 'Revoked.' }), 80),
    /disconnected\n[^]*q leaves/,
  )
  assert.match(draw(state, 50, 10), /this terminal\s+has 50 by 10\./)
  press('?')
  assert.match(draw(state, 80), /j k, arrows[^]*quit; suspend/)
  assert.doesNotMatch(draw(state, 60, 15), /quit; suspend/)
  press('G')
  assert.match(draw(state, 60, 15), /quit; suspend/)
  press('?')
  assert.equal(state.focus, 'list')
})

it('wcrm inbox: keys that scroll past the first message are not counted', () => {
  const state = createMaraState()
  const press = createPress(state)
  const conversation = makeConversation('Ada', 'Hello')
  const text = Array.from({ length: 40 }, (_, i) => `Line ${i}.`).join('\n')
  const messages = [
    { id: '1', type: 'TEXT', direction: 'inbound', text, reactions: [] } as unknown as ThreadMessage,
  ]
  state.thread = { id: '1', conversation, messages, isLoading: false, at: undefined, scrolled: 0 }
  state.focus = 'thread'
  for (let i = 0; i < 9; i++) {
    press('u', { ctrl: true })
    draw(state, 80)
  }
  assert.match(draw(state, 80), /Line 0\./)
  const reached = state.thread.scrolled
  assert.ok(reached > 0 && reached < 40, `${reached} lines`)
  for (const _ of [1, 2]) press('d', { ctrl: true })
  assert.match(draw(state, 80), /Line 39\./)
})

it('wcrm inbox: panes and times stand in their columns, whatever width a terminal gives to a name', () => {
  const state = createMaraState()
  Object.assign(state, { rows: [makeConversation('वर्मा-गुप्ता', 'Hello')], highlighted: '1', isLoading: false })
  const [, row] = drawScreen(state, { width: 120, height: 24, color: false })
  const escape = '\u001b['
  const facts = row!.split(escape)[1]!.replace(/^\d+G/, '')
  assert.deepEqual(
    row!.split(escape).map((part) => part.match(/^\d+G│?/)?.[0]),
    [undefined, `${48 - facts.length + 1}G`, '49G│'],
  )
})

it('wcrm inbox: what was asked in the list leads back to the list, although a conversation is open', () => {
  const state = createMaraState()
  const press = createPress(state)
  const [ada, bea] = ['Ada', 'Bea'].map((name, i) => ({ ...makeConversation(name, 'Hello'), id: `${i}` }))
  Object.assign(state, { rows: [ada, bea], highlighted: '1', isLoading: false })
  state.thread = { id: '0', conversation: ada!, messages: [], isLoading: false, at: undefined, scrolled: 0 }
  state.drafts.set('0', { kind: 'reply', text: 'For Ada alone', at: 0 })
  const before = draw(state, 80)
  for (const key of ['?', ':', '/', 'x', 't', 'r']) {
    press(key)
    assert.notEqual(draw(state, 80), before)
    press('', { escape: true })
    assert.equal(draw(state, 80), before)
  }
  for (const key of [{ escape: true }, { return: true }]) {
    press('x')
    press('line one\nand two')
    assert.match(draw(state, 80), /▌ Bea[^]*Close Bea; reason \(may be empty\): line one *\nand two▏/)
    press('', key)
    assert.equal(state.focus, 'list')
  }
  assert.match(state.notice!, /lacks the scope/)
})
