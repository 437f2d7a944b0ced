import { createHash } from 'node:crypto'
import type { BackupHeader, BackupLines, BackupTableLine, BackupTrailer } from './dump.ts'

/** The backup cannot be loaded; nothing was changed. */
export type BackupLoadError = Error & { loadFault: true }

export const loadError = (message: string): BackupLoadError =>
  Object.assign(new Error(message), { loadFault: true as const })
export const isBackupLoadError = (error: unknown): error is BackupLoadError =>
  error instanceof Error && 'loadFault' in error

/** Reads the first line. Throws when it is not that of a backup with a schema of these migrations. */
export const readHeader = (line: string, migrations: readonly string[]): BackupHeader => {
  const header = parseHeader(line)
  if (header.migrations.join() !== migrations.join())
    throw loadError(describeSchemaDifference(header, migrations))
  return header
}

const parseHeader = (line: string): BackupHeader => {
  try {
    const header = JSON.parse(line) as BackupHeader
    if (header.format === 'wcrm-backup' && header.version === 1) return header
    if (header.format === 'wcrm-backup')
      throw loadError(
        `This backup has the format ${String(header.version)}, which this version does not read.`,
      )
  } catch (error) {
    if (isBackupLoadError(error)) throw error
  }
  throw loadError('This is not a backup made by wcrm admin backup.')
}

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
type BackupLine = BackupTableLine | 'row' | 'end'

export type LineReader = {
  /** Takes the next line. Throws when no backup has it there. */
  next: (line: string) => BackupLine
  /** Returns the last line. Throws when it is missing, or the checksum in it is not that of the lines. */
  finish: () => BackupTrailer
}

/** Reads the lines after this header one by one, and computes their checksum. */
export const createLineReader = (header: string): LineReader => {
  const hash = createHash('sha256').update(header).update('\n')
  let trailer: BackupTrailer | undefined
  return {
    next: (line) => {
      if (trailer) throw loadError('The backup is damaged: there is data after its end.')
      const parsed = line.startsWith('[') ? ('row' as const) : parseLine(line)
      if (parsed !== 'row' && 'sha256' in parsed) {
        trailer = parsed
        return 'end'
      }
      hash.update(line).update('\n')
      return parsed
    },
    finish: () => {
      if (!trailer) throw loadError('The backup is truncated: its end is missing.')
      if (trailer.sha256 !== hash.digest('hex'))
        throw loadError('The backup is damaged: its checksum does not match.')
      return trailer
    },
  }
}

const parseLine = (line: string): BackupTableLine | BackupTrailer => {
  try {
    const parsed = JSON.parse(line) as BackupTableLine | BackupTrailer
    if ('sha256' in parsed || 'columns' in parsed) return parsed
  } catch {
    /* thrown below */
  }
  throw loadError('The backup is damaged: a line is not part of the backup format.')
}

/**
 * Reads a whole backup without a database. Throws when it is damaged, or is not of a schema of these
 * migrations.
 */
export const verifyBackup = async (lines: BackupLines, migrations: readonly string[]): Promise<void> => {
  let reader: LineReader | undefined
  for await (const batch of lines) {
    for (const line of batch) {
      if (reader) reader.next(line)
      else {
        readHeader(line, migrations)
        reader = createLineReader(line)
      }
    }
  }
  if (!reader) readHeader('', migrations)
  else reader.finish()
}
