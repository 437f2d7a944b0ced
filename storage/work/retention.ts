import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { divisionOf, isNeeded, listPartitions, type PartitionedTable } from '../migrations/partitions.ts'

// What `wcrm admin retention` asks. Every query reads catalogs, the beginning of an index, or a table that is small
// because its rows go after hours or days.

/** Kinds of data of which old rows go by themselves. */
export type RetainedKind = PartitionedTable | keyof typeof timedKinds

/** Where rows have their time, and which rows go when it is over: as in the statements that delete them. */
const timedKinds = {
  webhook_deliveries: {
    table: 'webhook_deliveries',
    at: 'created_at',
    where: `status in ('delivered', 'dead', 'skipped')`,
  },
  idempotency: { table: 'idempotency', at: 'expires_at', where: `state = 'done'` },
  provider_updates: { table: 'provider_updates', at: 'received_at', where: 'true' },
  jobs: { table: 'bulk_jobs', at: 'finished_at', where: 'finished_at is not null' },
  plans: { table: 'bulk_jobs', at: 'coalesce(expires_at, created_at)', where: `state = 'planned'` },
  approvals: { table: 'approvals', at: 'ended_at', where: 'ended_at is not null' },
  merges: { table: 'contact_merges', at: 'merged_at', where: 'before is not null' },
  former_phones: { table: 'contact_former_ids', at: 'changed_at', where: 'true' },
  filter_memberships: { table: 'filter_memberships', at: 'recorded_at', where: 'true' },
  exports: { table: 'exports', at: 'created_at', where: `state not in ('running', 'done')` },
  export_files: { table: 'exports', at: 'file_until', where: `state = 'done'` },
  phone_budgets: { table: 'phone_budgets', at: 'day', where: 'true' },
  contact_views: { table: 'contact_budgets', at: 'day', where: 'true' },
  contact_reads: { table: 'contact_reads', at: 'hour', where: 'true' },
} as const

const partitionedKinds: readonly PartitionedTable[] = ['events', 'webhook_attempts', 'audit_log']

const isPartitioned = (kind: RetainedKind): kind is PartitionedTable =>
  (partitionedKinds as readonly string[]).includes(kind)

/** Returns the time of the oldest row that goes some time, ISO 8601; null when there is none. */
export const findOldest = async (db: Db, kind: RetainedKind): Promise<string | null> => {
  if (isPartitioned(kind)) {
    const { column, toMs } = divisionOf(kind)
    const { rows } = await sql<{ id: string | null }>`
      select min(o.id) as id from workspaces w
      cross join lateral (
        select ${sql.ref(column)} as id from ${sql.table(kind)} where workspace_id = w.id
        order by ${sql.ref(column)} limit 1) o`.execute(db)
    const { id } = rows[0]!
    return id === null ? null : new Date(toMs(id)).toISOString()
  }
  const { table, at, where } = timedKinds[kind]
  const { rows } = await sql<{ at: string | null }>`
    select ${sql.raw(at)} as at from ${sql.table(table)} where ${sql.raw(where)}
    order by ${sql.raw(at)} limit 1`.execute(db)
  return rows[0]?.at ?? null
}

/** Which events go: they have business time of their own, and deliveries that are still to be sent need them. */
const isFreeEvent = (before: string) => sql`
  e.occurred_at < ${before}::timestamptz and not exists (
    select from webhook_deliveries d
    where d.workspace_id = e.workspace_id and d.event_id = e.id and d.status in ('pending', 'failed'))`

/**
 * Counts the rows that a job deletes by itself, since their time was before `before`: at most `limit`. Null for
 * what goes with its partition alone.
 */
export const countDue = async (
  db: Db,
  kind: RetainedKind,
  before: string,
  limit: number,
): Promise<number | null> => {
  if (kind === 'webhook_attempts') return null
  if (isPartitioned(kind)) {
    const { column, toBound } = divisionOf(kind)
    const isFree = kind === 'events' ? isFreeEvent(before) : sql.raw('true')
    const { rows } = await sql<{ n: number }>`
      select count(*)::int as n from (
        select from workspaces w
        cross join lateral (
          select from ${sql.table(kind)} e
          where e.workspace_id = w.id and ${sql.ref(`e.${column}`)} < ${toBound(Date.parse(before))}
            and ${isFree}
          order by ${sql.ref(`e.${column}`)} limit ${limit}) due
        limit ${limit}) due`.execute(db)
    return rows[0]!.n
  }
  const { table, at, where } = timedKinds[kind]
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from (
      select from ${sql.table(table)} where ${sql.raw(where)} and ${sql.raw(at)} < ${before}::timestamptz
      limit ${limit}) due`.execute(db)
  return rows[0]!.n
}

/** Counts the partitions of a table, and those that go as a whole; null for other tables. */
export const countPartitions = async (
  db: Db,
  kind: RetainedKind,
  before: string | null,
): Promise<{ partitions: number; due: number } | null> => {
  if (!isPartitioned(kind)) return null
  const partitions = await listPartitions(db, kind)
  let due = 0
  for (const partition of partitions)
    if (before !== null && partition.to <= Date.parse(before) && !(await isNeeded(db, kind, partition))) due++
  return { partitions: partitions.length, due }
}

/** `rows`: at the last analyze; null where there was none yet. */
export type TableSize = { rows: number | null; bytes: number }

/** Returns the sizes of tables with their partitions, indexes and long values. */
export const readTableSizes = async (db: Db, tables: readonly string[]): Promise<Map<string, TableSize>> => {
  const { rows } = await sql<TableSize & { name: string }>`
    select t.name, sum(nullif(c.reltuples, -1))::float8 as rows,
      coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 as bytes
    from unnest(${tables}::text[]) as t (name)
    join pg_class c on c.relkind = 'r' and (c.oid = to_regclass(t.name)
      or c.oid in (select inhrelid from pg_inherits where inhparent = to_regclass(t.name)))
    group by t.name`.execute(db)
  return new Map(rows.map(({ name, ...size }) => [name, size]))
}
