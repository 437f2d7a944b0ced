import { readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivately } from '../files.ts'
import { newDigest } from './source.ts'

export type Totals = { rows: number; created: number; updated: number; unchanged: number; failed: number }

/**
 * How far an import has come: what was done of which file, and as what. `failuresBytes` is how much of the
 * file of failures stands.
 */
export type State = {
  readonly run: string
  readonly sha256: string
  readonly options: string
  batches: number
  totals: Totals
  failuresBytes: number
}

/** Where the state of importing this file into this workspace is kept. */
export const statePath = (
  env: Readonly<Record<string, string | undefined>>,
  url: string,
  workspaceId: string,
  file: string,
): string => {
  const name = newDigest()
    .update(JSON.stringify([url, workspaceId, file]))
    .digest('hex')
    .slice(0, 32)
  return join(
    env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state'),
    'wcrm',
    'import',
    `${name}.json`,
  )
}

/** Undefined where nothing was broken off. */
export const readState = (path: string): State | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as State
  } catch {
    return undefined
  }
}

export const writeState = (path: string, state: State): void =>
  writePrivately(path, `${JSON.stringify(state)}\n`)

export const removeState = (path: string): void => rmSync(path, { force: true })
