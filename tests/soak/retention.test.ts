import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createUlid } from '../../server/ids.ts'
import { changeInBatches } from '../../server/work/change-in-batches.ts'
import { maintainPartitions } from '../../server/work/partitions.ts'
import { deleteAuditBefore, listAuditRows } from '../../storage/access/audit.ts'
import type { Db } from '../../storage/database.ts'
import { deleteEventsBefore } from '../../storage/events/deletions.ts'
import { scanEvents } from '../../storage/events/events.ts'
import { deleteExpiredRecords, insertResult } from '../../storage/access/idempotency.ts'
import { openStorage } from '../../storage/open.ts'
import { listPartitions } from '../../storage/migrations/partitions.ts'
import { createDatabase, databases } from '../databases.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** How fast the time of the rows and of the jobs passes: a day in a second and a half. */
const SPEED = DAY_MS / 1500
const SECONDS = 36
const RETENTION_DAYS = 3
const JOB_INTERVAL_MS = 500

/**
 * The growing tables: their rows, the time of the oldest in milliseconds (of records, when it expired), and the size
 * with all partitions and indexes in MB.
 */
const measure = async (db: Db) => {
  const { rows } = await sql<{ name: string; n: number; oldest: number; mb: number }>`
    select t.name, t.n::int as n, t.oldest::float8 as oldest, (
        select sum(pg_total_relation_size(r.oid)) / 1e6 from pg_class r
        where r.oid = t.name::regclass or r.oid in (
          select inhrelid from pg_inherits where inhparent = t.name::regclass)
      )::float8 as mb
    from (
      select 'events' as name, count(*) as n, extract(epoch from min(occurred_at)) * 1000 as oldest from events
      union all select 'audit_log', count(*), min(id >> 18) from audit_log
      union all select 'idempotency', count(*), extract(epoch from min(expires_at)) * 1000 from idempotency
    ) as t order by 1`.execute(db)
  return rows
}

/** One change as the service writes it: its event, its audit row and the record of its response. */
const write = (db: Db, ms: number): Promise<unknown> => {
  const now = new Date(ms).toISOString()
  const body = JSON.stringify({ id: '1', action: 'created', contact: { id: '1', name: 'Ada', tags: [] } })
  return insertResult(
    db,
    {
      workspaceId: '1',
      staffId: '1',
      key: randomUUID(),
      operation: 'crm_upsert_contact',
      fingerprint: Buffer.alloc(32),
      status: 200,
      body,
      view: { fields: true, channels: null },
      now,
      expiresAt: new Date(ms + DAY_MS).toISOString(),
      audit: {
        at: now,
        staff_id: '1',
        key_id: '1',
        door: 'rest',
        client: 'soak/1.0',
        operation: 'crm_upsert_contact',
        target: { type: 'contact', id: String(ms % 10_000) },
        outcome: 'done',
        code: null,
        dry_run: false,
        confirmed: false,
        changes: { input: { phone: '*******4567', name: 'Ada' } },
        request_id: 'req_01JABCDEFGHJKMNPQRSTVWXYZ0',
      },
    },
    [{ id: `evt_${createUlid(ms)}`, type: 'contact.created/1', occurred_at: now, data: JSON.parse(body) }],
  )
}

// The embedded database has one session: nothing runs at the same time as its retention.
describe('Retention at full speed', { skip: !databases.includes('postgresql') }, () => {
  it('bounds rows and sizes, drops old partitions, and fails nothing that runs meanwhile', async () => {
    const { location, remove } = await createDatabase('postgresql')
    const storage = await openStorage(location, { connections: 10 })
    const { db } = storage
    const startedAt = performance.now()
    const begin = Date.now()
    const nowMs = (): number => Math.floor(begin + (performance.now() - startedAt) * SPEED)
    const now = (): string => new Date(nowMs()).toISOString()
    const isOver = (): boolean => performance.now() - startedAt > SECONDS * 1000
    const config = {
      eventRetentionDays: RETENTION_DAYS,
      auditRetentionDays: RETENTION_DAYS,
      webhookRetentionDays: RETENTION_DAYS,
    }
    await sql`insert into workspaces (id, name, created_at) values (1, 'One', now())`.execute(db)
    const seen = new Set<string>()
    const slowest = { write: 0, read: 0 }
    const timed = async <T>(kind: keyof typeof slowest, work: () => Promise<T>): Promise<T> => {
      const from = performance.now()
      const result = await work()
      slowest[kind] = Math.max(slowest[kind], performance.now() - from)
      return result
    }
    let written = 0
    const runWriter = async (): Promise<void> => {
      while (!isOver()) {
        await timed('write', () => db.transaction().execute((tx) => write(tx, nowMs())))
        written++
      }
    }
    const runReader = async (): Promise<void> => {
      while (!isOver()) {
        const { last } = await timed('read', () => scanEvents(db, '1', undefined, {}, 100))
        if (last) await timed('read', () => scanEvents(db, '1', last, {}, 100))
        await timed('read', () => listAuditRows(db, '1', { operation: 'crm_upsert_contact' }, undefined, 25))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    const runJobs = async (): Promise<void> => {
      const app = { db, config: config as never, now }
      const before = new Date(nowMs() - RETENTION_DAYS * DAY_MS).toISOString()
      for (const table of ['events', 'audit_log'] as const) {
        await maintainPartitions(app, table)
        for (const { name } of await listPartitions(db, table)) seen.add(name)
      }
      await changeInBatches((limit) => deleteEventsBefore(db, before, limit))
      await changeInBatches((limit) => deleteAuditBefore(db, before, limit))
      await changeInBatches((limit) => deleteExpiredRecords(db, now(), limit))
      // As autovacuum does by itself where days last longer.
      await sql`vacuum idempotency`.execute(db)
    }
    const repeatJobs = async (): Promise<void> => {
      while (!isOver()) {
        await runJobs()
        await new Promise((resolve) => setTimeout(resolve, JOB_INTERVAL_MS))
      }
    }
    try {
      await Promise.all([...Array.from({ length: 6 }, runWriter), runReader(), repeatJobs()])
      await runJobs()
      const left = [...(await listPartitions(db, 'events')), ...(await listPartitions(db, 'audit_log'))]
      const measured = await measure(db)
      const details = JSON.stringify({ perSecond: written / SECONDS, slowest, measured })
      for (const { name, n, oldest, mb } of measured) {
        const days = (nowMs() - oldest) / DAY_MS
        assert.ok(
          days < (name === 'idempotency' ? 0 : RETENTION_DAYS) + 1,
          `${name} has old rows: ${details}`,
        )
        // No more than a row takes with its index entries, and empty partitions: nothing is left of old rows.
        assert.ok(mb < 2 + (n * 700) / 1e6, `${name} is bloated: ${details}`)
      }
      assert.ok(seen.size - left.length > 20, `${seen.size} partitions were used, ${left.length} are left`)
      assert.ok(slowest.write < 1500 && slowest.read < 3000, details)
    } finally {
      await storage.close()
      await remove()
    }
  })
})
