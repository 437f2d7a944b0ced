import {
  consumeOauthRecord,
  deleteOauthRecord,
  findOauthRecord,
  revokeOauthGrant,
  upsertOauthRecord,
} from '../../storage/access/oauth.ts'
import { hashApiKey } from '../api-keys.ts'
import type { App } from '../app.ts'
import type { Sealer } from '../sealer.ts'
import { findDisallowedRedirectUri } from './clients.ts'

/*
 * Where the library keeps its records. The id of a code or token is the credential itself, so the database
 * holds its hash, and the payload without it.
 */

/** What the library stores. `exp`: seconds since 1970. */
type Payload = Record<string, unknown> & {
  jti?: string
  exp?: number
  grantId?: string
  scope?: string
  consumed?: number
}

/** The part of the library's storage interface that the features in use need. */
export type Adapter = {
  upsert: (id: string, payload: Payload, expiresIn?: number) => Promise<void>
  find: (id: string) => Promise<Payload | undefined>
  findByUid: (uid: string) => Promise<Payload | undefined>
  consume: (id: string) => Promise<void>
  destroy: (id: string) => Promise<void>
  revokeByGrantId: (grantId: string) => Promise<void>
}

/** A client that registered itself is forgotten after a day, unless somebody consents to it. */
const CLIENT_TTL_SECONDS = 24 * 60 * 60

/** `createRefusal`: the error of a code or token that was used before. `getNetwork`: of the request under way. */
export type AdapterContext = {
  app: App
  sealer: Sealer
  getNetwork: () => string | undefined
  createRefusal: () => Error
}

const noSessions: Adapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
}

/** Kinds whose payload names a credential. They live for minutes: a rotation of the secret ends them. */
const sealedKinds = new Set(['Interaction'])
/** Kinds that anybody can cause. */
const countedKinds = new Set(['Interaction', 'Client'])

/**
 * Returns the storage of one kind of record. Nobody stays signed in, so that there are no sessions. A code or
 * refresh token that is used a second time, on any server, ends its grant.
 */
export const createAdapter = (kind: string, context: AdapterContext): Adapter => {
  if (kind === 'Session' || kind === 'ReplayDetection') return noSessions
  const { app, sealer, getNetwork, createRefusal } = context
  const { db } = app
  const isSealed = sealedKinds.has(kind)
  const read = (id: string, text: string): Payload | undefined => {
    const opened = isSealed ? sealer.open(text, id) : text
    if (opened === undefined) return undefined
    const payload = JSON.parse(opened) as Payload
    return kind === 'Client' ? payload : { ...payload, jti: id }
  }
  return {
    upsert: async (id, { jti: _, ...payload }, expiresIn = CLIENT_TTL_SECONDS) => {
      const now = app.now()
      const text = JSON.stringify(payload)
      const grantId = kind === 'Grant' ? id : payload.grantId
      await upsertOauthRecord(db, {
        kind,
        hash: hashApiKey(id),
        grant_hash: grantId === undefined ? null : hashApiKey(grantId),
        scopes: kind === 'AccessToken' ? (payload.scope ?? '').split(' ').filter(Boolean) : null,
        network: countedKinds.has(kind) ? (getNetwork() ?? '') : null,
        payload: isSealed ? sealer.seal(text, id) : text,
        created_at: now,
        expires_at: new Date(Date.parse(now) + expiresIn * 1000).toISOString(),
      })
    },
    find: async (id) => {
      const row = await findOauthRecord(db, kind, hashApiKey(id), app.now())
      const payload = row && read(id, row.payload)
      // Of a client that registered before the scheme was refused: nobody can sign in to it any more.
      if (kind === 'Client' && findDisallowedRedirectUri(payload?.['redirect_uris']) !== undefined)
        return undefined
      if (!payload || row.consumed_at === null) return payload
      return { ...payload, consumed: Math.floor(Date.parse(row.consumed_at) / 1000) }
    },
    findByUid: async () => undefined,
    consume: async (id) => {
      const hash = hashApiKey(id)
      if (await consumeOauthRecord(db, kind, hash, app.now())) return
      // Another request used it a moment ago: between the library's look-up and now.
      const row = await findOauthRecord(db, kind, hash, app.now())
      const grantId = row && read(id, row.payload)?.grantId
      if (grantId !== undefined) await revokeOauthGrant(db, hashApiKey(grantId), app.now())
      throw createRefusal()
    },
    destroy: async (id) => {
      if (kind === 'Grant') await revokeOauthGrant(db, hashApiKey(id), app.now())
      else await deleteOauthRecord(db, kind, hashApiKey(id))
    },
    revokeByGrantId: async (grantId) => await revokeOauthGrant(db, hashApiKey(grantId), app.now()),
  }
}
