import { createHash, timingSafeEqual } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { H3 } from 'h3'
import { AggregatorRegistry } from 'prom-client'
import { FastResponse } from 'srvx/node'
import type { App } from '../app.ts'
import { parseBearer } from '../kernel/bearer.ts'
import { Problem } from '../kernel/problem.ts'
import { readProcessMetrics } from '../metrics.ts'
import { countFailure } from '../kernel/throttle.ts'
import { containsAddress } from '../network/addresses.ts'
import { getClientAddress, getPeerAddress } from './address.ts'
import { problemResponse, withProblems } from './door.ts'
import { serveHealth, serveReadiness } from './health.ts'

/**
 * Serves the metrics, which tell how much business a server does: to those who send the token
 * (`WCRM_METRICS_TOKEN`), else to this machine alone. Where they have a port of their own
 * (`WCRM_METRICS_LISTEN`), the main one has none. Throws 401 and 404.
 */
export const serveMetrics = async (app: App, request: Request): Promise<Response> => {
  const { token, isApart } = app.config.metrics
  if (isApart) throw noMetrics('They are served on a port of their own (WCRM_METRICS_LISTEN).')
  if (token === undefined && !isFromThisMachine(app, request))
    throw noMetrics(
      'From this machine, ask at 127.0.0.1 or localhost. Set WCRM_METRICS_TOKEN or WCRM_METRICS_LISTEN to read ' +
        'them from other machines or under another name.',
    )
  return await sendMetrics(app, request)
}

/** The application of a port that serves the metrics and the probes alone. */
export const createMetricsApp = (app: App): H3 => {
  const http = new H3({
    onError: () =>
      problemResponse(
        app,
        new Problem('not_found', 'This port serves /metrics, /healthz and /readyz alone.'),
      ),
    allowMalformedURL: true,
  })
  return http
    .get('/metrics', (event) => withProblems(app, () => sendMetrics(app, event.req as Request)))
    .get('/healthz', serveHealth)
    .get('/readyz', () => serveReadiness(app))
}

const sendMetrics = async (app: App, request: Request): Promise<Response> => {
  const { token } = app.config.metrics
  if (token !== undefined && !isToken(token, request.headers.get('authorization'))) {
    countFailure(app, getClientAddress(app, request), 'metrics_token')
    throw new Problem(
      'unauthenticated',
      'Send "Authorization: Bearer <WCRM_METRICS_TOKEN>".',
      {},
      { 'WWW-Authenticate': 'Bearer realm="metrics"' },
    )
  }
  const { registry } = app.metrics
  return new FastResponse(await readMetrics(app), { headers: { 'Content-Type': registry.contentType } })
}

/** Of all processes of this server together. */
const readMetrics = async ({ metrics, siblings }: App): Promise<string> => {
  if (!siblings) return await metrics.registry.metrics()
  const own = await readProcessMetrics(metrics)
  return await AggregatorRegistry.aggregate([own, ...(await siblings.gather(own))]).metrics()
}

const noMetrics = (why: string): Problem => new Problem('not_found', `There are no metrics here. ${why}`)

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** A request that a proxy forwarded comes from elsewhere, also when the proxy runs here. */
const isFromThisMachine = ({ config }: App, request: Request): boolean => {
  const peer = getPeerAddress(request)
  const isForwarded = ['forwarded', 'x-forwarded-for', 'via'].some((name) => request.headers.has(name))
  return (
    peer !== undefined &&
    containsAddress(loopback, peer) &&
    !containsAddress(config.trustedProxies, peer) &&
    !isForwarded &&
    isLoopbackHost(request)
  )
}

/**
 * Whether the request names this machine by itself. A web page whose name leads here (DNS rebinding), and a proxy that
 * passes on the name but not who asks, name it otherwise.
 */
const isLoopbackHost = (request: Request): boolean => {
  const host =
    URL.parse(`http://${request.headers.get('host') ?? ''}`)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return host === 'localhost' || (isIP(host) !== 0 && containsAddress(loopback, host))
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const isToken = (token: string, authorization: string | null): boolean => {
  const given = parseBearer(authorization) ?? ''
  return timingSafeEqual(digest(given), digest(token))
}
