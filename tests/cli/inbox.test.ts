import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { it } from 'node:test'
import fc from 'fast-check'
import type { Key } from 'ink'
import stringWidth from 'string-width'
import { type Api, createApi } from '../../cli/inbox/api.ts'
import { type Inbox, loadList, takeEvent } from '../../cli/inbox/data.ts'
import { readDrafts, writeDrafts } from '../../cli/inbox/drafts.ts'
import { pasteText, pressKey } from '../../cli/inbox/keys.ts'
import { drawScreen } from '../../cli/inbox/screen.ts'
import { createState, type Draft, emptyDraft, getDraft } from '../../cli/inbox/state.ts'
import { cliError } from '../../cli/error.ts'
import { runCommandLine } from '../../cli/main.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const noKey = new Proxy({} as Key, { get: () => false })
const named = (...names: (keyof Key)[]): Key =>
  new Proxy({} as Key, { get: (_, name) => names.includes(name as keyof Key) })

type Owner = { key: string; staffId: string }

/** An inbox without a terminal: its keys and its screen. `wrap` may come between it and the server. */
const openInbox = async (
  server: TestServer,
  workspace: TestWorkspace,
  { owner = workspace.owner, wrap = (api) => api }: { owner?: Owner; wrap?: (api: Api) => Api } = {},
) => {
  const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} }
  const calls: Promise<unknown>[] = []
  const copied: string[] = []
  let watcher: (() => void) | undefined
  const api = wrap(createApi(io, { url: server.url, key: owner.key, version: '0' }))
  const inbox: Inbox = {
    state: createState(
      {
        me: { staffId: owner.staffId, name: 'Mara', workspace: 'Demo', test: false, hidesPhones: false },
        scopes: ['mcp:read', 'inbox:write', 'messaging:write'],
        zone: 'UTC',
        clockOffset: 0,
      },
      new Map(),
    ),
    api: (...call) => {
      const called = api(...call)
      calls.push(called.catch(() => {}))
      return called
    },
    changed: () => watcher?.(),
    keepDrafts: () => {},
    approvalsChanged: () => {},
    loads: 0,
    threadLoads: 0,
    copy: (text) => void copied.push(text),
    runCommand: async (words) => ({ printed: words.join(' '), exitCode: 0 }),
    timer: undefined,
    limitTimer: undefined,
    countedAt: Infinity,
  }
  /** Waits until no call is under way, and none follows from those. */
  const settle = async (): Promise<void> => {
    while (calls.length > 0) {
      await Promise.all(calls.splice(0))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const press = async (input: string, key: Key = noKey): Promise<void> => {
    pressKey(inbox, input, key, { quit: () => {}, suspend: () => {}, height: 24 })
    await settle()
  }
  const screen = (width = 120, height = 24): string =>
    drawScreen(inbox.state, { width, height, color: false }).join('\n')
  /** Resolves once the state is as wanted. */
  const until = (isWanted: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      watcher = () => isWanted() && resolve()
    })
  await loadList(inbox)
  return { inbox, press, screen, until, copied }
}

everyDatabase('wcrm inbox', (server) => {
  /** A workspace with one customer who waits. */
  const createScene = async () => {
    const workspace = await makeWorkspace(server())
    const sandbox = createSandboxDriver(server(), workspace)
    const phone = generatePhone()
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Where is my order?' })
    return { workspace, sandbox, phone }
  }

  it('shows who waits, opens the conversation, and sends a reply after a question', async () => {
    const { workspace, sandbox, phone } = await createScene()
    const { inbox, press, screen } = await openInbox(server(), workspace)
    assert.match(screen(), /▌ Ada[^]*Where is my order\?/)
    await press('', named('return'))
    assert.match(screen(), /customer {2}#\d+[^]*Where is my order\?/)
    await press('', named('return'))
    await press('It is on its wa')
    pasteText(inbox, 'y.\r\nSorry!\u001b[2J')
    assert.equal(getDraft(inbox.state).text, 'It is on its way.\nSorry![2J')
    for (const _ of '[2J') await press('', named('backspace'))
    await press('s', named('ctrl'))
    assert.match(screen(), /Send this to Ada\?/)
    assert.deepEqual(await sandbox.sent(phone), [])
    await press('s', named('ctrl'))
    const sent = await sandbox.sent(phone)
    assert.deepEqual(
      sent.map((message) => (message['text'] as { body: string }).body),
      ['It is on its way.\nSorry!'],
    )
    assert.deepEqual([getDraft(inbox.state), inbox.state.sends.get(inbox.state.thread!.id)], [emptyDraft, []])
    assert.match(screen(), /It is on its way\./)
  })

  it('an unknown outcome is told, and repeated under the same key without a second message', async () => {
    const { workspace, sandbox, phone } = await createScene()
    let drops = 1
    const { inbox, press, screen } = await openInbox(server(), workspace, {
      wrap: (api) => async (operation, input, headers) => {
        const response = await api(operation, input, headers)
        if (operation !== 'messaging_send_reply' || drops-- <= 0) return response
        throw cliError(8, {
          type: 'about:blank',
          title: 'Server unreachable',
          code: 'unreachable',
          detail: 'gone',
          idempotency_key: headers!.idempotencyKey,
        })
      },
    })
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('On its way')
    await press('s', named('ctrl'))
    await press('s', named('ctrl'))
    assert.match(screen(), /may not have been sent/)
    await press('', named('escape'))
    await press('R')
    assert.doesNotMatch(screen(), /may not have been sent/)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.deepEqual(inbox.state.sends.get(inbox.state.thread!.id), [])
  })

  it('one of two who claim at once has it; assigning, tagging and closing act on the marked ones', async () => {
    const { workspace, sandbox } = await createScene()
    await sandbox.say({ from: `+${generatePhone()}`, name: 'Bea', text: 'Hello?' })
    const colleague = await workspace.staff({ name: 'Tomás' })
    const first = await openInbox(server(), workspace)
    const second = await openInbox(server(), workspace, { owner: colleague })
    await first.press('c')
    await second.press('c')
    assert.match(first.inbox.state.notice!, /^Claimed \(1\)$/)
    assert.match(second.inbox.state.notice!, /already/i)
    const { inbox, press } = first
    await press('5')
    for (const key of [' ', ' ', 't']) await press(key)
    await press('vip, -late')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Tagged \(2\)/)
    for (const key of [' ', 'j', ' ', 'x']) await press(key)
    await press('sold')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Closed \(\d\)/)
    const run = doAs(server(), workspace.owner.key)
    const closed = (await run('inbox_search_conversations', { state: 'closed' })).data as { id: string }[]
    assert.ok(closed.length > 0)
  })

  it('what is shut is not sent, and its text is kept; a note goes', async () => {
    const { workspace, sandbox, phone } = await createScene()
    const { inbox, press, screen } = await openInbox(server(), workspace)
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('Too late')
    inbox.state.thread = {
      ...inbox.state.thread!,
      conversation: {
        ...inbox.state.thread!.conversation,
        window: { applies: true, open: false, closes_at: null },
      },
    }
    await press('s', named('ctrl'))
    assert.match(inbox.state.notice!, /text is kept/)
    assert.equal(getDraft(inbox.state).text, 'Too late')
    const actor = { staff: { id: workspace.owner.staffId, name: 'Owner' }, agent: true }
    const message = { conversation_id: inbox.state.thread.id }
    takeEvent(inbox, { type: 'message.sent/1', data: { message, actor } })
    assert.match(inbox.state.notice!, /AI agent has just replied/)
    await press('', named('tab'))
    await press('s', named('ctrl'))
    assert.match(screen(), /note by/)
    assert.deepEqual(await sandbox.sent(phone), [])
  })

  it('what an agent asks for is shown whole, and approved with another text or declined', async () => {
    const { workspace, ask, reply, work, sandbox, phone } = await createAgentScene(server())
    await ask(...reply('It comes on Friday.'), { idempotencyKey: 'ask-1-of-agent' })
    await ask(...reply('A discount of 90 %!'), { idempotencyKey: 'ask-2-of-agent' })
    const { inbox, press, screen } = await openInbox(server(), workspace)
    await press('4')
    assert.match(screen(), /4 Approvals 2[^]*messaging_send_reply[^]*Text: A discount of 90 %!/)
    await press('N')
    await press('No discounts.')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Declined/)
    assert.match(screen(), /4 Approvals 1[^]*Text: It comes on Friday\./)
    await press('e')
    await press('', named('backspace'))
    await press('!')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Approved/)
    await work()
    const sent = await sandbox.sent(phone)
    assert.deepEqual(
      sent.map((message) => (message['text'] as { body: string }).body),
      ['It comes on Friday!'],
    )
    assert.match(screen(), /Nothing waits for a decision\./)
  })

  it('events read the list again, and the cursor stays on its conversation', async () => {
    const { workspace, sandbox } = await createScene()
    const { inbox, press, until } = await openInbox(server(), workspace)
    await press('5')
    const { selected } = inbox.state
    await sandbox.say({ from: `+${generatePhone()}`, name: 'Bea', text: 'Hello?' })
    takeEvent(inbox, { type: 'message.received/1', data: { message: { conversation_id: '1' } } })
    await until(() => inbox.state.rows.length === 2)
    assert.equal(inbox.state.selected, selected)
  })
})

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
