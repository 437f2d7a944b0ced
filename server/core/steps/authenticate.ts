import { findKey, type KeyRow, markKeyUsed } from '../../../storage/keys.ts'
import type { App } from '../../app.ts'
import type { Actor } from '../context.ts'
import { hashApiKey, isApiKey } from '../../keys.ts'
import { Problem } from '../problem.ts'

/**
 * A revoked key must stop within a second on every server, so that is the longest a key is believed without
 * asking.
 */
const BELIEVED_MS = 800
const MOST_REMEMBERED = 10_000
const USE_NOTED_MS = 60_000

type Remembered = { at: number; found: Promise<KeyRow | undefined> }
export type KeyMemory = { keys: Map<string, Remembered>; used: Map<string, number> }

export const newKeyMemory = (): KeyMemory => ({ keys: new Map(), used: new Map() })

const refuse = (detail: string): Problem =>
  new Problem('unauthenticated', detail, {}, { 'WWW-Authenticate': 'Bearer realm="wcrm"' })

const bearer = (authorization: string | undefined): string => {
  if (authorization === undefined)
    throw refuse('The Authorization header is missing. Send "Authorization: Bearer <API key>".')
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
  if (token === undefined) throw refuse('The Authorization header is not of the form "Bearer <API key>".')
  return token
}

/**
 * Finds the key, its owner and the workspace. Unknown, expired and revoked keys are told apart by nobody
 * outside.
 */
export const authenticate = async (app: App, authorization: string | undefined): Promise<Actor> => {
  const token = bearer(authorization)
  const row = await lookUp(app, token)
  // A key that is believed from memory may have expired meanwhile.
  if (!row || (row.expires_at !== null && Date.parse(row.expires_at) <= Date.parse(app.now())))
    throw refuse('The API key is unknown, expired or revoked.')
  noteUse(app, row)
  return actorOf(row)
}

const lookUp = async (app: App, token: string): Promise<KeyRow | undefined> => {
  const { keys } = app.keyMemory
  const hash = hashApiKey(token)
  const id = hash.toString('base64')
  const known = keys.get(id)
  const now = performance.now()
  if (known && now - known.at < BELIEVED_MS) return known.found
  if (!isApiKey(token)) return undefined
  if (keys.size >= MOST_REMEMBERED) keys.clear()
  const found = findKey(app.db, hash, app.now())
  keys.set(id, { at: now, found })
  found.catch(() => keys.delete(id))
  return found
}

/** `last_used_at` is exact to a minute: a write per call would cost more than the call. */
const noteUse = (app: App, row: KeyRow): void => {
  const { used } = app.keyMemory
  const now = performance.now()
  if (now - (used.get(row.key_id) ?? -Infinity) < USE_NOTED_MS) return
  used.set(row.key_id, now)
  markKeyUsed(app.db, row.workspace_id, row.key_id, app.now()).catch((error: unknown) =>
    app.log.warn({ error }, 'last use of a key not noted'),
  )
}

export const actorOf = (row: KeyRow): Actor => ({
  workspace: {
    id: row.workspace_id,
    name: row.workspace_name,
    timezone: row.timezone,
    features: row.features,
    contactLimit: row.contact_limit === null ? null : Number(row.contact_limit),
    templateLimit: row.template_limit === null ? null : Number(row.template_limit),
  },
  staff: {
    id: row.staff_id,
    name: row.staff_name,
    role: row.role,
    hidePhoneNumbers: row.hide_phone_numbers,
    reports: row.reports,
    channelIds: row.channel_ids,
  },
  key: {
    id: row.key_id,
    name: row.key_name,
    scopes: row.scopes,
    test: row.test,
    apiVersion: row.api_version,
    expiresAt: row.expires_at,
  },
})
