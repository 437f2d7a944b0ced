import type { Logger } from 'pino'
import type { Db } from '../../../storage/database.ts'
import type { FaultEffect } from '../storage/faults.ts'
import type { Signals } from '../../../server/signals.ts'
import { badParameterValue, invalidParameter } from './errors.ts'

/** The clock of a sandbox that runs alone, for all of its accounts: its offset from real time. */
export type SandboxClock = { offsetMs: () => number; setOffset: (ms: number) => Promise<void> }

export type SandboxOptions = {
  db: Db
  /** The sandbox's time, ISO 8601 UTC; a number's may be ahead of it (`timeAt`). */
  now: () => string
  token: string
  appSecret: string
  verifyToken: string
  /** The webhook URL of the app; undefined while there is none, and updates wait. */
  callbackUrl?: (() => string | undefined) | undefined
  /** Base of the links that customers follow; defaults to the origin of the request. */
  linkBase?: string | undefined
  log: Pick<Logger, 'warn' | 'error'>
  /** Tell the server that delivers updates of new ones; absent where one process is the sandbox. */
  signals?: Signals | undefined
  /** Absent where the clocks of numbers are moved alone. */
  clock?: SandboxClock | undefined
}

/** One request as the endpoints see it. */
export type SandboxCall = SandboxOptions & {
  method: string
  /** The parameters of the path, as the route names them. */
  path: Readonly<Record<string, string>>
  query: URLSearchParams
  /** The JSON object or form of the body; empty without one. */
  body: Record<string, unknown>
  /** The request itself, for endpoints with other bodies. */
  request: Request
  /** Base URL of the sandbox. */
  base: string
  /**
   * The fault that was ordered for this call. Its code, latency and lost response are handled before and
   * after the endpoint, unless the code is to follow in a status.
   */
  fault?: FaultEffect | undefined
}

export const okResponse = (value: unknown): Response =>
  new Response(JSON.stringify(value), { headers: { 'Content-Type': 'application/json; charset=UTF-8' } })

export const isNonEmptyText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Whether a database can store the text: no NUL, no lone surrogates. */
const isStorable = (value: string): boolean => !value.includes('\0') && value.isWellFormed()

/** Throws when any text in the value cannot be stored. */
export const requireStorable = (value: unknown, depth = 0): void => {
  if (depth > 100) throw invalidParameter('The body is nested too deeply.')
  if (typeof value === 'string') {
    if (!isStorable(value)) throw invalidParameter('Text contains a character that cannot be encoded.')
  } else if (value !== null && typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      requireStorable(key, depth)
      requireStorable(inner, depth + 1)
    }
  }
}

/** Requires text of a length in UTF-16 units, as the provider counts. */
export const requireText = (value: unknown, name: string, max: number, min = 1): string => {
  if (typeof value !== 'string' || value.length < min)
    throw badParameterValue(`Param ${name} must be text${min > 0 ? ' that is not empty' : ''}.`)
  if (value.length > max) throw badParameterValue(`Param ${name} must be at most ${max} characters long.`)
  return value
}

export const stripNonDigits = (phone: string): string => phone.replace(/\D/g, '')

export const toUnixSeconds = (iso: string): string => String(Math.floor(Date.parse(iso) / 1000))
export const addMs = (iso: string, ms: number): string => new Date(Date.parse(iso) + ms).toISOString()

/** The time at a number, which may be ahead of the sandbox's own; ISO 8601 UTC. */
export const timeAt = (call: Pick<SandboxOptions, 'now'>, number: { clock_offset_ms: string }): string =>
  addMs(call.now(), Number(number.clock_offset_ms))

/** Runs the work in a transaction. */
export const inTransaction = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> =>
  db.transaction().execute(work)
