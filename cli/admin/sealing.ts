import { computeSecretFingerprint, createSecretRing, loadSecrets, readSecrets } from '../../server/secret.ts'
import { createSealer, type Sealer } from '../../server/sealer.ts'
import { findSecretFingerprint } from '../../storage/access/secrets.ts'
import { usageError } from '../error.ts'
import type { AdminSession } from './verb.ts'

/**
 * Returns what seals for this purpose as the servers of the database do: with the secret that seals there now.
 * Throws when this command was not given that one; the first command on a new data folder creates one.
 */
export const openSealer = async ({ config, db }: AdminSession, purpose: string): Promise<Sealer> => {
  const named = await findSecretFingerprint(await db())
  const secrets = named === undefined ? loadSecrets(config) : readSecrets(config)
  const current = secrets.find((secret) => named === undefined || computeSecretFingerprint(secret) === named)
  if (current === undefined)
    throw usageError(
      'This command needs the secret of the servers, to encrypt what it stores. Set WCRM_SECRET to it, or name ' +
        'the data folder that holds it with WCRM_DATA.',
      'WCRM_SECRET',
    )
  return createSealer(createSecretRing([current, ...secrets.filter((secret) => secret !== current)]), purpose)
}
