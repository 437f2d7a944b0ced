import type { IncomingMessage, ServerResponse } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { ClientPresence } from '../../storage/client/client-presence.ts'
import type { App } from '../app.ts'
import { addSubnet, containsAddress } from '../network/addresses.ts'

/**
 * Parses `WCRM_TRUST_PROXY`: addresses and CIDRs, separated by commas or spaces. Throws an error that names
 * a bad item.
 */
export const parseProxyList = (text: string): BlockList => {
  const proxies = new BlockList()
  for (const item of text.split(/[\s,]+/).filter((one) => one !== ''))
    if (!addSubnet(proxies, item)) throw new Error(`"${item}" is neither an address nor a CIDR`)
  return proxies
}

type NodePair = { req?: IncomingMessage; res?: ServerResponse }

const getNode = (request: Request): NodePair =>
  (request as { runtime?: { node?: NodePair } }).runtime?.node ?? {}

/** Returns Node's own request behind a web `Request`; undefined for one that was made in this process. */
export const getIncoming = (request: Request): IncomingMessage | undefined => getNode(request).req

/** Returns Node's own response to a web `Request`. */
export const getResponse = (request: Request): ServerResponse | undefined => getNode(request).res

/** Listeners for the end of a connection: pipelined requests share one listener on it. */
const closeListeners = new WeakMap<Socket, Set<() => void>>()

const onSocketClose = (socket: Socket, listener: () => void): (() => void) => {
  let listeners = closeListeners.get(socket)
  if (!listeners) {
    const all = (listeners = new Set())
    closeListeners.set(socket, all)
    socket.once('close', () => {
      for (const each of all) each()
    })
  }
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Connections on which a valid key arrived. */
const admitted = new WeakSet<Socket>()

export const isAdmitted = (socket: Socket): boolean => admitted.has(socket)

/** Whether the client of a request is still connected; undefined for one that was made in this process. */
export const getPresence = (request: Request): ClientPresence | undefined => {
  const { req, res } = getNode(request)
  if (!req || !res) return undefined
  const { socket } = req
  return {
    // A response that waits for others on its connection does not know of that.
    isGone: () => res.destroyed || socket.destroyed,
    onGone: (listener) => onSocketClose(socket, listener),
    admit: () => void admitted.add(socket),
  }
}

/** Of each connection: its requests all come from the same address. */
const peerAddresses = new WeakMap<Socket, string | undefined>()

/** The address at the other end of the connection, which may be a proxy's. */
export const getPeerAddress = (request: Request): string | undefined => {
  const socket = getIncoming(request)?.socket
  if (!socket) return undefined
  if (!peerAddresses.has(socket)) peerAddresses.set(socket, parseAddress(socket.remoteAddress ?? ''))
  return peerAddresses.get(socket)
}

/**
 * Returns the client's address, an IPv4 one in its own form. `X-Forwarded-For` is believed as far as it was
 * written by trusted proxies: it is read from its end, each address naming who connected to the proxy before.
 * Undefined when the request came through no socket.
 */
export const getClientAddress = ({ config }: Pick<App, 'config'>, request: Request): string | undefined => {
  let address = getPeerAddress(request)
  if (address === undefined || !containsAddress(config.trustedProxies, address)) return address
  const hops = (request.headers.get('x-forwarded-for') ?? '').split(',')
  for (const hop of hops.toReversed()) {
    const before = parseAddress(hop.trim())
    if (before === undefined) return address
    address = before
    if (!containsAddress(config.trustedProxies, address)) return address
  }
  return address
}

/** Reads an address with or without port, zone and brackets; an IPv4-mapped one becomes IPv4. */
export const parseAddress = (text: string): string | undefined => {
  const bare = (/^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, '$1')).split(
    '%',
  )[0]!
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1] ?? bare
  return isIP(mapped) === 0 ? undefined : mapped.toLowerCase()
}
