import { BlockList, isIP } from 'node:net'
import { addSubnet, containsAddress } from './network/addresses.ts'

/** The eight groups of an IPv6 address as numbers. */
const parseGroups = (address: string): number[] => {
  // The URL parser compresses zeros and turns a dotted end into groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const parse = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [left, right] = [parse(head), parse(tail ?? '')]
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
}

/** The IPv4 address that an IPv4-mapped IPv6 address stands for; undefined for any other. */
const unmap = (address: string): string | undefined => {
  const groups = parseGroups(address)
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return undefined
  const [high, low] = [groups[6]!, groups[7]!]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

const normalizeAddress = (address: string): string =>
  (isIP(address) === 6 && !address.includes('%') ? unmap(address) : undefined) ?? address.toLowerCase()

/**
 * Parses an address or a CIDR, IPv4 or IPv6. An IPv4-mapped one becomes IPv4. Undefined when it is neither.
 */
export const parseSubnet = (text: string): string | undefined => {
  if (!addSubnet(new BlockList(), text)) return undefined
  const [address = '', bits] = text.split('/')
  const unmapped = isIP(address) === 6 ? unmap(address) : undefined
  if (unmapped === undefined || (bits !== undefined && Number(bits) < 96)) return text.toLowerCase()
  return bits === undefined ? unmapped : `${unmapped}/${Number(bits) - 96}`
}

/** Whether one of the addresses and CIDRs covers the address of a client; an unknown address is in none. */
export const isAddressAllowed = (subnets: readonly string[], address: string | undefined): boolean => {
  if (address === undefined) return false
  const list = new BlockList()
  for (const subnet of subnets) addSubnet(list, subnet)
  return containsAddress(list, normalizeAddress(address))
}

/**
 * Names what one client can hold of addresses: a whole IPv4 address, and of IPv6 the network of 64 bits, of
 * which every host has all. Clients without an address share a name.
 */
export const toClientNetwork = (address: string | undefined): string => {
  const normalized = normalizeAddress(address ?? '')
  if (isIP(normalized) !== 6 || normalized.includes('%')) return normalized
  return `${parseGroups(normalized)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}
