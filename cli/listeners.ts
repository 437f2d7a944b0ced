import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { listen } from 'listhen'
import type { Config } from '../server/config.ts'
import type { App } from '../server/core/app.ts'
import { createListener, type Listener } from '../server/http/listener.ts'
import { createMetricsApp } from '../server/http/metrics.ts'
import { nodeHandler } from '../server/http/node.ts'
import type { Siblings } from '../server/siblings.ts'

/**
 * Starts listening. Returns the server and the URL at which this machine reaches it. listhen adds listeners of
 * http-shutdown, which throw for a connection that ended early: they are taken off, and `createListener`
 * stops the server instead.
 */
export const listenOn = async ({ host, port }: Pick<Config, 'host' | 'port'>, siblings?: Siblings) => {
  if (siblings) return await listenTogether(host, port)
  const { server, address } = await listen(() => {}, {
    hostname: host,
    port: { port, alternativePortRange: [] as never, random: port === 0, host },
    autoClose: false,
    qr: false,
    showURL: false,
    isProd: true,
    ws: false,
    clipboard: false,
    open: false,
  })
  const [nodesOwn] = server.listeners('connection')
  server.removeAllListeners('request').removeAllListeners('connection')
  server.on('connection', nodesOwn as () => void)
  return { server: server as Server, url: `http://${formatHost(host)}:${address.port}` }
}

/**
 * The same on a port that other processes share: on Linux the kernel divides the connections among them,
 * elsewhere the process that supervises them (docs/decisions/0029-processes.md).
 */
const listenTogether = async (host: string, port: number): Promise<{ server: Server; url: string }> => {
  const byKernel = process.platform === 'linux'
  const server = createServer().listen({ host, port, exclusive: byKernel, reusePort: byKernel })
  await once(server, 'listening')
  return { server, url: `http://${formatHost(host)}:${(server.address() as AddressInfo).port}` }
}

/** Brackets an IPv6 address. A server on all addresses is reached at 127.0.0.1. */
const formatHost = (host: string): string =>
  host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host

/** Serves the metrics and the probes on a port of their own, where one is configured; throws when it is in use. */
export const serveMetricsPort = async (
  config: Config,
  app: App,
): Promise<{ listener: Listener; url: string } | undefined> => {
  if (config.metricsListen === undefined) return undefined
  const { host = config.host, port } = config.metricsListen
  const { server, url } = await listenOn({ host, port }, app.siblings).catch((cause: unknown) => {
    const reason = `cannot listen on port ${port} (WCRM_METRICS_LISTEN)`
    throw new Error(`${reason}: each server and worker of a machine needs one of its own`, { cause })
  })
  const { publicUrl } = app.config
  const listener = createListener(server, { publicUrl, log: app.log })
  const http = createMetricsApp(app)
  listener.serve(nodeHandler((request) => http.fetch(request), { publicUrl, log: app.log }))
  return { listener, url: `${url}/metrics` }
}
