import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import type { ErasedCounts, ErasureSubject } from '../tables/erasures.ts'

/*
 * Erasures of contacts: their receipts, and how far the job is that erases copies. Its progress is written in the
 * transaction of what it erased, so that none is counted twice.
 */

type Stored = TableRow<'erasures'>

/** Counts by table. */
export type ErasureCounts = Record<string, Partial<ErasedCounts>>

export type ErasureRow = Pick<
  Stored,
  'workspace_id' | 'id' | 'contact_id' | 'state' | 'staff_id' | 'created_at' | 'finished_at' | 'counts'
> & { staff_name: string | null }

const rows = (db: Db, workspaceId: string) =>
  db
    .selectFrom('erasures as e')
    .leftJoin('staff as s', (join) =>
      join.onRef('s.workspace_id', '=', 'e.workspace_id').onRef('s.id', '=', 'e.staff_id'),
    )
    .select([
      'e.workspace_id',
      'e.id',
      'e.contact_id',
      'e.state',
      'e.staff_id',
      'e.created_at',
      'e.finished_at',
    ])
    .select(['e.counts', 's.name as staff_name'])
    .where('e.workspace_id', '=', workspaceId)

export const findErasure = async (db: Db, workspaceId: string, id: string): Promise<ErasureRow | undefined> =>
  await rows(db, workspaceId).where('e.id', '=', toStorableId(id)).executeTakeFirst()

export const findErasureOfContact = async (
  db: Db,
  workspaceId: string,
  contactId: string,
): Promise<ErasureRow | undefined> =>
  await rows(db, workspaceId).where('e.contact_id', '=', toStorableId(contactId)).executeTakeFirst()

/** Lists a page, newest first. */
export const listErasurePage = async (
  db: Db,
  workspaceId: string,
  {
    contactId,
    state,
    before,
    limit,
  }: {
    contactId?: string | undefined
    state?: Stored['state'] | undefined
    before: string | null
    limit: number
  },
): Promise<ErasureRow[]> =>
  await rows(db, workspaceId)
    .$if(contactId !== undefined, (query) => query.where('e.contact_id', '=', toStorableId(contactId!)))
    .$if(state !== undefined, (query) => query.where('e.state', '=', state!))
    .$if(before !== null, (query) => query.where('e.id', '<', before!))
    .orderBy('e.id', 'desc')
    .limit(limit)
    .execute()

const toLockKey = (workspaceId: string) => sql`hashtextextended(${`erasures ${workspaceId}`}, 0)`

/**
 * Makes erasures wait until this transaction ends, and this one for those that have begun: what it writes then is
 * found by an erasure that comes after it.
 */
export const holdErasures = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock_shared(${toLockKey(workspaceId)})`.execute(tx)
}

/** Makes transactions that hold erasures wait until this one, which erases, has ended. */
export const lockErasures = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(${toLockKey(workspaceId)})`.execute(tx)
}

/** How many persons were ever erased. A number, as text, to compare with an earlier one. */
export const countErasures = async (db: Db, workspaceId: string): Promise<string> =>
  (
    await sql<{ n: string }>`
    select count(*) as n from erasures where workspace_id = ${workspaceId}`.execute(db)
  ).rows[0]!.n

/** Returns the id of the new erasure. */
export const insertErasure = async (
  tx: Db,
  erasure: Pick<Stored, 'workspace_id' | 'contact_id' | 'staff_id' | 'created_at'> & {
    counts: ErasureCounts
    subject: ErasureSubject
  },
): Promise<string> =>
  (
    await sql<{ id: string }>`
    insert into erasures (workspace_id, contact_id, staff_id, created_at, counts, subject)
    values (${erasure.workspace_id}, ${erasure.contact_id}, ${erasure.staff_id}, ${erasure.created_at},
      ${JSON.stringify(erasure.counts)}::text::jsonb, ${JSON.stringify(erasure.subject)}::text::jsonb)
    returning id`.execute(tx)
  ).rows[0]!.id

export type ClaimedErasure = Pick<Stored, 'workspace_id' | 'id' | 'attempts'>

/** Whether an erasure takes no more steps than these: others are left to servers of a later version. */
const takesAtMost = (steps: number) => sql`coalesce((subject->>'steps')::integer, 0) <= ${steps}::integer`

/**
 * Takes an erasure of so many steps at most that is due for `leaseSeconds`: another server may take it afterwards.
 */
export const claimErasure = async (
  db: Db,
  leaseSeconds: number,
  steps: number,
): Promise<ClaimedErasure | undefined> =>
  (
    await sql<ClaimedErasure>`
    update erasures e set run_after = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second',
      attempts = least(attempts + 1, 1000)
    from (
      select workspace_id, id from erasures
      where state = 'running' and run_after <= clock_timestamp() and ${takesAtMost(steps)}
      order by run_after limit 1 for update skip locked) as d
    where e.workspace_id = d.workspace_id and e.id = d.id
    returning e.workspace_id, e.id, e.attempts`.execute(db)
  ).rows[0]

/**
 * How many erasures of all workspaces take more steps than these, and have waited for minutes for a server of a later
 * version.
 */
export const countLaterErasures = async (db: Db, steps: number): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
      select count(*) as n from erasures where state = 'running' and not ${takesAtMost(steps)}
        and run_after < clock_timestamp() - interval '5 minutes'`.execute(db)
    ).rows[0]!.n,
  )

/** Seconds until an erasure is due; undefined when none runs. */
export const findSecondsUntilErasure = async (db: Db, steps: number): Promise<number | undefined> =>
  (
    await sql<{ seconds: number }>`
    select greatest(0, extract(epoch from run_after - clock_timestamp()))::float8 as seconds
    from erasures where state = 'running' and ${takesAtMost(steps)} order by run_after limit 1`.execute(db)
  ).rows[0]?.seconds

export type RunningErasure = Pick<
  Stored,
  'workspace_id' | 'id' | 'contact_id' | 'step' | 'position' | 'is_repeated' | 'counts' | 'attempts'
> & { subject: ErasureSubject }

/** Locks an erasure that is not done. */
export const lockErasure = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<RunningErasure | undefined> =>
  (
    await sql<RunningErasure>`
    select workspace_id, id, contact_id, step, position, is_repeated, counts, attempts, subject
    from erasures where workspace_id = ${workspaceId} and id = ${id} and state = 'running' for update`.execute(
      tx,
    )
  ).rows[0]

/** Writes how far a locked erasure is, and takes it for `leaseSeconds` more. */
export const saveErasureProgress = async (
  tx: Db,
  workspaceId: string,
  id: string,
  progress: { step: number; position: string[] | null; isRepeated: boolean; counts: ErasureCounts },
  leaseSeconds: number,
): Promise<void> => {
  await sql`
    update erasures set step = ${progress.step}::integer, is_repeated = ${progress.isRepeated}::boolean,
      position = ${progress.position && JSON.stringify(progress.position)}::text::jsonb, attempts = 0,
      counts = ${JSON.stringify(progress.counts)}::text::jsonb,
      run_after = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second'
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/** Ends a locked erasure, and forgets what the person was found by. */
export const finishErasure = async (tx: Db, workspaceId: string, id: string, now: string): Promise<void> => {
  await tx
    .updateTable('erasures')
    .set({ state: 'done', finished_at: now, subject: null, position: null })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Lets an erasure wait for so long; 0 for the next one who comes. */
export const postponeErasure = async (
  db: Db,
  workspaceId: string,
  id: string,
  seconds: number,
): Promise<void> => {
  await sql`
    update erasures set run_after = clock_timestamp() + ${seconds}::float8 * interval '1 second'
    where workspace_id = ${workspaceId} and id = ${id} and state = 'running'`.execute(db)
}
