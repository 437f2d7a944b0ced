import { lookup, Resolver } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * All addresses of a name. Rejects with the code `ENOTFOUND` when it has none, else with another code; with
 * `isResolverDown` in addition when this server cannot resolve any name.
 */
export type ResolveHost = (name: string) => Promise<string[]>

const RESOLVE_TIMEOUT_MS = 3_000
/** With the check of the name servers less than the ten seconds of a connection, which would hide the cause. */
const LOOKUP_TIMEOUT_MS = 7_000
const CHECK_TIMEOUT_MS = 2_000

const noAnswer = (): Error =>
  Object.assign(new Error('the DNS server does not respond'), { code: 'EAI_AGAIN' })

/** Rejects with `EAI_AGAIN` after a time. */
const resolveWithin = async (ms: number, resolving: Promise<string[]>): Promise<string[]> => {
  const timeout = new AbortController()
  try {
    return await Promise.race([
      resolving,
      delay(ms, undefined, { signal: timeout.signal, ref: false }).then(() => {
        throw noAnswer()
      }),
    ])
  } finally {
    timeout.abort()
  }
}

const lookupAddresses: ResolveHost = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address)

/** A server that forwards says the second where it reaches no other. */
const DOWN_CODES = new Set(['ETIMEOUT', 'ESERVFAIL', 'ECONNREFUSED', 'ECANCELLED'])

/** Whether the name servers of this machine, or those given, cannot even name the servers of the root. */
const areNameServersDown = async (nameServers: readonly string[] | undefined): Promise<boolean> => {
  const resolver = new Resolver({ timeout: CHECK_TIMEOUT_MS, tries: 1 })
  if (nameServers) resolver.setServers(nameServers)
  const timer = setTimeout(() => resolver.cancel(), CHECK_TIMEOUT_MS)
  try {
    await resolver.resolveNs('.')
    return false
  } catch (error) {
    return DOWN_CODES.has((error as { code?: string }).code ?? '')
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Resolves names by `resolve`. `EAI_AGAIN` alone does not tell whether this machine's name servers fail or those of the
 * name, which its owner has to repair: so the former are asked for something that does not depend on the name.
 */
export const createResolveHost =
  (resolve: ResolveHost = lookupAddresses, nameServers?: readonly string[]): ResolveHost =>
  async (name) => {
    try {
      return await resolveWithin(LOOKUP_TIMEOUT_MS, resolve(name))
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAI_AGAIN') throw error
      throw Object.assign(error as Error, { isResolverDown: await areNameServersDown(nameServers) })
    }
  }

/** Resolves names as this machine does, its hosts file included. */
export const resolveWithSystem: ResolveHost = createResolveHost()

/** Resolves within three seconds: a check is made within a transaction. Rejects with `EAI_AGAIN` after it. */
export const resolveWithTimeout = (resolve: ResolveHost, name: string): Promise<string[]> =>
  resolveWithin(RESOLVE_TIMEOUT_MS, resolve(name))
