import type { Logger } from 'pino'
import type { Db } from '../../../storage/database.ts'
import type { FaultEffect } from '../../../storage/sandbox/faults.ts'
import { badValue, invalid } from './errors.ts'

/** The clock of business time, where it can be advanced: by how much it is ahead of real time. */
type SandboxClock = { offsetMs: () => number; setOffset: (ms: number) => Promise<void> }

export type SandboxOptions = {
  db: Db
  /** Business time, ISO 8601 UTC. */
  now: () => string
  token: string
  appSecret: string
  verifyToken: string
  /** Where the app wants its updates; undefined: nowhere yet, so that they wait. */
  callbackUrl?: (() => string | undefined) | undefined
  /** Base of the links that customers follow; the origin at which the sandbox is asked when absent. */
  linkBase?: string | undefined
  log: Pick<Logger, 'warn' | 'error'>
  clock?: SandboxClock | undefined
}

/** One request as the endpoints see it. */
export type Call = SandboxOptions & {
  method: string
  /** The parts of the path in their order, as the route names them. */
  path: Readonly<Record<string, string>>
  query: URLSearchParams
  /** The object that came as JSON or as a form; an empty one when nothing did. */
  body: Record<string, unknown>
  /** The request itself, for endpoints that take other bodies. */
  request: Request
  /** Where the sandbox is mounted: the base of its URLs. */
  base: string
  /**
   * The fault that was ordered for this call. Its code, latency and lost answer are seen to for the
   * endpoint, unless the code is to come later.
   */
  fault?: FaultEffect | undefined
}

export const ok = (value: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(value), {
    headers: { 'Content-Type': 'application/json; charset=UTF-8', ...headers },
  })

export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
export const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Text that a database can hold: no NUL, no half of a surrogate pair. */
const isClean = (value: string): boolean => !value.includes('\0') && value.isWellFormed()

/** Refuses what cannot be kept, wherever in the value it stands. */
export const requireClean = (value: unknown, depth = 0): void => {
  if (depth > 100) throw invalid('The body is nested too deeply.')
  if (typeof value === 'string') {
    if (!isClean(value)) throw invalid('Text contains a character that cannot be encoded.')
  } else if (value !== null && typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      requireClean(key, depth)
      requireClean(inner, depth + 1)
    }
  }
}

/** Text of a given length at most, counted as the provider does, in UTF-16 units. */
export const textWithin = (value: unknown, name: string, most: number, least = 1): string => {
  if (typeof value !== 'string' || value.length < least)
    throw badValue(`Param ${name} must be text${least > 0 ? ' that is not empty' : ''}.`)
  if (value.length > most) throw badValue(`Param ${name} must be at most ${most} characters long.`)
  return value
}

export const digitsOf = (phone: string): string => phone.replace(/\D/g, '')

export const unixOf = (iso: string): string => String(Math.floor(Date.parse(iso) / 1000))
export const later = (iso: string, ms: number): string => new Date(Date.parse(iso) + ms).toISOString()

/** Runs work in a transaction. */
export const within = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> => db.transaction().execute(work)
