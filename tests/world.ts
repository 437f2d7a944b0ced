import { sql } from 'kysely'
import type { Operation } from '../catalog/index.ts'
import { mediaKey } from '../server/media/store.ts'
import { createChannel, createTeam } from '../storage/admin.ts'
import type { Db } from '../storage/database.ts'
import { findOrInsertBroadcast } from '../storage/demo.ts'
import { insertMessages } from '../storage/messages.ts'
import { type CallOptions, doorsOf } from './doors.ts'
import type { TestServer, TestWorkspace } from './servers.ts'

/**
 * A workspace with two of everything, each thing marked by a text that appears nowhere else, and the inputs
 * of every operation with its ids in them. Tests of all operations stand on it; an operation whose ids it
 * cannot fill fails those tests until its table is planted here.
 */
export type World = {
  workspace: TestWorkspace
  marker: string
  ids: Readonly<Record<string, readonly string[]>>
}

/** Tables of a workspace, whatever they are. */
const tablesOf = async (db: Db): Promise<string[]> =>
  (
    await sql<{ name: string }>`
  select c.table_name as name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
  where c.table_schema = 'public' and c.column_name = 'workspace_id' and t.table_type = 'BASE TABLE' order by 1`.execute(
      db,
    )
  ).rows.map((row) => row.name)

/**
 * Every row of a workspace as text. When a key was last used, and who tried what, is no business of the
 * workspace's data.
 */
export const rowsOf = async (db: Db, workspaceId: string): Promise<Record<string, string[]>> => {
  const rows: Record<string, string[]> = {}
  for (const table of (await tablesOf(db)).filter((name) => name !== 'audit_log')) {
    const found = await sql<{ row: string }>`
      select (to_jsonb(t) - 'last_used_at')::text as row from ${sql.table(table)} t where workspace_id = ${workspaceId} order by 1`.execute(
      db,
    )
    rows[table] = found.rows.map(({ row }) => row)
  }
  return rows
}

/** Contacts in it. */
export const CONTACTS = 3

/**
 * Plants a world through the doors, and by hand what no door makes yet. `digits` are the four digits that
 * all its phones contain.
 */
export const plant = async (
  server: TestServer,
  workspace: TestWorkspace,
  marker: string,
  digits: string,
): Promise<World> => {
  const { db } = server
  const now = server.app.now()
  const rest = doorsOf(server.url, workspace.owner.key)[0]!
  const make = async (
    op: string,
    input: Record<string, unknown>,
    options: CallOptions = {},
  ): Promise<Record<string, unknown>> => {
    const reply = await rest.call(op, input, options)
    if (reply.status >= 300) throw new Error(`${op}: ${reply.text}`)
    return reply.body as Record<string, unknown>
  }
  await createChannel(
    db,
    workspace.id,
    { type: 'web', name: `${marker} shop window`, identifier: `${marker}.example`, status: 'connected' },
    now,
  )
  await plantSecondLine(db, workspace.id, marker, now)
  for (const n of [1, 2]) await createTeam(db, workspace.id, `${marker} team ${n}`, now)
  await workspace.staff({ name: `${marker} colleague`, role: 'manager' })
  await make('crm_create_custom_field', {
    key: 'shelf',
    label: `${marker} field`,
    type: 'select',
    options: [{ label: `${marker} option`, value: 'one' }],
  })
  await make('crm_create_custom_field', { key: 'remark', label: `${marker} note`, type: 'text' })
  // Before what they are told of. Nobody listens there.
  for (const n of [1, 2])
    await make('webhooks_create_endpoint', {
      url: `https://127.0.0.1:9/${marker}/${n}`,
      description: `${marker} hooks`,
      custom_headers: { 'X-Team': `${marker} team` },
      event_types: ['contact.created/1'],
    })
  const groups = []
  for (const n of [1, 2])
    groups.push(
      ((await make('crm_create_group', { name: `${marker} group ${n}` }))['group'] as { id: string }).id,
    )
  for (let n = 1; n <= CONTACTS; n++) {
    await make('crm_upsert_contact', {
      phone: `+1555${digits}${100 + n}`,
      name: `${marker} contact ${n}`,
      email: `${marker}${n}@example.com`,
      tags: [`${marker} tag ${n}`, `${marker} all`],
      group_ids: groups,
      attributes: { shelf: 'one', remark: `${marker} remark` },
    })
  }
  // The last one is what everybody asks for; the one with a phone is only listed.
  for (const filter of [{ phoneNumber: { eq: `1555${digits}101` } }, { name: { contains: marker } }])
    await make('crm_create_saved_filter', { name: `${marker} filter`, filter })
  await plantMessaging(server, workspace.id, workspace.owner.staffId, marker, now)
  await server.sync(workspace.id)
  for (const n of [1, 2]) await plantShortLink(server, workspace, make, `${marker} link ${n}`)
  await plantAttempts(db, workspace.id, marker, digits, now)
  await plantReports(db, workspace.id, marker, now)
  return { workspace, marker, ids: await idsOf(db, workspace.id) }
}

/** The colleague ended the customers' first waits, and there is a report of days long ago. */
const plantReports = async (db: Db, workspaceId: string, marker: string, now: string): Promise<void> => {
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, ended_at, ended_by)
    select v.workspace_id, v.id, v.created_at, 'first_response', 1, ${now}::timestamptz - interval '5 minutes', s.id
    from conversations v join staff s on s.workspace_id = v.workspace_id and s.name = ${`${marker} colleague`} where v.workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`
    insert into staff_reports (workspace_id, name, from_day, to_day, timezone, generated_at, rows)
    values (${workspaceId}, ${`${marker} report`}, '2026-01-01', '2026-01-31', 'UTC', ${now}, '[]')`.execute(
    db,
  )
}

/**
 * Another number of the account that the main line is of: the channel that inputs name, since it is the
 * last.
 */
const plantSecondLine = async (db: Db, workspaceId: string, marker: string, now: string): Promise<void> => {
  const { account_id, account_name } = await db
    .selectFrom('channels')
    .select(['account_id', 'account_name'])
    .where('workspace_id', '=', workspaceId)
    .where('is_default', '=', true)
    .executeTakeFirstOrThrow()
  await createChannel(
    db,
    workspaceId,
    {
      type: 'chatapp',
      name: `${marker} second line`,
      identifier: '15550100002',
      status: 'connected',
      account_id,
      account_name,
      provider_phone_number_id: `7700${workspaceId}`,
    },
    now,
  )
}

/** A link to the second line, which the provider knows by now. */
const plantShortLink = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  make: (op: string, input: Record<string, unknown>, options: CallOptions) => Promise<unknown>,
  message: string,
): Promise<void> => {
  const { id } = await db
    .selectFrom('channels')
    .select('id')
    .where('workspace_id', '=', workspace.id)
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  await make(
    'messaging_create_short_link',
    { message, channel_id: id },
    { idempotencyKey: `plant ${message}`.replaceAll(' ', '-') },
  )
}

/**
 * The endpoints were told of the contacts; each attempt failed, with an answer that quotes what it was
 * sent.
 */
const plantAttempts = async (
  db: Db,
  workspaceId: string,
  marker: string,
  digits: string,
  now: string,
): Promise<void> => {
  await sql`
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, response_status, response_excerpt, trigger)
    select workspace_id, id, 1, ${now}::timestamptz, 12, 500, ${`${marker} refused 1555${digits}101`}, 'scheduled' from webhook_deliveries where workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`update webhook_deliveries set status = 'dead', attempts = 1, last_response_status = 500, next_attempt_at = null where workspace_id = ${workspaceId}`.execute(
    db,
  )
}

/** For each contact a conversation, what messages are made of, and two broadcasts that it received. */
const plantMessaging = async (
  server: TestServer,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const { db } = server
  await plantTemplates(db, workspaceId, staffId, marker, now)
  await plantConversations(server, workspaceId, staffId, marker, now)
  for (const n of [1, 2]) {
    const { id } = await findOrInsertBroadcast(db, workspaceId, {
      name: `${marker} broadcast ${n}`,
      status: 'completed',
      template_name: `${marker}_offer`,
      channel_id: null,
      scheduled_at: now,
      started_at: now,
      created_at: now,
    })
    await sql`
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, sent_at, delivered_at, read_at, responded_at)
      select workspace_id, ${id}::bigint, id, 'read', true, ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
      from contacts where workspace_id = ${workspaceId}`.execute(db)
  }
}

/**
 * A template and that of the examples, which inputs name since it is the last; and saved replies that
 * everybody may use.
 */
const plantTemplates = async (
  db: Db,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const templates = [
    [`${marker.toLowerCase()}_notice`, `${marker} moves.`],
    ['order_update', `Hello {{1}}, your order from ${marker} is on its way.`],
  ] as const
  for (const [n, [name, text]] of templates.entries()) {
    await sql`
      insert into templates (workspace_id, account_id, account_name, provider_id, name, language, category, status, components, created_at, updated_at)
      select workspace_id, account_id, account_name, ${`88${workspaceId}${n}`}, ${name}, 'en_US', 'UTILITY', 'APPROVED', ${JSON.stringify([{ type: 'BODY', text }])}::text::jsonb, ${now}::timestamptz, ${now}::timestamptz
      from channels where workspace_id = ${workspaceId} and is_default`.execute(db)
  }
  for (const n of [1, 2]) {
    await sql`
      insert into quick_messages (workspace_id, code, code_key, title, type, text, visibility, owner_staff_id, created_at, updated_at)
      values (${workspaceId}, ${`${marker}-${n}`}, ${`${marker}-${n}`.toLowerCase()}, ${`${marker} saved reply ${n}`}, 'TEXT', ${`${marker} thanks you.`}, 'company', ${staffId}, ${now}, ${now})`.execute(
      db,
    )
  }
  await sql`
    insert into quick_message_favorites (workspace_id, staff_id, quick_message_id)
    select workspace_id, owner_staff_id, id from quick_messages where workspace_id = ${workspaceId}`.execute(
    db,
  )
}

/**
 * Each customer was answered, and wrote again with a picture: the window is open, and somebody waits. The
 * last one, whom inputs name, is nobody's yet, so that it can be claimed.
 */
const plantConversations = async (
  { db, app }: TestServer,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const before = (minutes: number): string => new Date(Date.parse(now) - minutes * 60_000).toISOString()
  const {
    rows: [policy],
  } = await sql<{ id: string }>`
    insert into sla_policies (workspace_id, name, first_response_seconds, next_response_seconds, created_at) values (${workspaceId}, ${`${marker} service level`}, 3600, 3600, ${now}) returning id`.execute(
    db,
  )
  const { rows } = await sql<{ id: string; channel_id: string }>`
    insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, assigned_at, unread_count, reply_status, last_inbound_at, window_expires_at,
      sla_policy_id, next_response_due_at, created_at, last_activity_at, updated_at)
    select c.workspace_id, c.id, h.id, 'open', s.id, case when s.id is not null then ${now}::timestamptz end, 1, 'incoming_no_reply', ${now}::timestamptz, ${now}::timestamptz + interval '24 hours',
      ${policy!.id}::bigint, ${now}::timestamptz + interval '1 hour', ${before(10)}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
    from contacts c join channels h on h.workspace_id = c.workspace_id and h.is_default
    left join staff s on s.workspace_id = c.workspace_id and s.id = ${staffId}::bigint and c.id < (select max(id) from contacts where workspace_id = ${workspaceId})
    where c.workspace_id = ${workspaceId} order by c.id returning id, channel_id`.execute(db)
  for (const { id, channel_id } of rows) {
    const message = { conversation_id: id, channel_id, episode: 1 } as const
    const [, , last] = await insertMessages(db, workspaceId, [
      {
        ...message,
        direction: 'inbound',
        type: 'TEXT',
        status: 'received',
        text: `${marker} question`,
        provider_id: `wamid.${id}in`,
        created_at: before(10),
      },
      {
        ...message,
        direction: 'outbound',
        type: 'TEXT',
        status: 'sent',
        text: `${marker} answer`,
        staff_id: staffId,
        provider_id: `wamid.${id}out`,
        created_at: before(5),
        sent_at: before(5),
      },
      {
        ...message,
        direction: 'inbound',
        type: 'IMAGE',
        status: 'received',
        text: `${marker} picture`,
        provider_id: `wamid.${id}pic`,
        created_at: now,
        media: { state: 'kept', content_type: 'image/jpeg', file_name: `${marker}.jpg`, size: marker.length },
      },
    ])
    await app.media!.write(mediaKey(workspaceId, last!), Buffer.from(marker))
    await sql`update media set key = ${mediaKey(workspaceId, last!)} where workspace_id = ${workspaceId} and message_id = ${last!}::bigint`.execute(
      db,
    )
    await sql`update conversations set last_message_id = ${last!}::bigint where workspace_id = ${workspaceId} and id = ${id}`.execute(
      db,
    )
  }
  await sql`
    insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, first_response_at) select workspace_id, id, 1, created_at, ${before(5)}::timestamptz from conversations where workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at) select workspace_id, id, ${now}::timestamptz, 'next_response', 1, next_response_due_at from conversations where workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`
    insert into conversation_tags (workspace_id, conversation_id, tag_id)
    select workspace_id, id, (select max(t.id) from tags t where t.workspace_id = v.workspace_id) from conversations v where workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`update contacts set last_activity_at = ${now}::timestamptz where workspace_id = ${workspaceId}`.execute(
    db,
  )
}

const idsOf = async (db: Db, workspaceId: string): Promise<Record<string, string[]>> => {
  const { rows } = await sql<{ table_name: string }>`
    select table_name from information_schema.columns where table_schema = 'public' and column_name = 'id'`.execute(
    db,
  )
  const withId = new Set(rows.map((row) => row.table_name))
  const ids: Record<string, string[]> = {}
  for (const table of (await tablesOf(db)).filter((t) => withId.has(t))) {
    // The last ones first: the first custom field is built in, the first staff member owns the key.
    const found = await sql<{
      id: string
    }>`select t.id::text as id from ${sql.table(table)} t where workspace_id = ${workspaceId} order by t.id desc`.execute(
      db,
    )
    ids[table] = found.rows.map((row) => row.id)
  }
  return ids
}

/** Fields whose table is not their own name in the plural. */
const tables: Record<string, string> = {
  staff: 'staff',
  assigned_staff: 'staff',
  assigned_team: 'teams',
  endpoint: 'webhook_endpoints',
  delivery: 'webhook_deliveries',
  reply_to: 'messages',
  after: 'events',
  key: 'api_keys',
  target: 'contacts',
}

/** The table that a field of this name points into; undefined: it holds no id. */
const tableOf = (field: string): string | undefined => {
  if (field === 'tags') return 'tags'
  const noun = /^(.+)_ids?$/.exec(field)?.[1] ?? (field === 'after' ? field : undefined)
  return noun === undefined ? undefined : (tables[noun] ?? `${noun}s`)
}

/** Ids of no workspace: the provider's accounts, and types that the catalog names. */
const foreign = new Set(['business_account_id', 'event_type_id'])

/** The fields of an operation that hold ids. */
export const idFields = (op: Operation): string[] =>
  Object.keys(op.input.shape).filter((field) => tableOf(field) !== undefined && !foreign.has(field))

/** What an id field holds in this world: ids for a list, else one id. */
export const idValue = (world: World, op: Operation, field: string): string | string[] | number[] => {
  const ids = world.ids[tableOf(field)!]
  if (!ids || ids.length === 0)
    throw new Error(
      `${op.name} takes ${field}: plant something in ${tableOf(field)} (tests/world.ts), or say there which table it means`,
    )
  // As integers, since a string of digits among tags may be a name.
  if (field === 'tags') return [Number(ids[0])]
  return isList(op, field) ? ids.slice(0, 2) : ids[0]!
}

const isList = (op: Operation, field: string): boolean => {
  let schema = op.input.shape[field] as unknown as { _zod: { def: { type: string; innerType?: never } } }
  while (schema._zod.def.innerType) schema = schema._zod.def.innerType
  return schema._zod.def.type === 'array'
}

/** The inputs of an operation's examples, with the ids of this world, wherever they stand. */
export const exampleInputs = (world: World, op: Operation): Record<string, unknown>[] =>
  op.examples.map(({ input }) => {
    const filled = structuredClone(input) as Record<string, unknown>
    for (const field of Object.keys(filled)) {
      if (field === 'tags' || foreign.has(field) || tableOf(field) === undefined) continue
      filled[field] = idValue(world, op, field)
    }
    // The examples' custom fields are not there; the planted ones have the same keys everywhere.
    if (filled['attributes'] !== undefined) filled['attributes'] = { shelf: 'one' }
    if (filled['filter'] !== undefined)
      filled['filter'] = { savedFilter: { eq: world.ids['saved_filters']![0] } }
    return filled
  })
