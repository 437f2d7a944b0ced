import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Storage } from '../storage/open.ts'
import { ensureSetting } from '../storage/settings.ts'
import type { Config } from './config.ts'

/** The configured secret, or the one in the data folder, which is created on the first start. */
export const loadSecret = (config: Pick<Config, 'secret' | 'dataDir'>): string => {
  if (config.secret) return config.secret
  const file = join(config.dataDir, 'secret')
  if (!existsSync(file)) {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    try {
      writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return readFileSync(file, 'utf8').trim()
}

/** Identifies a secret without revealing it. */
export const computeSecretFingerprint = (secret: string): string =>
  createHash('sha256').update(`wcrm secret ${secret}`).digest('base64url').slice(0, 16)

/**
 * Checks at the start, and not at the first cursor that cannot be opened, that all servers of a database
 * have the same secret. Throws when they do not.
 */
export const requireSameSecret = async (storage: Storage, secret: string): Promise<void> => {
  const fingerprint = computeSecretFingerprint(secret)
  if ((await ensureSetting(storage.db, 'secret_fingerprint', fingerprint)) !== fingerprint) {
    throw new Error(
      'this database was set up with another secret. Set WCRM_SECRET to the one that its other servers use ' +
        '(it may be in the file "secret" of their data folder).',
    )
  }
}
