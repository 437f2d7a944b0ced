import { BlockList, isIP } from 'node:net'
import { addSubnet } from './addresses.ts'

/** Exceptions from the address rules (`WCRM_WEBHOOK_ALLOW`). `hosts`: `name:port`, as in a URL. */
export type AllowList = {
  readonly hosts: ReadonlySet<string>
  readonly nets: BlockList
  readonly isEmpty: boolean
}

/** Parses host:port and CIDR items, separated by commas or spaces. Throws an error that names a bad item. */
export const parseAllowList = (text: string): AllowList => {
  const hosts = new Set<string>()
  const nets = new BlockList()
  const items = text.split(/[\s,]+/).filter((item) => item !== '')
  for (const item of items) {
    if (addSubnet(nets, item)) continue
    const host = parseHost(item)
    if (host === undefined) throw new Error(`"${item}" is neither host:port nor a CIDR such as 127.0.0.0/8`)
    hosts.add(host)
  }
  return { hosts, nets, isEmpty: items.length === 0 }
}

const parseHost = (item: string): string | undefined => {
  if (!/^[^/@?#\\]+:\d{1,5}$/.test(item) || isIP(item) !== 0) return undefined
  const url = URL.parse(`http://${item}`)
  return url ? hostKey(url) : undefined
}

/** Host and port of a URL, with the default port of its scheme. */
export const hostKey = ({ protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>): string =>
  `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
