import { readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../files.ts'
import { createSha256 } from './source.ts'

export type ImportTotals = {
  rows: number
  created: number
  updated: number
  unchanged: number
  failed: number
}

/**
 * The progress of an import of one file with one set of flags. `run` seeds the idempotency keys, `batches`
 * counts those that are done, `failuresBytes` is the size of the failures file.
 */
export type ImportState = {
  readonly run: string
  readonly sha256: string
  readonly options: string
  batches: number
  totals: ImportTotals
  failuresBytes: number
}

/** Returns the path of the state of importing this file into this workspace. */
export const statePath = (
  env: Readonly<Record<string, string | undefined>>,
  subject: readonly [url: string, workspaceId: string, file: string],
): string => {
  const name = createSha256().update(JSON.stringify(subject)).digest('hex').slice(0, 32)
  return join(
    env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state'),
    'wcrm',
    'import',
    `${name}.json`,
  )
}

/** Undefined when no import was interrupted. */
export const readState = (path: string): ImportState | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ImportState
  } catch {
    return undefined
  }
}

export const writeState = (path: string, state: ImportState): void =>
  writePrivateFile(path, `${JSON.stringify(state)}\n`)

export const removeState = (path: string): void => rmSync(path, { force: true })
