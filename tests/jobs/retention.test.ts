import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Writable } from 'node:stream'
import { retentionJobs } from '../../server/jobs/retention.ts'
import { createLogger } from '../../server/logger.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

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
  'A server with a wrong clock',
  (server) => {
    it('deletes nothing that the database keeps, and logs both times once a minute', async (test) => {
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
