import { lookup } from 'node:dns/promises'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Every address of a name. Rejects with the code `ENOTFOUND` when it has none, with another when nobody
 * knows.
 */
export type Resolve = (name: string) => Promise<string[]>

const LONGEST_MS = 3_000

/** As this machine resolves names, its hosts file among the sources. */
export const systemResolve: Resolve = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address)

/** Resolves within three seconds: a check holds a transaction. */
export const resolveInTime = async (resolve: Resolve, name: string): Promise<string[]> => {
  const given = new AbortController()
  try {
    return await Promise.race([
      resolve(name),
      pause(LONGEST_MS, undefined, { signal: given.signal, ref: false }).then(() => {
        throw Object.assign(new Error('the name server does not answer'), { code: 'EAI_AGAIN' })
      }),
    ])
  } finally {
    given.abort()
  }
}
