import { createHash } from 'node:crypto'
import { crc32, deflateRaw } from 'node:zlib'
import { promisify } from 'node:util'
import {
  type ExportPart,
  listParts,
  type RunningPersonExport,
  type WrittenPart,
} from '../../../storage/work/exports.ts'
import { listPersonFiles, type MessageFile } from '../../../storage/privacy/person-rows.ts'
import { personalData } from '../../../storage/privacy/personal-data.ts'
import type { ExportedData } from '../../../storage/privacy/personal-data-types.ts'
import type { ArchiveEntry } from '../../../storage/tables/exports.ts'
import { toFileName } from '../media/media.ts'
import {
  digestParts,
  type ExportWork,
  type FileEnd,
  releasingParts,
  sha256Of,
  type StepResult,
  untilLost,
  writePart,
} from './parts.ts'
import { sources, type Source } from './person-rows.ts'
import { directory, localHeader, type Placed } from './zip.ts'

/* The archive of a person: a file of JSON for each table, the files of messages, and a manifest. */

const pack = promisify(deflateRaw)

/** Rows that one statement reads. The embedded database has one session, for which others wait. */
const PAGE = { embedded: 200, postgres: 1000 }
/** Rows are gathered until they are so long, or took so long to find. */
const FILE_CHARS = 4_000_000
const GATHER_MS = 10_000
const MAX_NAME_LENGTH = 60

export const STEP_COUNT = sources.length + 1

const add = (a: Record<string, number>, b: Record<string, number>): Record<string, number> => ({
  ...a,
  ...Object.fromEntries(Object.entries(b).map(([name, n]) => [name, (a[name] ?? 0) + n])),
})

const toEntry = async (
  name: string,
  data: Buffer,
): Promise<{ entry: ArchiveEntry; content: Uint8Array[] }> => {
  const packed = await pack(data)
  const entry: ArchiveEntry = {
    name,
    size: data.length,
    packed: packed.length,
    crc: crc32(data),
    method: 8,
    sha256: sha256Of(data),
  }
  return { entry, content: [localHeader(entry), packed] }
}

/** A key of the counts: the files of a table so far. */
const filesKey = (table: string): string => `${table}.json`

/** Writes the next rows of a table as a file. */
const writeRows = async (
  work: ExportWork<RunningPersonExport>,
  source: Source,
  signal: AbortSignal,
): Promise<StepResult> => {
  const { app, running } = work
  const { workspace_id: workspaceId, subject, step } = running
  const limit = app.embedded ? PAGE.embedded : PAGE.postgres
  const until = performance.now() + GATHER_MS
  const lines: string[] = []
  let { counts, position } = running
  let characters = 0
  do {
    const page = await source.read(app.db, workspaceId, subject, { after: position, limit })
    for (const row of page.rows) {
      const line = JSON.stringify(row)
      characters += line.length
      lines.push(line)
    }
    counts = add(counts, page.counts)
    position = page.position
  } while (position !== null && characters < FILE_CHARS && performance.now() < until && !signal.aborted)
  const to = { step: position === null ? step + 1 : step, position, counts }
  if (lines.length === 0) return { parts: [], to }
  const n = (counts[filesKey(source.table)] ?? 0) + 1
  const name = `${source.table}${n === 1 ? '' : `-${n}`}.json`
  const { entry, content } = await toEntry(name, Buffer.from(`[\n${lines.join(',\n')}\n]\n`))
  const part = await writePart(work, content)
  return {
    parts: [{ ...part, entry: { ...entry, table: source.table, rows: lines.length } }],
    to: { ...to, counts: { ...counts, [filesKey(source.table)]: n } },
  }
}

/** Reads a file of a message for what stands before it in the archive; undefined when it is gone. */
const digestFile = async (
  work: ExportWork,
  { key, message_id: id, ...file }: MessageFile,
): Promise<ArchiveEntry | undefined> => {
  const found = await work.store.read(key)
  if (!found) return undefined
  const hash = createHash('sha256')
  let crc = 0
  let size = 0
  for await (const chunk of untilLost(work, found.content)) {
    hash.update(chunk)
    crc = crc32(chunk, crc)
    size += chunk.byteLength
  }
  // Its end says what it is; folders take no longer names.
  const ownName = toFileName(file.file_name, id, file.content_type).slice(-MAX_NAME_LENGTH).toWellFormed()
  const name = `media/${id}-${ownName}`
  return { name, size, packed: size, crc, method: 0, sha256: hash.digest('hex') }
}

/** Copies a file of a message into the archive; what goes before it is a part of its own. */
const copyFile = async (work: ExportWork, file: MessageFile): Promise<WrittenPart[]> => {
  const entry = await digestFile(work, file)
  const found = entry && (await work.store.read(file.key))
  // Its message was deleted meanwhile.
  if (!found) return []
  const header = await writePart(work, [localHeader(entry)])
  const written = [header]
  return await releasingParts(work, written, async () => {
    const content = await writePart(work, found.content)
    written.push(content)
    if (content.size !== entry.size) throw new Error('a file of a message changed while it was read')
    return [
      { ...header, entry },
      { ...content, entry: null },
    ]
  })
}

/** Copies the next file of a message. */
const writeNextFile = async (work: ExportWork<RunningPersonExport>): Promise<StepResult> => {
  const { workspace_id: workspaceId, subject, step, position, counts } = work.running
  const page = await listPersonFiles(work.app.db, workspaceId, subject, { after: position, limit: 1 })
  const [file] = page.rows
  const parts = file ? await copyFile(work, file) : []
  return {
    parts,
    to: {
      step: page.position === null ? step + 1 : step,
      position: page.position,
      counts: file ? add(counts, { [parts.length > 0 ? 'files' : 'missing_files']: 1 }) : counts,
    },
  }
}

/** Does the next step of an archive; undefined when all that is left is its end. */
export const writeNext = async (
  work: ExportWork<RunningPersonExport>,
  signal: AbortSignal,
): Promise<StepResult | undefined> => {
  const { step } = work.running
  const source = sources[step]
  if (source) return await writeRows(work, source, signal)
  return step === sources.length ? await writeNextFile(work) : undefined
}

const describeTable = (
  [table, exported]: readonly [string, ExportedData],
  counts: Readonly<Record<string, number>>,
  entries: readonly ArchiveEntry[],
) => {
  if (exported.not !== undefined) return { table, left_out: exported.not }
  const { in: holder = table, without } = exported
  return {
    table,
    rows: counts[table] ?? 0,
    files: entries.filter((entry) => entry.table === holder).map(({ name }) => name),
    ...(without ? { columns_left_out: without } : {}),
  }
}

const renderManifest = (running: RunningPersonExport, entries: readonly ArchiveEntry[]): Buffer => {
  const { counts, created_at, contact_id, staff_id } = running
  const manifest = {
    format: 'wcrm.person/1',
    export_id: running.id,
    contact_id,
    contact_ids: running.subject.contactIds,
    began_at: created_at,
    by_staff_id: staff_id,
    about: [
      'Each file of a table is a list of its rows in JSON, as they were when the file was made.',
      'Of rows that tell of several people, what is about others is left out.',
      'Files of messages are in the folder media, each after the id of its message.',
    ],
    tables: Object.entries(personalData).flatMap(([table, declared]) =>
      declared === 'none' ? [] : [describeTable([table, declared.exported], counts, entries)],
    ),
    missing_files: counts['missing_files'] ?? 0,
    files: entries.map(({ name, size, sha256, rows }) => ({
      name,
      size,
      sha256,
      ...(rows === undefined ? {} : { rows }),
    })),
  }
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
}

const placeEntries = (parts: readonly ExportPart[]): { entries: Placed<ArchiveEntry>[]; size: number } => {
  let offset = 0
  const entries: Placed<ArchiveEntry>[] = []
  for (const { size, entry } of parts) {
    if (entry) entries.push({ ...entry, offset })
    offset += size
  }
  return { entries, size: offset }
}

/**
 * Writes the end of an archive: the manifest and the directory. Reads what is before it for the digest of the whole,
 * and so finds out whether it is all there.
 */
export const writeEnd = async (work: ExportWork<RunningPersonExport>): Promise<FileEnd> => {
  const { app, running } = work
  const parts = await listParts(app.db, running.workspace_id, running.id)
  const { entries, size } = placeEntries(parts)
  const { entry, content } = await toEntry('manifest.json', renderManifest(running, entries))
  const manifest = Buffer.concat(content)
  const end = Buffer.concat([
    manifest,
    directory([...entries, { ...entry, offset: size }], size + manifest.length),
  ])
  const hash = await digestParts(work, parts)
  const part = await writePart(work, [end])
  return {
    parts: [{ ...part, entry }],
    size: size + end.length,
    sha256: hash.update(end).digest('hex'),
  }
}
