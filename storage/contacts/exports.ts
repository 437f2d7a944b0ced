import { sql } from 'kysely'
import { orderBySortKey, pageColumns, type PageRow } from './pages.ts'
import { attachNames, type ContactRow, type TimelineScope } from './contacts.ts'
import type { Db, TableRow } from '../database.ts'
import type { ErasureCounts } from '../privacy/erasures.ts'
import type { CachedField } from '../workspace/names-cache.ts'
import type { ErasureSubject } from '../tables/erasures.ts'
import type { ContactsFile } from '../tables/exports.ts'
import { insertRun } from '../work/runs.ts'

/* Files of contacts: which contacts are in one is fixed when it begins, in the order of a search. */

const ORDER = { field: 'createdAt', direction: 'desc' } as const

/** Inserts an export of the contacts of `batches`, texts of arrays of ids. Returns its id. */
export const insertContactsExport = async (
  tx: Db,
  given: Pick<TableRow<'exports'>, 'workspace_id' | 'staff_id' | 'created_at'> & {
    key_id: string
    contacts: ContactsFile
  },
  batches: readonly string[],
  batchSize: number,
): Promise<string> => {
  const { rows } = await sql<{ id: string }>`
    with made as (
      insert into exports (workspace_id, kind, staff_id, key_id, created_at, contacts)
      values (${given.workspace_id}, 'contacts', ${given.staff_id}, ${given.key_id}, ${given.created_at},
        ${JSON.stringify(given.contacts)}::text::jsonb)
      returning id
    ), matches as materialized (
      select unnest(b::bigint[]) as id from unnest(${batches}::text[]) as b
    ), batches as (
      insert into export_batches (workspace_id, export_id, no, contact_ids)
      select ${given.workspace_id}, (select id from made), n / ${sql.lit(batchSize)}, array_agg(id order by n)
      from (
        select c.id, row_number() over (order by c.created_at desc, c.id desc) - 1 as n
        from matches m join contacts c on c.workspace_id = ${given.workspace_id} and c.id = m.id) as numbered
      group by n / ${sql.lit(batchSize)}
    )
    select id from made`.execute(tx)
  await insertRun(tx, { workspace_id: given.workspace_id, kind: 'exports', subject: rows[0]!.id })
  return rows[0]!.id
}

/** Returns the ids of a batch; undefined after the last one. */
export const findExportBatch = async (
  db: Db,
  workspaceId: string,
  exportId: string,
  no: number,
): Promise<string[] | undefined> =>
  (
    await db
      .selectFrom('export_batches')
      .select('contact_ids')
      .where('workspace_id', '=', workspaceId)
      .where('export_id', '=', exportId)
      .where('no', '=', no)
      .executeTakeFirst()
  )?.contact_ids

/** Reads those of these contacts that exist, with all details, in the order of a search. */
export const listWholeContacts = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  timeline: TimelineScope,
): Promise<{ rows: ContactRow[]; fields: CachedField[] }> => {
  const request = { sort: ORDER, after: null, limit: ids.length, full: true, timeline }
  const { rows } = await sql<PageRow>`
    select ${pageColumns(workspaceId, request)}
    from (
      select c.*, c.created_at as sort_key from contacts c
      where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[])) as c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    order by ${orderBySortKey(ORDER, 'c')}`.execute(db)
  return { rows, fields: await attachNames(db, workspaceId, rows) }
}

/**
 * Erases exports of these contacts: files about one of them, and those that have them among others. Their parts are
 * removed from the media store when this is committed.
 */
export const eraseExports = async (
  tx: Db,
  workspaceId: string,
  { contactIds }: Pick<ErasureSubject, 'contactIds'>,
): Promise<ErasureCounts> => {
  const { rows } = await sql<{ exports: number; batches: number; parts: number }>`
    with x as (update exports set state = 'erased', subject = null, position = null, sha256 = null
      where workspace_id = ${workspaceId} and state <> 'erased' and (contact_id = any(${contactIds}::bigint[])
        or id in (select export_id from export_batches
          where workspace_id = ${workspaceId} and contact_ids && ${contactIds}::bigint[]))
      returning id),
    r as (delete from runs
      where workspace_id = ${workspaceId} and kind = 'exports' and subject in (select id::text from x)),
    b as (delete from export_batches
      where workspace_id = ${workspaceId} and export_id in (select id from x) returning 1)
    select (select count(*)::int from x) as exports, (select count(*)::int from b) as batches,
      (select count(*)::int from export_parts
        where workspace_id = ${workspaceId} and export_id in (select id from x)) as parts`.execute(tx)
  const row = rows[0]!
  return {
    exports: { cleared: row.exports },
    export_batches: { deleted: row.batches },
    export_parts: { deleted: row.parts },
  }
}
