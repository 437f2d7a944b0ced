import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import fc from 'fast-check'
import { conversationSearchStrategy } from '../../storage/conversations/search.ts'
import { callAs, doAs, everyPage } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { at, insertContact, insertConversation, insertChannel, idsOf } from './inbox-rows.ts'
import {
  expectedIds,
  type Filters,
  filtersArbitrary,
  insertSearchData,
  type SearchData,
  toSearchInput,
} from './search-model.ts'

const defaultStrategy = { ...conversationSearchStrategy }

after(() => {
  Object.assign(conversationSearchStrategy, defaultStrategy)
})

everyDatabase('Conversation search', (server) => {
  let inserted: Promise<SearchData> | undefined
  const searchData = (): Promise<SearchData> => (inserted ??= insertSearchData(server()))

  // The default strategy, and settings that force each way to search for `query`.
  for (const strategy of [
    defaultStrategy,
    { headRows: 20, minHeadMatches: 1, maxContacts: 0, maxScannedRows: 20_000 },
    { headRows: 0, minHeadMatches: Infinity, maxContacts: 3000, maxScannedRows: 0 },
    { headRows: 0, minHeadMatches: Infinity, maxContacts: 0, maxScannedRows: 20_000 },
    { headRows: 0, minHeadMatches: Infinity, maxContacts: 0, maxScannedRows: 40 },
    { headRows: 0, minHeadMatches: Infinity, maxContacts: 0, maxScannedRows: 0 },
  ]) {
    it(`filters, order and pages with the strategy ${JSON.stringify(strategy)}`, async () => {
      const data = await searchData()
      const run = doAs(server(), data.key)
      Object.assign(conversationSearchStrategy, strategy)
      await fc.assert(
        fc.asyncProperty(
          filtersArbitrary,
          fc.array(fc.integer({ min: 5, max: 40 }), { minLength: 1, maxLength: 3 }),
          fc.boolean(),
          async (wanted, limits, count) => {
            const input = { ...toSearchInput(wanted, data), ...(count ? { count } : {}) }
            const pages = await everyPage(run, 'inbox_search_conversations', input, limits)
            const expected = expectedIds(data, wanted)
            assert.deepEqual(pages.flatMap(idsOf), expected)
            const known = expected.length <= limits[0]! || (count && wanted.query === undefined)
            assert.equal(pages[0]!.total, known ? expected.length : null)
          },
        ),
        { numRuns: runs(30, 200) },
      )
      Object.assign(conversationSearchStrategy, defaultStrategy)
    })
  }

  it('a day of a filter by age begins where the workspace is', async () => {
    const workspace = await makeWorkspace(server(), { timezone: 'Asia/Tokyo' })
    const insert = (last_activity_at: string) =>
      insertConversation(server().db, workspace.id, { contact_id: null, channel_id: null, last_activity_at })
    const before = await insert('2025-09-29T14:59:59.999Z')
    await insert('2025-09-29T15:00:00.000Z')
    const run = doAs(server(), workspace.owner.key)
    const found = await run('inbox_search_conversations', { last_message_before: '2025-09-30' })
    assert.deepEqual(idsOf(found), [before])
  })

  it('channel access: staff find and read only conversations of their channels', async () => {
    const data = await searchData()
    const [one, two, three] = data.channels as [string, string, string]
    for (const [mine, query] of [
      [[one], undefined],
      [[one, three], 'a'],
      [[two, three], undefined],
      [[], undefined],
      [['999999'], 'ada'],
    ] as [string[], string | undefined][]) {
      const { key } = await data.workspace.staff({ channel_ids: mine })
      const run = doAs(server(), key)
      for (const wanted of [
        {},
        { state: 'open' },
        { assigned: false, reply_status: 'incoming_no_reply' },
        { channel: 0 },
        { channel: 1, state: 'closed' },
        { assignee: 0 },
        { assignee: 1, sort: 'longest_wait' },
        { delivery: 'failed' },
        { delivery: 'unknown', sort: 'longest_wait' },
        { contact: 7 },
        { contact: 7, delivery: 'unknown' },
        { sort: 'longest_wait' },
      ] satisfies Filters[]) {
        const filter = { ...wanted, query }
        const found = await run('inbox_search_conversations', { ...toSearchInput(filter, data), limit: 100 })
        const visible = new Set(
          data.rows
            .filter((row) => row.channel_id !== null && mine.includes(row.channel_id))
            .map((row) => row.id),
        )
        assert.deepEqual(
          idsOf(found),
          expectedIds(data, filter).filter((id) => visible.has(id)),
          JSON.stringify([mine, filter]),
        )
      }
      for (const row of data.rows.slice(0, 12)) {
        const accessible = row.channel_id !== null && mine.includes(row.channel_id)
        for (const op of ['inbox_get_conversation', 'inbox_list_messages']) {
          const { status, body } = await callAs(server(), key)(op, { conversation_id: row.id })
          assert.equal(status, accessible ? 200 : 404)
          // The same answer as for a conversation that does not exist.
          if (!accessible) assert.equal(body.detail, `No conversation with the id ${row.id}.`)
        }
      }
    }
  })

  it('paging: an unchanged conversation appears exactly once while others are added and moved', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(
          {},
          { state: 'open' },
          { query: 'ada' },
          { assigned_staff_id: 'me' },
          { sort: 'longest_wait' },
        ),
        async (limits, picks, wanted) => {
          const { db } = server()
          const workspace = await makeWorkspace(server())
          const run = doAs(server(), workspace.owner.key)
          const channel = await insertChannel(server(), workspace, 'One')
          const person = await insertContact(db, workspace.id, 'Ada', '15550100001')
          const ids: string[] = []
          for (let i = 0; i < 24; i++)
            ids.push(
              await insertConversation(db, workspace.id, {
                contact_id: person,
                channel_id: channel,
                assigned_staff_id: workspace.owner.staffId,
                reply_status: i % 2 === 0 ? 'incoming_no_reply' : 'outgoing_no_response',
                waiting_since: at(i % 5),
                last_activity_at: at((i * 7) % 5),
              }),
            )
          const moved = new Set<string>()
          const pages = await everyPage(run, 'inbox_search_conversations', wanted, limits, async (page) => {
            const id = ids[picks[page % picks.length]! % ids.length]!
            moved.add(id)
            await db
              .updateTable('conversations')
              .set({ last_activity_at: at(1000 + page), waiting_since: at(-1000 - page) })
              .where('workspace_id', '=', workspace.id)
              .where('id', '=', id)
              .execute()
            await insertConversation(db, workspace.id, {
              contact_id: person,
              channel_id: channel,
              last_activity_at: at(2000 + page),
            })
          })
          const seen = pages.flatMap(idsOf)
          assert.equal(new Set(seen).size, seen.length, 'none twice')
          for (const id of ids) assert.ok(moved.has(id) || seen.includes(id), `${id} is missing`)
        },
      ),
      { numRuns: 8 },
    )
  })

  it('invalid input names the field; unknown ids are 404 or match nothing', async () => {
    const { key } = await searchData()
    const call = callAs(server(), key)
    for (const [input, pointer] of [
      [{ query: '' }, '#/query'],
      [{ query: '  ' }, '#/query'],
      [{ query: 'x'.repeat(256) }, '#/query'],
      [{ query: 'a\0b' }, '#/query'],
      [{ state: 'Open' }, '#/state'],
      [{ assigned: 'maybe' }, '#/assigned'],
      [{ channel_id: '0' }, '#/channel_id'],
      [{ channel_id: 'x' }, '#/channel_id'],
      [{ reply_status: 'waiting' }, '#/reply_status'],
      [{ assigned_staff_id: 'Me' }, '#/assigned_staff_id'],
      [{ assigned_staff_id: '0' }, '#/assigned_staff_id'],
      [{ contact_id: 'x' }, '#/contact_id'],
      [{ delivery: 'sent' }, '#/delivery'],
      [{ sort: 'oldest' }, '#/sort'],
      [{ limit: 0 }, '#/limit'],
      [{ limit: 101 }, '#/limit'],
    ] as const) {
      const { status, body } = await call('inbox_search_conversations', input)
      assert.deepEqual([status, body.errors[0].pointer], [400, pointer], JSON.stringify(input))
    }
    assert.equal((await call('inbox_search_conversations', { query: '😀'.repeat(255) })).status, 200)
    for (const id of ['999999999', '9223372036854775807', '9223372036854775808', '9999999999999999999']) {
      for (const field of ['channel_id', 'assigned_staff_id', 'contact_id'])
        assert.deepEqual((await call('inbox_search_conversations', { [field]: id })).body.data, [])
      for (const [op, field] of [
        ['inbox_get_conversation', 'conversation_id'],
        ['inbox_list_messages', 'conversation_id'],
        ['messaging_get_message', 'message_id'],
      ] as const) {
        assert.equal((await call(op, { [field]: id })).status, 404)
      }
    }
  })
})
