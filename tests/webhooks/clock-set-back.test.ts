import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createDeliveryTest } from './delivery-fixture.ts'

everyDatabase(
  'Webhook deliveries and the clock of the database',
  (server) => {
    const test = createDeliveryTest(server)

    test('what waits is due as before when the clock of the database is set back', async ({
      startReceiver,
      createEndpoint,
      createGroups,
      deliver,
      makeDue,
      loadEndpoint,
      secondsUntilAttempts,
      server: { app, db },
    }) => {
      const target = await startReceiver(() => ({ status: 500 }))
      const hook = await createEndpoint(target.url)
      await createGroups(5)
      await deliver()
      await makeDue(hook)
      await deliver()
      assert.equal((await loadEndpoint(hook)).status, 'paused')
      const attemptsBefore = await secondsUntilAttempts(hook)
      assert.equal(attemptsBefore.length, 5)
      // As a server sees it: what was written is two hours ahead, and so is the time that it read.
      const setBack = async (): Promise<void> => {
        const { last } = app.databaseTime
        app.databaseTime.last = { ...last!, ms: last!.ms + 2 * 3_600_000 }
        await sql`
        update webhook_endpoints set next_probe_at = next_probe_at + interval '2 hours' where id = ${hook.id}`.execute(
          db,
        )
        await sql`
        update webhook_deliveries set next_attempt_at = next_attempt_at + interval '2 hours'
        where endpoint_id = ${hook.id}`.execute(db)
      }
      const secondsUntilProbe = async (): Promise<number> =>
        (
          await sql<{ seconds: number }>`
          select extract(epoch from next_probe_at - now())::float8 as seconds from webhook_endpoints
          where id = ${hook.id}`.execute(db)
        ).rows[0]!.seconds
      const isAsBefore = (attempts: readonly number[]) =>
        attempts.length === attemptsBefore.length &&
        attempts.every((seconds, n) => Math.abs(seconds - attemptsBefore[n]!) < 60)
      const clock = app.jobs.job('server-clock')
      await clock.runOnce()
      await setBack()
      await clock.runOnce()
      assert.ok((await secondsUntilProbe()) < 60, `${await secondsUntilProbe()} s until the probe`)
      assert.ok(isAsBefore(await secondsUntilAttempts(hook)))
      // Another server saw the same, and moves nothing once more.
      app.databaseTime.setBackMs = 2 * 3_600_000
      await clock.runOnce()
      assert.ok(isAsBefore(await secondsUntilAttempts(hook)))
    })
  },
  // It moves what waits in all workspaces.
  { dedicated: true },
)
