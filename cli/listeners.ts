import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { listen } from 'listhen'
import type { Config } from '../server/config.ts'
import type { App } from '../server/app.ts'
import { createListener, type Listener, serverOptions } from '../server/http/listener.ts'
import { createMetricsApp } from '../server/http/metrics.ts'
import { nodeHandler } from '../server/http/node.ts'
import { findFreePort } from '../server/http/free-port.ts'
import type { Siblings } from '../server/siblings.ts'
import { listenError, type PortSettings } from './start-errors.ts'

export const SERVER_PORT: PortSettings = {
  host: '--host (WCRM_HOST)',
  port: '--port (WCRM_PORT)',
  whenTaken: 'stop the other server or use another --port (WCRM_PORT)',
}
export const METRICS_PORT: PortSettings = {
  host: 'WCRM_METRICS_LISTEN',
  port: 'WCRM_METRICS_LISTEN',
  whenTaken: 'each server and worker of a machine needs one of its own (WCRM_METRICS_LISTEN)',
}

type Place = { host: string; port: number }

/**
 * Starts listening. Returns the server and the URL at which this machine reaches it; throws an error that names the
 * setting to change.
 */
export const listenOn = async (place: Place, settings: PortSettings, siblings?: Siblings) => {
  try {
    return siblings ? await listenTogether(place) : await listenAlone(place)
  } catch (error) {
    throw listenError(error, place, settings)
  }
}

/** listhen passes what it is given to `createServer`, which takes options there. */
const listenAlone = async ({ host, port }: Place): Promise<{ server: Server; url: string }> => {
  const { server, address } = await listen(serverOptions as never, {
    hostname: host,
    port: { port, alternativePortRange: [] as never, random: port === 0, host },
    autoClose: false,
    qr: false,
    showURL: false,
    isProd: true,
    ws: false,
    clipboard: false,
    open: false,
  }).catch(async (error: unknown) => {
    // listhen takes every failure for a port that is in use.
    await findFreePort(host, port)
    throw error
  })
  return { server: server as Server, url: `http://${formatHost(host)}:${address.port}` }
}

/**
 * The same on a port that other processes share: on Linux the kernel divides the connections among them,
 * elsewhere the process that supervises them (docs/decisions/0029-processes.md).
 */
const listenTogether = async ({ host, port }: Place): Promise<{ server: Server; url: string }> => {
  const byKernel = process.platform === 'linux'
  const server = createServer(serverOptions).listen({ host, port, exclusive: byKernel, reusePort: byKernel })
  await once(server, 'listening')
  return { server, url: `http://${formatHost(host)}:${(server.address() as AddressInfo).port}` }
}

/** Brackets an IPv6 address. A server on all addresses is reached at 127.0.0.1. */
const formatHost = (host: string): string =>
  host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host

/** Serves the metrics and the probes on a port of their own, where one is configured. */
export const serveMetricsPort = async (
  config: Config,
  app: App,
): Promise<{ listener: Listener; url: string } | undefined> => {
  if (config.metricsListen === undefined) return undefined
  const { host = config.host, port } = config.metricsListen
  const { server, url } = await listenOn({ host, port }, METRICS_PORT, app.siblings)
  const { publicUrl } = app.config
  const listener = createListener(server, { publicUrl, log: app.log })
  const http = createMetricsApp(app)
  listener.serve(nodeHandler((request) => http.fetch(request), { publicUrl, log: app.log }))
  return { listener, url: `${url}/metrics` }
}
