import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Writable } from 'node:stream'
import { sql } from 'kysely'
import { readQueues } from '../../storage/work/queues.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { retentionJobs } from '../../server/jobs/retention.ts'
import { createLogger } from '../../server/logger.ts'

everyDatabase('Retention jobs', (server) => {
  it('each job runs and reports how many rows it deleted', async () => {
    const { app } = server()
    for (const { name } of retentionJobs(app)) {
      const processed = await app.jobs.job(name).runOnce()
      assert.ok(Number.isInteger(processed) && processed >= 0, `${name}: ${processed}`)
    }
  })
})

const lines: string[] = []
const log = createLogger('error', {
  destination: new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().trim().split('\n'))
      done()
    },
  }),
})

const DAY_MS = 24 * 60 * 60_000
/** Longer than the audit trail, events and idempotency records are kept. */
const FAR_AHEAD_MS = 500 * DAY_MS

everyDatabase(
  'Background work of one server',
  (server) => {
    it('is counted by queue up to a limit, with the oldest entry of all endpoints and all kinds of jobs', async () => {
      const { db, url } = server()
      const { id } = await makeWorkspace(server())
      await sql`
        insert into webhook_endpoints
          (workspace_id, id, url, custom_headers, signing_secret, created_at, updated_at)
        select ${id}::bigint, endpoint, 'https://example.com/', '', '', now(), now()
        from unnest(array['ep_a', 'ep_b']) as endpoint`.execute(db)
      await sql`
        insert into webhook_deliveries
          (workspace_id, id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
        select ${id}::bigint, 'dlv_' || n, case when n <= 4 then 'ep_a' else 'ep_b' end, 'evt_' || n,
          'group.created/1', now() - n * interval '1 minute', now()
        from generate_series(1, 5) as n`.execute(db)
      await sql`
        insert into runs (workspace_id, kind, subject, run_after)
        values (${id}, 'broadcasts', 1, now() - interval '1 minute'),
          (${id}, 'bulk_jobs', 2, now() - interval '1 minute'),
          (${id}, 'bulk_jobs', 3, now() - interval '1 minute'),
          (${id}, 'exports', 1, now() - interval '1 minute'),
          (${id}, 'exports', 2, now() + interval '1 hour'),
          (${id}, 'erasures', 1, now() - interval '1 minute')`.execute(db)
      const read = async (limit: number) =>
        Object.fromEntries(
          (await readQueues(db, limit)).map(({ queue, due, oldestSeconds }) => [
            queue,
            [due, Math.floor(oldestSeconds / 60)],
          ]),
        )
      const { webhook_deliveries: webhooks, broadcasts, bulk_jobs: jobs, exports, erasures } = await read(100)
      assert.deepEqual(
        { webhooks, broadcasts, jobs, exports, erasures },
        { webhooks: [5, 5], broadcasts: [1, 1], jobs: [2, 1], exports: [1, 1], erasures: [1, 1] },
      )
      assert.deepEqual((await read(2))['webhook_deliveries'], [2, 5])
      const metrics = await (await fetch(`${url}/metrics`)).text()
      assert.match(metrics, /^wcrm_queue_due\{queue="erasures"\} 1$/m)
    })

    it('of a wrong clock deletes nothing that the database keeps, and logs both times once a minute', async (test) => {
      const { app } = server()
      const { owner } = await makeWorkspace(server())
      const answer = await fetch(`${server().url}/v1/groups`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${owner.key}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': 'kept-by-a-wrong-clock',
        },
        body: JSON.stringify({ name: 'Kept' }),
      })
      assert.equal(answer.status, 200)
      const tables = ['audit_log', 'events', 'idempotency'] as const
      const count = () =>
        Promise.all(
          tables.map(
            async (table) => (await app.db.selectFrom(table).select('workspace_id').execute()).length,
          ),
        )
      lines.length = 0
      const before = await count()
      assert.ok(
        before.every((rows) => rows > 0),
        String(before),
      )
      test.mock.timers.enable({ apis: ['Date'], now: Date.now() + FAR_AHEAD_MS })
      for (const { name } of retentionJobs(app)) await app.jobs.job(name).runOnce()
      await app.jobs.job('webhook-delivery-retention').runOnce()
      assert.deepEqual(await count(), before)
      const errors = lines.map((line) => JSON.parse(line))
      assert.equal(errors.length, 1)
      const { msg, server_time: ours, database_time: theirs } = errors[0]
      assert.match(msg, /clock of this server differs/)
      assert.ok(Math.abs(Date.parse(ours) - Date.parse(theirs) - FAR_AHEAD_MS) < 60_000)
    })
  },
  { dedicated: true, log },
)
