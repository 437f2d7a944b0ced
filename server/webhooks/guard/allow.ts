import { BlockList, isIP } from 'node:net'
import { addSubnet } from './addresses.ts'

/**
 * Exceptions from the rules about addresses (`WCRM_WEBHOOK_ALLOW`). `hosts`: `name:port`, as a URL writes
 * them.
 */
export type Allow = { readonly hosts: ReadonlySet<string>; readonly nets: BlockList; readonly none: boolean }

/**
 * Reads a list of host:port and CIDR, separated by commas or spaces. Throws an error that names the item
 * that is neither.
 */
export const readAllow = (text: string): Allow => {
  const hosts = new Set<string>()
  const nets = new BlockList()
  const items = text.split(/[\s,]+/).filter((item) => item !== '')
  for (const item of items) {
    if (addSubnet(nets, item)) continue
    const host = hostOf(item)
    if (host === undefined) throw new Error(`"${item}" is neither host:port nor a CIDR such as 127.0.0.0/8`)
    hosts.add(host)
  }
  return { hosts, nets, none: items.length === 0 }
}

const hostOf = (item: string): string | undefined => {
  if (!/^[^/@?#\\]+:\d{1,5}$/.test(item) || isIP(item) !== 0) return undefined
  const url = URL.parse(`http://${item}`)
  return url ? hostKey(url) : undefined
}

/** Host and port of a URL, with the port that its scheme means. */
export const hostKey = ({ protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>): string =>
  `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
