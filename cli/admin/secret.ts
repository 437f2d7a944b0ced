import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { catalog } from '../../catalog/index.ts'
import type { Config } from '../../server/config.ts'
import {
  computeSecretFingerprint,
  createSecret,
  CURSOR_LIFETIME_MS,
  getKeyId,
  getSecretFile,
  readSecretFile,
  readSecrets,
} from '../../server/secret.ts'
import { lockFile } from '../../storage/embedded/folder-lock.ts'
import {
  countSealed,
  findSecretFingerprint,
  findSecretMovedAt,
  isSecretSettled,
  listServerSecrets,
} from '../../storage/access/secrets.ts'
import { usageError } from '../error.ts'
import { writePrivateFile } from '../files.ts'
import type { CommandResult } from '../result.ts'
import { conflictError, notFoundError } from './flags.ts'
import type { AdminGroup, AdminSession } from './verb.ts'

const secretOperations = catalog.filter((op) => op.secret).map((op) => op.name)

/** Where the secret of this configuration is set, and whether it is the one that seals. */
type SecretStatus = {
  /** The id of the key that seals: what it sealed begins with it. */
  key: string | null
  /** When it began to seal; null when it is the first. */
  since: string | null
  /** The id of the key of the secret that this command finds in the environment or the data folder. */
  configured_key: string | null
  servers: number
  /** Running servers that cannot open what the configured secret seals. */
  servers_without: number
  sealed: number
  /** Of these, what another secret sealed. */
  stale: number
  previous_needed: boolean
  detail: string
}

/** Returns why the previous secrets are still needed; undefined when they are not. */
const explainNeed = (
  { key, configured_key, servers_without, stale, since }: Omit<SecretStatus, 'previous_needed' | 'detail'>,
  isSettled: boolean,
  now: string,
): string | undefined => {
  if (key === null) return 'No server has run on this database yet.'
  if (configured_key !== null && configured_key !== key)
    return servers_without > 0
      ? `Running servers without the configured secret: ${servers_without}. Restart them with it.`
      : 'The configured secret is not in use yet: restart the servers with it.'
  if (servers_without > 0 || !isSettled) return 'The servers are switching to the current secret.'
  if (stale > 0) return `${stale} stored values are not encrypted with the current secret yet.`
  const cursorsEnd = since === null ? 0 : Date.parse(since) + CURSOR_LIFETIME_MS
  return cursorsEnd > Date.parse(now)
    ? `Cursors from before the rotation are valid until ${new Date(cursorsEnd).toISOString()}.`
    : undefined
}

const loadStatus = async (session: AdminSession): Promise<SecretStatus> => {
  const db = await session.db()
  const fingerprint = await findSecretFingerprint(db)
  const [configured] = readSecrets(session.config).map(computeSecretFingerprint)
  const needed = configured ?? fingerprint
  const servers = await listServerSecrets(db)
  const { total, stale } =
    fingerprint === undefined
      ? { total: 0, stale: 0 }
      : await countSealed(db, secretOperations, getKeyId(fingerprint))
  const facts = {
    key: fingerprint === undefined ? null : getKeyId(fingerprint),
    since: (await findSecretMovedAt(db)) ?? null,
    configured_key: configured === undefined ? null : getKeyId(configured),
    servers: servers.length,
    servers_without: servers.filter((secrets) => needed !== undefined && !secrets.includes(needed)).length,
    sealed: total,
    stale,
  }
  const need = explainNeed(facts, await isSecretSettled(db), session.now)
  return {
    ...facts,
    previous_needed: need !== undefined,
    detail: need ?? 'The previous secrets are no longer needed.',
  }
}

/** How long a command waits for another one that changes the secrets. */
const LOCK_WAIT_MS = 10_000

/**
 * Replaces the secrets in the data folder by what `change` makes of them, one command at a time. Throws when the secret
 * is set elsewhere, or there is none.
 */
const changeSecrets = async (
  { secret, dataDir }: Config,
  fix: string,
  change: (secrets: readonly string[]) => Promise<readonly string[]>,
): Promise<CommandResult> => {
  if (secret !== undefined) throw usageError(`The secret is set by WCRM_SECRET. ${fix}`)
  const file = getSecretFile(dataDir)
  if (!existsSync(file))
    throw notFoundError(
      `There is no file ${resolve(file)}.`,
      '--data',
      'Name the data folder of the server; its first start creates the file.',
    )
  const unlock = lockFile(`${file}.lock`, LOCK_WAIT_MS)
  if (!unlock)
    throw conflictError(
      'The secrets are being changed',
      `Another command is changing the secrets in ${resolve(file)}. Nothing was changed. Run this again after it.`,
    )
  try {
    const secrets = await change(readSecretFile(dataDir))
    writePrivateFile(file, `${secrets.join('\n')}\n`, { flush: true })
    const [key, ...previousKeys] = secrets.map((each) => getKeyId(computeSecretFingerprint(each)))
    return { file: resolve(file), key, previous_keys: previousKeys }
  } finally {
    unlock()
  }
}

export const secretGroup: AdminGroup = {
  name: 'secret',
  summary: 'The secret of the servers, and its rotation',
  verbs: [
    {
      name: 'status',
      access: 'read',
      summary: 'Show the secret in use, and whether previous ones are still needed',
      scoped: false,
      run: loadStatus,
    },
    {
      name: 'rotate',
      summary: 'Put a new secret before the previous ones in the data folder',
      about:
        'The server uses it from its next start, and re-encrypts stored values while it runs. If ' +
        'WCRM_SECRET is set, set it to a new secret and WCRM_SECRET_PREVIOUS to the old one instead. Back ' +
        'up the file.',
      scoped: false,
      run: ({ config }) =>
        changeSecrets(
          config,
          'Set WCRM_SECRET to a new secret and WCRM_SECRET_PREVIOUS to the old one, and restart the servers.',
          async (secrets) => [createSecret(), ...secrets],
        ),
    },
    {
      name: 'prune',
      summary: 'Delete the previous secrets in the data folder when they are not needed any more',
      scoped: false,
      run: (session) =>
        changeSecrets(
          session.config,
          'Remove WCRM_SECRET_PREVIOUS, and restart the servers.',
          async ([current]) => {
            const { previous_needed, detail } = await loadStatus(session)
            if (previous_needed) throw usageError(`The previous secrets are still needed. ${detail}`)
            return [current!]
          },
        ),
    },
  ],
}
