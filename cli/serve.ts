import { Command, Option } from 'commander'
import { createDiscovery } from '../mcp/discovery.ts'
import { createMcpEndpoint } from '../mcp/endpoint.ts'
import { flushContactReads } from '../server/guards/audit/contact-reads.ts'
import { composeService } from '../server/compose.ts'
import { type Config, listIgnoredVariables, readConfig, requireProvider, settings } from '../server/config.ts'
import { parseProxyList } from '../server/http/address.ts'
import { createHttpApp } from '../server/http/app.ts'
import { createListener } from '../server/http/listener.ts'
import { nodeHandler } from '../server/http/node.ts'
import { createLogger } from '../server/logger.ts'
import { readProcessMetrics } from '../server/metrics.ts'
import { mediaLocationsOf } from '../server/domains/media/location.ts'
import { openServerStore } from '../server/domains/media/open-store.ts'
import { chooseProvider, SANDBOX_PATH } from '../server/provider/settings.ts'
import { compareClocks } from '../server/real-time.ts'
import { createSecretRing, loadSecrets, requireKnownSecret } from '../server/secret.ts'
import { findSiblings, type Siblings } from '../server/siblings.ts'
import { openTelemetry } from '../server/telemetry/open.ts'
import { openMigrated, startBackgroundJobs, waitUntilStopped } from '../server/start.ts'
import { createDemo } from '../server/demo/demo.ts'
import { storeCredentials, type StoreResult } from './credentials.ts'
import { helpItem } from './help-layout.ts'
import type { Io } from './io.ts'
import { listenOn, SERVER_PORT, serveMetricsPort } from './listeners.ts'
import { countProcesses, superviseProcesses } from './processes.ts'
import { parseFlags, runService, waitForGrace, waitForStopSignal } from './service.ts'

type ServeFlags = {
  host?: string
  port?: string
  data?: string
  databaseUrl?: string
  processes?: string
  demo: boolean
  migrate: boolean
  json?: boolean
}

/** The command with its flags, also for its manual page. */
export const createCommand = (): Command =>
  new Command('wcrm serve')
    .description('Run the server: REST, /v1/ops, MCP and the API documentation, on one port.')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <port>', 'port to listen on, 0 picks a free one (default 8787)')
    .option('--data <dir>', 'folder of the embedded database (default .wcrm)')
    .option('--database-url <url>', 'PostgreSQL 15 or newer instead of the embedded database')
    .option('--processes <number>', 'processes that share the port, or auto: one for each core (default 1)')
    .option('--no-demo', 'do not create a demo workspace in an empty database')
    .option('--no-migrate', 'refuse a database with an older schema instead of migrating it')
    .addOption(new Option('--json', 'print one JSON line on stdout when ready; logs go to stderr'))
    .addHelpText(
      'after',
      `\nEnvironment variables (flags override them):\n${settings
        .filter((s) => s.env)
        .map((s) => helpItem(s.env!, s.description ?? ''))
        .join('\n')}`,
    )

/** `wcrm serve`: returns 0 after SIGTERM or SIGINT, once the requests in flight are answered. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const read = async () => {
    const flags = await parseFlags<ServeFlags>(createCommand(), argv, io)
    const config = readConfig(
      {
        host: flags.host,
        port: flags.port,
        dataDir: flags.data,
        databaseUrl: flags.databaseUrl,
        processes: flags.processes,
        demo: flags.demo,
        migrate: flags.migrate ? undefined : 'false',
      },
      io.env,
    )
    requireSharedDatabase(config)
    return { config: requireProvider(config), json: flags.json === true }
  }
  const siblings = findSiblings()
  const code = await runService('wcrm serve', io, read, (config, json) =>
    siblings || countProcesses(config.processes) === 1
      ? serve(config, { json, siblings }, io)
      : superviseProcesses(
          {
            count: countProcesses(config.processes),
            host: config.host,
            port: config.port,
            graceMs: config.shutdownGrace * 1000,
            metricsListen: config.metricsListen,
          },
          createLogger(config.logLevel),
        ),
  )
  // The channel to the first process would keep this one alive.
  if (siblings) process.exit(code)
  return code
}

/** Throws when several processes were asked for, and only one can have the database. */
const requireSharedDatabase = ({ processes, databaseUrl }: Config): void => {
  if (databaseUrl === undefined && countProcesses(processes) > 1)
    throw new Error(
      'several processes need PostgreSQL: give --database-url (WCRM_DATABASE_URL), or leave out --processes ' +
        '(WCRM_PROCESSES). One process owns the embedded database.',
    )
}

type ServeOptions = { json: boolean; siblings: Siblings | undefined }

const serve = async (config: Config, { json, siblings }: ServeOptions, io: Io): Promise<number> => {
  const { log, metrics, stop: stopTelemetry } = await openTelemetry(io.env, config.logLevel)
  for (const name of listIgnoredVariables(io.env))
    log.warn({ name }, 'A variable that is not a setting is ignored')
  const storage = await openMigrated(config, (message) => log.warn(message), siblings?.count)
  try {
    const secrets = createSecretRing(loadSecrets(config))
    await requireKnownSecret(storage, secrets)
    const media = await openServerStore(mediaLocationsOf(config), { log, metrics })
    // The port is known only after listening, and all URLs contain it: so the routes are created afterwards.
    const { server, url } = await listenOn(config, SERVER_PORT, siblings)
    const publicUrl = (config.publicUrl ?? url).replace(/\/+$/, '')
    const listener = createListener(server, {
      publicUrl,
      log,
      maxConnections: Math.ceil(config.maxConnections / (siblings?.count ?? 1)),
      trustedProxies: parseProxyList(config.trustProxy),
    })
    const service = composeService({
      storage,
      secrets,
      log,
      metrics,
      config: { ...config, publicUrl },
      provider: config,
      localUrl: url,
      media,
      siblings,
    })
    const { app } = service
    siblings?.onGather(() => readProcessMetrics(app.metrics))
    const provider = chooseProvider(config, storage.embedded)
    if (provider === 'none') log.warn(NO_PROVIDER)
    else if (provider === 'sandbox' && !storage.embedded)
      log.warn('WCRM_PROVIDER is sandbox: messages go to the built-in sandbox and reach no customer')
    const http = createHttpApp(app, {
      ...service.mounts,
      ...createDiscovery(app),
      '/mcp': createMcpEndpoint(app),
    })
    // Before the first request: what has expired works for none.
    await compareClocks(app)
    listener.serve(nodeHandler((request) => http.fetch(request), { publicUrl, log }))
    const demo = config.demo
      ? await createDemo(storage.db, app.now(), {
          publicUrl: app.config.publicUrl,
          webhookSealer: app.webhookSealer,
        })
      : undefined
    const stored = demo
      ? await storeCredentials({ url, key: demo.apiKey, env: io.env, by: 'serve' })
      : undefined
    const metricsPort = await serveMetricsPort(config, app)
    const graceMs = config.shutdownGrace * 1000
    const stopSignal = waitForStopSignal(graceMs)
    const stopJobs = await startBackgroundJobs(service, siblings?.announce())
    const print = (): void =>
      printReady(io, url, demo, { json, provider, metricsUrl: metricsPort?.url, stored })
    if (!siblings) print()
    else if (siblings.isFirst) void siblings.allReady.then(print)
    log.info({ url, database: storage.embedded ? 'embedded' : 'postgresql' }, 'ready')
    const signal = await stopSignal
    log.info({ signal }, 'stopping')
    app.isStopping = true
    await waitForGrace(signal, graceMs)
    const jobsStopped = stopJobs()
    // Requests in flight may still call the sandbox of this server.
    const isStillServed = service.sandbox ? (path: string) => path.startsWith(SANDBOX_PATH) : undefined
    await Promise.all([listener.drain(isStillServed), metricsPort?.listener.drain()])
    await jobsStopped
    // Those of requests in flight, which were counted after the job that writes them had stopped.
    await waitUntilStopped(app, flushContactReads(app))
    return 0
  } finally {
    await storage.close()
    await stopTelemetry()
    log.flush()
  }
}

type DemoWorkspace = { workspaceId: string; apiKey: string; testKey: string }

const NO_PROVIDER =
  'There is no messaging provider: sends are refused with 503. Set WCRM_PROVIDER_URL and its secrets, or ' +
  'WCRM_PROVIDER=sandbox to try it out without reaching anybody.'

const printReady = (
  io: Io,
  url: string,
  demo: DemoWorkspace | undefined,
  {
    json,
    provider,
    metricsUrl,
    stored,
  }: {
    json: boolean
    provider: ReturnType<typeof chooseProvider>
    metricsUrl: string | undefined
    stored: StoreResult | undefined
  },
): void => {
  if (json) {
    const keys = demo ? { workspace_id: demo.workspaceId, api_key: demo.apiKey, test_key: demo.testKey } : {}
    const metrics = metricsUrl === undefined ? {} : { metrics_url: metricsUrl }
    io.stdout.write(`${JSON.stringify({ url, mcp_url: `${url}/mcp`, ...metrics, ...keys })}\n`)
    return
  }
  io.stdout.write(`wcrm is ready at ${url}   (documentation: ${url}/docs   MCP: ${url}/mcp)\n`)
  if (metricsUrl !== undefined) io.stdout.write(`Metrics: ${metricsUrl}\n`)
  if (!demo) return
  const wcrm = stored?.isDefault === false ? `npx wcrm -p ${stored.profile}` : 'npx wcrm'
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
      stored?.isDefault === false
        ? `The live key is the profile ${stored.profile}; your default is unchanged. Next:`
        : 'The command line uses the live key. Next:',
      `  ${wcrm} whoami`,
      `  ${wcrm} contacts search --query ada`,
      `  ${wcrm} contacts upsert --phone "+1 555 010 0042" --name "Ada Lovelace" --dry-run`,
      ...(provider === 'sandbox'
        ? [`  ${wcrm} sandbox say --from "+1 555 010 0777" "Hello"   (as a customer)`]
        : []),
      `  ${wcrm} inbox   (answer customers; on a terminal)`,
      '',
    ].join('\n'),
  )
}
