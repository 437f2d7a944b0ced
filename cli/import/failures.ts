import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { usageError } from '../error.ts'
import { namingSync } from '../write-error.ts'
import type { ImportSource } from './source.ts'

/** A row that was not imported, as `--failures` writes it. */
export type RowFailure = {
  readonly line: number
  readonly row: unknown
  readonly code: string
  readonly message: string
  readonly errors: readonly object[]
}

/** Without `--failures`, only this many failed rows are printed. */
export const MAX_PRINTED_FAILURES = 20

export type FailureSink = {
  /** Writes failures; returns the size in bytes that the failures file then has. */
  readonly write: (failures: readonly RowFailure[]) => number
  readonly close: () => void
}

/** Creates a sink that prints the first failures. */
export const createPrintingSink = (printLine: (line: string) => void): FailureSink => {
  let printed = 0
  return {
    write: (failures) => {
      for (const { line, message } of failures.slice(0, MAX_PRINTED_FAILURES - printed))
        printLine(`Line ${line}: ${message}`)
      printed = Math.min(MAX_PRINTED_FAILURES, printed + failures.length)
      return 0
    },
    close: () => {},
  }
}

/** Creates a sink that appends all failures to a file, of which the first `keptBytes` are kept. */
export const createFileSink = (path: string, source: ImportSource, keptBytes: number): FailureSink => {
  const file = openFailuresFile(path, source, keptBytes)
  let size = keptBytes
  return {
    write: (failures) => {
      const lines = Buffer.from(failures.map((failure) => `${JSON.stringify(failure)}\n`).join(''))
      // A disk that becomes full takes a part first: the size that is kept never ends within a line.
      for (let at = 0; at < lines.length;)
        at += namingSync(path, () => writeSync(file, lines, at, lines.length - at, size + at))
      return (size += lines.length)
    },
    close: () => closeSync(file),
  }
}

const openFailuresFile = (path: string, source: ImportSource, keptBytes: number): number => {
  if (resolve(path) === source.path)
    throw usageError('--failures would overwrite the imported file.', '--failures', 'Name another file.')
  try {
    const file = openSync(path, keptBytes > 0 ? 'r+' : 'w', 0o600)
    ftruncateSync(file, keptBytes)
    return file
  } catch (error) {
    throw usageError(
      `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}.`,
      '--failures',
      'Name a writable file.',
    )
  }
}
