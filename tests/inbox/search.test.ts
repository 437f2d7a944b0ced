import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import fc from 'fast-check'
import { conversationSearchStrategy } from '../../storage/conversation-lists.ts'
import { callAs, doAs, everyPage } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import {
  at,
  insertContact,
  type ConversationFields,
  insertConversation,
  insertChannel,
  idsOf,
} from './inbox-rows.ts'

type ConversationRow = Required<
  Pick<
    ConversationFields,
    'contact_id' | 'channel_id' | 'state' | 'assigned_staff_id' | 'assigned_team_id' | 'reply_status'
  >
> & { id: string; name: string | null; phone: string | null; activity: string }

type SearchData = { workspace: TestWorkspace; key: string; channels: string[]; rows: ConversationRow[] }

const names = ['Ada', 'Émile Zola', null, 'ÆLF', '李小龍', 'ada bader', 'Zoë 100%']

/**
 * Inserts 72 conversations of 24 contacts with every combination of the filters and with equal times. Some
 * have no contact, no channel or no messages.
 */
const insertSearchData = async (server: TestServer): Promise<SearchData> => {
  const workspace = await makeWorkspace(server)
  const channels = [
    await insertChannel(server, workspace, 'One'),
    await insertChannel(server, workspace, 'Two'),
    await insertChannel(server, workspace, 'Three', 'web'),
  ]
  const staff = workspace.owner.staffId
  const contacts: { id: string; name: string | null; phone: string }[] = []
  for (let i = 0; i < 24; i++) {
    const person = { name: names[i % names.length]!, phone: `1555010${String(i * 131).padStart(4, '0')}` }
    contacts.push({ id: await insertContact(server.db, workspace.id, person.name, person.phone), ...person })
  }
  const rows: ConversationRow[] = []
  for (let i = 0; i < 72; i++) {
    const person = i % 17 === 5 ? null : contacts[(i * 7) % 24]!
    const fields = {
      contact_id: person?.id ?? null,
      channel_id: i % 19 === 7 ? null : channels[i % 3]!,
      state: i & 1 ? ('closed' as const) : ('open' as const),
      assigned_staff_id: (i >> 1) % 3 === 1 ? staff : null,
      assigned_team_id: (i >> 1) % 3 === 2 ? '77' : null,
      reply_status: ([null, 'incoming_no_reply', 'outgoing_no_response'] as const)[Math.floor(i / 6) % 3]!,
    }
    const activity = at((i * 5) % 29)
    const id = await insertConversation(server.db, workspace.id, {
      ...fields,
      ...(i % 11 === 3 ? { created_at: activity } : { created_at: at(-100), last_activity_at: activity }),
    })
    rows.push({ id, ...fields, name: person?.name ?? null, phone: person?.phone ?? null, activity })
  }
  return { workspace, key: workspace.owner.key, channels, rows }
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

const filtersArbitrary: fc.Arbitrary<Filters> = fc.record({
  query: optional(
    fc.constantFrom(
      'ADA',
      'a',
      'é',
      'émile',
      'ælf',
      '李小',
      '龍',
      '0100',
      '+1 555 010',
      '100%',
      '%',
      'nobody',
    ),
  ),
  state: optional(fc.constantFrom('open', 'closed')),
  assigned: optional(fc.boolean()),
  channel: optional(fc.nat(2)),
  reply_status: optional(fc.constantFrom('incoming_no_reply', 'outgoing_no_response')),
})

type Filters = {
  query?: string | undefined
  state?: string | undefined
  assigned?: boolean | undefined
  channel?: number | undefined
  reply_status?: string | undefined
}

const toSearchInput = ({ channel, ...rest }: Filters, { channels }: SearchData): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({ ...rest, ...(channel === undefined ? {} : { channel_id: channels[channel] }) }),
  ) as Record<string, unknown>

const matchesFilters =
  ({ query, state, assigned, channel, reply_status: reply }: Filters, { channels }: SearchData) =>
  (row: ConversationRow): boolean =>
    (query === undefined ||
      (row.contact_id !== null &&
        ((row.name ?? '').toLowerCase().includes(query.toLowerCase()) ||
          (row.phone ?? '').includes(query.replaceAll(/[ +]/g, '') || query)))) &&
    (state === undefined || row.state === state) &&
    (assigned === undefined ||
      assigned === (row.assigned_staff_id !== null || row.assigned_team_id !== null)) &&
    (channel === undefined || row.channel_id === channels[channel]) &&
    (reply === undefined || row.reply_status === reply)

const compareByActivity = (a: ConversationRow, b: ConversationRow): number =>
  a.activity === b.activity ? Number(BigInt(b.id) - BigInt(a.id)) : a.activity < b.activity ? 1 : -1

const expectedIds = (data: SearchData, filter: Filters): string[] =>
  data.rows
    .filter(matchesFilters(filter, data))
    .toSorted(compareByActivity)
    .map((row) => row.id)

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
          fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 3 }),
          async (wanted, limits) => {
            const pages = await everyPage(
              run,
              'inbox_search_conversations',
              toSearchInput(wanted, data),
              limits,
            )
            assert.deepEqual(pages.flatMap(idsOf), expectedIds(data, wanted))
          },
        ),
        { numRuns: 60 },
      )
      Object.assign(conversationSearchStrategy, defaultStrategy)
    })
  }

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
        fc.constantFrom({}, { state: 'open' }, { query: 'ada' }),
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
                last_activity_at: at((i * 7) % 5),
              }),
            )
          const moved = new Set<string>()
          const pages = await everyPage(run, 'inbox_search_conversations', wanted, limits, async (page) => {
            const id = ids[picks[page % picks.length]! % ids.length]!
            moved.add(id)
            await db
              .updateTable('conversations')
              .set({ last_activity_at: at(1000 + page) })
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

  it('cursor_invalid: for other filters, keys and workspaces; another limit is allowed', async () => {
    const data = await searchData()
    const call = callAs(server(), data.key)
    const cursor = (await call('inbox_search_conversations', { state: 'open', limit: 3 })).body
      .next_cursor as string
    assert.equal((await call('inbox_search_conversations', { state: 'open', limit: 9, cursor })).status, 200)
    const colleague = callAs(server(), (await data.workspace.staff({ role: 'manager' })).key)
    const other = callAs(server(), (await makeWorkspace(server())).owner.key)
    for (const [as, input] of [
      [call, { cursor }],
      [call, { state: 'closed', cursor }],
      [call, { state: 'open', assigned: true, cursor }],
      [call, { state: 'open', cursor: `${cursor}x` }],
      [call, { state: 'open', cursor: 'x' }],
      [colleague, { state: 'open', cursor }],
      [other, { state: 'open', cursor }],
    ] as const) {
      const { status, body } = await as('inbox_search_conversations', input)
      assert.deepEqual([status, body.reason], [400, 'cursor_invalid'])
    }
    assert.deepEqual((await other('inbox_search_conversations')).body, { data: [], next_cursor: null })
    assert.equal((await other('inbox_get_conversation', { conversation_id: data.rows[0]!.id })).status, 404)
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
      [{ limit: 0 }, '#/limit'],
      [{ limit: 101 }, '#/limit'],
    ] as const) {
      const { status, body } = await call('inbox_search_conversations', input)
      assert.deepEqual([status, body.errors[0].pointer], [400, pointer], JSON.stringify(input))
    }
    assert.equal((await call('inbox_search_conversations', { query: '😀'.repeat(255) })).status, 200)
    for (const id of ['999999999', '9223372036854775807', '9223372036854775808', '9999999999999999999']) {
      assert.deepEqual((await call('inbox_search_conversations', { channel_id: id })).body.data, [])
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
