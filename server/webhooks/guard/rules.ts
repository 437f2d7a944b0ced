import { isIP } from 'node:net'
import { contains, isPublicAddress } from './addresses.ts'
import { type Allow, hostKey } from './allow.ts'

/** Where something is to be connected to. `hostname`: as a URL has it, IPv6 in brackets. */
export type Target = Pick<URL, 'protocol' | 'hostname' | 'port'>
export type Fault = { code: string; detail: string; fix: string }

const PUBLIC = 'Give a public https address, such as https://example.com/hooks.'
const privateName = /\.(local|localhost|internal|localdomain|home\.arpa)$/

/** The address that a host is written as, without brackets; undefined for a name. */
export const literalOf = (hostname: string): string | undefined => {
  const bare = hostname.replace(/^\[|\]$/g, '')
  return isIP(bare) === 0 ? undefined : bare
}

const isName = (host: string): boolean =>
  host.length <= 253 && host.split('.').every((label) => label.length > 0 && label.length <= 63)

/** What is wrong with a target by its form, whatever it resolves to. */
export const formFault = ({ protocol, hostname, port }: Target): Fault | undefined => {
  const host = hostname.replace(/\.$/, '')
  if (protocol !== 'https:') return { code: 'not_https', detail: 'must begin with https://', fix: PUBLIC }
  if (literalOf(hostname) === undefined) {
    if (!isName(host)) return { code: 'name_invalid', detail: 'has a host that is no name', fix: PUBLIC }
    if (!host.includes('.') || privateName.test(host))
      return { code: 'name_not_public', detail: 'has a name of a private network', fix: PUBLIC }
  }
  if (port !== '' && port !== '443' && Number(port) < 1024)
    return {
      code: 'port_not_allowed',
      detail: `has port ${port}; 443 and 1024 to 65535 are possible`,
      fix: 'Leave the port out, or choose another.',
    }
  return undefined
}

/** Whether the exceptions name this very host and port. */
export const isExempt = (target: Target, allow: Allow): boolean => allow.hosts.has(hostKey(target))

/**
 * Whether each of these addresses may be connected to for this target. What is wrong by its form needs
 * exceptions for all of them.
 */
export const mayConnect = (target: Target, addresses: readonly string[], allow: Allow): boolean => {
  if (addresses.length === 0) return false
  if (isExempt(target, allow)) return true
  const wellFormed = formFault(target) === undefined
  return addresses.every(
    (address) => contains(allow.nets, address) || (wellFormed && isPublicAddress(address)),
  )
}
