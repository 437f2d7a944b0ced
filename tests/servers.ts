import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { currentVersion, scopes } from '../catalog/index.ts'
import { createDiscovery } from '../mcp/discovery.ts'
import { defaultPolicy, type KeyPolicy } from '../catalog/policy.ts'
import { createMcpEndpoint, type McpOptions } from '../mcp/endpoint.ts'
import type { App } from '../server/app.ts'
import type { AppOptions } from '../server/create-app.ts'
import { composeService } from '../server/compose.ts'
import { stopStreams } from '../server/http/event-stream.ts'
import { createHttpApp } from '../server/http/app.ts'
import { createListener } from '../server/http/listener.ts'
import { nodeHandler } from '../server/http/node.ts'
import { hashApiKey, createApiKey } from '../server/api-keys.ts'
import { mediaLocationsOf } from '../server/domains/media/location.ts'
import { openServerStore } from '../server/domains/media/open-store.ts'
import type { JobRunner } from '../server/work/runner.ts'
import { createMetrics } from '../server/metrics.ts'
import { createSecretRing } from '../server/secret.ts'
import type { ProviderConfig } from '../server/provider/settings.ts'
import type { Sandbox } from '../packages/sandbox/emulator/sandbox.ts'
import { createKey, type KeyFields } from '../storage/access/admin-keys.ts'
import {
  createChannel,
  createStaff,
  createWorkspace,
  type StaffFields,
  type WorkspaceFields,
} from '../storage/workspace/admin.ts'
import type { Db } from '../storage/database.ts'
import { type Location, openStorage, type Storage } from '../storage/open.ts'
import { atEnd } from './at-end.ts'
import { createDatabase, isPooled } from './databases.ts'

/** A server in this process, with the internals that tests inspect. */
export type TestServer = {
  /** `embedded` or `postgresql`. */
  database: string
  url: string
  app: App
  db: Db
  /**
   * Registers the numbers and templates of a workspace, or of all, with the sandbox: it does not know of
   * those that were written into the database directly.
   */
  sync: (workspaceId?: string) => Promise<void>
  /** The built-in messaging provider, which the server talks to over HTTP. */
  sandbox: Sandbox
  /** Waits until all webhooks of the sandbox are delivered and processed, and media are downloaded. */
  settle: () => Promise<void>
  close: () => Promise<void>
}
/** What a test sets; everything else is as in production, but for the rate limits. */
export type ServerOptions = {
  /** Instead of the server's own address. */
  publicUrl?: string
  oauth?: 'auto' | 'off'
  limitRead?: number
  limitWrite?: number
  limitWorkspaceRead?: number
  limitWorkspaceWrite?: number
  limitAuthFailures?: number
  limitChannel?: number
  phoneBudget?: number
  contactBudget?: number
  advancedFilters?: 'on' | 'off'
  countTimeBox?: number
  statementTimeout?: number
  webhookAllow?: string
  trustProxy?: string
  /** The secret and the previous ones. */
  secrets?: readonly string[]
  log?: AppOptions['log']
  metricsToken?: string
  metricsListen?: object
  resolve?: AppOptions['resolve']
  now?: () => string
  extra?: AppOptions['extra']
  mcp?: McpOptions
  provider?: ProviderConfig
  /** `WCRM_MEDIA`; a folder of its own when absent. */
  media?: string
  /** `WCRM_MEDIA_PREVIOUS`. */
  mediaPrevious?: string
  /** A server of its own, on the shared database: the tests stop its background jobs. */
  ownJobs?: true
  /** A server and a database of its own: the tests change what servers or workspaces share. */
  dedicated?: true
}

/** A rate limit that no test reaches. */
const NO_LIMIT = 1_000_000

/** A substitute for DNS: example names have a public address, and no other name exists. */
const resolveExamples = async (name: string): Promise<string[]> => {
  if (name === 'localhost') return ['127.0.0.1']
  if (/(^|\.)example(\.com)?$/.test(name)) return ['93.184.215.14']
  throw Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' })
}

/** Serves this storage on a free port, with every door of the product. */
export const serveStorage = async (
  storage: Storage,
  database: string,
  options: ServerOptions = {},
): Promise<TestServer> => {
  const server: Server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const {
    now,
    extra,
    mcp,
    provider = { provider: 'sandbox' },
    resolve = resolveExamples,
    media: mediaLocation,
    mediaPrevious,
    statementTimeout: _,
    ownJobs: __,
    dedicated: ___,
    secrets = ['a secret of at least sixteen'],
    log = pino({ level: process.env.WCRM_TEST_LOG ?? 'silent' }),
    ...limits
  } = options
  const mediaDir = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
  const metrics = createMetrics()
  const locations = mediaLocationsOf({ media: mediaLocation ?? mediaDir, mediaPrevious, dataDir: '' })
  const media = await openServerStore(locations, { log, metrics })
  const service = composeService({
    storage,
    secrets: createSecretRing(secrets),
    log,
    metrics,
    config: {
      publicUrl: url,
      limitRead: NO_LIMIT,
      limitWrite: NO_LIMIT,
      limitAuthFailures: NO_LIMIT,
      limitChannel: NO_LIMIT,
      webhookAllow: '127.0.0.0/8',
      ...limits,
    },
    resolve,
    ...(now ? { now } : {}),
    ...(extra ? { extra } : {}),
    provider,
    localUrl: url,
    media,
  })
  const { app, sandboxControl: driver, mounts } = service
  const sandbox = service.sandbox!
  const http = createHttpApp(app, { ...mounts, ...createDiscovery(app), '/mcp': createMcpEndpoint(app, mcp) })
  const listener = createListener(server, { publicUrl: url, log: app.log })
  // Clients reuse connections across tests, and must not use one that the server is closing.
  server.keepAliveTimeout = 0
  listener.serve(nodeHandler((request) => http.fetch(request), { publicUrl: url, log: app.log }))
  return {
    database,
    url,
    app,
    db: storage.db,
    sync: async (workspaceId) => await driver?.sync(workspaceId),
    sandbox,
    settle: async () => {
      let applied: number
      do {
        await sandbox.drain()
        applied = await app.jobs.job('provider-updates').runOnce()
        // This includes what a run in progress applied, which this run does not report.
        if (app.media) await app.jobs.job('media-downloads').runOnce()
      } while (applied > 0 || (await sandbox.pump()) > 0)
    },
    close: async () => {
      await stopStreams(app)
      await app.jobs.stop()
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      rmSync(mediaDir, { recursive: true, force: true })
    },
  }
}

/** Starts a server on a database of its own. */
export const startServer = async (
  database: string,
  options: ServerOptions = {},
): Promise<TestServer & { location: Location }> => {
  const { location, remove } = await createDatabase(database)
  const { statementTimeout } = options
  const storage = await openStorage(location, statementTimeout === undefined ? {} : { statementTimeout })
  const server = await serveStorage(storage, database, options)
  return {
    ...server,
    location,
    close: async () => {
      await server.close()
      await storage.close()
      await remove()
    },
  }
}

type OpenDatabase = { storage: Storage; close: () => Promise<void> }

const openDatabase = async (database: string): Promise<OpenDatabase> => {
  const { location, remove } = await createDatabase(database)
  const storage = await openStorage(location)
  return {
    storage,
    close: async () => {
      await storage.close()
      await remove()
    },
  }
}

/** The databases that the tests of this process share, and the servers with default options on them, by `toShared`. */
const sharedDatabases = new Map<string, Promise<OpenDatabase>>()
const sharedServers = new Map<string, Promise<TestServer>>()

/** Whether a pooler is in between matters to PostgreSQL alone. */
const toShared = (database: string): string =>
  database === 'postgresql' && isPooled() ? `${database} through the pooler` : database

const shareDatabase = async (database: string): Promise<Storage> => {
  const shared = toShared(database)
  if (!sharedDatabases.has(shared)) {
    const opened = openDatabase(database)
    sharedDatabases.set(shared, opened)
    atEnd(async () => (await opened).close())
  }
  return (await sharedDatabases.get(shared)!).storage
}

/** Refuses to stop or start jobs of a server that other files use: they run when they are woken, and by `runOnce`. */
const keepJobs = (jobs: JobRunner): JobRunner => {
  const refuse = (): never => {
    throw new Error('Other files share this server and need its jobs: ask for one with { ownJobs: true }.')
  }
  return {
    ...jobs,
    job: (name) => ({ ...jobs.job(name), start: refuse, stop: refuse }),
    start: refuse,
    follow: refuse,
    stop: refuse,
  }
}

/**
 * The server with default options on this database. It is started once in a process, and all suites that
 * need nothing special share it, each test in a workspace of its own. `close` leaves it running.
 */
export const sharedServer = async (database: string): Promise<TestServer> => {
  const shared = toShared(database)
  if (!sharedServers.has(shared)) {
    const storage = shareDatabase(database)
    const started = storage.then((opened) => serveStorage(opened, database))
    sharedServers.set(shared, started)
    atEnd(async () => (await started).close())
  }
  const server = await sharedServers.get(shared)!
  return {
    ...server,
    app: { ...server.app, jobs: keepJobs(server.app.jobs) },
    close: async () => {},
  }
}

/**
 * Starts a server for tests that need these options. It shares the database, which takes seconds to start,
 * unless an option is about the database or the tests change what its servers share.
 */
export const startWithOptions = async (database: string, options: ServerOptions): Promise<TestServer> =>
  options.dedicated || options.statementTimeout !== undefined
    ? await startServer(database, options)
    : await serveStorage(await shareDatabase(database), database, options)

/** Starts several servers on one PostgreSQL database of their own. */
export const startSharedServers = async (
  count: number,
  options: ServerOptions = {},
): Promise<{ servers: TestServer[]; close: () => Promise<void> }> => {
  const { location, remove } = await createDatabase('postgresql')
  const storages = await Promise.all(Array.from({ length: count }, () => openStorage(location)))
  const servers = await Promise.all(storages.map((s) => serveStorage(s, 'postgresql', options)))
  return {
    servers,
    close: async () => {
      for (const server of servers) await server.close()
      for (const s of storages) await s.close()
      await remove()
    },
  }
}

export type TestKey = { key: string; keyId: string; staffId: string }
export type TestWorkspace = {
  id: string
  owner: TestKey
  /** Another staff member of this workspace, with a key. */
  staff: (fields: Partial<StaffFields>, key?: KeyOptions) => Promise<TestKey>
  /** Another key of a staff member. */
  key: (staffId: string, options?: KeyOptions) => Promise<TestKey>
}
type KeyOptions = Partial<
  Pick<
    KeyFields,
    'scopes' | 'test' | 'agent' | 'phones' | 'contacts_per_day' | 'expires_at' | 'name' | 'policy'
  >
>

/** Creates a workspace for a test, with an owner whose key has all scopes. */
export const makeWorkspace = async (
  server: Pick<TestServer, 'db' | 'app'> & Partial<Pick<TestServer, 'sync'>>,
  fields: Partial<WorkspaceFields> = {},
): Promise<TestWorkspace> => {
  const { db, app } = server
  const now = app.now()
  const { id } = await createWorkspace(db, { name: 'Test', ...fields }, now)
  const key = async (staffId: string, options: KeyOptions = {}): Promise<TestKey> => {
    const text = createApiKey(options.test ?? false)
    const row = await createKey(
      db,
      id,
      hashApiKey(text),
      { staff_id: staffId, scopes: [...scopes], api_version: currentVersion, ...options },
      now,
    )
    return { key: text, keyId: row.id, staffId }
  }
  const staff = async (more: Partial<StaffFields>, options?: KeyOptions) =>
    key((await createStaff(db, id, { name: 'Staff', role: 'agent', ...more }, [], now)).id, options)
  await createChannel(
    db,
    id,
    {
      type: 'chatapp',
      name: 'Main line',
      identifier: '15550100001',
      status: 'connected',
      is_default: true,
      account_id: `77${id}`,
      account_name: 'Test account',
      provider_phone_number_id: `88${id}`,
    },
    now,
  )
  await server.sync?.(id)
  return { id, key, staff, owner: await staff({ name: 'Owner', role: 'owner' }) }
}

/** The policy of an agent that needs no approval. */
export const autonomous: KeyPolicy = {
  ...defaultPolicy,
  verbs: {
    send: 'allow',
    submit: 'allow',
    delete: 'allow',
    erase: 'allow',
    archive: 'allow',
    rotate: 'allow',
  },
  operations: { webhooks_create_endpoint: 'allow', webhooks_update_endpoint: 'allow' },
}
