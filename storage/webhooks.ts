import { sql } from 'kysely'
import type { Db } from './database.ts'
import { containsPattern, fold } from './text.ts'
import { isoOf } from './times.ts'

type Subscription = { id: string; active: boolean; created_at: string }
/**
 * A webhook endpoint that was not deleted. Secrets and headers are sealed; `old_secret_until` is real time.
 */
export type EndpointRow = {
  workspace_id: string
  id: string
  url: string
  description: string | null
  status: 'active' | 'disabled' | 'paused'
  payload_format: 'envelope' | 'data'
  custom_headers: string
  signing_secret: string
  old_secret: string | null
  old_secret_until: string | null
  consecutive_failures: number
  disabled_at: string | null
  disabled_reason: string | null
  created_at: string
  updated_at: string
  subscriptions: Subscription[]
}

const columns = sql`
  e.workspace_id, e.id, e.url, e.description, e.status, e.payload_format, e.custom_headers, e.signing_secret, e.old_secret, e.old_secret_until,
  e.consecutive_failures, e.disabled_at, e.disabled_reason, e.created_at, e.updated_at,
  (select coalesce(jsonb_agg(jsonb_build_object('id', s.event_type, 'active', s.active, 'created_at', s.created_at) order by s.event_type), '[]'::jsonb)
    from webhook_subscriptions s where s.workspace_id = e.workspace_id and s.endpoint_id = e.id) as subscriptions`

const rowOf = (row: EndpointRow): EndpointRow => ({
  ...row,
  subscriptions: row.subscriptions.map((s) => ({ ...s, created_at: isoOf(s.created_at) })),
})

export type EndpointFilter = { status?: EndpointRow['status'] | undefined; urlContains?: string | undefined }

/** A page, newest first. Addresses are ASCII: `fold` is lower case there. */
export const pageOfEndpoints = async (
  db: Db,
  workspaceId: string,
  { status, urlContains }: EndpointFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<EndpointRow[]> =>
  (
    await sql<EndpointRow>`
    select ${columns} from webhook_endpoints e
    where e.workspace_id = ${workspaceId} and e.deleted_at is null ${status === undefined ? sql`` : sql`and e.status = ${status}`}
      ${urlContains === undefined ? sql`` : sql`and lower(e.url) like ${containsPattern(fold(urlContains))}`}
      ${after === null ? sql`` : sql`and (e.created_at, e.id) < (${after.createdAt}::timestamptz, ${after.id} collate "C")`}
    order by e.created_at desc, e.id desc limit ${limit}`.execute(db)
  ).rows.map(rowOf)

/** `lock`: against other changes, until the transaction ends. */
export const readEndpoint = async (
  db: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<EndpointRow | undefined> => {
  const {
    rows: [row],
  } = await sql<EndpointRow>`
    select ${columns} from webhook_endpoints e where e.workspace_id = ${workspaceId} and e.id = ${id} and e.deleted_at is null ${lock ? sql`for update of e` : sql``}`.execute(
    db,
  )
  return row && rowOf(row)
}

export type EndpointFields = Pick<EndpointRow, 'url' | 'description' | 'payload_format' | 'custom_headers'>

export const insertEndpoint = async (
  tx: Db,
  workspaceId: string,
  id: string,
  fields: EndpointFields & Pick<EndpointRow, 'signing_secret'>,
  now: string,
): Promise<void> => {
  await sql`
    insert into webhook_endpoints (workspace_id, id, url, description, payload_format, custom_headers, signing_secret, created_at, updated_at)
    values (${workspaceId}, ${id}, ${fields.url}, ${fields.description}, ${fields.payload_format}, ${fields.custom_headers}, ${fields.signing_secret}, ${now}, ${now})`.execute(
    tx,
  )
}

/** Writes an endpoint that is locked. What changed may be the mend: one that is paused is probed at once. */
export const updateEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  fields: EndpointFields,
  now: string,
): Promise<void> => {
  await sql`
    update webhook_endpoints set url = ${fields.url}, description = ${fields.description}, payload_format = ${fields.payload_format}, custom_headers = ${fields.custom_headers},
      next_probe_at = null, updated_at = ${now}
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/**
 * Gives a locked endpoint another secret; the one it has signs too for 24 hours more of real time. Answers
 * until when.
 */
export const replaceSecret = async (
  tx: Db,
  workspaceId: string,
  id: string,
  secret: string,
  now: string,
): Promise<string> =>
  (
    await sql<{ old_secret_until: string }>`
    update webhook_endpoints set signing_secret = ${secret}, old_secret = signing_secret,
      old_secret_until = date_trunc('milliseconds', clock_timestamp()) + interval '24 hours', updated_at = ${now}
    where workspace_id = ${workspaceId} and id = ${id} returning old_secret_until`.execute(tx)
  ).rows[0]!.old_secret_until

/** Settles the subscriptions of a locked endpoint; those that stay keep their time. */
export const replaceSubscriptions = async (
  tx: Db,
  workspaceId: string,
  id: string,
  types: readonly string[],
  now: string,
): Promise<void> => {
  await sql`
    with gone as (delete from webhook_subscriptions where workspace_id = ${workspaceId} and endpoint_id = ${id} and event_type <> all(${types}::text[])),
      touched as (update webhook_endpoints set updated_at = ${now} where workspace_id = ${workspaceId} and id = ${id})
    insert into webhook_subscriptions (workspace_id, endpoint_id, event_type, created_at)
    select ${workspaceId}::bigint, ${id}, t, ${now}::timestamptz from unnest(${types}::text[]) as t
    on conflict (workspace_id, endpoint_id, event_type) do update set active = true`.execute(tx)
}

/** Stops a locked endpoint. Its deliveries stay as they are. */
export const disableEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  reason: string,
  now: string,
): Promise<void> => {
  await sql`
    update webhook_endpoints set status = 'disabled', disabled_at = ${now}, disabled_reason = ${reason}, next_probe_at = null, updated_at = ${now}
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/** Starts a locked endpoint anew, as if it had never failed; what waits for it is due at once. */
export const enableEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  now: string,
): Promise<void> => {
  await sql`
    with due as (
      update webhook_deliveries set next_attempt_at = clock_timestamp()
      where workspace_id = ${workspaceId} and endpoint_id = ${id} and status in ('pending', 'failed') and next_attempt_at > clock_timestamp())
    update webhook_endpoints set status = 'active', consecutive_failures = 0, failing_since = null, warned = 0, next_probe_at = null, disabled_at = null, disabled_reason = null, updated_at = ${now}
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/**
 * Deletes a locked endpoint: its subscriptions and secrets go, what waits for it is skipped, and its log
 * stays.
 */
export const deleteEndpointRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  now: string,
): Promise<void> => {
  await sql`
    with skipped as (
      update webhook_deliveries set status = 'skipped', next_attempt_at = null, lease_until = null
      where workspace_id = ${workspaceId} and endpoint_id = ${id} and status in ('pending', 'failed')),
    unsubscribed as (delete from webhook_subscriptions where workspace_id = ${workspaceId} and endpoint_id = ${id})
    update webhook_endpoints set deleted_at = ${now}, custom_headers = '', signing_secret = '', old_secret = null, old_secret_until = null, next_probe_at = null
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}
