import { createHash, type Hash } from 'node:crypto'
import {
  type BackupFileEnd,
  type BackupFileLine,
  type BackupHeader,
  type BackupLines,
  type BackupTableEnd,
  type BackupTableLine,
  type BackupTrailer,
  isPartEnd,
} from './dump.ts'

/** The backup cannot be loaded; nothing was changed. */
export type BackupLoadError = Error & { loadFault: true }

export const loadError = (message: string): BackupLoadError =>
  Object.assign(new Error(message), { loadFault: true as const })
export const isBackupLoadError = (error: unknown): error is BackupLoadError =>
  error instanceof Error && 'loadFault' in error

/** Throws when the backup is not of a schema of these migrations. */
export const requireBackupSchema = (header: BackupHeader, migrations: readonly string[]): void => {
  if (header.migrations.join() !== migrations.join())
    throw loadError(describeSchemaDifference(header, migrations))
}

/** Reads the first line. Throws when it is not that of a backup. */
export const parseHeader = (line: string): BackupHeader => {
  try {
    const header = JSON.parse(line) as BackupHeader
    if (header.format === 'wcrm-backup' && (header.version === 1 || header.version === 2)) return header
    if (header.format === 'wcrm-backup')
      throw loadError(
        `This backup has the format ${String(header.version)}, which this version does not read.`,
      )
  } catch (error) {
    if (isBackupLoadError(error)) throw error
  }
  throw notABackup()
}

const notABackup = (): BackupLoadError => loadError('This is not a backup made by wcrm admin backup.')

const describeSchemaDifference = (header: BackupHeader, ours: readonly string[]): string => {
  const unknown = header.migrations.filter((name) => !ours.includes(name))
  const lacking = ours.filter((name) => !header.migrations.includes(name))
  const how =
    unknown.length > 0 ? `${unknown.join(', ')} is not known here` : `it lacks ${lacking.join(', ')}`
  const fix =
    unknown.length > 0
      ? 'Restore it with the version that made it.'
      : 'Restore it with the version that made it, then start this one on it: it migrates the schema.'
  return `The backup was made by a version with another schema (version ${header.product}: ${how}). ${fix}`
}

/** What a line after the header is. */
type BackupLine =
  | { kind: 'table'; table: BackupTableLine }
  | { kind: 'row' }
  | { kind: 'file'; file: BackupFileLine }
  | { kind: 'bytes'; bytes: Buffer }
  | { kind: 'part end' }
  | { kind: 'end' }

const ROW: BackupLine = { kind: 'row' }
const PART_END: BackupLine = { kind: 'part end' }
const END: BackupLine = { kind: 'end' }

/** Rows and sum of each table, as they were read. Sums are of backups of version 2. */
type BackupParts = Record<string, { rows: number; sha256: string | null }>

export type LineReader = {
  /** Takes the next line. Throws when no backup has it there, or a part is not what its sum says. */
  next: (line: string) => BackupLine
  /** Returns the last line. Throws when it is missing, or the checksum in it is not that of the lines. */
  finish: () => BackupTrailer
  parts: BackupParts
}

/** The table or the file that is being read. `size`: rows, or bytes. */
type OpenPart = { name: string; isFile: boolean; hash: Hash; size: number; expected?: number }

const damaged = (what: string): BackupLoadError => loadError(`The backup is damaged: ${what}.`)

/** Reads the lines after this header one by one, and computes their checksums. */
export const createLineReader = (headerLine: string): LineReader => {
  const { version } = parseHeader(headerLine)
  const sum = createHash('sha256').update(headerLine).update('\n')
  const parts: BackupParts = {}
  let part: OpenPart | undefined
  let trailer: BackupTrailer | undefined

  const addRow = (line: string): BackupLine => {
    if (!part || part.isFile) throw damaged('rows precede the name of their table')
    part.size++
    parts[part.name]!.rows++
    if (version === 2) part.hash.update(line).update('\n')
    return ROW
  }
  const addBytes = (line: string): BackupLine => {
    if (!part?.isFile) throw damaged('a line is not part of the backup format')
    const bytes = Buffer.from(line.slice(1, -1), 'base64')
    part.size += bytes.length
    part.hash.update(bytes)
    return { kind: 'bytes', bytes }
  }
  const endPart = ({ end, rows, sha256 }: Partial<BackupTableEnd> & BackupFileEnd): BackupLine => {
    const about = part?.isFile ? `the file ${part.name}` : `the table ${part?.name}`
    if (!part || part.name !== end) throw damaged('a part ends that has not begun')
    if (part.size !== (part.isFile ? part.expected : rows)) throw damaged(`${about} is not complete`)
    if (part.hash.digest('hex') !== sha256) throw damaged(`the checksum of ${about} does not match`)
    if (!part.isFile) parts[part.name]!.sha256 = sha256
    part = undefined
    return PART_END
  }
  const begin = (line: string, parsed: BackupTableLine | BackupFileLine): BackupLine => {
    if (part && version === 2) throw damaged('a part begins before another has ended')
    const isFile = 'file' in parsed
    const name = isFile ? parsed.file : parsed.table
    part = { name, isFile, hash: createHash('sha256'), size: 0, ...(isFile ? { expected: parsed.size } : {}) }
    if (isFile) return { kind: 'file', file: parsed }
    part.hash.update(line).update('\n')
    parts[name] = { rows: 0, sha256: null }
    return { kind: 'table', table: parsed }
  }
  const nextOther = (line: string): BackupLine => {
    const parsed = parseLine(line)
    if ('end' in parsed) return endPart(parsed)
    if (!('sequences' in parsed)) return begin(line, parsed)
    if (part && version === 2) throw damaged('it ends before its last part has')
    trailer = parsed
    return END
  }
  return {
    parts,
    next: (line) => {
      if (trailer) throw loadError('The backup is damaged: there is data after its end.')
      const read = line.startsWith('[')
        ? addRow(line)
        : line.startsWith('"')
          ? addBytes(line)
          : nextOther(line)
      if (version === 1 ? read.kind !== 'end' : isPartEnd(line)) sum.update(line).update('\n')
      return read
    },
    finish: () => {
      if (!trailer) throw loadError('The backup is truncated: its end is missing.')
      if (trailer.sha256 !== sum.digest('hex'))
        throw loadError('The backup is damaged: its checksum does not match.')
      return trailer
    },
  }
}

type ParsedLine = BackupTableLine | BackupFileLine | (Partial<BackupTableEnd> & BackupFileEnd) | BackupTrailer

const parseLine = (line: string): ParsedLine => {
  try {
    const parsed = JSON.parse(line) as ParsedLine
    if (['columns', 'file', 'end', 'sequences'].some((member) => member in parsed)) return parsed
  } catch {
    /* thrown below */
  }
  throw damaged('a line is not part of the backup format')
}

export type BackupSummary = { header: BackupHeader; parts: BackupParts; trailer: BackupTrailer }

/** Reads a whole backup without a database. Throws when it is damaged. */
export const inspectBackup = async (lines: BackupLines): Promise<BackupSummary> => {
  let reader: LineReader | undefined
  let header: BackupHeader | undefined
  for await (const batch of lines) {
    for (const line of batch) {
      if (reader) reader.next(line)
      else {
        header = parseHeader(line)
        reader = createLineReader(line)
      }
    }
  }
  if (!reader || !header) throw notABackup()
  return { header, parts: reader.parts, trailer: reader.finish() }
}
