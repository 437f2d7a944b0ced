import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import type { OldSecret } from '../tables/events.ts'
import { containsPattern, fold } from '../values/text.ts'
import { toIsoTime } from '../values/times.ts'

type SubscriptionRow = { id: string; active: boolean; created_at: string }

/**
 * A webhook endpoint that exists. Secrets and headers are sealed; `old_secrets` are in order of age, newest
 * first.
 */
export type EndpointRow = Pick<
  TableRow<'webhook_endpoints'>,
  | 'workspace_id'
  | 'id'
  | 'url'
  | 'description'
  | 'status'
  | 'payload_format'
  | 'custom_headers'
  | 'signing_secret'
  | 'old_secrets'
  | 'consecutive_failures'
  | 'disabled_at'
  | 'disabled_reason'
  | 'created_at'
  | 'updated_at'
  | 'version'
> & { subscriptions: SubscriptionRow[] }

const subscriptions = sql<SubscriptionRow[]>`(
  select coalesce(
    jsonb_agg(jsonb_build_object('id', s.event_type, 'active', s.active, 'created_at', s.created_at)
      order by s.event_type),
    '[]'::jsonb)
  from webhook_subscriptions s where s.workspace_id = e.workspace_id and s.endpoint_id = e.id)`

const selectEndpoints = (db: Db, workspaceId: string) =>
  db
    .selectFrom('webhook_endpoints as e')
    .select(['e.workspace_id', 'e.id', 'e.url', 'e.description', 'e.status', 'e.payload_format'])
    .select(['e.custom_headers', 'e.signing_secret', 'e.old_secrets'])
    .select([
      'e.consecutive_failures',
      'e.disabled_at',
      'e.disabled_reason',
      'e.created_at',
      'e.updated_at',
      'e.version',
    ])
    .select(subscriptions.as('subscriptions'))
    .where('e.workspace_id', '=', workspaceId)
    .where('e.deleted_at', 'is', null)

const toEndpointRow = (row: EndpointRow): EndpointRow => ({
  ...row,
  subscriptions: row.subscriptions.map((s) => ({ ...s, created_at: toIsoTime(s.created_at) })),
})

export type EndpointFilter = { status?: EndpointRow['status'] | undefined; urlContains?: string | undefined }

/** A page of endpoints, newest first. URLs are ASCII, where `fold` is lower case. */
export const listEndpointPage = async (
  db: Db,
  workspaceId: string,
  { status, urlContains }: EndpointFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<EndpointRow[]> => {
  let query = selectEndpoints(db, workspaceId)
  if (status !== undefined) query = query.where('e.status', '=', status)
  if (urlContains !== undefined)
    query = query.where(sql<boolean>`lower(e.url collate "C") like ${containsPattern(fold(urlContains))}`)
  if (after !== null)
    query = query.where(
      sql<boolean>`(e.created_at, e.id) < (${after.createdAt}::timestamptz, ${after.id} collate "C")`,
    )
  const rows = await query.orderBy('e.created_at', 'desc').orderBy('e.id', 'desc').limit(limit).execute()
  return rows.map(toEndpointRow)
}

/** Undefined when the endpoint does not exist. `lock`: locks it for changes in this transaction. */
export const findEndpoint = async (
  db: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<EndpointRow | undefined> => {
  const query = selectEndpoints(db, workspaceId).where('e.id', '=', id)
  const row = await (lock ? query.forUpdate('e') : query).executeTakeFirst()
  return row && toEndpointRow(row)
}

const updateEndpoint = (tx: Db, workspaceId: string, id: string) =>
  tx.updateTable('webhook_endpoints').where('workspace_id', '=', workspaceId).where('id', '=', id)

export type EndpointFields = Pick<EndpointRow, 'url' | 'description' | 'payload_format' | 'custom_headers'>

/** Counts the endpoints of a workspace that are sent events. */
export const countActiveEndpoints = async (db: Db, workspaceId: string): Promise<number> => {
  const { n } = await db
    .selectFrom('webhook_endpoints')
    .select(({ fn }) => fn.countAll<string>().as('n'))
    .where('workspace_id', '=', workspaceId)
    .where('status', '<>', 'disabled')
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(n)
}

export const insertEndpoint = async (
  tx: Db,
  workspaceId: string,
  id: string,
  fields: EndpointFields & Pick<EndpointRow, 'signing_secret'>,
  now: string,
): Promise<void> => {
  const { url, description, payload_format, custom_headers, signing_secret } = fields
  await tx
    .insertInto('webhook_endpoints')
    .values({
      workspace_id: workspaceId,
      id,
      url,
      description,
      payload_format,
      custom_headers,
      signing_secret,
      created_at: now,
      updated_at: now,
    })
    .execute()
}

/** Records whether an agent gave the address of an endpoint, who may not see manager-only fields. */
export const setEndpointForAgents = async (
  tx: Db,
  workspaceId: string,
  id: string,
  forAgents: boolean,
): Promise<void> => {
  await updateEndpoint(tx, workspaceId, id).set({ for_agents: forAgents }).execute()
}

/** Updates a locked endpoint. The change may be the fix: a paused endpoint is probed at once. */
export const updateEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  { url, description, payload_format, custom_headers }: EndpointFields,
  now: string,
): Promise<void> => {
  await updateEndpoint(tx, workspaceId, id)
    .set({ url, description, payload_format, custom_headers, next_probe_at: null, updated_at: now })
    .execute()
}

/** The replaced secrets that still sign, newest first. */
const validOldSecrets = sql<string>`(
  select coalesce(jsonb_agg(old order by n), '[]'::jsonb)
  from jsonb_array_elements(old_secrets) with ordinality as o (old, n)
  where (old ->> 'until')::timestamptz > clock_timestamp())`

/**
 * Gives a locked endpoint a new secret; the one before signs too for another 24 hours of real time, and those
 * before that until the end of theirs. Returns the replaced secrets that still sign, newest first.
 */
export const replaceSecret = async (
  tx: Db,
  workspaceId: string,
  id: string,
  secret: string,
  now: string,
): Promise<OldSecret[]> => {
  const { rows } = await sql<{ old_secrets: OldSecret[] }>`
    update webhook_endpoints set signing_secret = ${secret}, updated_at = ${now},
      old_secrets = jsonb_build_array(jsonb_build_object('secret', signing_secret, 'until',
        to_char((clock_timestamp() + interval '24 hours') at time zone 'UTC',
          'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) || ${validOldSecrets}
    where workspace_id = ${workspaceId} and id = ${id} returning old_secrets`.execute(tx)
  return rows[0]!.old_secrets
}

/** Deletes the replaced secrets of all endpoints that no longer sign. */
export const deleteExpiredSecrets = async (db: Db): Promise<void> => {
  await sql`
    update webhook_endpoints set old_secrets = ${validOldSecrets}
    where old_secrets <> '[]' and exists (
      select 1 from jsonb_array_elements(old_secrets) as old
      where (old ->> 'until')::timestamptz <= clock_timestamp())`.execute(db)
}

/** Replaces the subscriptions of a locked endpoint; those that stay keep their time. */
export const replaceSubscriptions = async (
  tx: Db,
  workspaceId: string,
  id: string,
  types: readonly string[],
  now: string,
): Promise<void> => {
  await sql`
    with deleted as (
      delete from webhook_subscriptions
      where workspace_id = ${workspaceId} and endpoint_id = ${id} and event_type <> all(${types}::text[])
    ), touched as (
      update webhook_endpoints set updated_at = ${now} where workspace_id = ${workspaceId} and id = ${id}
    )
    insert into webhook_subscriptions (workspace_id, endpoint_id, event_type, created_at)
    select ${workspaceId}::bigint, ${id}, t, ${now}::timestamptz from unnest(${types}::text[]) as t
    on conflict (workspace_id, endpoint_id, event_type) do update set active = true`.execute(tx)
}

/** Disables a locked endpoint. Its deliveries stay as they are. */
export const disableEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  reason: string,
  now: string,
): Promise<void> => {
  await updateEndpoint(tx, workspaceId, id)
    .set({
      status: 'disabled',
      disabled_at: now,
      disabled_reason: reason,
      next_probe_at: null,
      updated_at: now,
    })
    .execute()
}

/** Of a backlog so much is changed with its endpoint, and the rest by a job, in transactions of their own. */
const MAX_CHANGED_AT_ONCE = 1000

/**
 * Enables a locked endpoint as if it had never failed; its unfinished deliveries are due at once, the rest of a large
 * backlog when a job has come to them (`resumeDeliveries`). One that is locked is being sent.
 */
export const enableEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  now: string,
): Promise<void> => {
  await sql`
    with waiting as (
      select workspace_id, id from webhook_deliveries
      where workspace_id = ${workspaceId} and endpoint_id = ${id} and status in ('pending', 'failed')
        and next_attempt_at > now()
      order by next_attempt_at limit ${sql.lit(MAX_CHANGED_AT_ONCE)} for update skip locked
    ), due as (
      update webhook_deliveries d set next_attempt_at = clock_timestamp()
      from waiting w where d.workspace_id = w.workspace_id and d.id = w.id
      returning 1
    )
    update webhook_endpoints set status = 'active', consecutive_failures = 0, failing_since = null,
      warned = 0, next_probe_at = null, disabled_at = null, disabled_reason = null, updated_at = ${now},
      resumed_at = case when (select count(*) from due) >= ${sql.lit(MAX_CHANGED_AT_ONCE)}
        then clock_timestamp() end
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/**
 * Deletes a locked endpoint with its subscriptions and secrets. Its unfinished deliveries are skipped, the rest of a
 * large backlog by a job (`skipDeliveries`), and not sent meanwhile; its log stays.
 */
export const deleteEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  now: string,
): Promise<void> => {
  await sql`
    with unfinished as (
      select workspace_id, id from webhook_deliveries
      where workspace_id = ${workspaceId} and endpoint_id = ${id} and status in ('pending', 'failed')
      order by next_attempt_at limit ${sql.lit(MAX_CHANGED_AT_ONCE)} for update
    ), skipped as (
      update webhook_deliveries d set status = 'skipped', next_attempt_at = null, lease_until = null
      from unfinished u where d.workspace_id = u.workspace_id and d.id = u.id
    ), unsubscribed as (
      delete from webhook_subscriptions where workspace_id = ${workspaceId} and endpoint_id = ${id}
    )
    update webhook_endpoints set deleted_at = ${now}, custom_headers = '', signing_secret = '',
      old_secrets = '[]', next_probe_at = null, resumed_at = null
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}
