import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { createEventId } from '../../server/ids.ts'
import type { Db } from '../../storage/database.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { createOwner } from '../http/owner-key.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { type TestDatabase, withStorage } from '../databases.ts'

export type StormOptions = {
  events: number
  endpoints: number
  /** Events to write per second, as far as the database keeps up. */
  perSecond: number
  /** While events are written, one of the two servers is killed and restarted at this interval. */
  killEveryMs: number
  /** Per thousand requests: 500s, closed connections, and requests without an answer. */
  failures: { errors: number; drops: number; silences: number }
  timeoutMs: number
  log?: (text: string) => void
}
/**
 * - `failedAttempts`: requests that the receivers failed on purpose.
 * - `missing`: events that an endpoint never accepted, counted per endpoint.
 * - `duplicates`: events that an endpoint accepted again.
 * - `unstable`: requests whose event id or body differs from an earlier one.
 * - `unsigned`: requests with a wrong signature.
 */
export type StormResult = {
  kills: number
  attempts: number
  failedAttempts: number
  missing: number
  duplicates: number
  unstable: number
  unsigned: number
  seconds: number
}

/** How often one endpoint accepted each event. */
type AcceptedCounts = Map<string, number>

/** Starts the server of all endpoints, which fails some requests and counts into `count`. */
const startReceivers = async (storm: StormOptions, secrets: Map<string, string>, count: StormResult) => {
  const accepted = new Map<string, AcceptedCounts>()
  const eventOf = new Map<string, string>()
  const bodyOf = new Map<string, string>()
  const handleRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
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
    const roll = Math.random() * 1000
    const { errors, drops, silences } = storm.failures
    if (roll < errors + drops + silences) {
      count.failedAttempts++
      if (roll < errors) response.writeHead(500).end('not now')
      else if (roll < errors + drops) response.destroy()
      return
    }
    const one = accepted.get(path) ?? new Map<string, number>()
    accepted.set(path, one)
    one.set(event, (one.get(event) ?? 0) + 1)
    response.writeHead(200).end('accepted')
  }
  const server = createServer((request, response) => {
    handleRequest(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** Creates an endpoint and returns its secret. */
const createEndpoint = async (server: ServerProcess, key: string, url: string): Promise<string> => {
  const response = await fetch(`${server.url}/v1/webhooks/endpoints`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ url, event_types: ['*'] }),
  })
  if (response.status !== 201) throw new Error(await response.text())
  return ((await response.json()) as { signing_secret: string }).signing_secret
}

/** Inserts events at the configured rate, ten per transaction, and returns their ids. */
const writeEvents = async (
  db: Db,
  workspaceId: string,
  { events, perSecond }: StormOptions,
  stopped: () => boolean,
): Promise<string[]> => {
  const ids: string[] = []
  const startedAt = performance.now()
  while (ids.length < events && !stopped()) {
    const rows = Array.from({ length: Math.min(10, events - ids.length) }, (_, n) => ({
      id: createEventId(),
      type: 'group.created/1',
      occurred_at: new Date().toISOString(),
      data: { group: { id: String(ids.length + n), name: `Group ${ids.length + n}`, emoji: null } },
    }))
    await insertEvents(db, workspaceId, rows)
    ids.push(...rows.map(({ id }) => id))
    const waitMs = (ids.length / perSecond) * 1000 - (performance.now() - startedAt)
    if (waitMs > 0) await pause(waitMs)
  }
  return ids
}

/**
 * Runs two servers that share a PostgreSQL database and kills them in turn while events are delivered to many
 * endpoints, which fail some requests.
 */
export const runWebhookStorm = (place: TestDatabase, storm: StormOptions): Promise<StormResult> =>
  withStorage(place.location, async ({ db }) => {
    const { workspaceId, key } = await createOwner(db)
    const count: StormResult = {
      kills: 0,
      attempts: 0,
      failedAttempts: 0,
      missing: 0,
      duplicates: 0,
      unstable: 0,
      unsigned: 0,
      seconds: 0,
    }
    const secrets = new Map<string, string>()
    const customers = await startReceivers(storm, secrets, count)
    const start = () => startProcess(place.flags, { WCRM_WEBHOOK_ALLOW: '127.0.0.0/8' })
    const servers = [await start(), await start()]
    let finished = false
    const log = storm.log ?? (() => {})
    try {
      for (let n = 0; n < storm.endpoints; n++)
        secrets.set(`/${n}`, await createEndpoint(servers[0]!, key, `${customers.url}/${n}`))
      const startedAt = performance.now()
      const elapsed = () => ((performance.now() - startedAt) / 1000).toFixed(0)
      const writing = writeEvents(db, workspaceId, storm, () => finished)
      let written: string[] | undefined
      void writing.then(
        (ids) => {
          written = ids
        },
        () => {},
      )
      const deadline = startedAt + storm.timeoutMs
      // On a busy machine servers start slowly: at least three kills.
      for (let turn = 0; !written || count.kills < 3; turn++) {
        await pause(storm.killEveryMs)
        await servers[turn % 2]!.kill('SIGKILL')
        count.kills++
        servers[turn % 2] = await start()
        await makeDeliveriesDue(db, workspaceId)
        log(`${elapsed()} s: ${count.attempts} attempts, ${count.kills} kills`)
        if (performance.now() > deadline) break
      }
      const ids = await writing
      // Leases of killed servers expire by themselves; only scheduled retries are made due.
      for (let open = Infinity; open > 0 && performance.now() < deadline; await pause(250)) {
        await makeDeliveriesDue(db, workspaceId)
        open = Number(
          (
            await sql<{
              n: string
            }>`
              select count(*) as n from webhook_deliveries
              where workspace_id = ${workspaceId} and status in ('pending', 'failed')`.execute(db)
          ).rows[0]!.n,
        )
        log(`${elapsed()} s: ${count.attempts} attempts, ${open} open`)
      }
      count.seconds = (performance.now() - startedAt) / 1000
      for (const path of secrets.keys()) {
        const accepted = customers.accepted.get(path)
        for (const id of ids) if (!accepted?.has(id)) count.missing++
        for (const times of accepted?.values() ?? []) count.duplicates += times - 1
      }
      return count
    } finally {
      finished = true
      await Promise.all(servers.map((server) => server.kill('SIGKILL')))
      await customers.close()
    }
  })

/** Makes failed deliveries due, and the probes of paused endpoints. */
const makeDeliveriesDue = async (db: Db, workspaceId: string): Promise<void> => {
  await sql`
    update webhook_deliveries set next_attempt_at = now() where (workspace_id, id) in (
      select workspace_id, id from webhook_deliveries
      where workspace_id = ${workspaceId} and status = 'failed' and next_attempt_at > now()
      for update skip locked)`.execute(db)
  await sql`
    update webhook_endpoints set next_probe_at = now()
    where workspace_id = ${workspaceId} and status = 'paused'
      and next_probe_at > now() + interval '1 second'`.execute(db)
}
