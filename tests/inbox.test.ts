import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import fc from 'fast-check'
import { createChannel } from '../storage/admin.ts'
import { querySteps } from '../storage/conversation-lists.ts'
import { callAs, doAs, everyPage, plantContact } from './calls.ts'
import { everyDatabase, everyDoor, type Scene } from './doors.ts'
import { insertMessages, type NewMessage } from '../storage/messages.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from './servers.ts'
import type { Db } from '../storage/database.ts'

const START = Date.UTC(2026, 9, 1)
const at = (second: number): string => new Date(START + second * 1000).toISOString()

const plantPerson = (db: Db, workspaceId: string, name: string | null, phone: string): Promise<string> =>
  plantContact(db, workspaceId, { phone, name, email: null, attrs: {}, tagIds: [], groupIds: [] }, at(0))

type Talk = {
  contact_id: string | null; channel_id: string | null; state?: 'open' | 'closed'; assigned_staff_id?: string | null; assigned_team_id?: string | null
  reply_status?: 'incoming_no_reply' | 'outgoing_no_response' | null; last_activity_at?: string | null; created_at?: string; unread_count?: number
}

const plantTalk = async (db: Db, workspaceId: string, talk: Talk): Promise<string> => {
  const created = talk.created_at ?? talk.last_activity_at ?? at(0)
  const { id } = await db.insertInto('conversations').values({ workspace_id: workspaceId, state: 'open', ...talk, created_at: created, updated_at: talk.last_activity_at ?? created, last_activity_at: talk.last_activity_at ?? null })
    .returning('id').executeTakeFirstOrThrow()
  return id
}

const plantMessage = async (db: Db, workspaceId: string, message: Partial<NewMessage> & { conversation_id: string; created_at: string }, last = false): Promise<string> => {
  const [id] = await insertMessages(db, workspaceId, [{ channel_id: null, episode: 1, direction: 'inbound', type: 'TEXT', status: 'received', ...message }])
  if (last) await db.updateTable('conversations').set({ last_message_id: id! }).where('workspace_id', '=', workspaceId).where('id', '=', message.conversation_id).execute()
  return id!
}

const newChannel = async ({ db }: TestServer, workspace: TestWorkspace, name: string, type = 'chatapp'): Promise<string> =>
  (await createChannel(db, workspace.id, { type, name, status: 'connected' }, at(0))).id

const idsOf = (body: { data: { id: string }[] }): string[] => body.data.map((row) => row.id)

type Row = Required<Pick<Talk, 'contact_id' | 'channel_id' | 'state' | 'assigned_staff_id' | 'assigned_team_id' | 'reply_status'>> & { id: string; name: string | null; phone: string | null; activity: string }
type Planted = { workspace: TestWorkspace; key: string; channels: string[]; rows: Row[] }

const names = ['Ada', 'Émile Zola', null, 'ÆLF', '李小龍', 'ada bader', 'Zoë 100%']

/** 72 conversations of 24 contacts in which every combination of the filters occurs, with ties in time, and some whose contact, channel or messages are not there. */
const plant = async (server: TestServer): Promise<Planted> => {
  const workspace = await makeWorkspace(server)
  const channels = [await newChannel(server, workspace, 'One'), await newChannel(server, workspace, 'Two'), await newChannel(server, workspace, 'Three', 'web')]
  const staff = workspace.owner.staffId
  const people: { id: string; name: string | null; phone: string }[] = []
  for (let i = 0; i < 24; i++) {
    const person = { name: names[i % names.length]!, phone: `1555010${String(i * 131).padStart(4, '0')}` }
    people.push({ id: await plantPerson(server.db, workspace.id, person.name, person.phone), ...person })
  }
  const rows: Row[] = []
  for (let i = 0; i < 72; i++) {
    const person = i % 17 === 5 ? null : people[(i * 7) % 24]!
    const talk = {
      contact_id: person?.id ?? null, channel_id: i % 19 === 7 ? null : channels[i % 3]!, state: i & 1 ? 'closed' as const : 'open' as const,
      assigned_staff_id: (i >> 1) % 3 === 1 ? staff : null, assigned_team_id: (i >> 1) % 3 === 2 ? '77' : null,
      reply_status: ([null, 'incoming_no_reply', 'outgoing_no_response'] as const)[Math.floor(i / 6) % 3]!,
    }
    const activity = at((i * 5) % 29)
    const id = await plantTalk(server.db, workspace.id, { ...talk, ...(i % 11 === 3 ? { created_at: activity } : { created_at: at(-100), last_activity_at: activity }) })
    rows.push({ id, ...talk, name: person?.name ?? null, phone: person?.phone ?? null, activity })
  }
  return { workspace, key: workspace.owner.key, channels, rows }
}

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const filters = fc.record({
  query: maybe(fc.constantFrom('ADA', 'a', 'é', 'émile', 'ælf', '李小', '龍', '0100', '+1 555 010', '100%', '%', 'nobody')),
  state: maybe(fc.constantFrom('open', 'closed')), assigned: maybe(fc.boolean()), channel: maybe(fc.nat(2)), reply_status: maybe(fc.constantFrom('incoming_no_reply', 'outgoing_no_response')),
})
type Filters = typeof filters extends fc.Arbitrary<infer T> ? T : never

const inputOf = ({ channel, ...rest }: Filters, { channels }: Planted): Record<string, unknown> =>
  JSON.parse(JSON.stringify({ ...rest, ...(channel === undefined ? {} : { channel_id: channels[channel] }) })) as Record<string, unknown>

const holds = ({ query, state, assigned, channel, reply_status: reply }: Filters, { channels }: Planted) => (row: Row): boolean =>
  (query === undefined || (row.contact_id !== null && ((row.name ?? '').toLowerCase().includes(query.toLowerCase()) || (row.phone ?? '').includes(query.replaceAll(/[ +]/g, '') || query))))
  && (state === undefined || row.state === state) && (assigned === undefined || assigned === (row.assigned_staff_id !== null || row.assigned_team_id !== null))
  && (channel === undefined || row.channel_id === channels[channel]) && (reply === undefined || row.reply_status === reply)

const byActivity = (a: Row, b: Row): number => (a.activity === b.activity ? Number(BigInt(b.id) - BigInt(a.id)) : a.activity < b.activity ? 1 : -1)
const expected = (planted: Planted, wanted: Filters): string[] => planted.rows.filter(holds(wanted, planted)).toSorted(byActivity).map((row) => row.id)

const ways = { ...querySteps }
after(() => { Object.assign(querySteps, ways) })

everyDatabase('Conversation search', (server) => {
  let planting: Promise<Planted> | undefined
  const planted = (): Promise<Planted> => planting ??= plant(server())

  // Each way of finding what `query` asks for, and the usual one.
  for (const steps of [ways, { look: 0, few: 3000, walk: 0 }, { look: 0, few: 0, walk: 20_000 }, { look: 0, few: 0, walk: 0 }]) {
    it(`answers what holds all filters, newest activity first, in whole pages: ${JSON.stringify(steps)}`, async () => {
      const world = await planted()
      const run = doAs(server(), world.key)
      Object.assign(querySteps, steps)
      await fc.assert(fc.asyncProperty(filters, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 3 }), async (wanted, limits) => {
        const pages = await everyPage(run, 'inbox_search_conversations', inputOf(wanted, world), limits)
        assert.deepEqual(pages.flatMap(idsOf), expected(world, wanted))
      }), { numRuns: 60 })
      Object.assign(querySteps, ways)
    })
  }

  it('shows staff the conversations of their channels alone, in every list and filter', async () => {
    const world = await planted()
    const [one, two, three] = world.channels as [string, string, string]
    for (const [mine, query] of [[[one], undefined], [[one, three], 'a'], [[two, three], undefined], [[], undefined], [['999999'], 'ada']] as [string[], string | undefined][]) {
      const { key } = await world.workspace.staff({ channel_ids: mine })
      const run = doAs(server(), key)
      for (const wanted of [{}, { state: 'open' }, { assigned: false, reply_status: 'incoming_no_reply' }, { channel: 0 }, { channel: 1, state: 'closed' }] as Filters[]) {
        const asked = { ...wanted, query }
        const found = await run('inbox_search_conversations', { ...inputOf(asked, world), limit: 100 })
        const visible = new Set(world.rows.filter((row) => row.channel_id !== null && mine.includes(row.channel_id)).map((row) => row.id))
        assert.deepEqual(idsOf(found), expected(world, asked).filter((id) => visible.has(id)), JSON.stringify([mine, asked]))
      }
      for (const row of world.rows.slice(0, 12)) {
        const reaches = row.channel_id !== null && mine.includes(row.channel_id)
        for (const op of ['inbox_get_conversation', 'inbox_list_messages']) {
          const { status, body } = await callAs(server(), key)(op, { conversation_id: row.id })
          assert.equal(status, reaches ? 200 : 404)
          // Nothing tells a conversation of another channel from one that is not there.
          if (!reaches) assert.equal(body.detail, `No conversation with the id ${row.id}.`)
        }
      }
    }
  })

  it('shows each conversation that stays as it is exactly once while others come, move and go', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 3 }), fc.array(fc.nat(), { minLength: 1, maxLength: 6 }), fc.constantFrom({}, { state: 'open' }, { query: 'ada' }), async (limits, picks, wanted) => {
      const { db } = server()
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const channel = await newChannel(server(), workspace, 'One')
      const person = await plantPerson(db, workspace.id, 'Ada', '15550100001')
      const ids: string[] = []
      for (let i = 0; i < 24; i++) ids.push(await plantTalk(db, workspace.id, { contact_id: person, channel_id: channel, last_activity_at: at((i * 7) % 5) }))
      const moved = new Set<string>()
      const pages = await everyPage(run, 'inbox_search_conversations', wanted, limits, async (page) => {
        const id = ids[picks[page % picks.length]! % ids.length]!
        moved.add(id)
        await db.updateTable('conversations').set({ last_activity_at: at(1000 + page) }).where('workspace_id', '=', workspace.id).where('id', '=', id).execute()
        await plantTalk(db, workspace.id, { contact_id: person, channel_id: channel, last_activity_at: at(2000 + page) })
      })
      const seen = pages.flatMap(idsOf)
      assert.equal(new Set(seen).size, seen.length, 'none twice')
      for (const id of ids) assert.ok(moved.has(id) || seen.includes(id), `${id} is missing`)
    }), { numRuns: 8 })
  })

  it('refuses cursors of other filters, other people and of nobody, and takes another limit', async () => {
    const world = await planted()
    const call = callAs(server(), world.key)
    const cursor = (await call('inbox_search_conversations', { state: 'open', limit: 3 })).body.next_cursor as string
    assert.equal((await call('inbox_search_conversations', { state: 'open', limit: 9, cursor })).status, 200)
    const colleague = callAs(server(), (await world.workspace.staff({ role: 'manager' })).key)
    const other = callAs(server(), (await makeWorkspace(server())).owner.key)
    for (const [as, input] of [
      [call, { cursor }], [call, { state: 'closed', cursor }], [call, { state: 'open', assigned: true, cursor }], [call, { state: 'open', cursor: `${cursor}x` }], [call, { state: 'open', cursor: 'x' }],
      [colleague, { state: 'open', cursor }], [other, { state: 'open', cursor }],
    ] as const) {
      const { status, body } = await as('inbox_search_conversations', input)
      assert.deepEqual([status, body.reason], [400, 'cursor_invalid'])
    }
    assert.deepEqual((await other('inbox_search_conversations')).body, { data: [], next_cursor: null })
    assert.equal((await other('inbox_get_conversation', { conversation_id: world.rows[0]!.id })).status, 404)
  })

  it('refuses bad input with the field and finds nothing for ids that name nothing', async () => {
    const { key } = await planted()
    const call = callAs(server(), key)
    for (const [input, pointer] of [
      [{ query: '' }, '#/query'], [{ query: '  ' }, '#/query'], [{ query: 'x'.repeat(256) }, '#/query'], [{ query: 'a\0b' }, '#/query'], [{ state: 'Open' }, '#/state'], [{ assigned: 'maybe' }, '#/assigned'],
      [{ channel_id: '0' }, '#/channel_id'], [{ channel_id: 'x' }, '#/channel_id'], [{ reply_status: 'waiting' }, '#/reply_status'], [{ limit: 0 }, '#/limit'], [{ limit: 101 }, '#/limit'],
    ] as const) {
      const { status, body } = await call('inbox_search_conversations', input)
      assert.deepEqual([status, body.errors[0].pointer], [400, pointer], JSON.stringify(input))
    }
    assert.equal((await call('inbox_search_conversations', { query: '😀'.repeat(255) })).status, 200)
    for (const id of ['999999999', '9223372036854775807', '9223372036854775808', '9999999999999999999']) {
      assert.deepEqual((await call('inbox_search_conversations', { channel_id: id })).body.data, [])
      for (const [op, field] of [['inbox_get_conversation', 'conversation_id'], ['inbox_list_messages', 'conversation_id'], ['messaging_get_message', 'message_id']] as const) {
        assert.equal((await call(op, { [field]: id })).status, 404)
      }
    }
  })
})
