import { sql } from 'kysely'
import type { Operation } from '../catalog/index.ts'
import { createChannelToken, hashApiKey } from '../server/api-keys.ts'
import { addSigningSecret } from '../server/domains/channels/secrets.ts'
import { createSigningSecret } from '../server/domains/webhooks/secrets.ts'
import { createChannel, createTeam } from '../storage/workspace/admin.ts'
import { addChannelToken, upsertChannelSecrets } from '../storage/channels/secrets.ts'
import type { Db } from '../storage/database.ts'
import { insertDoneErasure } from './insert-erasure.ts'
import { insertExpiredExport } from './insert-export.ts'
import { type CallOptions, doorsOf } from './doors.ts'
import type { TestServer, TestWorkspace } from './servers.ts'
import { seedMessaging } from './world-messaging.ts'
import {
  seedApprovals,
  seedContactViews,
  seedJobs,
  seedOauth,
  seedReports,
  seedScheduledBroadcast,
} from './world-records.ts'

/**
 * A workspace with at least two of each record, all marked by a unique text, and their ids by table. Tests
 * that run every operation use it; an operation whose ids it cannot fill fails them until its table is seeded
 * here.
 */
export type World = {
  workspace: TestWorkspace
  marker: string
  ids: Readonly<Record<string, readonly string[]>>
}

/** Returns all tables with a `workspace_id`. */
const listWorkspaceTables = async (db: Db): Promise<string[]> =>
  (
    await sql<{ name: string }>`
      select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attname = 'workspace_id'
      order by 1`.execute(db)
  ).rows.map((row) => row.name)

/**
 * Returns every row of a workspace as text, by table, to detect changes. Without the audit trail and the
 * `last_used_at` of keys, which every call writes.
 */
export const loadWorkspaceRows = async (db: Db, workspaceId: string): Promise<Record<string, string[]>> => {
  const tables = (await listWorkspaceTables(db)).filter((name) => name !== 'audit_log')
  // One statement: tests that walk the catalog call this for each operation.
  const selects = tables.map(
    (table) => sql`
      select ${table}::text as name, (to_jsonb(t) - 'last_used_at')::text as row from ${sql.table(table)} t
      where workspace_id = ${workspaceId}`,
  )
  const found = await sql<{ name: string; row: string }>`
    ${sql.join(selects, sql` union all `)} order by 1, 2`.execute(db)
  const rows: Record<string, string[]> = Object.fromEntries(tables.map((table) => [table, []]))
  for (const { name, row } of found.rows) rows[name]!.push(row)
  return rows
}

/** Leaves out plans of dry runs, which change nothing, with their records. */
export const withoutPlans = (rows: Record<string, string[]>): Record<string, string[]> => {
  const jobs = rows['bulk_jobs']!.map((row) => JSON.parse(row) as { id: number; state: string })
  const plans = new Set(jobs.filter(({ state }) => state === 'planned').map(({ id }) => id))
  const isOfPlan = ({ id, job_id: jobId }: { id?: number; job_id?: number }, table: string): boolean =>
    (table === 'bulk_jobs' && plans.has(id!)) || (table === 'bulk_job_batches' && plans.has(jobId!))
  return Object.fromEntries(
    Object.entries(rows).map(([table, all]) => [
      table,
      all.filter((row) => !isOfPlan(JSON.parse(row), table)),
    ]),
  )
}

/** Number of contacts in a world. */
export const CONTACT_COUNT = 3

/** Makes two membership records of the last saved filter: an empty one, and one with its members. */
const seedMembers = async (
  { db, app }: TestServer,
  workspaceId: string,
  track: (filterId: string) => Promise<void>,
): Promise<void> => {
  const { rows } = await sql<{ id: string }>`
    select max(id) as id from saved_filters where workspace_id = ${workspaceId}`.execute(db)
  await track(rows[0]!.id)
  await app.jobs.job('filter-membership').runOnce()
  await sql`
    insert into filter_memberships (workspace_id, saved_filter_id, digest, recorded_at, members)
    select workspace_id, saved_filter_id, digest, recorded_at - interval '1 second', 0
    from filter_memberships where workspace_id = ${workspaceId}`.execute(db)
}

/**
 * Fills a workspace through the API, and by SQL where there is no operation. `digits` are four digits that
 * all its phones contain.
 */
export const seedWorld = async (
  server: TestServer,
  workspace: TestWorkspace,
  marker: string,
  digits: string,
): Promise<World> => {
  const { db } = server
  const now = server.app.now()
  const rest = doorsOf(server.url, workspace.owner.key)[0]!
  const callOperation = async (
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
  await seedSecondChannel(db, workspace.id, marker, now)
  await seedProviderState(db, workspace.id, marker, now)
  for (const n of [1, 2]) await createTeam(db, workspace.id, `${marker} team ${n}`, now)
  const colleague = await workspace.staff({ name: `${marker} colleague`, role: 'manager' })
  await callOperation('crm_create_custom_field', {
    key: 'shelf',
    label: `${marker} field`,
    type: 'select',
    options: [{ label: `${marker} option`, value: 'one' }],
  })
  await callOperation('crm_create_custom_field', { key: 'remark', label: `${marker} note`, type: 'text' })
  // Created before the contacts, so that they get deliveries. Nothing listens at these URLs.
  for (const n of [1, 2])
    await callOperation('webhooks_create_endpoint', {
      url: `https://127.0.0.1:9/${marker}/${n}`,
      description: `${marker} hooks`,
      custom_headers: { 'X-Team': `${marker} team` },
      event_types: ['contact.created/1'],
    })
  const groups = []
  for (const n of [1, 2])
    groups.push(
      ((await callOperation('crm_create_group', { name: `${marker} group ${n}` }))['group'] as { id: string })
        .id,
    )
  for (let n = 1; n <= CONTACT_COUNT; n++) {
    await callOperation('crm_upsert_contact', {
      phone: `+1555${digits}${100 + n}`,
      external_id: `${marker} id ${n}`,
      name: `${marker} contact ${n}`,
      email: `${marker}@example.com`,
      tags: [`${marker} tag ${n}`, `${marker} all`],
      group_ids: groups,
      attributes: { shelf: 'one', remark: `${marker} remark` },
    })
  }
  const { contact } = (await callOperation('crm_upsert_contact', {
    phone: `+1555${digits}100`,
    name: `${marker} double`,
    external_id: `${marker} id 0`,
  })) as { contact: { id: string } }
  const [{ id: keptId }] = (await callOperation('crm_search_contacts', { query: `${marker} contact 1` }))[
    'data'
  ] as [{ id: string }]
  const pair = { contact_id: keptId, other_contact_id: contact.id }
  await callOperation('crm_merge_contacts', pair, { confirm: 'delete' })
  // Inputs use the last filter; the one with a phone is only listed.
  for (const filter of [{ phoneNumber: { eq: `1555${digits}101` } }, { name: { contains: marker } }])
    await callOperation('crm_create_saved_filter', { name: `${marker} filter`, filter })
  await seedMembers(server, workspace.id, async (id) => {
    await callOperation('crm_track_saved_filter', { saved_filter_id: id, tracked: true })
  })
  await seedScheduledBroadcast(db, workspace, marker, now)
  await seedMessaging(server, workspace.id, workspace.owner.staffId, marker, now)
  await sql`update messages set external_id = ${`${marker} id 1`}
    where workspace_id = ${workspace.id}
      and id = (select max(id) from messages where workspace_id = ${workspace.id})`.execute(db)
  await server.sync(workspace.id)
  for (const n of [1, 2]) await seedShortLink(server, workspace, callOperation, `${marker} link ${n}`)
  await seedDeliveryAttempts(db, workspace.id, marker, digits, now)
  await seedOwnChannel(server, workspace.id, marker, now)
  await seedReports(db, workspace.id, marker, now)
  await seedApprovals(db, workspace, marker, now)
  await seedContactViews(db, workspace, now)
  await seedJobs(db, workspace, marker, now)
  for (let n = 0; n < 2; n++)
    await insertDoneErasure(db, { workspaceId: workspace.id, staffId: colleague.staffId }, now)
  for (let n = 0; n < 2; n++)
    await insertExpiredExport(
      db,
      { workspaceId: workspace.id, staffId: colleague.staffId, contactId: keptId },
      now,
    )
  await seedOauth(db, workspace, marker, now)
  return { workspace, marker, ids: await loadIds(db, workspace.id) }
}

/** Adds another number of the same business account: the channel that inputs use, because it is the last. */
const seedSecondChannel = async (db: Db, workspaceId: string, marker: string, now: string): Promise<void> => {
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

/** The provider's data on the account and the first channel. */
const seedProviderState = async (db: Db, workspaceId: string, marker: string, now: string): Promise<void> => {
  await sql`
    insert into provider_accounts (workspace_id, account_id, name, token, created_at, updated_at)
    select workspace_id, account_id, ${`${marker} account`}, ${`${marker} token`}, ${now}::timestamptz,
      ${now}::timestamptz
    from channels where workspace_id = ${workspaceId} and is_default`.execute(db)
  await sql`
    insert into runs (workspace_id, kind, subject, run_after)
    select workspace_id, 'account_checks', account_id, '2100-01-01' from channels
    where workspace_id = ${workspaceId} and is_default`.execute(db)
  await sql`
    insert into channel_health (workspace_id, channel_id, status, reason, since, until, messaging_limit)
    select workspace_id, id, 'limited', 'throughput', ${now}::timestamptz, '2100-01-01', ${`TIER_${marker}`}
    from channels
    where workspace_id = ${workspaceId} and is_default`.execute(db)
}

/** Creates a link to the second channel, which is registered with the provider by then. */
const seedShortLink = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  callOperation: (op: string, input: Record<string, unknown>, options: CallOptions) => Promise<unknown>,
  message: string,
): Promise<void> => {
  const { id } = await db
    .selectFrom('channels')
    .select('id')
    .where('workspace_id', '=', workspace.id)
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  await callOperation(
    'messaging_create_short_link',
    { message, channel_id: id },
    { idempotencyKey: `seed ${message}`.replaceAll(' ', '-') },
  )
}

/** Gives the web chat a bridge with a known contact and a pending reply. */
const seedOwnChannel = async (
  { db, app }: TestServer,
  workspaceId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const { id } = await db
    .selectFrom('channels')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'web')
    .executeTakeFirstOrThrow()
  const key = { workspace_id: workspaceId, channel_id: id }
  await upsertChannelSecrets(db, addSigningSecret(app, key, createSigningSecret())!)
  await addChannelToken(db, workspaceId, id, hashApiKey(createChannelToken()), 0)
  await sql`
    insert into channel_customers (workspace_id, channel_id, customer_id, contact_id, seen_at)
    select workspace_id, ${id}, ${`${marker} visitor`}, min(id), ${now} from contacts
    where workspace_id = ${workspaceId} group by workspace_id`.execute(db)
  await sql`
    insert into channel_deliveries (workspace_id, message_id, channel_id, conversation_id, body, expires_at)
    select workspace_id, id, ${id}, conversation_id, ${`${marker} body`}, '2999-01-02' from messages
    where workspace_id = ${workspaceId} order by id limit 1`.execute(db)
}

/** Inserts a failed attempt for each delivery, with a response that quotes a phone; deliveries are dead. */
const seedDeliveryAttempts = async (
  db: Db,
  workspaceId: string,
  marker: string,
  digits: string,
  now: string,
): Promise<void> => {
  await sql`
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms,
      response_status, response_excerpt, trigger)
    select workspace_id, id, 1, ${now}::timestamptz, 12, 500, ${`${marker} refused 1555${digits}101`},
      'scheduled'
    from webhook_deliveries where workspace_id = ${workspaceId}`.execute(db)
  await sql`
    update webhook_deliveries
    set status = 'dead', attempts = 1, last_response_status = 500, next_attempt_at = null
    where workspace_id = ${workspaceId}`.execute(db)
}

const loadIds = async (db: Db, workspaceId: string): Promise<Record<string, string[]>> => {
  const { rows } = await sql<{ table_name: string }>`
    select table_name from information_schema.columns
    where table_schema = 'public' and column_name = 'id'`.execute(db)
  const withId = new Set(rows.map((row) => row.table_name))
  const ids: Record<string, string[]> = {}
  for (const table of (await listWorkspaceTables(db)).filter((t) => withId.has(t))) {
    // In descending order: the first custom field is built in, and the first staff member owns the key.
    const found = await sql<{ id: string }>`
      select t.id::text as id from ${sql.table(table)} t
      where workspace_id = ${workspaceId} order by t.id desc`.execute(db)
    ids[table] = found.rows.map((row) => row.id)
  }
  const merged = await sql<{ contact_id: string }>`
    select contact_id from contact_merges where workspace_id = ${workspaceId}`.execute(db)
  ids['merged_contacts'] = merged.rows.map((row) => row.contact_id)
  return ids
}

/** Tables of fields whose table is not the plural of their name. */
const tablesByField: Record<string, string> = {
  staff: 'staff',
  assigned_staff: 'staff',
  assigned_team: 'teams',
  endpoint: 'webhook_endpoints',
  delivery: 'webhook_deliveries',
  reply_to: 'messages',
  after: 'events',
  key: 'api_keys',
  target: 'contacts',
  other_contact: 'contacts',
  job: 'bulk_jobs',
  other_tag: 'tags',
}

/** Returns the table that a field refers to; undefined when it holds no id. */
const findTable = (field: string): string | undefined => {
  if (field === 'tags') return 'tags'
  const noun = /^(.+)_ids?$/.exec(field)?.[1] ?? (field === 'after' ? field : undefined)
  return noun === undefined ? undefined : (tablesByField[noun] ?? `${noun}s`)
}

/** Id fields without a table: the provider's accounts, event types and ids of other systems. */
const externalIdFields = new Set(['business_account_id', 'event_type_id', 'external_id'])

/** Returns the fields of an operation that hold ids. */
export const listIdFields = (op: Operation): string[] =>
  Object.keys(op.input.shape).filter(
    (field) => findTable(field) !== undefined && !externalIdFields.has(field),
  )

/** Returns the value of an id field in this world: ids for a list, else one id. */
export const getIdValue = (world: World, op: Operation, field: string): string | string[] | number[] => {
  const ids = world.ids[findTable(field)!]
  if (!ids || ids.length === 0)
    throw new Error(
      `${op.name} takes ${field}: seed rows in ${findTable(field)} (tests/world.ts), or add its table there`,
    )
  // As integers, because a string of digits in `tags` can be a name.
  if (field === 'tags') return [Number(ids[0])]
  // The last one has failed; the other runs.
  if (op.name === 'jobs_pause' || op.name === 'jobs_resume') return ids[1]!
  // The first one is deleted, and the second merged into it.
  if (op.name === 'crm_erase_contact') return ids.at(-1)!
  if (op.name === 'messaging_reschedule_broadcast') return ids.at(-1)!
  if (field === 'other_contact_id' || field === 'other_tag_id') return ids[1]!
  return isList(op, field) ? ids.slice(0, 2) : ids[0]!
}

const isList = (op: Operation, field: string): boolean => {
  let schema = op.input.shape[field] as unknown as { _zod: { def: { type: string; innerType?: never } } }
  while (schema._zod.def.innerType) schema = schema._zod.def.innerType
  return schema._zod.def.type === 'array'
}

/** In the zone of the workspace; each call of a run has the same. */
const TOMORROW = new Date(Date.now() + 24 * 60 * 60_000).toISOString().slice(0, 19)

/** Returns the inputs of an operation's examples with the ids of this world. */
export const buildExampleInputs = (world: World, op: Operation): Record<string, unknown>[] =>
  op.examples.map(({ input }) => {
    const filled = structuredClone(input) as Record<string, unknown>
    for (const field of Object.keys(filled)) {
      if (field === 'tags' || externalIdFields.has(field) || findTable(field) === undefined) continue
      filled[field] = getIdValue(world, op, field)
    }
    if (filled['external_id'] && op.scope === 'mcp:read') filled['external_id'] = `${world.marker} id 1`
    if (op.name === 'inbox_search_messages') filled['query'] = world.marker
    // The custom fields of the examples do not exist; the seeded ones have the same keys in every world.
    if (filled['attributes'] !== undefined) filled['attributes'] = { shelf: 'one' }
    const ofContacts = { savedFilter: { eq: world.ids['saved_filters']![0] } }
    if (filled['filter'] !== undefined)
      filled['filter'] = 'conversation_ids' in op.input.shape ? { contact: ofContacts } : ofContacts
    // The ids of the example may exist in this world, and other examples need those templates.
    if (filled['ids'] !== undefined) filled['ids'] = ['999999998', '999999999']
    if (filled['scheduled_at'] !== undefined) filled['scheduled_at'] = TOMORROW
    // Nothing in these tests completes what the examples wait for.
    if (filled['wait_seconds'] !== undefined) filled['wait_seconds'] = 0
    return filled
  })
