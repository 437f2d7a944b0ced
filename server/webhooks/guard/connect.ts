import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, buildConnector, type Dispatcher, Pool } from 'undici'
import type { Allow } from './allow.ts'
import type { Resolve } from './resolve.ts'
import { literalOf, mayConnect, type Target } from './rules.ts'

const refusal = (): Error =>
  Object.assign(new Error('the address is not public'), { code: 'ADDRESS_REFUSED' })

type Answered = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/**
 * Connections whose every address was checked by the look-up that they are made with, so that a name that
 * resolved to a public address when it was saved cannot lead elsewhere now (DNS rebinding). An address
 * written in the URL needs no look-up, and is checked before.
 */
const connectorFor = (target: Target, allow: Allow, resolve: Resolve): buildConnector.connector => {
  const literal = literalOf(target.hostname)
  if (literal !== undefined && !mayConnect(target, [literal], allow))
    return (_, callback) => callback(refusal(), null)
  const lookup = (name: string, options: LookupOptions, done: Answered): void => {
    resolve(name).then(
      (addresses) => {
        if (!mayConnect(target, addresses, allow)) return done(refusal(), [])
        const found = addresses.map((address) => ({ address, family: isIP(address) }))
        return options.all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)
      },
      (error: Error) => done(error, []),
    )
  }
  return buildConnector({ lookup: lookup as never, timeout: 10_000 })
}

/** Sends over checked connections, kept open for a while. */
export const guardedAgent = (allow: Allow, resolve: Resolve): Dispatcher =>
  new Agent({
    keepAliveTimeout: 10_000,
    factory: (origin, options) =>
      new Pool(origin, { ...options, connect: connectorFor(new URL(origin), allow, resolve) }),
  })
