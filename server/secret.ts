import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Db } from '../storage/database.ts'
import type { Storage } from '../storage/open.ts'
import {
  ensureSecretFingerprint,
  moveSecretFingerprint,
  recordServer,
  removeAllServers,
  removeServer,
} from '../storage/access/secrets.ts'
import { version } from './version.ts'

/*
 * The secret and its rotation (docs/decisions/0018). A server is given a secret and the previous ones. It
 * opens what any of them sealed, and seals with the one that the database names: the new one is named when
 * every running server can open what it seals.
 */

export const MIN_SECRET_LENGTH = 16

/** Of all that is sealed and not stored, cursors are good for the longest. */
export const CURSOR_LIFETIME_MS = 24 * 60 * 60 * 1000

/** The settings of a server that concern its secret. */
type SecretConfig = {
  secret?: string | undefined
  secretPrevious?: string | undefined
  dataDir: string
}

/** The secrets of one server. */
export type SecretRing = {
  /** Names this server among those of its database. */
  readonly serverId: string
  /** The configured secret, then the previous ones. */
  readonly secrets: readonly { readonly secret: string; readonly fingerprint: string }[]
  /** The fingerprint of the secret that seals. */
  current: string
  /** The fingerprint of the configured secret until it seals. */
  wanted: string | undefined
  /** The other servers seal with a secret that this one was not given. */
  isOutdated: boolean
}

/** Identifies a secret without revealing it. */
export const computeSecretFingerprint = (secret: string): string =>
  createHash('sha256').update(`wcrm secret ${secret}`).digest('base64url').slice(0, 16)

/** The mark of a secret in what it sealed. */
export const getKeyId = (fingerprint: string): string => fingerprint.slice(0, 8)

/** Creates the ring of a server from its secrets, the configured one first. */
export const createSecretRing = (secrets: readonly string[]): SecretRing => {
  const entries = [...new Set(secrets)].map((secret) => ({
    secret,
    fingerprint: computeSecretFingerprint(secret),
  }))
  const { fingerprint } = entries[0]!
  return {
    serverId: randomUUID(),
    secrets: entries,
    current: fingerprint,
    wanted: fingerprint,
    isOutdated: false,
  }
}

/**
 * The previous secrets of `WCRM_SECRET_PREVIOUS`, separated by commas. A secret may contain commas itself, so
 * the whole text counts as one too. What is too short to be a secret is ignored.
 */
const parsePreviousSecrets = (text: string): string[] =>
  [...text.split(',').map((item) => item.trim()), text].filter((item) => item.length >= MIN_SECRET_LENGTH)

export const getSecretFile = (dataDir: string): string => join(dataDir, 'secret')

/** The secrets in the data folder: one per line, the current one first. */
export const readSecretFile = (dataDir: string): string[] => {
  const file = getSecretFile(dataDir)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** The configured secrets, the current one first; empty when none was ever created. */
export const readSecrets = ({ secret, secretPrevious, dataDir }: SecretConfig): string[] => [
  ...(secret === undefined ? readSecretFile(dataDir) : [secret]),
  ...parsePreviousSecrets(secretPrevious ?? ''),
]

export const createSecret = (): string => randomBytes(32).toString('base64url')

/**
 * Creates the file with a secret, whole and on the disk, or not at all: what is left of one is no secret, or a short
 * one. Another process that begins at the same time may be first.
 */
const createSecretFile = (file: string): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const partial = `${file}.${randomUUID()}`
  try {
    writeFileSync(partial, `${createSecret()}\n`, { mode: 0o600, flag: 'wx', flush: true })
    nameOnce(partial, file)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(
      `cannot write the secret to ${file} (${code}): check the space and the rights there, or set WCRM_SECRET`,
      {
        cause,
      },
    )
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Gives a file its name where no other has it. */
const nameOnce = (partial: string, file: string): void => {
  try {
    linkSync(partial, file)
  } catch {
    // Some file systems have no links.
    if (!existsSync(file)) renameSync(partial, file)
  }
}

/** The configured secrets, or those in the data folder; the first start creates one there. */
export const loadSecrets = (config: SecretConfig): string[] => {
  const file = getSecretFile(config.dataDir)
  if (config.secret === undefined && !existsSync(file)) createSecretFile(file)
  const secrets = readSecrets(config)
  if (secrets.length === 0)
    throw new Error(
      `the file ${file} has no secret in it: put that of this database there, or remove the file if there was none yet`,
    )
  return secrets
}

const listFingerprints = (ring: SecretRing): string[] => ring.secrets.map(({ fingerprint }) => fingerprint)

/**
 * Checks at the start, and not at the first cursor that cannot be opened, that this server can open what the
 * other servers of the database seal. Throws when it cannot.
 */
export const requireKnownSecret = async (
  { db, embedded }: Pick<Storage, 'db' | 'embedded'>,
  ring: SecretRing,
): Promise<void> => {
  // A server owns an embedded database alone: those recorded in it have died.
  if (embedded) await removeAllServers(db)
  if (await followSecret(db, ring)) return
  await removeServer(db, ring.serverId)
  throw new Error(
    'this database was set up with another secret. Set WCRM_SECRET to the one that its other servers use ' +
      '(it may be in the file "secret" of their data folder); to change it, name the old one in ' +
      'WCRM_SECRET_PREVIOUS.',
  )
}

/**
 * Records what this server can open, and seals with the secret that the database names from now on. Returns
 * false when that is none of ours: the other servers went on to a secret that this one was not given.
 */
export const followSecret = async (db: Db, ring: SecretRing): Promise<boolean> => {
  const fingerprints = listFingerprints(ring)
  // Before the setting is read: a secret is named only when all recorded servers have it.
  const clock = new Date().toISOString()
  await recordServer(db, { id: ring.serverId, secrets: fingerprints, version, clock })
  let named = await ensureSecretFingerprint(db, fingerprints[0]!)
  ring.isOutdated = !fingerprints.includes(named)
  if (ring.isOutdated) return false
  if (
    ring.wanted !== undefined &&
    ring.wanted !== named &&
    (await moveSecretFingerprint(db, named, ring.wanted))
  )
    named = ring.wanted
  // Once reached, it is not wanted again: of servers with different settings, the last one started decides.
  if (ring.wanted === named) ring.wanted = undefined
  ring.current = named
  return true
}
