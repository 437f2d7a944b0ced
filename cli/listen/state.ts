import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { makePrivate, writePrivateFile } from '../files.ts'
import type { Io } from '../io.ts'

/**
 * Where to begin: after an event (the last that was dealt with), else with the oldest one; `from` leaves out those
 * before a time of the workspace, in milliseconds.
 */
export type Start = { readonly after?: string | undefined; readonly from?: number }

/** What `wcrm listen` keeps for its next start; without `start` there was none. */
export type ListenState = { readonly secret: string; readonly start?: Start | undefined }

/** The file of what is listened to: another server, workspace, target or list of types has another one. */
export const statePath = (env: Io['env'], subject: readonly (string | undefined)[]): string => {
  const folder = env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state')
  const name = createHash('sha256').update(JSON.stringify(subject)).digest('hex').slice(0, 16)
  return join(folder, 'wcrm', `listen-${name}.json`)
}

const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/

/** True for a signing secret as endpoints have it. */
export const isSigningSecret = (text: string): boolean => SECRET.test(text)

/** Reads the state; a new secret alone where there is none. */
export const readState = (path: string): ListenState => {
  try {
    makePrivate(path)
    const { secret, start } = JSON.parse(readFileSync(path, 'utf8')) as Partial<ListenState>
    if (typeof secret === 'string' && isSigningSecret(secret))
      return { secret, ...(typeof start === 'object' ? { start } : {}) }
  } catch {
    /* There is none yet, or it is broken: listening begins with what happens now. */
  }
  return { secret: `whsec_${randomBytes(32).toString('base64')}` }
}

export const writeState = (path: string, state: ListenState): void =>
  writePrivateFile(path, `${JSON.stringify(state)}\n`)
