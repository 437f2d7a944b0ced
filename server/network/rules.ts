import { isIP } from 'node:net'
import { containsAddress, isPublicAddress } from './addresses.ts'
import { type AllowList, hostKey } from './allow.ts'

/** What to connect to. `hostname`: as in a URL, IPv6 in brackets. */
export type ConnectTarget = Pick<URL, 'protocol' | 'hostname' | 'port'>
export type UrlFault = { code: string; detail: string; fix: string }

export const PUBLIC_ADDRESS_FIX = 'Give a public https address, such as https://example.com/hooks.'

/** The fix for an address that an exception would allow. */
export const describeException = (target: ConnectTarget): string =>
  `${PUBLIC_ADDRESS_FIX} To allow this one for development, ` +
  `set WCRM_WEBHOOK_ALLOW=${hostKey(target)} for wcrm serve and wcrm admin.`

const privateName = /\.(local|localhost|internal|localdomain|home\.arpa)$/

/** The IP address that a host is, without brackets; undefined for a name. */
export const parseIpLiteral = (hostname: string): string | undefined => {
  const bare = hostname.replace(/^\[|\]$/g, '')
  return isIP(bare) === 0 ? undefined : bare
}

const isName = (host: string): boolean =>
  host.length <= 253 && host.split('.').every((label) => label.length > 0 && label.length <= 63)

/** Returns what is wrong with the syntax of a target, before it is resolved; undefined when it is valid. */
export const findUrlFault = (target: ConnectTarget): UrlFault | undefined => {
  const { protocol, hostname, port } = target
  const host = hostname.replace(/\.$/, '')
  if (protocol !== 'https:')
    return { code: 'not_https', detail: 'must begin with https://', fix: describeException(target) }
  if (parseIpLiteral(hostname) === undefined) {
    if (!isName(host))
      return { code: 'name_invalid', detail: 'has a host that is not a valid name', fix: PUBLIC_ADDRESS_FIX }
    if (!host.includes('.') || privateName.test(host))
      return {
        code: 'name_not_public',
        detail: 'has a name of a private network',
        fix: describeException(target),
      }
  }
  if (port !== '' && port !== '443' && Number(port) < 1024)
    return {
      code: 'port_not_allowed',
      detail: `has port ${port}; 443 and 1024 to 65535 are possible`,
      fix: 'Leave the port out, or choose another.',
    }
  return undefined
}

/** Whether the exceptions name exactly this host and port. */
export const isExempt = (target: ConnectTarget, allow: AllowList): boolean => allow.hosts.has(hostKey(target))

/**
 * Whether each of these addresses may be connected to for this target. A target of faulty form needs an
 * exception for every address.
 */
export const isConnectAllowed = (
  target: ConnectTarget,
  addresses: readonly string[],
  allow: AllowList,
): boolean => {
  if (addresses.length === 0) return false
  if (isExempt(target, allow)) return true
  const wellFormed = findUrlFault(target) === undefined
  return addresses.every(
    (address) => containsAddress(allow.nets, address) || (wellFormed && isPublicAddress(address)),
  )
}
