import type { ExportRow } from '../../storage/exports.ts'
import type { TableName } from '../../storage/person-rows.ts'
import { personalData } from '../../storage/personal-data.ts'
import type { Actor } from '../core/context.ts'
import type { OutputOf } from '../core/handler.ts'
import { canSeeManagerFields, hasHiddenPhones, listVisibleChannels } from '../visibility/policy.ts'
import { STEP_COUNT } from './person-archive.ts'

type Shown = OutputOf<'crm_list_exports'>['data'][number]

export const toExportFileName = ({ id, contact_id }: Pick<ExportRow, 'id' | 'contact_id'>): string =>
  `person-${contact_id ?? 'unknown'}-export-${id}.zip`

/** Whether a caller may see everything that is held on a person. */
export const canSeeWholePersons = (actor: Actor): boolean =>
  canSeeManagerFields(actor) && !hasHiddenPhones(actor) && listVisibleChannels(actor) === null

/** Returns counts as rows of tables; other counts are left out. */
export const showTables = (counts: Readonly<Record<string, number>>): Shown['tables'] =>
  Object.entries(counts)
    .filter(([name, rows]) => rows > 0 && personalData[name as TableName] !== undefined)
    .map(([table, rows]) => ({ table, rows }))
    .toSorted((a, b) => (a.table < b.table ? -1 : 1))

export const showExport = (row: ExportRow): Shown => ({
  id: row.id,
  kind: row.kind,
  contact_id: row.contact_id,
  state: row.state,
  // The digest of the whole is still to come when all steps are done.
  progress:
    row.state === 'done' || row.state === 'expired'
      ? 1
      : Math.round((row.step / (STEP_COUNT + 1)) * 100) / 100,
  tables: showTables(row.counts),
  file_name: toExportFileName(row),
  size: row.state === 'done' || row.state === 'running' ? Number(row.size ?? 0) : null,
  sha256: row.sha256,
  problem: row.problem,
  created_by: { id: row.staff_id, name: row.staff_name },
  created_at: row.created_at,
  finished_at: row.finished_at,
  file_until: row.state === 'done' ? row.file_until : null,
})
