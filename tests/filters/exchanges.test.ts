import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { fillExchanges } from '../../storage/contacts/exchanges.ts'
import type { Db } from '../../storage/database.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation, receiveMessage, sendReply } from '../inbox/conversations.ts'
import { runs } from '../level.ts'
import { createReplyScene } from '../messaging/replies.ts'
import { autonomous, makeWorkspace } from '../servers.ts'
import type { JsonObject, ModelContact } from './model.ts'
import { relatedIds, relativeDates, SEEDED_NOW } from './sample-values.ts'
import { assertTotal, findExpectedIds, toIds } from './search-model.ts'
import { seedEdgeCases } from './seed.ts'

/** What the triggers keep, and what the messages say. */
const assertKept = async (db: Db): Promise<void> => {
  const { rows } = await sql`
    (table contact_exchanges except select * from computed_exchanges)
    union all (select * from computed_exchanges except table contact_exchanges)`.execute(db)
  assert.deepEqual(rows, [])
}

everyDoor('Filters by when customers wrote and were answered', (test) => {
  test('find those who wait, in every door', async ({ server, workspace, call }) => {
    const at = (minutes: number) => new Date(Date.parse(server.app.now()) - minutes * 60_000).toISOString()
    await plantConversation(server, workspace.id, { name: 'Asked', inboundAt: at(60) })
    const answered = await plantConversation(server, workspace.id, { name: 'Answered', inboundAt: at(90) })
    await sendReply(server, workspace.id, answered.id, { at: at(30) })
    await plantConversation(server, workspace.id, { name: 'Silent', inboundAt: null })
    const cases: [JsonObject, string[]][] = [
      [{ neverAnswered: { eq: true } }, ['Asked']],
      [{ neverAnswered: { eq: false } }, ['Answered', 'Silent']],
      [{ neverAnswered: { isNull: true } }, []],
      [{ lastInboundAt: { gte: '-61m' } }, ['Asked']],
      [{ lastInboundAt: { lt: '-61m' } }, ['Answered']],
      [{ lastInboundAt: { isNull: true } }, ['Silent']],
      [{ lastOutboundAt: { between: ['-31m', 'now'] } }, ['Answered']],
      [{ lastOutboundAt: { isNull: true }, lastInboundAt: { isNull: false } }, ['Asked']],
    ]
    for (const [filter, names] of cases) {
      const { body } = await call('crm_search_contacts', { filter })
      assert.deepEqual(
        body.data.map(({ name }: { name: string }) => name).toSorted(),
        names,
        JSON.stringify(filter),
      )
      assert.equal((await call('crm_count_contacts', { filter })).body.count, names.length)
    }
    const { body } = await call('crm_check_filter', {
      filter: { neverAnswered: { eq: true }, lastInboundAt: { gt: '2026-01-01T00:00:00Z' } },
    })
    assert.equal(
      body.explanation,
      'Contacts that wrote and were never answered by a person and that last wrote after ' +
        '1 January 2026, 00:00 (UTC).',
    )
  })
})

/** Whom `neverAnswered` and the times name, by name. */
const createLook = (run: ReturnType<typeof doAs>) => async () => {
  const list = async (filter: object): Promise<string[]> =>
    toIds((await run('crm_search_contacts', { filter })).data).toSorted()
  return {
    never: await list({ neverAnswered: { eq: true } }),
    wrote: await list({ lastInboundAt: { isNull: false } }),
    writtenTo: await list({ lastOutboundAt: { isNull: false } }),
  }
}

everyDatabase('When customers wrote and were answered', (server) => {
  it('follows replies, failures, notes and agents', async () => {
    const scene = await createReplyScene(server())
    const { workspace, id, contactId, run, reply, sandbox, phone } = scene
    const look = createLook(run)
    const waits = { never: [contactId], wrote: [contactId], writtenTo: [] as string[] }
    assert.deepEqual(await look(), waits)
    await run('inbox_add_note', { conversation_id: id, text: 'Called her' })
    assert.deepEqual(await look(), waits)

    const agent = await workspace.key(workspace.owner.staffId, { agent: true, policy: autonomous })
    const byAgent = await callAs(server(), agent.key)(
      'messaging_send_reply',
      { conversation_id: id, text: 'I am a machine' },
      { confirm: 'send' },
    )
    assert.equal(byAgent.status, 201, byAgent.text)
    await server().settle()
    assert.deepEqual(await look(), { ...waits, writtenTo: [contactId] })

    const sent = (await reply({ text: 'Hi' })).body.message.id as string
    await server().settle()
    assert.deepEqual(await look(), { never: [], wrote: [contactId], writtenTo: [contactId] })
    await sandbox.status(sent, 'failed', 131026)
    assert.deepEqual(await look(), { ...waits, writtenTo: [contactId] })
    await sandbox.status(byAgent.body.message.id, 'failed', 131026)
    assert.deepEqual(await look(), waits)
    await sandbox.status(sent, 'read')
    assert.deepEqual(await look(), { never: [], wrote: [contactId], writtenTo: [contactId] })
    await sandbox.say({ from: `+${phone}`, text: 'Thanks' })
    const { data } = await run('inbox_list_messages', { conversation_id: id })
    const last = data.find((m: { direction: string }) => m.direction === 'inbound').created_at
    const { count } = await run('crm_count_contacts', { filter: { lastInboundAt: { eq: last } } })
    assert.equal(count, 1)
    await assertKept(server().db)
  })

  it('counts a message before the first of the customer as no answer, but one in another conversation', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const look = createLook(run)
    const first = await plantConversation(server(), workspace.id, { inboundAt: null })
    const at = (seconds: number) => new Date(Date.parse(server().app.now()) + seconds * 1000).toISOString()
    await sendReply(server(), workspace.id, first.id, { at: at(-50) })
    await receiveMessage(server(), workspace.id, first.id, { at: at(-40) })
    assert.deepEqual((await look()).never, [first.contactId])
    const other = await plantConversation(server(), workspace.id, { inboundAt: at(-30) })
    assert.equal((await look()).never.length, 2)
    await sendReply(server(), workspace.id, other.id, { at: at(-20) })
    assert.deepEqual((await look()).never, [first.contactId])
    const merge = { contact_id: first.contactId, other_contact_id: other.contactId }
    await run('crm_merge_contacts', merge)
    assert.deepEqual(await look(), { never: [], wrote: [first.contactId], writtenTo: [first.contactId] })
    await assertKept(server().db)
    await run('crm_undo_contact_merge', { merged_contact_id: other.contactId })
    const both = [first.contactId, other.contactId].toSorted()
    assert.deepEqual(await look(), { never: [first.contactId], wrote: both, writtenTo: both })
    await run('crm_delete_contact', { contact_id: first.contactId })
    await run('crm_erase_contact', { contact_id: other.contactId })
    await server().settle()
    assert.deepEqual(await look(), { never: [], wrote: [], writtenTo: [] })
    await assertKept(server().db)
    const { rows } = await sql`
      select 1 from contact_exchanges where workspace_id = ${workspace.id} and contact_id is not null`.execute(
      server().db,
    )
    assert.deepEqual(rows, [])
  })
})

/** Rows of messages that a transaction read. */
const countRowsRead = async (tx: Db): Promise<number> => {
  const { rows } = await sql<{ read: number }>`
    select (idx_tup_fetch + seq_tup_read)::int as read from pg_stat_xact_user_tables
    where relname = 'messages'`.execute(tx)
  return rows[0]!.read
}

everyDatabase('When customers wrote and were answered in long conversations', (server) => {
  const insertMany = (workspaceId: string, conversationId: string, count: number) =>
    sql`
      insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at)
      select ${workspaceId}, ${conversationId},
        case when n % 2 = 0 then 'outbound' else 'inbound' end, 'TEXT',
        case when n % 2 = 0 then 'sent' else 'received' end, 'Message ' || n, now() - n * interval '1 minute'
      from generate_series(1, ${count}::int) as n`.execute(server().db)

  it('is known of a message that fails or is deleted without reading all of the conversation', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: null })
    await insertMany(workspace.id, id, 5000)
    for (const [change, order] of [
      [
        sql`update messages set status = 'failed'`,
        sql`direction = 'outbound' and status <> 'failed' order by created_at desc`,
      ],
      [sql`delete from messages`, sql`direction = 'inbound' order by created_at desc`],
      [sql`delete from messages`, sql`direction = 'inbound' order by created_at`],
      [sql`delete from messages`, sql`direction = 'outbound' order by created_at offset 100`],
    ])
      await server()
        .db.transaction()
        .execute(async (tx) => {
          const { rows } = await sql<{ id: string }>`
          select id from messages
          where workspace_id = ${workspace.id} and conversation_id = ${id} and ${order} limit 1`.execute(tx)
          const before = await countRowsRead(tx)
          await sql`${change} where workspace_id = ${workspace.id} and id = ${rows[0]!.id}`.execute(tx)
          const read = (await countRowsRead(tx)) - before
          assert.ok(read <= 20, `${read} rows`)
        })
    await assertKept(server().db)
  })

  it('agrees with the messages after any changes of them', async () => {
    const workspace = await makeWorkspace(server())
    const agent = await workspace.key(workspace.owner.staffId, { agent: true, policy: autonomous })
    const { rows: keys } = await sql<{ id: string }>`
      select id from api_keys where workspace_id = ${workspace.id} order by agent`.execute(server().db)
    assert.ok(agent.key)
    const conversations: string[] = []
    for (const _ of [1, 2])
      conversations.push((await plantConversation(server(), workspace.id, { inboundAt: null })).id)
    const kinds = [
      'inbound received',
      'outbound sent',
      'outbound pending',
      'outbound failed',
      'system system',
    ]
    const message = fc.record({
      kind: fc.constantFrom(...kinds),
      at: fc.nat(5),
      place: fc.nat(1),
      key: fc.constantFrom(null, ...keys.map((key) => key.id)),
    })
    const change = fc.record({
      which: fc.nat(19),
      to: fc.constantFrom('sent', 'failed', 'read', 'move', 'delete'),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { minLength: 1, maxLength: 20 }),
        fc.array(change, { maxLength: 12 }),
        async (messages, changes) => {
          await sql`delete from messages where workspace_id = ${workspace.id}`.execute(server().db)
          await assertKept(server().db)
          const ids: string[] = []
          for (const { kind, at, place, key } of messages) {
            const [direction, status] = kind.split(' ')
            const { rows } = await sql<{ id: string }>`
              insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at, key_id)
              values (${workspace.id}, ${conversations[place]!}, ${direction}, 'TEXT', ${status}, 'Hi',
                '2026-01-01'::timestamptz + ${at}::int * interval '1 hour', ${key}) returning id`.execute(
              server().db,
            )
            ids.push(rows[0]!.id)
          }
          for (const { which, to } of changes) {
            const here = sql`where workspace_id = ${workspace.id} and id = ${ids[which % ids.length]!}`
            if (to === 'delete') await sql`delete from messages ${here}`.execute(server().db)
            else if (to === 'move')
              await sql`
                update messages set conversation_id = case when conversation_id = ${conversations[0]!}
                  then ${conversations[1]!}::bigint else ${conversations[0]!}::bigint end ${here}`.execute(
                server().db,
              )
            else
              await sql`update messages set status = ${to} ${here} and direction = 'outbound'`.execute(
                server().db,
              )
          }
          await assertKept(server().db)
        },
      ),
      { numRuns: runs(30, 300) },
    )
  })
})

const date = fc.constantFrom(...relativeDates, '2026-03-01', '2026-02-28T12:00:00Z')
const fieldFilter = fc.oneof(
  ...['lastInboundAt', 'lastOutboundAt'].map((field) =>
    fc
      .oneof(
        ...['gt', 'gte', 'lt', 'lte', 'ne'].map((op) => date.map((at): JsonObject => ({ [op]: at }))),
        fc.tuple(date, date).map((between): JsonObject => ({ between })),
        fc.boolean().map((isNull): JsonObject => ({ isNull })),
      )
      .map((tests): JsonObject => ({ [field]: tests })),
  ),
  fc.boolean().map((value): JsonObject => ({ neverAnswered: { eq: value } })),
)
const anyFilter = fc.oneof(
  fieldFilter,
  fc.tuple(fieldFilter, fieldFilter).map((and): JsonObject => ({ and })),
  fc.tuple(fieldFilter, fieldFilter).map((or): JsonObject => ({ or })),
  fieldFilter.map((not): JsonObject => ({ not })),
)

everyDatabase(
  'Generated filters by when customers wrote and were answered',
  (server) => {
    const search = (key: string) => async (filter: JsonObject) =>
      await doAs(server(), key)('crm_search_contacts', { filter, limit: 100 })

    it('agree with the model, also on some channels alone', async () => {
      const seed = await seedEdgeCases(server(), 150)
      const all = search(seed.workspace.owner.key)
      const channels = relatedIds.channels.slice(0, 2)
      const limited = search((await seed.workspace.staff({ channel_ids: channels })).key)
      const visible = seed.contacts.map((contact): ModelContact => ({
        ...contact,
        conversations: contact.conversations.filter((v) => channels.includes(v.channelId!)),
      }))
      const assertMatches = () =>
        fc.assert(
          fc.asyncProperty(anyFilter, async (filter) => {
            for (const [run, contacts] of [
              [all, seed.contacts],
              [limited, visible],
            ] as const) {
              const expected = findExpectedIds({ ...seed, contacts }, { filter })
              const page = await run(filter)
              assert.deepEqual(toIds(page.data), expected.slice(0, 100))
              assertTotal(page, expected.length)
            }
          }),
          { numRuns: runs(30, 200) },
        )
      await assertKept(server().db)
      await assertMatches()
      await sql`truncate contact_exchanges`.execute(server().db)
      await fillExchanges(server().db)
      await assertKept(server().db)
    })
  },
  { now: () => SEEDED_NOW, dedicated: true },
)
