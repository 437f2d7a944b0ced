import { sql } from 'kysely'
import type { TableRow, Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'

/** Recipients by message status, each counted once; `responded` and `opted_out` count them again. */
export type BroadcastCounts = {
  pending: number
  sent: number
  delivered: number
  read: number
  failed: number
  responded: number
  opted_out: number
}
export type BroadcastRow = Pick<
  TableRow<'broadcasts'>,
  'name' | 'status' | 'template_name' | 'scheduled_at' | 'started_at'
> & {
  id: string
  channel_id: string | null
  begins_at: string
  job_id: string | null
  job_state: TableRow<'bulk_jobs'>['state'] | null
  waiting: TableRow<'broadcast_sends'>['waiting']
} & BroadcastCounts

/** `channelIds`: only broadcasts on these channels; null: all. */
export type BroadcastFilter = {
  channelIds: readonly string[] | null
  status?: TableRow<'broadcasts'>['status'] | undefined
  search?: string | undefined
}

const countNames = ['pending', 'sent', 'delivered', 'read', 'failed', 'responded', 'opted_out'] as const

/**
 * A broadcast with its counts: sums of at most 32 rows (docs/decisions/0011), as doubles, which the driver
 * returns as numbers.
 */
const columns = sql.raw(
  `b.id, b.name, b.status, b.template_name, b.channel_id, b.scheduled_at, b.started_at, b.begins_at,
  s.job_id, s.job_state, s.waiting, ${countNames.map((c) => `k.${c}`).join(', ')}`,
)
const withCounts = sql.raw(`
  left join lateral (
    select j.id as job_id, j.state as job_state, x.waiting from broadcast_sends x
    join bulk_jobs j on j.workspace_id = x.workspace_id and j.id = x.job_id
    where x.workspace_id = b.workspace_id and x.broadcast_id = b.id) as s on true
  cross join lateral (
    select ${countNames.map((c) => `coalesce(sum(${c}), 0)::double precision as ${c}`).join(', ')}
    from broadcast_counts where workspace_id = b.workspace_id and broadcast_id = b.id) as k`)

const matches = (workspaceId: string, { channelIds, status, search }: BroadcastFilter) => sql`
  workspace_id = ${workspaceId}
  ${channelIds === null ? sql`` : sql`and channel_id = any(${channelIds}::bigint[])`}
  ${status === undefined ? sql`` : sql`and status = ${status}`}
  ${search === undefined ? sql`` : sql`and name_key like ${containsPattern(fold(search))}`}`

const isAfter = ({ beginsAt, id }: { beginsAt: string; id: string }) =>
  sql`and (begins_at, id) < (${beginsAt}::timestamptz, ${id}::bigint)`

/** Lists a page by when broadcasts began or are to begin, latest first. */
export const listBroadcastRows = async (
  tx: Db,
  workspaceId: string,
  filter: BroadcastFilter,
  after: { beginsAt: string; id: string } | null,
  limit: number,
): Promise<BroadcastRow[]> =>
  (
    await sql<BroadcastRow>`
    select ${columns} from (
      select * from broadcasts where ${matches(workspaceId, filter)}
      ${after === null ? sql`` : isAfter(after)}
      order by begins_at desc, id desc limit ${limit}) as b ${withCounts}
    order by b.begins_at desc, b.id desc`.execute(tx)
  ).rows

export const countBroadcasts = async (
  tx: Db,
  workspaceId: string,
  filter: BroadcastFilter,
): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
      select count(*) as n from broadcasts where ${matches(workspaceId, filter)}`.execute(tx)
    ).rows[0]!.n,
  )

export const loadBroadcast = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<BroadcastRow | undefined> =>
  (
    await sql<BroadcastRow>`
    select ${columns} from (
      select * from broadcasts where workspace_id = ${workspaceId} and id = ${toStorableId(id)}
    ) as b ${withCounts}`.execute(tx)
  ).rows[0]

/** A recipient of a broadcast. `known`: the contact still exists. */
export type RecipientRow = Omit<
  TableRow<'broadcast_recipients'>,
  | 'workspace_id'
  | 'broadcast_id'
  | 'contact_id'
  | 'responded'
  | 'opted_out'
  | 'message_id'
  | 'country'
  | 'retry_at'
  | 'attempts'
> & {
  contact_id: string
  responded: boolean
  opted_out: boolean
  known: boolean
  name: string | null
  phone: string | null
}

export type RecipientStatusFilter = TableRow<'broadcast_recipients'>['status'] | 'responded' | 'not_responded'

const statuses = ['pending', 'sent', 'delivered', 'read', 'failed']

/** Pairs of status and `responded` that a filter selects, each one range of an index, ordered by contact. */
const toIndexRanges = (status: RecipientStatusFilter): { status: string; responded: boolean }[] => {
  if (status === 'responded' || status === 'not_responded')
    return statuses.map((each) => ({ status: each, responded: status === 'responded' }))
  return [true, false].map((responded) => ({ status, responded }))
}

/**
 * Lists a page of recipients by contact id. A status filter selects several ranges of the index
 * broadcast_recipients_status. At most a page is read of each, and they are merged, so that a rare status is
 * found as fast as a common one.
 */
export const listRecipientRows = async (
  tx: Db,
  workspaceId: string,
  broadcastId: string,
  status: RecipientStatusFilter | undefined,
  after: string | null,
  limit: number,
): Promise<RecipientRow[]> => {
  const ofPage = sql`
    x.workspace_id = ${workspaceId} and x.broadcast_id = ${broadcastId}::bigint
    ${after === null ? sql`` : sql`and x.contact_id > ${after}::bigint`}`
  const found =
    status === undefined
      ? sql`select x.* from broadcast_recipients x where ${ofPage} order by x.contact_id limit ${limit}`
      : sql`
      select y.*
      from jsonb_to_recordset(${JSON.stringify(toIndexRanges(status))}::text::jsonb)
        as p (status text, responded boolean)
      cross join lateral (
        select x.* from broadcast_recipients x
        where ${ofPage} and x.status = p.status and x.responded = p.responded
        order by x.workspace_id, x.broadcast_id, x.status, x.responded, x.contact_id limit ${limit}) as y
      order by y.contact_id limit ${limit}`
  const { rows } = await sql<RecipientRow>`
    select r.contact_id, r.status, r.responded, r.opted_out, r.sent_at, r.delivered_at, r.read_at,
      r.failed_at, r.responded_at, r.error, r.error_code, c.id is not null as known, c.name, c.phone
    from (${found}) as r left join contacts c on c.workspace_id = ${workspaceId} and c.id = r.contact_id
    order by r.contact_id`.execute(tx)
  return rows
}
