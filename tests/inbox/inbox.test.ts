import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { createChannel, createTeam } from '../../storage/admin.ts'
import { conversationSearchStrategy } from '../../storage/conversation-lists.ts'
import type { Db } from '../../storage/database.ts'
import { insertMessages, type NewMessage } from '../../storage/messages.ts'
import { insertSlaPolicy } from '../../storage/sla.ts'
import { clipText } from '../../server/messaging/view.ts'
import { callAs, doAs, everyPage, plantContact } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const START = Date.UTC(2026, 9, 1)
const at = (second: number): string => new Date(START + second * 1000).toISOString()

const plantPerson = (db: Db, workspaceId: string, name: string | null, phone: string): Promise<string> =>
  plantContact(db, workspaceId, { phone, name, email: null, attrs: {}, tagIds: [], groupIds: [] }, at(0))

type Talk = {
  contact_id: string | null
  channel_id: string | null
  state?: 'open' | 'closed'
  assigned_staff_id?: string | null
  assigned_team_id?: string | null
  reply_status?: 'incoming_no_reply' | 'outgoing_no_response' | null
  last_activity_at?: string | null
  created_at?: string
  unread_count?: number
}

const plantTalk = async (db: Db, workspaceId: string, talk: Talk): Promise<string> => {
  const created = talk.created_at ?? talk.last_activity_at ?? at(0)
  const { id } = await db
    .insertInto('conversations')
    .values({
      workspace_id: workspaceId,
      state: 'open',
      ...talk,
      created_at: created,
      updated_at: talk.last_activity_at ?? created,
      last_activity_at: talk.last_activity_at ?? null,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

const plantMessage = async (
  db: Db,
  workspaceId: string,
  message: Partial<NewMessage> & { conversation_id: string; created_at: string },
  last = false,
): Promise<string> => {
  const [id] = await insertMessages(db, workspaceId, [
    { channel_id: null, episode: 1, direction: 'inbound', type: 'TEXT', status: 'received', ...message },
  ])
  if (last)
    await db
      .updateTable('conversations')
      .set({ last_message_id: id! })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', message.conversation_id)
      .execute()
  return id!
}

const newChannel = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  name: string,
  type = 'chatapp',
): Promise<string> => (await createChannel(db, workspace.id, { type, name, status: 'connected' }, at(0))).id

const idsOf = (body: { data: { id: string }[] }): string[] => body.data.map((row) => row.id)

type Row = Required<
  Pick<
    Talk,
    'contact_id' | 'channel_id' | 'state' | 'assigned_staff_id' | 'assigned_team_id' | 'reply_status'
  >
> & { id: string; name: string | null; phone: string | null; activity: string }
type Planted = { workspace: TestWorkspace; key: string; channels: string[]; rows: Row[] }

const names = ['Ada', 'Émile Zola', null, 'ÆLF', '李小龍', 'ada bader', 'Zoë 100%']

/**
 * 72 conversations of 24 contacts in which every combination of the filters occurs, with ties in time, and
 * some whose contact, channel or messages are not there.
 */
const plant = async (server: TestServer): Promise<Planted> => {
  const workspace = await makeWorkspace(server)
  const channels = [
    await newChannel(server, workspace, 'One'),
    await newChannel(server, workspace, 'Two'),
    await newChannel(server, workspace, 'Three', 'web'),
  ]
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
      contact_id: person?.id ?? null,
      channel_id: i % 19 === 7 ? null : channels[i % 3]!,
      state: i & 1 ? ('closed' as const) : ('open' as const),
      assigned_staff_id: (i >> 1) % 3 === 1 ? staff : null,
      assigned_team_id: (i >> 1) % 3 === 2 ? '77' : null,
      reply_status: ([null, 'incoming_no_reply', 'outgoing_no_response'] as const)[Math.floor(i / 6) % 3]!,
    }
    const activity = at((i * 5) % 29)
    const id = await plantTalk(server.db, workspace.id, {
      ...talk,
      ...(i % 11 === 3 ? { created_at: activity } : { created_at: at(-100), last_activity_at: activity }),
    })
    rows.push({ id, ...talk, name: person?.name ?? null, phone: person?.phone ?? null, activity })
  }
  return { workspace, key: workspace.owner.key, channels, rows }
}

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const filters: fc.Arbitrary<Filters> = fc.record({
  query: maybe(
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
  state: maybe(fc.constantFrom('open', 'closed')),
  assigned: maybe(fc.boolean()),
  channel: maybe(fc.nat(2)),
  reply_status: maybe(fc.constantFrom('incoming_no_reply', 'outgoing_no_response')),
})
type Filters = {
  query?: string | undefined
  state?: string | undefined
  assigned?: boolean | undefined
  channel?: number | undefined
  reply_status?: string | undefined
}

const inputOf = ({ channel, ...rest }: Filters, { channels }: Planted): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({ ...rest, ...(channel === undefined ? {} : { channel_id: channels[channel] }) }),
  ) as Record<string, unknown>

const holds =
  ({ query, state, assigned, channel, reply_status: reply }: Filters, { channels }: Planted) =>
  (row: Row): boolean =>
    (query === undefined ||
      (row.contact_id !== null &&
        ((row.name ?? '').toLowerCase().includes(query.toLowerCase()) ||
          (row.phone ?? '').includes(query.replaceAll(/[ +]/g, '') || query)))) &&
    (state === undefined || row.state === state) &&
    (assigned === undefined ||
      assigned === (row.assigned_staff_id !== null || row.assigned_team_id !== null)) &&
    (channel === undefined || row.channel_id === channels[channel]) &&
    (reply === undefined || row.reply_status === reply)

const byActivity = (a: Row, b: Row): number =>
  a.activity === b.activity ? Number(BigInt(b.id) - BigInt(a.id)) : a.activity < b.activity ? 1 : -1
const expected = (planted: Planted, wanted: Filters): string[] =>
  planted.rows
    .filter(holds(wanted, planted))
    .toSorted(byActivity)
    .map((row) => row.id)

const ways = { ...conversationSearchStrategy }
after(() => {
  Object.assign(conversationSearchStrategy, ways)
})

everyDatabase('Conversation search', (server) => {
  let planting: Promise<Planted> | undefined
  const planted = (): Promise<Planted> => (planting ??= plant(server()))

  // Each way of finding what `query` asks for, and the usual one.
  for (const steps of [
    ways,
    { look: 20, telling: 1, few: 0, walk: 20_000 },
    { look: 0, telling: Infinity, few: 3000, walk: 0 },
    { look: 0, telling: Infinity, few: 0, walk: 20_000 },
    { look: 0, telling: Infinity, few: 0, walk: 40 },
    { look: 0, telling: Infinity, few: 0, walk: 0 },
  ]) {
    it(`answers what holds all filters, newest activity first, in whole pages: ${JSON.stringify(steps)}`, async () => {
      const world = await planted()
      const run = doAs(server(), world.key)
      Object.assign(conversationSearchStrategy, steps)
      await fc.assert(
        fc.asyncProperty(
          filters,
          fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 3 }),
          async (wanted, limits) => {
            const pages = await everyPage(run, 'inbox_search_conversations', inputOf(wanted, world), limits)
            assert.deepEqual(pages.flatMap(idsOf), expected(world, wanted))
          },
        ),
        { numRuns: 60 },
      )
      Object.assign(conversationSearchStrategy, ways)
    })
  }

  it('shows staff the conversations of their channels alone, in every list and filter', async () => {
    const world = await planted()
    const [one, two, three] = world.channels as [string, string, string]
    for (const [mine, query] of [
      [[one], undefined],
      [[one, three], 'a'],
      [[two, three], undefined],
      [[], undefined],
      [['999999'], 'ada'],
    ] as [string[], string | undefined][]) {
      const { key } = await world.workspace.staff({ channel_ids: mine })
      const run = doAs(server(), key)
      for (const wanted of [
        {},
        { state: 'open' },
        { assigned: false, reply_status: 'incoming_no_reply' },
        { channel: 0 },
        { channel: 1, state: 'closed' },
      ] satisfies Filters[]) {
        const asked = { ...wanted, query }
        const found = await run('inbox_search_conversations', { ...inputOf(asked, world), limit: 100 })
        const visible = new Set(
          world.rows
            .filter((row) => row.channel_id !== null && mine.includes(row.channel_id))
            .map((row) => row.id),
        )
        assert.deepEqual(
          idsOf(found),
          expected(world, asked).filter((id) => visible.has(id)),
          JSON.stringify([mine, asked]),
        )
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
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(), { minLength: 1, maxLength: 6 }),
        fc.constantFrom({}, { state: 'open' }, { query: 'ada' }),
        async (limits, picks, wanted) => {
          const { db } = server()
          const workspace = await makeWorkspace(server())
          const run = doAs(server(), workspace.owner.key)
          const channel = await newChannel(server(), workspace, 'One')
          const person = await plantPerson(db, workspace.id, 'Ada', '15550100001')
          const ids: string[] = []
          for (let i = 0; i < 24; i++)
            ids.push(
              await plantTalk(db, workspace.id, {
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
            await plantTalk(db, workspace.id, {
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

  it('refuses cursors of other filters, other people and of nobody, and takes another limit', async () => {
    const world = await planted()
    const call = callAs(server(), world.key)
    const cursor = (await call('inbox_search_conversations', { state: 'open', limit: 3 })).body
      .next_cursor as string
    assert.equal((await call('inbox_search_conversations', { state: 'open', limit: 9, cursor })).status, 200)
    const colleague = callAs(server(), (await world.workspace.staff({ role: 'manager' })).key)
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
    assert.equal((await other('inbox_get_conversation', { conversation_id: world.rows[0]!.id })).status, 404)
  })

  it('refuses bad input with the field and finds nothing for ids that name nothing', async () => {
    const { key } = await planted()
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

const update = async (
  { db }: TestServer,
  workspaceId: string,
  id: string,
  fields: Record<string, unknown>,
): Promise<void> => {
  await db
    .updateTable('conversations')
    .set(fields)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

everyDoor('A conversation', (test) => {
  test('is shown with its customer, channel, holder, tags, clocks, window and last message, alike in lists and alone', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const { db } = server
    const channel = await newChannel(server, workspace, 'Shop')
    const {
      body: { group },
    } = await call('crm_create_group', { name: 'Éclair' })
    const {
      body: { id: contact },
    } = await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada', group_ids: [group.id] })
    await call('crm_update_contact', { contact_id: contact, starred: true, dnd: true })
    const id = await plantTalk(db, workspace.id, {
      contact_id: contact,
      channel_id: channel,
      assigned_staff_id: workspace.owner.staffId,
      reply_status: 'incoming_no_reply',
      last_activity_at: at(7),
      created_at: at(1),
      unread_count: 3,
    })
    const policy = await insertSlaPolicy(
      db,
      workspace.id,
      {
        name: 'Gold',
        enabled: true,
        channel_ids: null,
        first_response_seconds: 60,
        next_response_seconds: null,
        resolution_seconds: null,
        hours: null,
      },
      at(0),
    )
    const now = Date.parse(server.app.now())
    const ago = (ms: number): string => new Date(now - ms).toISOString()
    const inbound = ago(3_600_000)
    const closes = new Date(Date.parse(inbound) + 24 * 3_600_000).toISOString()
    await update(server, workspace.id, id, {
      assigned_at: at(5),
      reminder_at: at(9),
      last_inbound_at: inbound,
      window_expires_at: closes,
      sla_policy_id: policy.id,
      first_response_due_at: ago(-60_000),
      resolution_due_at: ago(-90_000),
      bot_active: true,
      updated_at: at(8),
    })
    const tags = []
    for (const name of ['zulu', 'Alpha'])
      tags.push(
        await db
          .insertInto('tags')
          .values({ workspace_id: workspace.id, name, name_key: name.toLowerCase(), created_at: at(0) })
          .returning(['id', 'name'])
          .executeTakeFirstOrThrow(),
      )
    await db
      .insertInto('conversation_tags')
      .values(tags.map((tag) => ({ workspace_id: workspace.id, conversation_id: id, tag_id: tag.id })))
      .execute()
    const text = `${'x'.repeat(498)}👨‍👩‍👧!`
    const first = await plantMessage(db, workspace.id, {
      conversation_id: id,
      created_at: at(6),
      text: 'First',
    })
    const last = await plantMessage(
      db,
      workspace.id,
      {
        conversation_id: id,
        created_at: at(7),
        text,
        reply_to_id: first,
        type: 'IMAGE',
        media: { state: 'kept', content_type: 'image/png', size: 70 },
      },
      true,
    )
    await plantMessage(db, workspace.id, {
      conversation_id: id,
      created_at: at(8),
      text: 'Among us',
      direction: 'system',
      status: 'system',
      note: true,
      staff_id: workspace.owner.staffId,
    })
    const expectedRow = {
      id,
      state: 'open',
      contact: { id: contact, name: 'Ada', phone: '15550100042', dnd_enabled: true, groups: ['Éclair'] },
      channel: { id: channel, name: 'Shop', type: 'chatapp' },
      assignee: { staff_id: workspace.owner.staffId, name: 'Owner' },
      team_id: null,
      assigned_at: at(5),
      tags: [tags[1], tags[0]],
      starred: true,
      unread_count: 3,
      reply_status: 'incoming_no_reply',
      sla: {
        status: 'running',
        next_due_at: ago(-60_000),
        next_due_metric: 'first_response',
        policy: 'Gold',
      },
      reminder_at: at(9),
      chatapp_window_expires_at: closes,
      window: {
        applies: true,
        open: true,
        kind: 'service',
        closes_at: closes,
        closed_at: null,
        reason: null,
      },
      bot_active: true,
      last_message: {
        id: last,
        conversation_id: id,
        type: 'IMAGE',
        direction: 'inbound',
        status: 'received',
        text: 'x'.repeat(498),
        text_truncated: true,
        has_media: true,
        from: null,
        reply_to_id: first,
        error: null,
        created_at: at(7),
      },
      created_at: at(1),
      updated_at: at(8),
    }
    assert.deepEqual((await call('inbox_get_conversation', { conversation_id: id })).body, expectedRow)
    assert.deepEqual(
      (await call('inbox_search_conversations', { query: 'ADA' })).body,
      { data: [expectedRow], next_cursor: null },
      door.name,
    )
  })

  test('without contact, channel, message or level of service shows null for them', async ({
    server,
    workspace,
    call,
  }) => {
    const channel = await newChannel(server, workspace, 'Shop')
    const contact = await plantPerson(server.db, workspace.id, 'Ada', '15550100001')
    const team = await createTeam(server.db, workspace.id, 'Team', at(0))
    const gone = await plantTalk(server.db, workspace.id, {
      contact_id: contact,
      channel_id: channel,
      assigned_team_id: team.id,
      last_activity_at: at(2),
    })
    const bare = await plantTalk(server.db, workspace.id, {
      contact_id: null,
      channel_id: null,
      created_at: at(1),
    })
    assert.equal((await call('inbox_get_conversation', { conversation_id: gone })).body.contact.id, contact)
    await call('crm_delete_contact', { contact_id: contact }, { confirm: 'delete' }).then(
      async ({ status }) => {
        // Through a door that cannot confirm, it is deleted by another.
        if (status === 428)
          await doAs(server, workspace.owner.key)('crm_delete_contact', { contact_id: contact })
      },
    )
    const { data } = (await call('inbox_search_conversations')).body
    assert.deepEqual(idsOf({ data }), [gone, bare])
    assert.deepEqual(
      [data[0].contact, data[0].starred, data[0].team_id, data[0].assignee],
      [null, false, team.id, null],
    )
    assert.deepEqual(
      [data[1].contact, data[1].channel, data[1].last_message, data[1].sla, data[1].team_id],
      [null, null, null, null, null],
    )
    assert.deepEqual(data[1].window, {
      applies: true,
      open: false,
      kind: null,
      closes_at: null,
      closed_at: null,
      reason: 'no_window',
    })
    assert.deepEqual((await call('inbox_search_conversations', { query: 'ada' })).body.data, [])
    assert.deepEqual(idsOf((await call('inbox_search_conversations', { assigned: true })).body), [gone])
    assert.deepEqual(idsOf((await call('inbox_search_conversations', { assigned: false })).body), [bare])
  })

  test('tells no phone to those from whom phones are hidden, and is not found by digits', async ({
    server,
    workspace,
    as,
    call,
  }) => {
    const channel = await newChannel(server, workspace, 'Shop')
    const contact = await plantPerson(server.db, workspace.id, 'Ada', '15550100042')
    const id = await plantTalk(server.db, workspace.id, {
      contact_id: contact,
      channel_id: channel,
      last_activity_at: at(2),
    })
    await plantMessage(server.db, workspace.id, {
      conversation_id: id,
      created_at: at(1),
      type: 'SYSTEM',
      direction: 'system',
      status: 'system',
      text: 'Moved from 15550100041 to 15550100042',
    })
    const failed = await plantMessage(
      server.db,
      workspace.id,
      {
        conversation_id: id,
        created_at: at(2),
        direction: 'outbound',
        status: 'failed',
        text: 'Hello',
        error: 'Recipient 15550100042 cannot be reached',
      },
      true,
    )
    const agent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    for (const [op, input] of [
      ['inbox_search_conversations', { query: 'ada' }],
      ['inbox_get_conversation', { conversation_id: id }],
      ['inbox_list_messages', { conversation_id: id }],
      ['messaging_get_message', { message_id: failed }],
    ] as const) {
      const [hidden, shown] = [await agent(op, input), await call(op, input)]
      assert.equal(hidden.status, 200)
      assert.doesNotMatch(hidden.text, /15550100/, op)
      assert.match(hidden.text, /\*\*\*042/)
      assert.match(shown.text, /15550100042/)
    }
    for (const query of ['0042', '+1 555', '٥', 'Ada 5']) {
      const { status, body } = await agent('inbox_search_conversations', { query })
      assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', 'phone_hidden'])
      assert.equal((await call('inbox_search_conversations', { query })).status, 200)
    }
  })
})

everyDoor('Messages of a conversation', (test) => {
  test('are listed newest first with notes, and got one by one', async ({ server, workspace, call, as }) => {
    const { db } = server
    const staff = workspace.owner.staffId
    const [channel, other] = [
      await newChannel(server, workspace, 'Shop'),
      await newChannel(server, workspace, 'Elsewhere'),
    ]
    const talk = await plantTalk(db, workspace.id, {
      contact_id: await plantPerson(db, workspace.id, 'Ada', '15550100042'),
      channel_id: channel,
    })
    const beside = await plantTalk(db, workspace.id, { contact_id: null, channel_id: other })
    const ids: string[] = []
    const long = 'é'.repeat(4000)
    for (const message of [
      { created_at: at(1), text: long },
      {
        created_at: at(2),
        direction: 'outbound',
        status: 'read',
        type: 'TEMPLATE',
        text: 'Hi',
        template_name: 'hello',
        template_language: 'en',
        staff_id: staff,
      },
      {
        created_at: at(2),
        direction: 'outbound',
        status: 'sent',
        type: 'IMAGE',
        media: { state: 'linked', url: 'https://example.com/a.png' },
      },
      { created_at: at(2), direction: 'system', status: 'system', note: true, text: 'Note', staff_id: staff },
      {
        created_at: at(3),
        type: 'DOCUMENT',
        text: null,
        media: { state: 'kept', content_type: 'application/pdf', file_name: 'a.pdf', size: 123 },
      },
      { created_at: at(4), type: 'VIDEO', media: { state: 'lost', content_type: 'video/mp4' } },
    ] as const)
      ids.push(
        await plantMessage(db, workspace.id, { conversation_id: talk, channel_id: channel, ...message }),
      )
    await plantMessage(db, workspace.id, { conversation_id: beside, channel_id: other, created_at: at(9) })
    await db
      .updateTable('messages')
      .set({ delivered_at: at(5), read_at: at(6) })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', ids[1]!)
      .execute()
    const all = (await call('inbox_list_messages', { conversation_id: talk })).body
    assert.deepEqual(idsOf(all), [...ids].reverse())
    assert.equal(all.next_cursor, null)
    const shared = {
      conversation_id: talk,
      reply_to_id: null,
      error: null,
      text_truncated: false,
      failed_at: null,
    }
    const fresh = { ...shared, delivered_at: null, read_at: null, template: null, note: false }
    const grace = { staff_id: staff, name: 'Owner' }
    const [lost, kept, note, linked, template, text] = all.data
    assert.deepEqual(lost.media, { content_type: 'video/mp4', file_name: null, size: null, url: null })
    assert.deepEqual(kept, {
      ...fresh,
      id: ids[4],
      type: 'DOCUMENT',
      direction: 'inbound',
      status: 'received',
      text: null,
      has_media: true,
      from: null,
      created_at: at(3),
      media: {
        content_type: 'application/pdf',
        file_name: 'a.pdf',
        size: 123,
        url: `${server.url}/v1/messages/${ids[4]}/media`,
      },
    })
    assert.deepEqual(note, {
      ...fresh,
      id: ids[3],
      type: 'TEXT',
      direction: 'system',
      status: 'system',
      text: 'Note',
      has_media: false,
      from: grace,
      created_at: at(2),
      media: null,
      note: true,
    })
    assert.deepEqual(
      [linked.media.url, linked.from],
      ['https://example.com/a.png', { staff_id: null, name: null }],
    )
    assert.deepEqual(template, {
      ...fresh,
      id: ids[1],
      type: 'TEMPLATE',
      direction: 'outbound',
      status: 'read',
      text: 'Hi',
      has_media: false,
      from: grace,
      created_at: at(2),
      media: null,
      template: { name: 'hello', language: 'en' },
      delivered_at: at(5),
      read_at: at(6),
    })
    assert.equal(text.text, long)
    for (const message of all.data)
      assert.deepEqual((await call('messaging_get_message', { message_id: message.id })).body, message)
    for (const limit of [1, 2, 4]) {
      const pages = await everyPage(
        async (op, input) => (await call(op, input)).body,
        'inbox_list_messages',
        { conversation_id: talk },
        [limit],
      )
      assert.deepEqual(
        pages.flatMap((page) => page.data as unknown[]),
        all.data,
      )
    }
    const cursor = (await call('inbox_list_messages', { conversation_id: talk, limit: 1 })).body.next_cursor
    assert.equal(
      (await call('inbox_list_messages', { conversation_id: beside, cursor })).body.reason,
      'cursor_invalid',
    )
    const agent = as((await workspace.staff({ channel_ids: [other] })).key)
    assert.equal((await agent('messaging_get_message', { message_id: ids[0] })).status, 404)
    assert.equal((await agent('inbox_list_messages', { conversation_id: talk })).status, 404)
    assert.equal((await agent('inbox_list_messages', { conversation_id: beside })).body.data.length, 1)
  })
})

everyDatabase('The timeline of a contact', (server) => {
  it('is its ten conversations of latest activity, of the channels that the reader may use', async () => {
    const { db } = server()
    const workspace = await makeWorkspace(server())
    const [one, two] = [
      await newChannel(server(), workspace, 'One'),
      await newChannel(server(), workspace, 'Two'),
    ]
    const contact = await plantPerson(db, workspace.id, 'Ada', '15550100042')
    const talks: { id: string; channel: string; activity: string; last: string | null }[] = []
    for (let i = 0; i < 24; i++) {
      const [activity, silent, channel] = [at((i * 7) % 24), i % 3 === 0, i % 2 ? one : two]
      const id = await plantTalk(db, workspace.id, {
        contact_id: contact,
        channel_id: channel,
        ...(silent ? { created_at: activity } : { created_at: at(-1), last_activity_at: activity }),
      })
      talks.push({ id, channel, activity, last: silent ? null : activity })
    }
    await sql`update contacts set last_activity_at = ${at(23)} where workspace_id = ${workspace.id}`.execute(
      db,
    )
    const newest = talks.toSorted((a, b) => (a.activity < b.activity ? 1 : -1))
    const agent = await workspace.staff({ channel_ids: [two] })
    for (const [key, visible] of [
      [workspace.owner.key, newest],
      [agent.key, newest.filter((t) => t.channel === two)],
    ] as const) {
      const run = doAs(server(), key)
      const found = await run('crm_get_contact', { contact_id: contact })
      assert.deepEqual(
        idsOf({ data: found.conversations }),
        visible.slice(0, 10).map((t) => t.id),
      )
      assert.equal(found.unavailable, undefined)
      const {
        data: [listed],
      } = await run('crm_search_contacts', { query: 'ada' })
      assert.deepEqual(
        [listed.conversations, listed.last_activity_at],
        [found.conversations, found.last_activity_at],
      )
      assert.equal(
        found.last_activity_at,
        key === workspace.owner.key ? at(23) : visible.find((t) => t.last !== null)!.last,
      )
    }
  })

  it('is said to be unavailable while conversations are locked, and the contact is shown all the same', async (t) => {
    if (server().database === 'embedded') return t.skip('its one session never waits for a lock')
    const { db } = server()
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const contact = await plantPerson(db, workspace.id, 'Ada', '15550100042')
    await plantTalk(db, workspace.id, { contact_id: contact, channel_id: null, last_activity_at: at(1) })
    await db.transaction().execute(async (tx) => {
      await sql`lock table conversations in access exclusive mode`.execute(tx)
      const found = await run('crm_get_contact', { contact_id: contact })
      assert.deepEqual([found.name, found.conversations, found.unavailable], ['Ada', [], ['conversations']])
      const { data } = await run('crm_search_contacts', { query: 'ada' })
      assert.deepEqual([data.length, data[0].unavailable], [1, ['conversations']])
    })
    const found = await run('crm_get_contact', { contact_id: contact })
    assert.deepEqual([found.conversations.length, found.unavailable], [1, undefined])
  })
})

it('Text is clipped between characters as a reader sees them', () => {
  const texts = fc.array(
    fc.constantFrom('a', ' ', 'é', 'e\u0301', '👨‍👩‍👧', '🇩🇪', '😀', '한', '\r\n', '\ud800'),
    { maxLength: 60 },
  )
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
  fc.assert(
    fc.property(texts, fc.integer({ min: 20, max: 50 }), (parts, most) => {
      const whole = parts.join('')
      const { text, truncated } = clipText(whole, most)
      assert.ok(whole.startsWith(text))
      assert.equal(truncated, text !== whole)
      assert.ok([...text].length <= most)
      if (!truncated) return
      assert.ok(
        [...segmenter.segment(whole)].some(({ index }) => index === text.length),
        'cut within a character',
      )
      const next = segmenter.segment(whole).containing(text.length)!
      assert.ok([...(text + next.segment)].length > most, 'one more would fit')
    }),
    { numRuns: 1000 },
  )
  assert.deepEqual(clipText(`a${'\u0301'.repeat(900)}`, 500), {
    text: `a${'\u0301'.repeat(499)}`,
    truncated: true,
  })
})
