import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, buildConnector, type Dispatcher, Pool } from 'undici'
import type { AllowList } from './allow.ts'
import type { ResolveHost } from './resolve.ts'
import { parseIpLiteral, isConnectAllowed, type ConnectTarget } from './rules.ts'

const addressRefused = (): Error =>
  Object.assign(new Error('the address is not public'), { code: 'ADDRESS_REFUSED' })

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/**
 * Creates connections to addresses that were checked in the lookup of the connection itself, so that a name
 * that was public when it was saved cannot lead elsewhere now (DNS rebinding). An IP address in the URL
 * needs no lookup, and is checked at once.
 */
const createConnector = (
  target: ConnectTarget,
  allow: AllowList,
  resolve: ResolveHost,
): buildConnector.connector => {
  const literal = parseIpLiteral(target.hostname)
  if (literal !== undefined && !isConnectAllowed(target, [literal], allow))
    return (_, callback) => callback(addressRefused(), null)
  const lookup = (name: string, options: LookupOptions, done: LookupCallback): void => {
    resolve(name).then(
      (addresses) => {
        if (!isConnectAllowed(target, addresses, allow)) return done(addressRefused(), [])
        const found = addresses.map((address) => ({ address, family: isIP(address) }))
        return options.all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)
      },
      (error: Error) => done(error, []),
    )
  }
  return buildConnector({ lookup: lookup as never, timeout: 10_000 })
}

/** Creates the dispatcher that sends over checked connections. They are kept alive for 10 seconds. */
export const createGuardedAgent = (allow: AllowList, resolve: ResolveHost): Dispatcher =>
  new Agent({
    keepAliveTimeout: 10_000,
    factory: (origin, options) =>
      new Pool(origin, { ...options, connect: createConnector(new URL(origin), allow, resolve) }),
  })
