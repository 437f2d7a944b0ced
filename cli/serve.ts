import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { listen } from 'listhen'
import { pino } from 'pino'
import { createMcpEndpoint } from '../mcp/endpoint.ts'
import { composeService } from '../server/compose.ts'
import { type Config, readConfig, requireProvider, settings } from '../server/config.ts'
import { createHttpApp } from '../server/http/app.ts'
import { MAX_BODY_BYTES } from '../server/http/body.ts'
import { nodeHandler } from '../server/http/node.ts'
import { createMetrics } from '../server/metrics.ts'
import { SANDBOX_PATH } from '../server/provider/settings.ts'
import { loadSecret, requireSameSecret } from '../server/secret.ts'
import { openMigrated, startBackgroundJobs } from '../server/start.ts'
import { createDemo } from '../server/demo/demo.ts'
import { storeCredentials } from './credentials.ts'
import type { Io } from './io.ts'
import { runService, waitForStopSignal } from './service.ts'

type ServeFlags = {
  host?: string
  port?: string
  data?: string
  databaseUrl?: string
  demo: boolean
  json?: boolean
}

const createCommand = (io: Io): Command => {
  const nameWidth = Math.max(...settings.map((s) => s.env?.length ?? 0))
  return new Command('wcrm serve')
    .description('Run the server: REST, /v1/ops, MCP and the API documentation, on one port.')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <port>', 'port to listen on, 0 picks a free one (default 8787)')
    .option('--data <dir>', 'folder of the embedded database (default .wcrm)')
    .option('--database-url <url>', 'PostgreSQL 15 or newer instead of the embedded database')
    .option('--no-demo', 'do not create a demo workspace in an empty database')
    .addOption(new Option('--json', 'print one JSON line on stdout when ready; logs go to stderr'))
    .addHelpText(
      'after',
      `\nEnvironment variables (flags override them):\n${settings
        .filter((s) => s.env)
        .map((s) => `  ${s.env!.padEnd(nameWidth)}  ${s.description}`)
        .join('\n')}`,
    )
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
}

/** `wcrm serve`: returns 0 after SIGTERM or SIGINT, once the requests in flight are answered. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const read = () => {
    const flags = createCommand(io).parse(argv, { from: 'user' }).opts<ServeFlags>()
    const config = readConfig(
      {
        host: flags.host,
        port: flags.port,
        dataDir: flags.data,
        databaseUrl: flags.databaseUrl,
        demo: flags.demo,
      },
      io.env,
    )
    return { config: requireProvider(config), json: flags.json === true }
  }
  return await runService('wcrm serve', io, read, (config, json) => serve(config, json, io))
}

const serve = async (config: Config, json: boolean, io: Io): Promise<number> => {
  const log = pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const storage = await openMigrated(config)
  try {
    const secret = loadSecret(config)
    await requireSameSecret(storage, secret)
    // The port is known only after listening, and all URLs contain it: so the routes are created afterwards.
    let handle: ReturnType<typeof nodeHandler> | undefined
    let inFlight = 0
    let stopping = false
    const { server, url } = await listenOn(config, (request, response) => {
      // Requests in flight may still call the sandbox of this server, so its routes stay open longest.
      if (!handle || (stopping && !request.url?.startsWith(SANDBOX_PATH)))
        return void response.writeHead(503, { 'Retry-After': '1', Connection: 'close' }).end()
      inFlight++
      void handle(request as never, response as never).finally(() => {
        inFlight--
      })
    })
    const service = composeService({
      storage,
      secret,
      log,
      metrics: createMetrics(),
      config: { ...config, publicUrl: (config.publicUrl ?? url).replace(/\/+$/, '') },
      provider: config,
      localUrl: url,
      mediaDir: config.media ?? join(config.dataDir, 'media'),
    })
    const { app } = service
    if (config.providerUrl === undefined && !storage.embedded)
      log.warn('WCRM_PROVIDER_URL is not set: messages go to the built-in sandbox and reach no customer')
    const http = createHttpApp(app, { ...service.mounts, '/mcp': createMcpEndpoint(app) })
    handle = nodeHandler((request) => http.fetch(request), { maxRequestBodySize: MAX_BODY_BYTES })
    const demo = config.demo ? await createDemo(storage.db, app.now(), app.config.publicUrl) : undefined
    if (demo) await storeCredentials({ url, key: demo.apiKey, env: io.env })
    const stopJobs = await startBackgroundJobs(service)
    const stopSignal = waitForStopSignal()
    printReady(io, url, demo, json)
    log.info({ url, database: storage.embedded ? 'embedded' : 'postgresql' }, 'ready')
    const signal = await stopSignal
    log.info({ signal }, 'stopping')
    stopping = true
    const jobsStopped = stopJobs()
    await drain(server, () => inFlight, service.sandbox !== undefined)
    await jobsStopped
    return 0
  } finally {
    await storage.close()
    log.flush()
  }
}

type Handler = Parameters<typeof listen>[0]

/** Starts listening. Returns the server and the URL at which this machine reaches it. */
const listenOn = async ({ host, port }: Config, handler: Handler) => {
  const { server, address } = await listen(handler, {
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
  return { server, url: `http://${formatHost(host)}:${address.port}` }
}

/** Brackets an IPv6 address. A server on all addresses is reached at 127.0.0.1. */
const formatHost = (host: string): string =>
  host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host

const DRAIN_TIMEOUT_MS = 15_000

/**
 * Accepts no new connections, closes idle ones, and waits for the requests in flight, even when their client
 * has disconnected. A server that is its own provider waits first: those requests connect to it.
 */
const drain = async (
  server: {
    close: (done: () => void) => void
    closeIdleConnections?: () => void
    closeAllConnections?: () => void
  },
  inFlight: () => number,
  isOwnProvider: boolean,
): Promise<void> => {
  const deadline = performance.now() + DRAIN_TIMEOUT_MS
  while (isOwnProvider && inFlight() > 0 && performance.now() < deadline) await pause(20)
  await new Promise<void>((resolve) => {
    const timeout = setTimeout(() => server.closeAllConnections?.(), DRAIN_TIMEOUT_MS)
    server.close(() => {
      clearTimeout(timeout)
      resolve()
    })
    server.closeIdleConnections?.()
  })
  while (inFlight() > 0 && performance.now() < deadline) await pause(20)
}

type DemoWorkspace = { workspaceId: string; apiKey: string; testKey: string }

const printReady = (io: Io, url: string, demo: DemoWorkspace | undefined, json: boolean): void => {
  if (json) {
    const keys = demo ? { workspace_id: demo.workspaceId, api_key: demo.apiKey, test_key: demo.testKey } : {}
    io.stdout.write(`${JSON.stringify({ url, mcp_url: `${url}/mcp`, ...keys })}\n`)
    return
  }
  io.stdout.write(`wcrm is ready at ${url}   (documentation: ${url}/docs   MCP: ${url}/mcp)\n`)
  if (!demo) return
  io.stdout.write(
    [
      '',
      'A demo workspace was created. Its keys are shown only now:',
      `  live key  ${demo.apiKey}`,
      `  test key  ${demo.testKey}   (writes run as dry runs)`,
      '',
      'Try it:',
      `  curl -H "Authorization: Bearer ${demo.apiKey}" "${url}/v1/contacts?limit=3"`,
      '',
      'The command line uses the live key. Next:',
      '  npx wcrm whoami',
      '  npx wcrm contacts search --query ada',
      '  npx wcrm contacts upsert --phone "+1 555 010 0042" --name "Ada Lovelace" --dry-run',
      '  npx wcrm sandbox say --from "+1 555 010 0777" "Hello"   (as a customer)',
      '',
    ].join('\n'),
  )
}
