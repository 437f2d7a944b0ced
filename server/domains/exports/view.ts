import type { OutputOf } from '../../handler.ts'
import type { ExportRow } from '../../../storage/work/exports.ts'
import type { TableName } from '../../../storage/privacy/person-rows.ts'
import { personalData } from '../../../storage/privacy/personal-data.ts'
import type { Actor } from '../../kernel/context.ts'
import { canSeeManagerFields, hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'
import { describeView } from './contacts-file.ts'
import { STEP_COUNT } from './person-archive.ts'

type Shown = OutputOf<'crm_list_exports'>['data'][number]

/** Returns the name of a file; that of a dry run has no id. */
export const toExportFileName = ({
  id,
  contact_id: contactId,
  contacts,
}: Pick<ExportRow, 'contact_id' | 'contacts'> & {
  id: string | null
}): string => {
  const number = id === null ? '' : `-${id}`
  return contacts
    ? `contacts-export${number}.${contacts.format}`
    : `person-${contactId ?? 'unknown'}-export${number}.zip`
}

/** Returns the media type of a file. */
export const toExportContentType = ({ contacts }: Pick<ExportRow, 'contacts'>): string => {
  if (!contacts) return 'application/zip'
  return contacts.format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson; charset=utf-8'
}

/** Whether a caller may see everything that is held on a person. */
export const canSeeWholePersons = (actor: Actor): boolean =>
  canSeeManagerFields(actor) && !hasHiddenPhones(actor) && listVisibleChannels(actor) === null

/** Whether a caller may know of an export: of files of contacts, what the same key asked for too. */
export const canSeeExport = (actor: Actor, { kind, key_id: keyId }: ExportRow): boolean =>
  canSeeWholePersons(actor) || (kind === 'contacts' && keyId === actor.key.id)

/**
 * Whether a caller may have the file of an export that they know of. To what the key of an AI agent asked for, a
 * person has agreed: to no other file.
 */
export const mayDownload = (actor: Actor, { contacts, key_id: keyId }: ExportRow): boolean =>
  (!actor.key.agent || keyId === actor.key.id) &&
  (canSeeWholePersons(actor) || contacts?.view === describeView(actor))

/** Returns counts as rows of tables; other counts are left out. */
export const showTables = (counts: Readonly<Record<string, number>>): Shown['tables'] =>
  Object.entries(counts)
    .filter(([name, rows]) => rows > 0 && personalData[name as TableName] !== undefined)
    .map(([table, rows]) => ({ table, rows }))
    .toSorted((a, b) => (a.table < b.table ? -1 : 1))

const showContactsFile = ({ contacts, counts }: ExportRow): Shown['contacts'] =>
  contacts && {
    format: contacts.format,
    total: contacts.total,
    done: counts['done'] ?? 0,
    written: counts['contacts'] ?? 0,
    truncated: counts['truncated'] ?? 0,
  }

/** The digest of the whole is still to come when all else is done. */
const toProgress = ({ state, contacts, counts, step }: ExportRow): number => {
  if (state === 'done' || state === 'expired') return 1
  const share = contacts ? (counts['done'] ?? 0) / (contacts.total + 1) : step / (STEP_COUNT + 1)
  return Math.floor(share * 100) / 100
}

export const showExport = (row: ExportRow): Shown => ({
  id: row.id,
  kind: row.kind,
  contact_id: row.contact_id,
  contacts: showContactsFile(row),
  state: row.state,
  progress: toProgress(row),
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
