import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadList, takeEvent } from '../../cli/inbox/data.ts'
import { pasteText, pressKeys } from '../../cli/inbox/keys.ts'
import { emptyDraft, getDraft } from '../../cli/inbox/state.ts'
import { cliError } from '../../cli/error.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { at, insertContact, insertConversation } from '../inbox/inbox-rows.ts'
import { insertSandboxTemplates } from '../messaging/send-template.ts'
import { makeWorkspace } from '../servers.ts'
import { named, noKey, openInbox } from './inbox-fixture.ts'

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
    pasteText(inbox, 'y.\r\nSorry!\u001b[2J', { width: 120, height: 24 })
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

  it('the question before a send shows the whole text, or how much does not fit', async () => {
    const { workspace } = await createScene()
    const { inbox, press, screen } = await openInbox(server(), workspace)
    await press('', named('return'))
    await press('', named('return'))
    const paste = (from: number, to: number) =>
      pasteText(inbox, Array.from({ length: to - from }, (_, i) => `row ${from + i}\n`).join(''), {
        width: 120,
        height: 24,
      })
    paste(1, 15)
    assert.doesNotMatch(screen(), /row 1\b/)
    await press('s', named('ctrl'))
    assert.match(screen(), /row 1\b[^]*row 14\b[^]*Send this to Ada\?/)
    await press('', named('escape'))
    paste(15, 90)
    await press('s', named('ctrl'))
    assert.match(screen(), /row 1\b[^]*… \d+ more lines[^]*Send this to Ada\?/)
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
    for (const name of ['Bea', 'Cleo'])
      await sandbox.say({ from: `+${generatePhone()}`, name, text: 'Hello?' })
    const names = (rows: any[]) => rows.map(({ contact }) => contact.name).toSorted()
    const colleague = await workspace.staff({ name: 'Tomás' })
    const first = await openInbox(server(), workspace)
    const second = await openInbox(server(), workspace, { owner: colleague })
    await first.press('c')
    await second.press('c')
    assert.match(first.inbox.state.notice!, /^Ada: claimed$/)
    assert.match(second.inbox.state.notice!, /^Ada: Owner has already claimed it\.$/)
    await first.press('2')
    await first.press('c')
    assert.equal(first.inbox.state.notice, 'Ada: It is yours already.')
    assert.match(first.screen(), /1 Queue 2 .*\[2 Mine 1\]/)
    const { inbox, press, screen } = first
    await press('5')
    for (const key of ['g', ' ', ' ', 't']) await press(key)
    await press('vip, -late')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^2 conversations: tagged$/)
    await press('x')
    assert.match(screen(), /Close 2 conversations; reason/)
    await press('sold')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^2 conversations: closed$/)
    const run = doAs(server(), workspace.owner.key)
    const { data } = await run('inbox_search_conversations', { state: 'closed' })
    assert.deepEqual(names(data), ['Ada', 'Bea'])
    await press('c')
    assert.match(inbox.state.notice!, /^What was selected has left the list: nothing was done\.$/)
    await press('c')
    assert.match(inbox.state.notice!, /^Cleo: claimed$/)
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
        can_reply: false,
        reason: 'window_closed',
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
    assert.match(screen(), /4 Approvals 2[^]*send reply[^]*Text: A discount of 90 %!/)
    await press('N')
    await press('No discounts.')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /: declined, it never runs$/)
    assert.match(screen(), /4 Approvals 1[^]*Text: It comes on Friday\./)
    await press('e')
    await press('', named('backspace'))
    await press('!')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /: approved, it runs now$/)
    await work()
    const sent = await sandbox.sent(phone)
    assert.deepEqual(
      sent.map((message) => (message['text'] as { body: string }).body),
      ['It comes on Friday!'],
    )
    assert.match(screen(), /No request is pending\./)
  })

  it('a template is filled in with a preview, checked, and sent; what was written is kept', async () => {
    const { workspace, sandbox, phone } = await createScene()
    await insertSandboxTemplates(server(), workspace, {})
    const { inbox, press, screen } = await openInbox(server(), workspace)
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('Too late')
    await press('t', named('ctrl'))
    assert.match(screen(), /▌ order_update {2}en_US/)
    await press('', named('return'))
    await press('Ada')
    assert.match(screen(), /│ Hello Ada, your order \{\{2\}\} is on its way\./)
    await press('s', named('ctrl'))
    assert.match(screen(), /\{\{2\}\} has no value yet/)
    await press('17')
    await press('s', named('ctrl'))
    assert.match(screen(), /Hello Ada, your order 17 is on its way\.[^]*Send this to Ada\?/)
    assert.deepEqual(await sandbox.sent(phone), [])
    await press('s', named('ctrl'))
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.match(screen(), /\[template order_update\]/)
    assert.equal(getDraft(inbox.state).text, 'Too late')
  })

  it('a saved reply is filled in, and what the customer lacks is named', async () => {
    const { workspace } = await createScene()
    const run = doAs(server(), workspace.owner.key)
    const create = (code: string, text: string) =>
      run('messaging_create_quick_message', { code, title: code, type: 'TEXT', text, visibility: 'company' })
    await create('greet', 'Hello {{contact.name}}!')
    await run('crm_create_custom_field', { key: 'city', label: 'City', type: 'text' })
    await create('city', 'Is {{contact.city}} right?')
    const { inbox, press, screen } = await openInbox(server(), workspace)
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('/')
    for (const letter of 'gre') await press(letter)
    assert.match(screen(), /▌ \/greet {2}greet {2}Hello Ada!/)
    await press('', named('return'))
    assert.equal(getDraft(inbox.state).text, 'Hello Ada!')
    await press('u', named('ctrl'))
    for (const letter of '/city') await press(letter)
    assert.match(screen(), /\(no \{\{contact\.city\}\}\)/)
    await press('', named('return'))
    assert.match(inbox.state.notice!, /no value for \{\{contact\.city\}\}/)
    await press('s', named('ctrl'))
    assert.match(screen(), /There is a \{\{placeholder\}\} in it\./)
  })

  it('a saved reply that can be tapped is sent after a question, and shown as the customer sees it', async () => {
    const { workspace, sandbox, phone } = await createScene()
    await doAs(server(), workspace.owner.key)('messaging_create_quick_message', {
      code: 'when',
      type: 'INTERACTIVE',
      text: 'Shall we come, {{contact.name}}?',
      interactive: { kind: 'buttons', buttons: [{ title: 'Today' }, { title: 'Another day' }] },
    })
    const { inbox, press, screen } = await openInbox(server(), workspace)
    for (const key of ['return', 'return'] as const) await press('', named(key))
    for (const letter of '/when') await press(letter)
    await press('', named('return'))
    assert.match(screen(), /▌ Send: Shall we come, Ada\? \[Today\] \[Another day\]/)
    await press('', named('escape'))
    assert.deepEqual([getDraft(inbox.state).text, await sandbox.sent(phone)], ['', []])
    for (const letter of '/when') await press(letter)
    await press('', named('return'))
    await press('', named('return'))
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.match(screen(), /Shall we come, Ada\?[^]*\[Today\][^]*\[Another day\]/)
  })

  it('a group is read only, and says so', async () => {
    const { workspace, sandbox, phone } = await createScene()
    const message = { type: 'text', text: { body: 'All of you' }, group_id: 'G1' }
    await sandbox.say({ from: `+${phone}`, message })
    const { inbox, press, screen } = await openInbox(server(), workspace)
    assert.match(screen(), /Group [^\n]*now  read only[^]*All of you/)
    await press('j')
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('t', named('ctrl'))
    assert.match(inbox.state.notice!, /^This is a group: it is read here, and answered in the phone app\.$/)
    await press('Hello')
    await press('s', named('ctrl'))
    assert.match(screen(), /cannot be sent now\)[^]*This is a group: .* The text is kept\./)
  })

  it('the ids behind a tap, a row and the fields of a form are shown', async () => {
    const { workspace, sandbox, phone } = await createScene()
    const say = (message: object) => sandbox.say({ from: `+${phone}`, message })
    await say({ type: 'button', button: { payload: 'RETURN-17', text: 'Return it' } })
    const row = { id: 'slot-9', title: 'At nine', description: 'Monday' }
    await say({ type: 'interactive', interactive: { type: 'list_reply', list_reply: row } })
    const response_json = JSON.stringify({ first_name: 'Ada', city: 'London' })
    await say({ type: 'interactive', interactive: { type: 'nfm_reply', nfm_reply: { response_json } } })
    const { press, screen } = await openInbox(server(), workspace)
    await press('', named('return'))
    assert.match(
      screen(120, 40),
      /\[button RETURN-17\][^]*Return it[^]*\[row slot-9\][^]*At nine[^]*\[fields first_name, city\]/,
    )
  })

  it('a shared contact is added after a question, never over a contact that there is', async () => {
    const { workspace, sandbox, phone } = await createScene()
    const card = (name: string, fields: object) => ({ name: { formatted_name: name }, ...fields })
    const share = (...contacts: object[]) =>
      sandbox.say({ from: `+${phone}`, message: { type: 'contacts', contacts } })
    const number = (given: string) => ({ phones: [{ phone: given }] })
    await share(
      card('No Number', { emails: [{ email: 'no@example.com' }] }),
      card('Ada', { ...number(`+${phone}`), origin: 'contact_request' }),
    )
    const scopes = ['mcp:read', 'crm:write', 'inbox:write', 'messaging:write']
    const { inbox, press, screen } = await openInbox(server(), workspace, { scopes })
    await press('', named('return'))
    assert.doesNotMatch(screen(), /A add the shared contact/)
    await press('A')
    assert.match(inbox.state.notice!, /no shared contact here that can be added/)
    const [chico, rosa] = [generatePhone(), generatePhone()]
    await share(
      card('Chico', { ...number(chico), emails: [{ email: 'chico@example.com' }] }),
      card('Rosa', number(`+${rosa}`)),
    )
    await press('', named('escape'))
    await press('', named('return'))
    assert.match(screen(), /A add the shared contact/)
    await press('A')
    assert.match(screen(), /▌ Chico {2}\d+ *\n[^]* Rosa {2}\+\d+[^]*Add which contact/)
    await press('', named('return'))
    assert.match(screen(), /Add Chico \(chico@example\.com\); number: \d+/)
    for (const _ of chico) await press('', named('backspace'))
    await press(`+${chico}`)
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Chico: added as contact \d+$/)
    const run = doAs(server(), workspace.owner.key)
    const contactsWith = async (query: string) =>
      (await run('crm_search_contacts', { query, detail: 'full' })).data.map((c: any) => [c.name, c.email])
    assert.deepEqual(await contactsWith(chico), [['Chico', 'chico@example.com']])
    await run('crm_upsert_contact', { phone: `+${rosa}`, name: 'Rosa Lima' })
    await press('A')
    await press('', named('downArrow'))
    for (const _ of [1, 2]) await press('', named('return'))
    assert.match(inbox.state.notice!, /is a contact already: Rosa Lima\./)
    assert.deepEqual(await contactsWith(rosa), [['Rosa Lima', null]])
  })

  it('reminders, commands, copies, and several keys that arrive at once', async () => {
    const { workspace } = await createScene()
    const { inbox, press, screen, copied } = await openInbox(server(), workspace)
    const context = { quit: () => {}, suspend: () => {}, width: 120, height: 24 }
    await press('r')
    assert.match(screen(), /tomorrow 9:00/)
    await press('yesterday')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /no time to come/)
    await press('r')
    await press('+90m')
    await press('', named('return'))
    assert.match(inbox.state.notice!, /^Ada: reminder at /)
    assert.ok(inbox.state.rows[0]!.reminder_at)
    pressKeys(inbox, ':contacts "a b"\r', noKey, context)
    await press('', noKey)
    assert.match(screen(), /wcrm contacts a b/)
    await press('', named('escape'))
    pressKeys(inbox, ':serve\r', noKey, context)
    assert.match(inbox.state.notice!, /terminal of its own/)
    let code: number | undefined
    const quit = (exitCode?: number): void => {
      code = exitCode
    }
    pressKeys(inbox, '\u0003', named('meta'), { ...context, quit })
    assert.equal(code, 130)
    await press('y')
    await press('', named('return'))
    await press('k')
    await press('y')
    assert.deepEqual(copied, [inbox.state.rows[0]!.contact!.phone, 'Where is my order?'])
  })

  it('a terminal that is too small to draw it does nothing but end, and says how', async () => {
    const { workspace } = await createScene()
    const { inbox, press, screen } = await openInbox(server(), workspace)
    const rows = async () => {
      await press('')
      return structuredClone(inbox.state.rows)
    }
    const before = await rows()
    let left: number | undefined
    const quit = (exitCode?: number): void => void (left = exitCode)
    for (const [width, height] of [
      [59, 24],
      [120, 14],
    ] as const) {
      const context = { quit, suspend: () => {}, width, height }
      pressKeys(inbox, 'c', noKey, context)
      pressKeys(inbox, 'x\r', noKey, context)
      pressKeys(inbox, '\r', named('return'), context)
      pasteText(inbox, 'Hello', context)
      assert.deepEqual(await rows(), before)
      assert.deepEqual([inbox.state.focus, inbox.state.notice, left], ['list', undefined, undefined])
      assert.match(screen(width, height).replaceAll('\n', ' '), /Make it larger, or leave with \^C\./)
      pressKeys(inbox, 'c', named('ctrl'), context)
      assert.equal(left, 130)
      left = undefined
    }
    await press('c')
    assert.notEqual(inbox.state.notice, undefined)
    assert.notDeepEqual(await rows(), before)
  })

  it('a colleague who was faster, a limit, a revoked key and a key that only reads are told', async () => {
    const { workspace, sandbox, phone } = await createScene()
    let problem: { status: number; retryAfter?: number } | undefined
    const { inbox, press, screen } = await openInbox(server(), workspace, {
      wrap:
        (api) =>
        async (...call) => {
          if (!problem) return await api(...call)
          const { status, retryAfter } = problem
          const error = cliError(7, { type: 'about:blank', title: 'No', status, code: 'no', detail: 'No.' })
          throw Object.assign(error, { retryAfter })
        },
    })
    for (const key of ['return', 'return'] as const) await press('', named(key))
    await press('!')
    inbox.state.asksBeforeSending = false
    const conversation_id = inbox.state.thread!.id
    const actor = { staff: { id: '0' }, agent: false }
    takeEvent(inbox, { type: 'message.sent/1', data: { message: { conversation_id }, actor } })
    await press('s', named('ctrl'))
    assert.match(screen(), /A colleague has replied since you began\. Send this to Ada\?/)
    assert.deepEqual(await sandbox.sent(phone), [])
    for (const _ of [1, 2]) await press('', named('escape'))
    problem = { status: 429, retryAfter: 30 }
    await press('m')
    assert.match(screen(160), /rate limited, \d+ s/)
    clearTimeout(inbox.limitTimer)
    problem = { status: 401 }
    await press('m')
    assert.match(screen(), /No: No\. q leaves\./)
    const reader = await openInbox(server(), workspace, { scopes: ['mcp:read'] })
    assert.match(reader.screen(160), /read only/)
    assert.doesNotMatch(reader.screen(), /claim/)
  })

  it('events read the list again, and the cursor stays on its conversation', async () => {
    const { workspace, sandbox } = await createScene()
    const { inbox, press, until } = await openInbox(server(), workspace)
    await press('5')
    const { highlighted } = inbox.state
    await sandbox.say({ from: `+${generatePhone()}`, name: 'Bea', text: 'Hello?' })
    takeEvent(inbox, { type: 'message.received/1', data: { message: { conversation_id: '1' } } })
    await until(() => inbox.state.rows.length === 2)
    assert.equal(inbox.state.highlighted, highlighted)
  })

  it('far down a long list the cursor stays, and only what has changed is read again', async () => {
    const { workspace } = await createScene()
    const { db } = server()
    const contact_id = await insertContact(db, workspace.id, 'Ada', generatePhone())
    const count = 230
    for (let i = 0; i < count; i++)
      await insertConversation(db, workspace.id, { contact_id, channel_id: null, last_activity_at: at(i) })
    let calls: string[] = []
    const { inbox, press, until } = await openInbox(server(), workspace, {
      wrap:
        (api) =>
        (...call) => {
          calls.push(call[0])
          return api(...call)
        },
    })
    await press('5')
    // A read that is under way while the list is scrolled delays the next page, and does not drop it.
    for (let tries = 0; inbox.state.cursor !== null; tries++) {
      assert.ok(tries < 20, 'the list was not read to its end')
      void loadList(inbox)
      await press('G')
    }
    await press('G')
    const total = inbox.state.rows.length
    const { highlighted } = inbox.state
    const { id } = inbox.state.rows.at(-5)!
    await doAs(server(), workspace.owner.key)('inbox_close_conversation', { conversation_id: id })
    calls = []
    takeEvent(inbox, { type: 'conversation.closed/1', data: { conversation: { id } } })
    await until(() => inbox.state.rows.length === total - 1)
    assert.deepEqual([total >= count, inbox.state.highlighted], [true, highlighted])
    assert.deepEqual(
      calls.filter((name) => name === 'inbox_get_conversation'),
      ['inbox_get_conversation'],
    )
    assert.ok(!inbox.state.rows.some((row) => row.id === id))
  })
})
