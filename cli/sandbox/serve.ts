import { hkdfSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { refreshClock, sandboxClock } from '../../server/clock.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { HARD_MAX_BYTES } from '../../server/http/body.ts'
import { nodeHandler } from '../../server/http/node.ts'
import { createSandbox, type Sandbox } from '../../server/sandbox/emulator/sandbox.ts'
import { openMigrated, secretOf } from '../../server/start.ts'
import type { Storage } from '../../storage/open.ts'
import { usage } from '../fault.ts'
import type { Io } from '../io.ts'
import { untilSignal } from '../service.ts'
import type { Flags } from './verbs.ts'

type Secrets = { token: string; appSecret: string; verifyToken: string }

const text = (flags: Flags, name: string): string | undefined =>
  typeof flags[name] === 'string' ? flags[name] : undefined

const configOf = (flags: Flags, io: Io): Config => {
  const callback = text(flags, 'webhookUrl')
  if (callback !== undefined && !/^https?:$/.test(URL.parse(callback)?.protocol ?? ''))
    throw usage(
      `--webhook-url takes an http or https URL, not "${callback}".`,
      '--webhook-url',
      'For example http://127.0.0.1:8787/provider/webhook.',
    )
  try {
    return readConfig(
      {
        host: text(flags, 'host'),
        port: text(flags, 'port') ?? '8788',
        dataDir: text(flags, 'data') ?? '.wcrm-sandbox',
      },
      { WCRM_LOG_LEVEL: io.env['WCRM_LOG_LEVEL'] },
    )
  } catch (error) {
    throw usage((error as Error).message)
  }
}

/** What was given, else made from the secret of the data folder, so that it is the same at the next start. */
const secretsOf = (flags: Flags, io: Io, config: Config): Secrets => {
  const made = (purpose: string): string =>
    Buffer.from(hkdfSync('sha256', secretOf(config), 'wcrm', `sandbox ${purpose}`, 24)).toString('base64url')
  return {
    token: text(flags, 'token') ?? (io.env['WCRM_PROVIDER_TOKEN'] || made('token')),
    appSecret: text(flags, 'appSecret') ?? (io.env['WCRM_PROVIDER_APP_SECRET'] || made('app secret')),
    verifyToken: text(flags, 'verifyToken') ?? (io.env['WCRM_PROVIDER_VERIFY_TOKEN'] || made('verify token')),
  }
}

const listening = async (server: Server, { host, port }: Config): Promise<string> => {
  await new Promise<void>((ready, failed) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      failed(
        error.code === 'EADDRINUSE' ? usage(`Port ${port} is in use; use another --port.`, '--port') : error,
      ),
    )
    server.listen(port, host, ready)
  })
  return `http://${host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host}:${(server.address() as AddressInfo).port}`
}

const announce = (io: Io, url: string, { token, appSecret, verifyToken }: Secrets, json: boolean): void => {
  const said = { url, token, app_secret: appSecret, verify_token: verifyToken }
  io.stdout.write(
    json
      ? `${JSON.stringify(said)}\n`
      : [
          `The sandbox is ready at ${url}`,
          '',
          'For a server:',
          `  WCRM_PROVIDER_URL=${url}`,
          `  WCRM_PROVIDER_TOKEN=${token}`,
          `  WCRM_PROVIDER_APP_SECRET=${appSecret}`,
          `  WCRM_PROVIDER_VERIFY_TOKEN=${verifyToken}`,
          '',
        ].join('\n'),
  )
}

/** Runs the sandbox alone until SIGTERM or SIGINT. */
export const serveSandbox = async (io: Io, flags: Flags): Promise<void> => {
  const config = configOf(flags, io)
  const secrets = secretsOf(flags, io, config)
  const storage = await openMigrated(config)
  try {
    await run(io, storage, config, secrets, flags)
  } finally {
    await storage.close()
  }
}

const run = async (
  io: Io,
  { db }: Storage,
  config: Config,
  secrets: Secrets,
  flags: Flags,
): Promise<void> => {
  const clock = { offsetMs: 0 }
  await refreshClock({ db, clock })
  const sandbox: Sandbox = createSandbox({
    db,
    ...secrets,
    clock: sandboxClock({ db, clock }),
    now: () => new Date(Date.now() + clock.offsetMs).toISOString(),
    callbackUrl: () => text(flags, 'webhookUrl'),
    log: pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false })),
  })
  const handle = nodeHandler((request) => sandbox.fetch(request, new URL(request.url).pathname), {
    maxRequestBodySize: HARD_MAX_BYTES,
  })
  const server = createServer((request, response) => {
    void handle(request, response)
  })
  const url = await listening(server, config)
  const stop = sandbox.start()
  const stopped = untilSignal()
  announce(io, url, secrets, flags['json'] === true)
  await stopped
  await new Promise<void>((closed) => {
    server.close(() => closed())
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), 5_000).unref()
  })
  await stop()
}
