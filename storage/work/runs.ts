import { sql } from 'kysely'
import { INDEXED_PLAN } from '../client/driver.ts'
import type { Db, TableRow } from '../database.ts'

/*
 * Runs: work that no request waits for. A row says what is to be done, when, and who has it; it is inserted with the
 * change that needs the work, and deleted with the change that ends it. What users see of the work, and what it is
 * about, is in the tables of its domain. All times are real times, of the database's clock.
 *
 * Whoever takes a run writes a lease of its own into it, and from then on every statement names that lease: once
 * another worker has taken the run, or it was ended, they change nothing and say so.
 */

type Stored = TableRow<'runs'>
export type Run = Pick<
  Stored,
  'workspace_id' | 'kind' | 'subject' | 'queue' | 'attempts' | 'step' | 'position'
> & { lease: string }

type RunKey = Pick<Stored, 'workspace_id' | 'kind' | 'subject'>

/**
 * What may be due later than now. `queue`: runs of a workspace that take turns with those of its other queues.
 * `order_key`: those with the same one go in the order in which they were inserted. `needs_version`: see `RunFilter`.
 */
export type NewRun = RunKey &
  Partial<Pick<Stored, 'queue' | 'order_key' | 'needs_version' | 'attempts'>> & { seconds?: number }

const inSeconds = (seconds: number) => sql`clock_timestamp() + ${seconds}::float8 * interval '1 second'`

/** Inserts a run. One of the same subject begins again, and whoever has it loses it. */
export const insertRun = async (tx: Db, run: NewRun): Promise<void> => {
  const { workspace_id, kind, subject, queue = '', order_key = null, needs_version = null } = run
  const { seconds = 0, attempts = 0 } = run
  await sql`
    insert into runs (workspace_id, kind, subject, queue, order_key, needs_version, attempts, run_after)
    values (${workspace_id}, ${kind}, ${subject}, ${queue}, ${order_key}, ${needs_version}, ${attempts},
      ${inSeconds(seconds)})
    on conflict (workspace_id, kind, subject) do update set run_after = excluded.run_after, lease = null,
      needs_version = excluded.needs_version, attempts = excluded.attempts`.execute(tx)
}

/** Ends a run, whoever has it. */
export const cancelRun = async (tx: Db, { workspace_id, kind, subject }: RunKey): Promise<void> => {
  await sql`
    delete from runs where workspace_id = ${workspace_id} and kind = ${kind} and subject = ${subject}`.execute(
    tx,
  )
}

/**
 * Runs that a worker can take: of a kind, and with a `needs_version` that it knows, or none. Others were begun by a
 * later version, whose servers take them; `abandonedAfterSeconds`: where none did for so long, any worker may.
 */
export type RunFilter = {
  kind: string
  knows?: readonly string[] | undefined
  abandonedAfterSeconds?: number | undefined
}

const isKnown = ({ knows = [], abandonedAfterSeconds }: RunFilter) => sql`
  (r.needs_version is null or r.needs_version = any(${knows}::text[])${
    abandonedAfterSeconds === undefined
      ? sql``
      : sql` or r.run_after <= now() - ${abandonedAfterSeconds}::float8 * interval '1 second'`
  })`

const isFirst = sql`
  (r.order_key is null or not exists (
    select from runs e where e.workspace_id = r.workspace_id and e.kind = r.kind and e.order_key = r.order_key
      and e.id < r.id))`

/** The queues of a kind: one look into the index for each, however long it is. */
const queuesOf = (kind: string) => sql`
  queues as (
    (select workspace_id, queue from runs where kind = ${kind} order by workspace_id, queue limit 1)
    union all
    select n.workspace_id, n.queue from queues q cross join lateral (
      select workspace_id, queue from runs
      where kind = ${kind} and (workspace_id, queue) > (q.workspace_id, q.queue)
      order by workspace_id, queue limit 1) as n
  )`

/** `queue`: of `after`. `perQueue`: how many runs of a queue may be in work at a time, on all servers together. */
export type Claim = RunFilter & {
  leaseSeconds: number
  limit: number
  perQueue?: number | undefined
  /** Queues take turns: the next one after this comes first. */
  after?: Pick<Run, 'workspace_id' | 'queue'> | undefined
}

/**
 * Takes runs that are due for `leaseSeconds`: another worker may take them afterwards. Of each queue the earliest; the
 * queue comes first of which the fewest are in work.
 */
export const claimRuns = async (db: Db, claim: Claim): Promise<Run[]> => {
  const { kind, leaseSeconds, limit, perQueue = limit, after } = claim
  const { rows } = await sql<Run>`${sql.raw(INDEXED_PLAN)}
    with recursive ${queuesOf(kind)}, busy as (
      select workspace_id, queue, count(*) as n from runs
      where kind = ${kind} and lease is not null and run_after > now() group by workspace_id, queue
    ), due as (
      select q.workspace_id, q.queue, d.subject, d.no + coalesce(b.n, 0) as turn
      from queues q left join busy b on b.workspace_id = q.workspace_id and b.queue = q.queue
      cross join lateral (
        select r.subject, row_number() over (order by r.run_after, r.id) as no from runs r
        where r.kind = ${kind} and r.workspace_id = q.workspace_id and r.queue = q.queue and r.run_after <= now()
          and ${isKnown(claim)} and ${isFirst}
        order by r.run_after, r.id limit greatest(0, least(${limit}, ${perQueue} - coalesce(b.n, 0)))
      ) as d
    ), chosen as (
      select r.workspace_id, r.subject from runs r
      join due d on d.workspace_id = r.workspace_id and d.subject = r.subject
      where r.kind = ${kind} and r.run_after <= now()
      order by d.turn,
        (d.workspace_id, d.queue) <= (${after?.workspace_id ?? '0'}::bigint, ${after?.queue ?? ''}::text),
        d.workspace_id, d.queue
      limit ${limit} for update of r skip locked
    )
    update runs r set lease = gen_random_uuid(), run_after = ${inSeconds(leaseSeconds)} from chosen c
    where r.workspace_id = c.workspace_id and r.kind = ${kind} and r.subject = c.subject
    returning r.workspace_id, r.kind, r.subject, r.queue, r.lease, r.attempts, r.step, r.position`.execute(db)
  return rows
}

const isOurs = ({ workspace_id, kind, subject, lease }: Run) => sql`
  workspace_id = ${workspace_id} and kind = ${kind} and subject = ${subject} and lease = ${lease}::uuid`

/** Takes a run for longer. Returns false when it is another's, or has ended. */
export const renewRun = async (db: Db, run: Run, leaseSeconds: number): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update runs set run_after = ${inSeconds(leaseSeconds)} where ${isOurs(run)}`.execute(db)
  return numAffectedRows === 1n
}

/**
 * Writes how far a run is, in the transaction of the step that brought it there. Returns false when the run is
 * another's, or has ended: the step is to be rolled back.
 */
export const advanceRun = async (
  tx: Db,
  run: Run,
  { step, position }: Pick<Run, 'step' | 'position'> = run,
): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update runs set attempts = 0, step = ${step},
      position = ${position === null ? null : JSON.stringify(position)}::text::jsonb where ${isOurs(run)}`.execute(
    tx,
  )
  return numAffectedRows === 1n
}

/**
 * Lets a run wait for so long, and those behind it in its order: `tries` more without progress. Does nothing when it is
 * another's, or has ended.
 */
export const postponeRun = async (
  db: Db,
  run: Run,
  { seconds, tries }: { seconds: number; tries: 0 | 1 },
): Promise<void> => {
  await sql`
    with postponed as (
      update runs set lease = null, attempts = least(attempts + ${tries}::int, 1000), run_after = ${inSeconds(seconds)}
      where ${isOurs(run)} returning workspace_id, kind, order_key, id, run_after
    )
    update runs r set run_after = p.run_after from postponed p
    where r.workspace_id = p.workspace_id and r.kind = p.kind and r.order_key = p.order_key and r.id > p.id
      and r.run_after < p.run_after`.execute(db)
}

/** Makes the runs of a queue that wait due now. */
export const hastenQueue = async (
  tx: Db,
  { workspace_id, kind, queue }: Pick<Run, 'workspace_id' | 'kind' | 'queue'>,
): Promise<void> => {
  await sql`
    update runs set run_after = clock_timestamp() where kind = ${kind} and workspace_id = ${workspace_id}
      and queue = ${queue} and lease is null and run_after > clock_timestamp()`.execute(tx)
}

/** Ends a run, in the transaction of its last step. Returns false when it is another's, or has ended. */
export const finishRun = async (tx: Db, run: Run): Promise<boolean> => {
  const { numAffectedRows } = await sql`delete from runs where ${isOurs(run)}`.execute(tx)
  return numAffectedRows === 1n
}

/** Seconds until a run is due, or another's lease ends; 0 when one is due now, undefined when there is none. */
export const secondsUntilRun = async (db: Db, filter: RunFilter): Promise<number | undefined> => {
  const { rows } = await sql<{ seconds: number | null }>`${sql.raw(INDEXED_PLAN)}
    with recursive ${queuesOf(filter.kind)}
    select extract(epoch from min(f.run_after) - clock_timestamp())::float8 as seconds
    from queues q cross join lateral (
      select r.run_after from runs r
      where r.kind = ${filter.kind} and r.workspace_id = q.workspace_id and r.queue = q.queue
        and ${isKnown(filter)} and ${isFirst}
      order by r.run_after limit 1) as f`.execute(db)
  const { seconds } = rows[0]!
  return seconds === null ? undefined : Math.max(0, seconds)
}

/** How many runs of all workspaces have waited for minutes for a server of a later version. */
export const countLaterRuns = async (db: Db, filter: RunFilter): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    select count(*) as n from runs r where r.kind = ${filter.kind} and not ${isKnown(filter)}
      and r.run_after < now() - interval '5 minutes'`.execute(db)
  return Number(rows[0]!.n)
}
