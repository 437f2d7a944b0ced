import type { Env } from './credentials-file.ts'

const TIMEOUT_MS = 30_000

/**
 * Opens an entry of the keychain; throws where there is no keychain. A locked keychain may prompt its owner, for up
 * to 30 seconds.
 */
export const openKeychainEntry = async (account: string, env: Env) => {
  if (env['WCRM_KEYCHAIN'] === 'off') throw new Error('switched off by WCRM_KEYCHAIN')
  const { AsyncEntry } = await import('@napi-rs/keyring').catch((cause: unknown) => {
    // Its own message advises to delete the lock file.
    throw new Error('its library for this system is not installed, an optional dependency', { cause })
  })
  // Unpinned, Linux falls back to the kernel's key ring, which forgets at logout.
  const entry = new AsyncEntry('wcrm', account, { linux: { store: 'secret-service' } })
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  return {
    read: () => entry.getPassword(signal),
    write: (key: string) => entry.setPassword(key, signal),
    remove: () => entry.deletePassword(signal),
  }
}
