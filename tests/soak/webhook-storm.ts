import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { createEventId } from '../../server/ids.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { createKey, createStaff, createWorkspace } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { insertEvents } from '../../storage/events.ts'
import { migrate } from '../../storage/open.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { type TestDatabase, withStorage } from '../databases.ts'

export type Storm = {
  events: number
  endpoints: number
  /** Events that are written a second, as far as the database keeps up. */
  perSecond: number
  /**
   * While events are written, one of the two servers is killed every so many milliseconds, and started
   * again.
   */
  killEveryMs: number
  /** Of a thousand answers: 500s, closed connections, and no answer at all. */
  trouble: { errors: number; drops: number; silences: number }
  longestMs: number
  say?: (text: string) => void
}
/** `missing`: events that some endpoint never took. `duplicates`: taken by one endpoint more than once. */
export type Aftermath = {
  kills: number
  attempts: number
  troubled: number
  missing: number
  duplicates: number
  unstable: number
  unsigned: number
  seconds: number
}

/** What one endpoint took: how often, by event. */
type Taken = Map<string, number>

const receivers = async (storm: Storm, secrets: Map<string, string>, count: Aftermath) => {
  const taken = new Map<string, Taken>()
  const eventOf = new Map<string, string>()
  const bodyOf = new Map<string, string>()
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const [path, headers] = [request.url!, request.headers as Record<string, string>]
    const [event, delivery] = [headers['webhook-id']!, headers['wc-delivery-id']!]
    count.attempts++
    if ((eventOf.get(delivery) ?? event) !== event || (bodyOf.get(event) ?? body) !== body) count.unstable++
    eventOf.set(delivery, event)
    bodyOf.set(event, body)
    try {
      new Webhook(secrets.get(path)!).verify(body, headers)
    } catch {
      count.unsigned++
    }
    const dice = Math.random() * 1000
    const { errors, drops, silences } = storm.trouble
    if (dice < errors + drops + silences) {
      count.troubled++
      if (dice < errors) response.writeHead(500).end('not now')
      else if (dice < errors + drops) response.destroy()
      return
    }
    const one = taken.get(path) ?? new Map<string, number>()
    taken.set(path, one)
    one.set(event, (one.get(event) ?? 0) + 1)
    response.writeHead(200).end('taken')
  }
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

const prepare = async (db: Db) => {
  await migrate(db)
  const now = new Date().toISOString()
  const { id: workspaceId } = await createWorkspace(db, { name: 'Storm' }, now)
  const staff = await createStaff(db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
  const key = createApiKey(false)
  await createKey(
    db,
    workspaceId,
    hashApiKey(key),
    { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
    now,
  )
  return { workspaceId, key }
}

const makeEndpoint = async (server: ServerProcess, key: string, url: string): Promise<string> => {
  const response = await fetch(`${server.url}/v1/webhooks/endpoints`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ url, event_types: ['*'] }),
  })
  if (response.status !== 201) throw new Error(await response.text())
  return ((await response.json()) as { signing_secret: string }).signing_secret
}

/** Writes events at their pace, ten to a transaction. */
const writeAll = async (
  db: Db,
  workspaceId: string,
  { events, perSecond }: Storm,
  stopped: () => boolean,
): Promise<string[]> => {
  const ids: string[] = []
  const begun = performance.now()
  while (ids.length < events && !stopped()) {
    const rows = Array.from({ length: Math.min(10, events - ids.length) }, (_, n) => ({
      id: createEventId(),
      type: 'group.created/1',
      occurred_at: new Date().toISOString(),
      data: { group: { id: String(ids.length + n), name: `Group ${ids.length + n}`, emoji: null } },
    }))
    await insertEvents(db, workspaceId, rows)
    ids.push(...rows.map(({ id }) => id))
    const early = (ids.length / perSecond) * 1000 - (performance.now() - begun)
    if (early > 0) await pause(early)
  }
  return ids
}

/**
 * Two servers share a PostgreSQL database and are killed in turn while events go to many endpoints, some of
 * whose answers are bad.
 */
export const weather = (place: TestDatabase, storm: Storm): Promise<Aftermath> =>
  withStorage(place.location, async ({ db }) => {
    const { workspaceId, key } = await prepare(db)
    const count: Aftermath = {
      kills: 0,
      attempts: 0,
      troubled: 0,
      missing: 0,
      duplicates: 0,
      unstable: 0,
      unsigned: 0,
      seconds: 0,
    }
    const secrets = new Map<string, string>()
    const customers = await receivers(storm, secrets, count)
    const start = () => startProcess(place.flags, { WCRM_WEBHOOK_ALLOW: '127.0.0.0/8' })
    const servers = [await start(), await start()]
    let over = false
    const say = storm.say ?? (() => {})
    try {
      for (let n = 0; n < storm.endpoints; n++)
        secrets.set(`/${n}`, await makeEndpoint(servers[0]!, key, `${customers.url}/${n}`))
      const begun = performance.now()
      const writing = writeAll(db, workspaceId, storm, () => over)
      let written: string[] | undefined
      void writing.then(
        (ids) => {
          written = ids
        },
        () => {},
      )
      const deadline = begun + storm.longestMs
      // A busy machine starts servers slowly.
      for (let turn = 0; !written || count.kills < 3; turn++) {
        await pause(storm.killEveryMs)
        await servers[turn % 2]!.kill('SIGKILL')
        count.kills++
        servers[turn % 2] = await start()
        await hurry(db, workspaceId)
        say(
          `${((performance.now() - begun) / 1000).toFixed(0)} s: ${count.attempts} attempts, ${count.kills} kills`,
        )
        if (performance.now() > deadline) break
      }
      const ids = await writing
      // Leases of the dead run out by themselves; only the schedule's times are brought about.
      for (let open = Infinity; open > 0 && performance.now() < deadline; await pause(250)) {
        await hurry(db, workspaceId)
        open = Number(
          (
            await sql<{
              n: string
            }>`select count(*) as n from webhook_deliveries where workspace_id = ${workspaceId} and status in ('pending', 'failed')`.execute(
              db,
            )
          ).rows[0]!.n,
        )
        say(`${((performance.now() - begun) / 1000).toFixed(0)} s: ${count.attempts} attempts, ${open} open`)
      }
      count.seconds = (performance.now() - begun) / 1000
      for (const path of secrets.keys()) {
        const taken = customers.taken.get(path)
        for (const id of ids) if (!taken?.has(id)) count.missing++
        for (const times of taken?.values() ?? []) count.duplicates += times - 1
      }
      return count
    } finally {
      over = true
      await Promise.all(servers.map((server) => server.kill('SIGKILL')))
      await customers.close()
    }
  })

/** Brings the time of what failed about, and lets no endpoint be paused for long. */
const hurry = async (db: Db, workspaceId: string): Promise<void> => {
  await sql`
    update webhook_deliveries set next_attempt_at = now() where (workspace_id, id) in (
      select workspace_id, id from webhook_deliveries where workspace_id = ${workspaceId} and status = 'failed' and next_attempt_at > now() for update skip locked)`.execute(
    db,
  )
  await sql`update webhook_endpoints set next_probe_at = now() where workspace_id = ${workspaceId} and status = 'paused' and next_probe_at > now() + interval '1 second'`.execute(
    db,
  )
}
