import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import type { ErasedCounts, ErasureSubject } from '../tables/erasures.ts'
import { insertRun, type Run } from '../work/runs.ts'

/*
 * Erasures of contacts, and their receipts. What was erased is counted in the transaction that erased it, so that none
 * is counted twice.
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

/** `needs_version`: what a server must know to run it. Returns the id of the new erasure. */
export const insertErasure = async (
  tx: Db,
  erasure: Pick<Stored, 'workspace_id' | 'contact_id' | 'staff_id' | 'created_at'> & {
    counts: ErasureCounts
    subject: ErasureSubject
    needs_version: string
  },
): Promise<string> => {
  const { workspace_id, contact_id, staff_id, created_at, counts, subject, needs_version } = erasure
  const { rows: inserted } = await sql<{ id: string }>`
    insert into erasures (workspace_id, contact_id, staff_id, created_at, counts, subject)
    values (${workspace_id}, ${contact_id}, ${staff_id}, ${created_at},
      ${JSON.stringify(counts)}::text::jsonb, ${JSON.stringify(subject)}::text::jsonb)
    returning id`.execute(tx)
  const { id } = inserted[0]!
  await insertRun(tx, { workspace_id, kind: 'erasures', subject: id, needs_version })
  return id
}

export type RunningErasure = Pick<Stored, 'workspace_id' | 'id' | 'contact_id' | 'is_repeated' | 'counts'> &
  Pick<TableRow<'runs'>, 'step' | 'attempts'> & { subject: ErasureSubject; position: string[] | null }

/** Locks the erasure of a run, and returns how far it is; undefined when it has ended. */
export const lockErasure = async (tx: Db, run: Run): Promise<RunningErasure | undefined> =>
  (
    await sql<RunningErasure>`
    select e.workspace_id, e.id, e.contact_id, e.is_repeated, e.counts, e.subject, r.step, r.position, r.attempts
    from erasures e join runs r on r.workspace_id = e.workspace_id and r.kind = ${run.kind} and r.subject = e.id::text
    where e.workspace_id = ${run.workspace_id} and e.id = ${run.subject} and e.state = 'running'
    for update of e`.execute(tx)
  ).rows[0]

/** Writes what a locked erasure has erased. */
export const saveErasureProgress = async (
  tx: Db,
  { workspace_id, id }: Pick<Stored, 'workspace_id' | 'id'>,
  progress: { isRepeated: boolean; counts: ErasureCounts },
): Promise<void> => {
  await sql`
    update erasures set is_repeated = ${progress.isRepeated}::boolean,
      counts = ${JSON.stringify(progress.counts)}::text::jsonb
    where workspace_id = ${workspace_id} and id = ${id}`.execute(tx)
}

/** Ends a locked erasure, and forgets what the person was found by. */
export const finishErasure = async (tx: Db, workspaceId: string, id: string, now: string): Promise<void> => {
  await tx
    .updateTable('erasures')
    .set({ state: 'done', finished_at: now, subject: null })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}
