import { hkdfSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Config, readConfig } from '../../server/config.ts'
import { createListener, serverOptions } from '../../server/http/listener.ts'
import { nodeHandler } from '../../server/http/node.ts'
import { createLogger } from '../../server/logger.ts'
import { loadSandboxClock } from '../../packages/sandbox/standalone-clock.ts'
import { SANDBOX_TOKEN_PREFIX } from '../../server/provider/settings.ts'
import { createSandbox, type Sandbox } from '../../packages/sandbox/emulator/sandbox.ts'
import { loadSecrets } from '../../server/secret.ts'
import { openMigrated } from '../../server/start.ts'
import type { Storage } from '../../storage/open.ts'
import { usageError } from '../error.ts'
import type { Io } from '../io.ts'
import { waitForStopSignal } from '../service.ts'
import { listenError, type PortSettings, toSentence } from '../start-errors.ts'
import { type SandboxFlags, stringFlag } from './verbs.ts'

type SandboxSecrets = { token: string; appSecret: string; verifyToken: string }

const readSandboxConfig = (flags: SandboxFlags, io: Io): Config => {
  const callback = stringFlag(flags, 'webhookUrl')
  if (callback !== undefined && !/^https?:$/.test(URL.parse(callback)?.protocol ?? ''))
    throw usageError(
      `--webhook-url must be an http or https URL, not "${callback}".`,
      '--webhook-url',
      'For example http://127.0.0.1:8787/provider/webhook.',
    )
  try {
    return readConfig(
      {
        host: stringFlag(flags, 'host'),
        port: stringFlag(flags, 'port') ?? '8788',
        dataDir: stringFlag(flags, 'data') ?? '.wcrm-sandbox',
      },
      { WCRM_LOG_LEVEL: io.env['WCRM_LOG_LEVEL'] },
    )
  } catch (error) {
    throw usageError((error as Error).message)
  }
}

/**
 * Returns the secrets of the flags or the environment. Others are derived from the secret in the data folder,
 * so that they are the same at the next start.
 */
const resolveSecrets = (flags: SandboxFlags, io: Io, config: Config): SandboxSecrets => {
  const derive = (purpose: string): string =>
    Buffer.from(hkdfSync('sha256', loadSecrets(config)[0]!, 'wcrm', `sandbox ${purpose}`, 24)).toString(
      'base64url',
    )
  return {
    token:
      stringFlag(flags, 'token') ??
      (io.env['WCRM_PROVIDER_TOKEN'] || `${SANDBOX_TOKEN_PREFIX}${derive('token')}`),
    appSecret: stringFlag(flags, 'appSecret') ?? (io.env['WCRM_PROVIDER_APP_SECRET'] || derive('app secret')),
    verifyToken:
      stringFlag(flags, 'verifyToken') ?? (io.env['WCRM_PROVIDER_VERIFY_TOKEN'] || derive('verify token')),
  }
}

const PORT: PortSettings = { host: '--host', port: '--port', whenTaken: 'use another --port' }

const listen = async (server: Server, { host, port }: Config): Promise<string> => {
  await new Promise<void>((ready, failed) => {
    server.once('error', (error) =>
      failed(usageError(toSentence(listenError(error, { host, port }, PORT).message))),
    )
    server.listen(port, host, ready)
  })
  const { port: actualPort } = server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host
  return `http://${name}:${actualPort}`
}

const printReady = (
  io: Io,
  url: string,
  { token, appSecret, verifyToken }: SandboxSecrets,
  json: boolean,
): void => {
  const settings = { url, token, app_secret: appSecret, verify_token: verifyToken }
  io.stdout.write(
    json
      ? `${JSON.stringify(settings)}\n`
      : [
          `The sandbox is ready at ${url}`,
          '',
          'Settings for a server:',
          '  WCRM_PROVIDER=sandbox',
          `  WCRM_PROVIDER_URL=${url}`,
          `  WCRM_PROVIDER_TOKEN=${token}`,
          `  WCRM_PROVIDER_APP_SECRET=${appSecret}`,
          `  WCRM_PROVIDER_VERIFY_TOKEN=${verifyToken}`,
          '',
        ].join('\n'),
  )
}

/** Runs a standalone sandbox until SIGTERM or SIGINT. */
export const serveSandbox = async (io: Io, flags: SandboxFlags): Promise<void> => {
  const config = readSandboxConfig(flags, io)
  const secrets = resolveSecrets(flags, io, config)
  const storage = await openMigrated(config, (message) => io.stderr.write(`${message}\n`))
  try {
    await runSandbox(io, storage, config, secrets, flags)
  } finally {
    await storage.close()
  }
}

const runSandbox = async (
  io: Io,
  { db }: Storage,
  config: Config,
  secrets: SandboxSecrets,
  flags: SandboxFlags,
): Promise<void> => {
  const clock = await loadSandboxClock(db)
  const log = createLogger(config.logLevel)
  const sandbox: Sandbox = createSandbox({
    db,
    ...secrets,
    clock,
    now: () => new Date(Date.now() + clock.offsetMs()).toISOString(),
    callbackUrl: () => stringFlag(flags, 'webhookUrl'),
    log,
  })
  const server = createServer(serverOptions)
  const url = await listen(server, config)
  const listener = createListener(server, { publicUrl: url, log })
  listener.serve(
    nodeHandler((request) => sandbox.fetch(request, new URL(request.url).pathname), { publicUrl: url, log }),
  )
  const stop = sandbox.start()
  const stopSignal = waitForStopSignal()
  printReady(io, url, secrets, flags['json'] === true)
  await stopSignal
  await listener.drain()
  await stop()
}
