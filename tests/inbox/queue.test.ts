import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { callAs, doAs, everyPage } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { runs } from '../level.ts'
import { insertTemplate, type NewTemplate } from '../templates/insert-template.ts'
import { idsOf, insertContact, insertConversation, insertMessage } from './inbox-rows.ts'
import {
  ageFilters,
  expectedIds,
  type Filters,
  insertSearchData,
  type SearchData,
  toSearchInput,
} from './search-model.ts'

const HOUR_MS = 3_600_000

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

/** The filters of the queue. */
const queueFilters = fc.record({
  channel: optional(fc.nat(2)),
  assignee: optional(fc.constantFrom('me', 'none', 0, 1)),
  team: optional(fc.constantFrom('77', '78')),
  tag: optional(fc.constantFrom('vip', 'GROSSHANDEL', 'Refund')),
  contact_tag: optional(fc.constantFrom('vip', 'GROSSHANDEL', 'Refund')),
  sla: optional(fc.constantFrom('running', 'breached', 'met')),
  ...ageFilters,
})

const WAITING = { state: 'open', reply_status: 'incoming_no_reply', sort: 'longest_wait' }

everyDatabase('The queue', (server) => {
  let inserted: Promise<SearchData> | undefined
  const searchData = (): Promise<SearchData> => (inserted ??= insertSearchData(server()))

  it('lists who waits, longest first, under any filters and page sizes, with their number', async () => {
    const data = await searchData()
    const run = doAs(server(), data.key)
    await fc.assert(
      fc.asyncProperty(
        queueFilters,
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 3 }),
        async (wanted: Filters, limits) => {
          const pages = await everyPage(run, 'inbox_queue', toSearchInput(wanted, data), limits)
          const expected = expectedIds(data, { ...wanted, ...WAITING })
          assert.deepEqual(pages.flatMap(idsOf), expected)
          assert.equal(pages[0]!.total, expected.length)
        },
      ),
      { numRuns: runs(40, 300) },
    )
  })

  it('staff see the queue of their channels alone, also in the total', async () => {
    const data = await searchData()
    for (const mine of [[data.channels[0]!], []]) {
      const { key } = await data.workspace.staff({ role: 'agent', channel_ids: mine })
      const page = await doAs(server(), key)('inbox_queue', { limit: 2 })
      const expected = expectedIds(data, WAITING).filter((id) =>
        mine.includes(data.rows.find((row) => row.id === id)!.channel_id!),
      )
      assert.deepEqual(idsOf(page), expected.slice(0, 2))
      assert.equal(page.total, expected.length)
    }
  })

  it('a tag that does not exist: the nearest one is named', async () => {
    const data = await searchData()
    const call = callAs(server(), data.key)
    for (const [op, field] of [
      ['inbox_queue', 'tag'],
      ['inbox_queue', 'contact_tag'],
      ['inbox_search_conversations', 'tag'],
    ] as const) {
      const { status, body } = await call(op, { [field]: 'refunds' })
      assert.equal(status, 400)
      assert.deepEqual(
        [body.errors[0].pointer, body.errors[0].code, body.errors[0].fix],
        [`#/${field}`, 'unknown_tag', 'Did you mean "refund"?'],
      )
    }
  })
})

const template = (name: string, more: Partial<NewTemplate> = {}): NewTemplate => ({
  account_id: null,
  name,
  language: 'en_US',
  category: 'UTILITY',
  status: 'APPROVED',
  components: [{ type: 'BODY', text: 'Hello {{1}}.', example: { body_text: [['Ada']] } }],
  ...more,
})

everyDoor('The queue', (test) => {
  test('a row says what was written last, whether a reply may go, and which templates fit', async (scene) => {
    const { server, workspace, call, as } = scene
    const { db } = server
    const now = server.app.now()
    const ago = (hours: number): string => new Date(Date.parse(now) - hours * HOUR_MS).toISOString()
    const [channel] = await db
      .selectFrom('channels')
      .select(['id', 'account_id'])
      .where('workspace_id', '=', workspace.id)
      .execute()
    const templates: Record<string, string> = {}
    for (const one of [
      template('of_the_account', { account_id: channel!.account_id }),
      template('of_another_account', { account_id: '1' }),
      template('rejected', { status: 'REJECTED' }),
      template('advertisement', { category: 'MARKETING' }),
    ])
      templates[one.name] = await insertTemplate(db, workspace.id, one, now)
    const wait = async (name: string, phone: string, hours: number, dnd = false): Promise<string> => {
      const contact = await insertContact(db, workspace.id, name, phone)
      await db
        .updateTable('contacts')
        .set({ dnd })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', contact)
        .execute()
      const id = await insertConversation(db, workspace.id, {
        contact_id: contact,
        channel_id: channel!.id,
        reply_status: 'incoming_no_reply',
        unread_count: 2,
        waiting_since: ago(hours),
        last_activity_at: ago(hours),
        last_inbound_at: ago(hours),
      })
      const write = (text: string | null, more: Partial<Parameters<typeof insertMessage>[2]>) =>
        insertMessage(db, workspace.id, { conversation_id: id, created_at: ago(hours), text, ...more })
      await write('too old to show', { created_at: ago(hours + 3) })
      await write('We are open\ntomorrow', {
        created_at: ago(hours + 2),
        direction: 'outbound',
        status: 'failed',
      })
      await write(null, { created_at: ago(hours + 1), type: 'IMAGE' })
      await write('for colleagues', { direction: 'system', status: 'system', note: true })
      await write('x'.repeat(61), {})
      return id
    }
    const shut = await wait('+15550100042', '15550100042', 30)
    const quiet = await wait('Quiet', '15550100043', 29, true)
    const open = await wait('Grace', '15550100044', 3)
    const { key } = await workspace.staff({ hide_phone_numbers: true })
    const { body } = await as(key)('inbox_queue', { limit: 100 })
    assert.deepEqual(idsOf(body), [shut, quiet, open])
    const [first, second, third] = body.data
    assert.deepEqual(first.messages, [
      { from: 'staff', text: 'We are open tomorrow', failed: true },
      { from: 'customer', text: '[IMAGE]' },
      { from: 'customer', text: `${'x'.repeat(59)}…` },
    ])
    assert.equal(first.contact.name, null)
    assert.deepEqual(
      [first.can_reply, first.window_closes_at, first.template_ids],
      [false, undefined, [templates['of_the_account'], templates['advertisement']]],
    )
    assert.deepEqual(second.template_ids, [templates['of_the_account']])
    assert.deepEqual(
      [third.can_reply, third.window_closes_at, third.template_ids],
      [true, ago(3 - 24), undefined],
    )
    assert.deepEqual(
      body.templates.map((one: { example: unknown }) => one.example),
      [
        { name: 'of_the_account', language: 'en_US', body: ['Ada'] },
        { name: 'advertisement', language: 'en_US', body: ['Ada'] },
      ],
    )
    const { next_cursor: cursor } = (await call('inbox_queue', { limit: 2 })).body
    assert.deepEqual((await call('inbox_queue', { limit: 2, cursor })).body.templates, [])
    // What it proposes can be sent.
    const sent = await callAs(server, workspace.owner.key)('messaging_send_template', {
      contact_id: first.contact.id,
      channel_id: first.channel_id,
      template: body.templates[0].example,
      dry_run: true,
    })
    assert.equal(sent.status, 201, sent.text)
    assert.equal((await call('inbox_queue', { limit: 1 })).body.total, 3)
  })
})
