import type { ClientPresence } from '../../storage/client/client-presence.ts'
import { findKey, findKeyOfToken, type KeyRow, markKeyUsed } from '../../storage/access/keys.ts'
import type { Kernel } from './kernel.ts'
import type { Actor } from './context.ts'
import { hashApiKey, isApiKey } from '../api-keys.ts'
import { parseBearer, unauthenticated } from './bearer.ts'
import { errorLogDetails } from './log-details.ts'
import { lookUpLimited } from './throttle.ts'

/** A revoked key must stop working within a second on every server, so keys are cached for less than that. */
const KEY_CACHE_TTL_MS = 800
const MAX_CACHED_KEYS = 10_000
const MAX_KNOWN_KEYS = 100_000
const USED_AT_INTERVAL_MS = 60_000

const requireBearer = (authorization: string | undefined): string => {
  if (authorization === undefined)
    throw unauthenticated('The Authorization header is missing. Send "Authorization: Bearer <API key>".')
  const token = parseBearer(authorization)
  if (token === undefined)
    throw unauthenticated('The Authorization header is not of the form "Bearer <API key>".')
  return token
}

/** Whether a text has the form of an OAuth access token; no API key has it. */
export const isAccessToken = (text: string): boolean => /^[\w-]{43}$/.test(text)

/** Who calls: the client's address and connection. */
export type KeyBearer = {
  readonly address?: string | undefined
  readonly presence?: ClientPresence | undefined
}

/**
 * Returns the key, its owner and the workspace; of an access token, the key that it acts with, with the token's
 * scopes and expiry. Throws 401, with the same text for unknown, expired and
 * revoked keys, and 429 when the client's address failed too often.
 *
 * A key that was valid at its last look-up is looked up again however often others behind the same address
 * failed; one that this server has not seen is refused with them.
 */
export const authenticate = async (
  app: Kernel,
  authorization: string | undefined,
  { address, presence }: KeyBearer,
): Promise<Actor> => {
  const token = requireBearer(authorization)
  const { known } = app.keyCache
  const hash = hashApiKey(token)
  const id = hash.toString('base64')
  const isOauth = app.config.oauth && isAccessToken(token)
  const row = known.has(id)
    ? await findValidKey(app, hash, id, isOauth)
    : await lookUpLimited(app, address, async () =>
        isOauth || isApiKey(token) ? await findValidKey(app, hash, id, isOauth) : undefined,
      )
  if (!row) {
    known.delete(id)
    throw unauthenticated('The API key is unknown, expired or revoked.')
  }
  if (known.size >= MAX_KNOWN_KEYS) known.clear()
  known.add(id)
  presence?.admit()
  updateKeyUsedAt(app, row)
  return toActor(row)
}

const findValidKey = async (
  app: Kernel,
  hash: Buffer,
  id: string,
  isOauth: boolean,
): Promise<KeyRow | undefined> => {
  const row = await findCachedKey(app, hash, id, isOauth)
  // A cached key may have expired meanwhile.
  return row && (row.expires_at === null || Date.parse(row.expires_at) > Date.parse(app.now()))
    ? row
    : undefined
}

const findCachedKey = async (
  app: Kernel,
  hash: Buffer,
  id: string,
  isOauth: boolean,
): Promise<KeyRow | undefined> => {
  const { keys } = app.keyCache
  const cached = keys.get(id)
  const now = performance.now()
  if (cached && now - cached.loadedAt < KEY_CACHE_TTL_MS) return cached.row
  if (keys.size >= MAX_CACHED_KEYS) keys.clear()
  const row = (isOauth ? findKeyOfToken : findKey)(app.db, hash, app.now())
  keys.set(id, { loadedAt: now, row })
  row.catch(() => keys.delete(id))
  return row
}

/** `last_used_at` is exact to a minute: a write per call would cost more than the call. */
const updateKeyUsedAt = (app: Kernel, row: KeyRow): void => {
  const { usedAt } = app.keyCache
  const now = performance.now()
  if (now - (usedAt.get(row.key_id) ?? -Infinity) < USED_AT_INTERVAL_MS) return
  if (usedAt.size >= MAX_KNOWN_KEYS) usedAt.clear()
  usedAt.set(row.key_id, now)
  markKeyUsed(app.db, row.workspace_id, row.key_id, app.now()).catch((error: unknown) =>
    app.log.warn(errorLogDetails(error), 'Cannot update last_used_at of an API key'),
  )
}

export const toActor = (row: KeyRow): Actor => ({
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
    // Of staff, only those with the role agent may have phones hidden; of keys, any.
    hidePhoneNumbers: (row.role === 'agent' && row.hide_phone_numbers) || !row.phones,
    reports: row.reports,
    channelIds: row.channel_ids,
  },
  key: {
    id: row.key_id,
    familyId: row.family_id,
    name: row.key_name,
    scopes: row.scopes,
    test: row.test,
    apiVersion: row.api_version,
    expiresAt: row.expires_at,
    allowFrom: row.allow_from,
    agent: row.agent,
    policy: row.policy,
    pausedAt: row.paused_at,
    phones: row.phones,
    contactsPerDay: row.contacts_per_day,
  },
})
