import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import type { ErasureSubject } from '../tables/erasures.ts'
import type { ArchiveEntry, ContactsFile } from '../tables/exports.ts'
import { insertRun } from './runs.ts'

/*
 * Files for people to download. A job makes them part by part: a part counts from the transaction that also writes how
 * far the job is, so that a server that dies leaves parts that nobody counts, and the next one goes on from there.
 */

type Stored = TableRow<'exports'>

export type ExportRow = Pick<
  Stored,
  | 'workspace_id'
  | 'id'
  | 'kind'
  | 'contact_id'
  | 'state'
  | 'staff_id'
  | 'created_at'
  | 'finished_at'
  | 'file_until'
  | 'step'
  | 'counts'
  | 'sha256'
  | 'problem'
  | 'key_id'
  | 'contacts'
> & { staff_name: string | null; size: string | null }

const rows = (db: Db, workspaceId: string) =>
  db
    .selectFrom('exports as e')
    .leftJoin('staff as s', (join) =>
      join.onRef('s.workspace_id', '=', 'e.workspace_id').onRef('s.id', '=', 'e.staff_id'),
    )
    .select(['e.workspace_id', 'e.id', 'e.kind', 'e.contact_id', 'e.state', 'e.staff_id', 'e.created_at'])
    .select([
      'e.finished_at',
      'e.file_until',
      'e.step',
      'e.counts',
      'e.sha256',
      'e.problem',
      'e.key_id',
      'e.contacts',
      's.name as staff_name',
    ])
    .select(
      sql<string | null>`coalesce(e.size, (select sum(p.size)::bigint from export_parts p
        where p.workspace_id = e.workspace_id and p.export_id = e.id and e.state = 'running'))`.as('size'),
    )
    .where('e.workspace_id', '=', workspaceId)

export const findExport = async (db: Db, workspaceId: string, id: string): Promise<ExportRow | undefined> =>
  await rows(db, workspaceId).where('e.id', '=', toStorableId(id)).executeTakeFirst()

/** Lists a page, newest first. `ownKeyId`: of files of contacts that this key asked for, alone; null: of all. */
export const listExportPage = async (
  db: Db,
  workspaceId: string,
  {
    ownKeyId,
    contactId,
    state,
    before,
    limit,
  }: {
    ownKeyId: string | null
    contactId?: string | undefined
    state?: Stored['state'] | undefined
    before: string | null
    limit: number
  },
): Promise<ExportRow[]> =>
  await rows(db, workspaceId)
    .$if(ownKeyId !== null, (query) =>
      query.where('e.kind', '=', 'contacts').where('e.key_id', '=', ownKeyId),
    )
    .$if(contactId !== undefined, (query) => query.where('e.contact_id', '=', toStorableId(contactId!)))
    .$if(state !== undefined, (query) => query.where('e.state', '=', state!))
    .$if(before !== null, (query) => query.where('e.id', '<', before!))
    .orderBy('e.id', 'desc')
    .limit(limit)
    .execute()

/** The export of a contact that is being made. */
export const findRunningExport = async (
  db: Db,
  workspaceId: string,
  contactId: string,
): Promise<ExportRow | undefined> =>
  await rows(db, workspaceId)
    .where('e.contact_id', '=', toStorableId(contactId))
    .where('e.state', '=', 'running')
    .executeTakeFirst()

/** Returns the id of the new export. */
export const insertExport = async (
  tx: Db,
  given: Pick<Stored, 'workspace_id' | 'kind' | 'contact_id' | 'staff_id' | 'created_at'> & {
    key_id: string
    subject: ErasureSubject
  },
): Promise<string> => {
  const { rows } = await sql<{ id: string }>`
    insert into exports (workspace_id, kind, contact_id, staff_id, key_id, created_at, subject)
    values (${given.workspace_id}, ${given.kind}, ${given.contact_id}, ${given.staff_id}, ${given.key_id},
      ${given.created_at}, ${JSON.stringify(given.subject)}::text::jsonb)
    returning id`.execute(tx)
  await insertRun(tx, { workspace_id: given.workspace_id, kind: 'exports', subject: rows[0]!.id })
  return rows[0]!.id
}

type Running = Pick<
  Stored,
  'workspace_id' | 'id' | 'created_at' | 'staff_id' | 'step' | 'position' | 'counts'
>
export type RunningPersonExport = Running & {
  kind: 'person'
  subject: ErasureSubject
  contact_id: string
}
export type RunningContactsExport = Running & {
  kind: 'contacts'
  contacts: ContactsFile
  key_id: string
}
export type RunningExport = RunningPersonExport | RunningContactsExport

/** Returns an export that is being made, and how far it is; undefined when it has ended. */
export const loadRunningExport = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<RunningExport | undefined> =>
  (
    await sql<RunningExport>`
    select workspace_id, id, kind, contact_id, created_at, staff_id, step, position, counts, subject, key_id, contacts
    from exports where workspace_id = ${workspaceId} and id = ${id} and state = 'running'`.execute(db)
  ).rows[0]

/** A part whose file was written. */
export type WrittenPart = { id: string; size: number; entry: ArchiveEntry | null }

/** Counts written parts. Returns false when one is known no more. */
export const countParts = async (
  tx: Db,
  workspaceId: string,
  exportId: string,
  parts: readonly WrittenPart[],
): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update export_parts p set size = (w.part ->> 'size')::bigint, lease_until = null,
      entry = nullif(w.part -> 'entry', 'null')
    from jsonb_array_elements(${JSON.stringify(parts)}::text::jsonb) as w (part)
    where p.workspace_id = ${workspaceId} and p.export_id = ${exportId} and p.id = (w.part ->> 'id')::bigint
      and p.size is null`.execute(tx)
  return numAffectedRows === BigInt(parts.length)
}

/** Writes how far an export is. Returns false when it has ended: the person was erased. */
export const advanceExport = async (
  tx: Db,
  workspaceId: string,
  id: string,
  to: Pick<Stored, 'step' | 'position' | 'counts'>,
): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update exports set step = ${to.step}::integer,
      position = ${to.position && JSON.stringify(to.position)}::text::jsonb,
      counts = ${JSON.stringify(to.counts)}::text::jsonb
    where workspace_id = ${workspaceId} and id = ${id} and state = 'running'`.execute(tx)
  return numAffectedRows === 1n
}

/** Ends an export. Returns false when it has ended already. */
export const finishExport = async (
  tx: Db,
  workspaceId: string,
  id: string,
  file: { size: number; sha256: string; fileUntil: string; now: string },
): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update exports set state = 'done', finished_at = ${file.now}, file_until = ${file.fileUntil},
      size = ${file.size}::bigint, sha256 = ${file.sha256}, subject = null, position = null
    where workspace_id = ${workspaceId} and id = ${id} and state = 'running'`.execute(tx)
  return numAffectedRows === 1n
}

/** Gives a running export up. */
export const failExport = async (
  db: Db,
  workspaceId: string,
  id: string,
  { problem, now }: { problem: string; now: string },
): Promise<void> => {
  await sql`
    with failed as (
      update exports set state = 'failed', finished_at = ${now}, problem = ${problem}, subject = null, position = null
      where workspace_id = ${workspaceId} and id = ${id} and state = 'running' returning id)
    delete from export_batches where workspace_id = ${workspaceId} and export_id in (select id from failed)`.execute(
    db,
  )
}

/** Names a part that is going to be written. Returns its id. */
export const insertPart = async (
  db: Db,
  workspaceId: string,
  exportId: string,
  leaseSeconds: number,
): Promise<string> =>
  (
    await sql<{ id: string }>`
    insert into export_parts (workspace_id, export_id, lease_until)
    values (${workspaceId}, ${exportId}, clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second')
    returning id`.execute(db)
  ).rows[0]!.id

/** Says that nobody writes a part any more, which is not counted. */
export const releasePart = async (
  db: Db,
  workspaceId: string,
  exportId: string,
  id: string,
): Promise<void> => {
  await db
    .updateTable('export_parts')
    .set({ lease_until: null })
    .where('workspace_id', '=', workspaceId)
    .where('export_id', '=', exportId)
    .where('id', '=', id)
    .execute()
}

export type ExportPart = { id: string; size: number; entry: ArchiveEntry | null }

/** The parts of a file, in order. */
export const listParts = async (db: Db, workspaceId: string, exportId: string): Promise<ExportPart[]> =>
  (
    await db
      .selectFrom('export_parts')
      .select(['id', 'size', 'entry'])
      .where('workspace_id', '=', workspaceId)
      .where('export_id', '=', exportId)
      .where('size', 'is not', null)
      .orderBy('id')
      .execute()
  ).map(({ id, size, entry }) => ({ id, size: Number(size), entry }))

export type PartRef = { workspace_id: string; export_id: string; id: string }

/**
 * Lists parts that nobody needs any more, of all workspaces: those of files that are erased, given up or too old, and
 * those that were never counted. Who writes one has a lease. `after`: the last one of the page before.
 */
export const listUselessParts = async (
  db: Db,
  after: PartRef | undefined,
  limit: number,
): Promise<PartRef[]> =>
  (
    await sql<PartRef>`
    select p.workspace_id, p.export_id, p.id from export_parts p
      left join exports e on e.workspace_id = p.workspace_id and e.id = p.export_id
    where (p.lease_until is null or p.lease_until < clock_timestamp())
      and (p.size is null or e.id is null or e.state not in ('running', 'done'))
      and (p.workspace_id, p.export_id, p.id) >
        (${after?.workspace_id ?? '0'}::bigint, ${after?.export_id ?? '0'}::bigint, ${after?.id ?? '0'}::bigint)
    order by p.workspace_id, p.export_id, p.id limit ${limit}`.execute(db)
  ).rows

export const deletePart = async (db: Db, { workspace_id, export_id, id }: PartRef): Promise<void> => {
  await db
    .deleteFrom('export_parts')
    .where('workspace_id', '=', workspace_id)
    .where('export_id', '=', export_id)
    .where('id', '=', id)
    .execute()
}

/** Lets files expire whose time is over at `now` (real time). Returns their count. */
export const expireExports = async (db: Db, now: string): Promise<number> =>
  (
    await sql<{ n: number }>`
    with expired as (
      update exports set state = 'expired', sha256 = null where state = 'done' and file_until <= ${now}
      returning workspace_id, id),
    gone as (delete from export_batches b using expired e
      where b.workspace_id = e.workspace_id and b.export_id = e.id)
    select count(*)::int as n from expired`.execute(db)
  ).rows[0]!.n

/** Deletes exports from before a time whose files are gone. Returns their count. */
export const deleteExportsBefore = async (db: Db, before: string, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from exports where (workspace_id, id) in (
      select e.workspace_id, e.id from exports e
      where e.created_at < ${before} and e.state not in ('running', 'done')
        and not exists (select from export_parts p where p.workspace_id = e.workspace_id and p.export_id = e.id)
      limit ${limit})`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/**
 * Whether parts of files about these contacts are stored still, whatever became of the files. Nobody knows any more
 * which contacts were in files of many that are gone, so that those count too.
 */
export const hasPartsOf = async (
  tx: Db,
  workspaceId: string,
  contactIds: readonly string[],
): Promise<boolean> =>
  (
    await sql`
    select from exports e join export_parts p on p.workspace_id = e.workspace_id and p.export_id = e.id
    where e.workspace_id = ${workspaceId} and (e.contact_id = any(${contactIds}::bigint[])
      or (e.kind = 'contacts' and e.state not in ('running', 'done'))) limit 1`.execute(tx)
  ).rows.length > 0
