import { lookup } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** All addresses of a name. Rejects with the code `ENOTFOUND` when it has none, else with another code. */
export type ResolveHost = (name: string) => Promise<string[]>

const RESOLVE_TIMEOUT_MS = 3_000

/** Resolves names as this machine does, its hosts file included. */
export const resolveWithSystem: ResolveHost = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address)

/** Resolves within three seconds: a check is made within a transaction. Rejects with `EAI_AGAIN` after it. */
export const resolveWithTimeout = async (resolve: ResolveHost, name: string): Promise<string[]> => {
  const timeout = new AbortController()
  try {
    return await Promise.race([
      resolve(name),
      delay(RESOLVE_TIMEOUT_MS, undefined, { signal: timeout.signal, ref: false }).then(() => {
        throw Object.assign(new Error('the name server does not answer'), { code: 'EAI_AGAIN' })
      }),
    ])
  } finally {
    timeout.abort()
  }
}
