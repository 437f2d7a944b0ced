import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** Who matched saved filters at which times (docs/decisions/0067). */

/** Ids of contacts that a row holds: of this many in succession, those that are members. */
const RANGE = 2000

export type FilterMembership = { id: string; recorded_at: string; members: number }

/** Returns since when the saved filter is tracked; undefined when it is not. */
export const findTracking = async (
  tx: Db,
  workspaceId: string,
  filterId: string,
): Promise<string | undefined> =>
  (
    await tx
      .selectFrom('tracked_filters')
      .select('tracked_at')
      .where('workspace_id', '=', workspaceId)
      .where('saved_filter_id', '=', toStorableId(filterId))
      .executeTakeFirst()
  )?.tracked_at

/** Locks the tracked filters of a workspace, so that two calls do not exceed their limit. Returns their number. */
export const lockTrackedFilters = async (tx: Db, workspaceId: string): Promise<number> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`tracked_filters ${workspaceId}`}, 0))`.execute(
    tx,
  )
  const { n } = await tx
    .selectFrom('tracked_filters')
    .select(({ fn }) => fn.countAll<string>().as('n'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow()
  return Number(n)
}

export const insertTracking = async (
  tx: Db,
  workspaceId: string,
  filterId: string,
  now: string,
): Promise<void> => {
  await tx
    .insertInto('tracked_filters')
    .values({ workspace_id: workspaceId, saved_filter_id: filterId, tracked_at: now })
    .execute()
}

export const deleteTracking = async (tx: Db, workspaceId: string, filterId: string): Promise<void> => {
  await tx
    .deleteFrom('tracked_filters')
    .where('workspace_id', '=', workspaceId)
    .where('saved_filter_id', '=', filterId)
    .execute()
}

/** The workspaces that track filters. */
export const listTrackingWorkspaces = async (
  db: Db,
): Promise<{ id: string; name: string; timezone: string; features: string[] }[]> =>
  await db
    .selectFrom('workspaces')
    .select(['id', 'name', 'timezone', 'features'])
    .where('id', 'in', (query) => query.selectFrom('tracked_filters').select('workspace_id'))
    .orderBy('id')
    .execute()

/**
 * Lists tracked filters that were not recorded since a time, or changed after their last record. `only`: of these, one,
 * which is locked; empty where somebody else has the lock.
 */
export const listUnrecorded = async (
  db: Db,
  workspaceId: string,
  since: string,
  only?: string,
): Promise<string[]> =>
  (
    await sql<{ id: string }>`
    select t.saved_filter_id as id from tracked_filters t
    join saved_filters f on f.workspace_id = t.workspace_id and f.id = t.saved_filter_id
    where t.workspace_id = ${workspaceId} ${only === undefined ? sql`` : sql`and t.saved_filter_id = ${only}`}
      and not exists (select 1 from filter_memberships m
        where m.workspace_id = t.workspace_id and m.saved_filter_id = t.saved_filter_id
          and m.recorded_at >= greatest(${since}::timestamptz, f.updated_at, t.tracked_at))
    order by 1 ${only === undefined ? sql`` : sql`for update of t skip locked`}`.execute(db)
  ).rows.map(({ id }) => id)

/** Records members. `batches`: texts of arrays of their ids. */
export const insertMembership = async (
  tx: Db,
  workspaceId: string,
  { filterId, digest, batches }: { filterId: string; digest: string; batches: readonly string[] },
  now: string,
): Promise<void> => {
  await sql`
    with given as materialized (select unnest(b::bigint[]) as id from unnest(${batches}::text[]) as b),
    record as (
      insert into filter_memberships (workspace_id, saved_filter_id, digest, recorded_at, members)
      select ${workspaceId}::bigint, ${filterId}::bigint, ${digest}, ${now}::timestamptz, count(*) from given
      returning id
    )
    insert into filter_members (workspace_id, membership_id, id_range, contact_ids)
    select ${workspaceId}::bigint, record.id, given.id / ${sql.lit(RANGE)}, array_agg(given.id order by given.id)
    from given cross join record group by 2, 3`.execute(tx)
}

/** Deletes the records of before a time, or all of a saved filter. */
export const deleteMemberships = async (
  tx: Db,
  workspaceId: string,
  which: { before: string } | { filterId: string },
): Promise<void> => {
  const test =
    'before' in which
      ? sql`recorded_at < ${which.before}::timestamptz`
      : sql`saved_filter_id = ${which.filterId}::bigint`
  await sql`
    with gone as (delete from filter_memberships where workspace_id = ${workspaceId} and ${test} returning id)
    delete from filter_members m using gone
    where m.workspace_id = ${workspaceId} and m.membership_id = gone.id`.execute(tx)
}

/**
 * Returns the last record up to a time, or else the first one after it, and the last one of all; undefined when there
 * is none of this digest.
 */
export const findMembershipSpan = async (
  tx: Db,
  workspaceId: string,
  filterId: string,
  digest: string,
  since: string,
): Promise<{ from: FilterMembership; to: FilterMembership } | undefined> => {
  const { rows } = await sql<FilterMembership>`
    with own as materialized (
      select id, recorded_at, members from filter_memberships
      where workspace_id = ${workspaceId} and saved_filter_id = ${toStorableId(filterId)}::bigint
        and digest = ${digest})
    (select * from own order by recorded_at > ${since}::timestamptz,
      case when recorded_at <= ${since}::timestamptz then recorded_at end desc, recorded_at, id limit 1)
    union all (select * from own order by recorded_at desc, id desc limit 1)`.execute(tx)
  const [from, to] = rows
  return from && to && { from, to }
}

/** Returns two records by their ids; undefined when one of them is gone. */
export const findMemberships = async (
  tx: Db,
  workspaceId: string,
  [fromId, toId]: readonly [string, string],
): Promise<{ from: FilterMembership; to: FilterMembership } | undefined> => {
  const rows = await tx
    .selectFrom('filter_memberships')
    .select(['id', 'recorded_at', 'members'])
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', [fromId, toId])
    .execute()
  const [from, to] = [fromId, toId].map((id) => rows.find((row) => row.id === id))
  return from && to && { from, to }
}

export type MembershipChange = {
  id: string
  entered: boolean
  exists: boolean
  merged_into: string | null
}

/**
 * Compares two records: how many entered and left, and a page of them by id. Parts that are equal in both are not
 * looked into.
 */
export const compareMemberships = async (
  tx: Db,
  workspaceId: string,
  { from, to }: { from: FilterMembership; to: FilterMembership },
  { after, limit }: { after: string | null; limit: number },
): Promise<{ entered: number; left: number; changes: MembershipChange[] }> => {
  const membersOf = ({ id }: FilterMembership) => sql`
    select id_range, contact_ids from filter_members
    where workspace_id = ${workspaceId} and membership_id = ${id}::bigint`
  const { rows } = await sql<
    { entered_count: string; left_count: string } & {
      [K in keyof MembershipChange]: MembershipChange[K] | null
    }
  >`
    with changed as materialized (
      select a.contact_ids as before, b.contact_ids as after
      from (${membersOf(from)}) as a full join (${membersOf(to)}) as b using (id_range)
      where a.contact_ids is distinct from b.contact_ids
    ), diff as materialized (
      select d.* from changed c cross join lateral (
        select id, true as entered from (select unnest(c.after) except select unnest(c.before)) as e (id)
        union all
        select id, false from (select unnest(c.before) except select unnest(c.after)) as l (id)) as d
    ), page as (
      select d.*, exists (select 1 from contacts c where c.workspace_id = ${workspaceId} and c.id = d.id) as exists,
        (select m.into_id from contact_merges m
          where m.workspace_id = ${workspaceId} and m.contact_id = d.id) as merged_into
      from diff d where ${after === null ? sql`true` : sql`d.id > ${after}::bigint`} order by d.id limit ${limit}
    )
    select counts.*, page.* from (
      select count(*) filter (where entered) as entered_count, count(*) filter (where not entered) as left_count
      from diff) as counts
    left join page on true order by page.id`.execute(tx)
  return {
    entered: Number(rows[0]!.entered_count),
    left: Number(rows[0]!.left_count),
    changes: rows.flatMap(({ id, entered, exists, merged_into }) =>
      id === null ? [] : { id, entered: entered!, exists: exists!, merged_into },
    ),
  }
}

/** Takes erased contacts out of all records. Returns the count of rows that held them, as SQL of a statement. */
export const eraseMembersPart = (workspaceId: string, contactIds: readonly string[]) => sql`
  update filter_members m set contact_ids = array(
    select id from unnest(m.contact_ids) as id where id <> all(${contactIds}::bigint[]) order by id)
  from filter_memberships r
  where r.workspace_id = ${workspaceId} and m.workspace_id = r.workspace_id and m.membership_id = r.id
    and m.id_range in (select id / ${sql.lit(RANGE)} from unnest(${contactIds}::bigint[]) as id)
    and m.contact_ids && ${contactIds}::bigint[] returning 1`
