import { BlockList, isIP } from 'node:net'

/**
 * Addresses outside the public internet (IANA special-purpose registries), and metadata services of clouds
 * with a public address. Of IPv6 only 2000::/3 is allocated, so mapped, compatible, NAT64, unique-local and
 * link-local addresses need no entry.
 */
const special4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's wire server, reachable from its virtual machines only.
  '168.63.129.16/32',
]
/** Teredo, ORCHID and the like; documentation; 6to4; the former 6bone; AS112. */
const special6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20']

const createBlockList = (list: readonly string[]): BlockList => {
  const blockList = new BlockList()
  for (const subnet of list) addSubnet(blockList, subnet)
  return blockList
}

/** Adds `address/bits`, or one address. Returns false when it is neither. */
export const addSubnet = (list: BlockList, text: string): boolean => {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  const maxBits = family === 4 ? 32 : 128
  if (
    family === 0 ||
    rest.length > 0 ||
    address.includes('%') ||
    (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > maxBits))
  )
    return false
  list.addSubnet(address, bits === undefined ? maxBits : Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  return true
}

export const containsAddress = (list: BlockList, address: string): boolean => {
  const family = isIP(address)
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  return family !== 0 && !address.includes('%') && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

const notPublic4 = createBlockList(special4)
const notPublic6 = createBlockList(special6)
const allocated6 = createBlockList(['2000::/3'])

/** Whether an address belongs to the public internet. */
export const isPublicAddress = (address: string): boolean =>
  isIP(address) === 4
    ? !containsAddress(notPublic4, address)
    : containsAddress(allocated6, address) && !containsAddress(notPublic6, address)
