import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import postgres from 'postgres'
import { currentVersion, type Scope, scopes } from '../catalog/index.ts'
import { mcpHandler } from '../mcp/handler.ts'
import type { App, AppOptions } from '../server/app.ts'
import { compose } from '../server/compose.ts'
import { stopStreams } from '../server/events/stream.ts'
import { processUpdates, stopUpdates } from '../server/inbound/process.ts'
import { createHttp } from '../server/http/app.ts'
import { HARD_MAX_BYTES } from '../server/http/body.ts'
import { nodeHandler } from '../server/http/node.ts'
import { hashApiKey, newApiKey } from '../server/keys.ts'
import { fetchMedia, stopMedia } from '../server/media/fetch.ts'
import { createMetrics } from '../server/metrics.ts'
import type { ProviderConfig } from '../server/provider/settings.ts'
import type { Sandbox } from '../server/sandbox/emulator/sandbox.ts'
import {
  createChannel,
  createKey,
  createStaff,
  createWorkspace,
  type StaffFields,
  type WorkspaceFields,
} from '../storage/admin.ts'
import type { Db } from '../storage/database.ts'
import { type Location, migrate, type OpenOptions, openStorage, type Storage } from '../storage/open.ts'

export type TestServer = {
  database: string
  url: string
  app: App
  db: Db
  /**
   * Tells the sandbox of the numbers and templates of a workspace, or of all: those written into the
   * database directly are unknown to it.
   */
  sync: (workspaceId?: string) => Promise<void>
  /** Plays the messaging provider, over HTTP. */
  sandbox: Sandbox
  /** Waits until what the sandbox has to tell is told and taken in, and files are fetched. */
  settle: () => Promise<void>
  close: () => Promise<void>
}
export type ServerOptions = {
  limitRead?: number
  limitWrite?: number
  limitWorkspaceRead?: number
  limitWorkspaceWrite?: number
  advancedFilters?: 'on' | 'off'
  countTimeBox?: number
  statementTimeout?: number
  webhookAllow?: string
  resolve?: AppOptions['resolve']
  now?: () => string
  extra?: AppOptions['extra']
  provider?: ProviderConfig
}

const plenty = 1_000_000

type Opened = { storage: Storage; remove: () => void | Promise<void>; location: Location }

const embedded = async (open: OpenOptions, template?: string): Promise<Opened> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-test-'))
  if (template) cpSync(template, dataDir, { recursive: true })
  const storage = await openStorage({ dataDir }, open)
  return { storage, location: { dataDir }, remove: () => rmSync(dataDir, { recursive: true, force: true }) }
}

const onPostgres = async (url: string, open: OpenOptions = {}): Promise<Opened> => {
  const name = `wcrm_${randomUUID().replaceAll('-', '')}`
  const admin = postgres(url, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create database ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  const location = { databaseUrl: own.href }
  const storage = await openStorage(location, open)
  return {
    storage,
    location,
    remove: async () => {
      await admin.unsafe(`drop database ${name} with (force)`)
      await admin.end()
    },
  }
}

/** Tests ask no name server: example names are public, and there are no others. */
const resolveExamples = async (name: string): Promise<string[]> => {
  if (name === 'localhost') return ['127.0.0.1']
  if (/(^|\.)example(\.com)?$/.test(name)) return ['93.184.215.14']
  throw Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' })
}

/** Serves this storage on a free port, with the doors of the product. */
export const serveStorage = async (
  storage: Storage,
  database: string,
  options: ServerOptions = {},
): Promise<TestServer> => {
  let handle: ReturnType<typeof nodeHandler> | undefined
  const server: Server = createServer((request, response) => {
    void handle!(request as never, response as never)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { now, extra, provider = {}, resolve = resolveExamples, statementTimeout: _, ...limits } = options
  const mediaDir = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
  const service = compose({
    storage,
    secret: 'a secret of at least sixteen',
    log: pino({ level: process.env.WCRM_TEST_LOG ?? 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: url, limitRead: plenty, limitWrite: plenty, webhookAllow: '127.0.0.0/8', ...limits },
    resolve,
    ...(now ? { now } : {}),
    ...(extra ? { extra } : {}),
    provider,
    localUrl: url,
    mediaDir,
  })
  const { app, driver, mounts } = service
  const sandbox = service.sandbox!
  const http = createHttp(app, { ...mounts, '/mcp': mcpHandler(app) })
  handle = nodeHandler((request) => http.fetch(request), { maxRequestBodySize: HARD_MAX_BYTES })
  return {
    database,
    url,
    app,
    db: storage.db,
    sync: driver.sync,
    sandbox,
    settle: async () => {
      do {
        await sandbox.settle()
        if (app.media) await fetchMedia(app, app.media)
      } while ((await processUpdates(app)) > 0 || (await sandbox.pump()) > 0)
    },
    close: async () => {
      await stopStreams(app)
      await stopUpdates(app)
      await stopMedia(app)
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      rmSync(mediaDir, { recursive: true, force: true })
    },
  }
}

export const databases: readonly string[] = [
  'embedded',
  ...(process.env.WCRM_TEST_POSTGRES_URL ? ['postgresql'] : []),
]

/** Runs `work` on a database of its own that has no schema yet. */
export const onEmptyDatabase = async (database: string, work: (db: Db) => Promise<void>): Promise<void> => {
  const { storage, remove } =
    database === 'embedded' ? await embedded({}) : await onPostgres(process.env.WCRM_TEST_POSTGRES_URL!)
  try {
    await work(storage.db)
  } finally {
    await storage.close()
    await remove()
  }
}

/** A server on a database of its own. */
export const startServer = async (
  database: string,
  options: ServerOptions = {},
): Promise<TestServer & { location: Location }> => {
  const open: OpenOptions =
    options.statementTimeout === undefined ? {} : { statementTimeout: options.statementTimeout }
  const { storage, remove, location } =
    database === 'embedded'
      ? await embedded(open, process.env.WCRM_TEST_TEMPLATE)
      : await onPostgres(process.env.WCRM_TEST_POSTGRES_URL!, open)
  await migrate(storage.db)
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

/** A PostgreSQL database of its own, for tests in which several servers share one. */
export const startSharedServers = async (
  count: number,
  options: ServerOptions = {},
): Promise<{ servers: TestServer[]; close: () => Promise<void> }> => {
  const { storage, remove, location } = await onPostgres(process.env.WCRM_TEST_POSTGRES_URL!)
  await migrate(storage.db)
  const storages = [
    storage,
    ...(await Promise.all(Array.from({ length: count - 1 }, () => openStorage(location)))),
  ]
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
type KeyOptions = { scopes?: Scope[]; test?: boolean; expires_at?: string }

/** A workspace of its own for a test, with an owner whose key holds all scopes. */
export const makeWorkspace = async (
  server: Pick<TestServer, 'db' | 'app'> & Partial<Pick<TestServer, 'sync'>>,
  fields: Partial<WorkspaceFields> = {},
): Promise<TestWorkspace> => {
  const { db, app } = server
  const now = app.now()
  const { id } = await createWorkspace(db, { name: 'Test', ...fields }, now)
  const key = async (staffId: string, options: KeyOptions = {}): Promise<TestKey> => {
    const text = newApiKey(options.test ?? false)
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
