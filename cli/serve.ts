import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { listen } from 'listhen'
import { pino } from 'pino'
import { mcpHandler } from '../mcp/handler.ts'
import { compose } from '../server/compose.ts'
import { type Config, readConfig, requireProvider, settings } from '../server/config.ts'
import { createHttp } from '../server/http/app.ts'
import { HARD_MAX_BYTES } from '../server/http/body.ts'
import { nodeHandler } from '../server/http/node.ts'
import { createMetrics } from '../server/metrics.ts'
import { SANDBOX_PATH } from '../server/provider/settings.ts'
import { openMigrated, requireSameSecret, secretOf, startChores } from '../server/start.ts'
import { createDemo } from '../server/demo/demo.ts'
import { storeCredentials } from './credentials.ts'
import type { Io } from './io.ts'
import { runService, untilSignal } from './service.ts'

type Flags = {
  host?: string
  port?: string
  data?: string
  databaseUrl?: string
  demo: boolean
  json?: boolean
}

const command = (io: Io): Command => {
  const wide = Math.max(...settings.map((s) => s.env?.length ?? 0))
  return new Command('wcrm serve')
    .description('Run the server: REST, /v1/ops, MCP and the documents, on one port.')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <port>', 'port to listen on, 0 picks a free one (default 8787)')
    .option('--data <dir>', 'folder of the embedded database (default .wcrm)')
    .option('--database-url <url>', 'PostgreSQL 15 or newer instead of the embedded database')
    .option('--no-demo', 'create no demo workspace in an empty database')
    .addOption(new Option('--json', 'print one JSON line on stdout when ready; logs go to stderr'))
    .addHelpText(
      'after',
      `\nVariables (flags win):\n${settings
        .filter((s) => s.env)
        .map((s) => `  ${s.env!.padEnd(wide)}  ${s.description}`)
        .join('\n')}`,
    )
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
}

/** `wcrm serve`: answers 0 after SIGTERM or SIGINT, when the calls under way are answered. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const read = () => {
    const flags = command(io).parse(argv, { from: 'user' }).opts<Flags>()
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
    const secret = secretOf(config)
    await requireSameSecret(storage, secret)
    // The port is known only after listening, and every URL that is handed out holds it: so the routes come
    // after.
    let handle: ReturnType<typeof nodeHandler> | undefined
    let underWay = 0
    let stopping = false
    const listener = await listen(
      (request, response) => {
        // Calls under way may still need the sandbox of this very server, so its routes stay open longest.
        if (!handle || (stopping && !request.url?.startsWith(SANDBOX_PATH)))
          return void response.writeHead(503, { 'Retry-After': '1', Connection: 'close' }).end()
        underWay++
        void handle(request as never, response as never).finally(() => {
          underWay--
        })
      },
      {
        hostname: config.host,
        port: {
          port: config.port,
          alternativePortRange: [] as never,
          random: config.port === 0,
          host: config.host,
        },
        autoClose: false,
        qr: false,
        showURL: false,
        isProd: true,
        ws: false,
        clipboard: false,
        open: false,
      },
    )
    const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host === '0.0.0.0' ? '127.0.0.1' : config.host}:${listener.address.port}`
    const service = compose({
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
      log.warn('no WCRM_PROVIDER_URL: messages go to the built-in sandbox and reach no customer')
    const http = createHttp(app, { ...service.mounts, '/mcp': mcpHandler(app) })
    handle = nodeHandler((request) => http.fetch(request), { maxRequestBodySize: HARD_MAX_BYTES })
    const demo = config.demo ? await createDemo(storage.db, app.now(), app.config.publicUrl) : undefined
    if (demo) await storeCredentials({ url, key: demo.apiKey, env: io.env })
    const stopChores = await startChores(service)
    const stopped = untilSignal()
    announce(io, url, demo, json)
    log.info({ url, database: storage.embedded ? 'embedded' : 'postgresql' }, 'ready')
    const signal = await stopped
    log.info({ signal }, 'stopping')
    stopping = true
    const stoppedChores = stopChores()
    await drain(listener.server, () => underWay, service.sandbox !== undefined)
    await stoppedChores
    return 0
  } finally {
    await storage.close()
    log.flush()
  }
}

const DRAIN_MS = 15_000

/**
 * Takes no new connection, closes what idles, and waits for the calls under way, also for those whose
 * client has left. A server that is its own provider waits for them first: they connect to it.
 */
const drain = async (
  server: {
    close: (done: () => void) => void
    closeIdleConnections?: () => void
    closeAllConnections?: () => void
  },
  underWay: () => number,
  ownProvider: boolean,
): Promise<void> => {
  const deadline = performance.now() + DRAIN_MS
  while (ownProvider && underWay() > 0 && performance.now() < deadline) await pause(20)
  await new Promise<void>((resolve) => {
    const late = setTimeout(() => server.closeAllConnections?.(), DRAIN_MS)
    server.close(() => {
      clearTimeout(late)
      resolve()
    })
    server.closeIdleConnections?.()
  })
  while (underWay() > 0 && performance.now() < deadline) await pause(20)
}

type Demo = { workspaceId: string; apiKey: string; testKey: string }

const announce = (io: Io, url: string, demo: Demo | undefined, json: boolean): void => {
  if (json) {
    io.stdout.write(
      `${JSON.stringify({ url, mcp_url: `${url}/mcp`, ...(demo ? { workspace_id: demo.workspaceId, api_key: demo.apiKey, test_key: demo.testKey } : {}) })}\n`,
    )
    return
  }
  io.stdout.write(`wcrm is ready at ${url}   (documents: ${url}/docs   MCP: ${url}/mcp)\n`)
  if (!demo) return
  io.stdout.write(
    [
      '',
      'A demo workspace was made. Its keys are shown this once:',
      `  live key  ${demo.apiKey}`,
      `  test key  ${demo.testKey}   (changes run as dry runs)`,
      '',
      'Try it:',
      `  curl -H "Authorization: Bearer ${demo.apiKey}" "${url}/v1/contacts?limit=3"`,
      '',
      'The live key is stored for the command line. Next:',
      '  npx wcrm whoami',
      '  npx wcrm contacts search --query ada',
      '  npx wcrm contacts upsert --phone "+1 555 010 0042" --name "Ada Lovelace" --dry-run',
      '  npx wcrm sandbox say --from "+1 555 010 0777" "Hello"   (a customer writes)',
      '',
    ].join('\n'),
  )
}
