import assert from 'node:assert/strict'
import { it } from 'node:test'
import { retentionJobs } from '../../server/jobs/retention.ts'
import { everyDatabase } from '../doors.ts'

everyDatabase('Retention jobs', (server) => {
  it('each job runs and reports how many rows it deleted', async () => {
    const { app } = server()
    for (const { name } of retentionJobs(app)) {
      const processed = await app.jobs.job(name).runOnce()
      assert.ok(Number.isInteger(processed) && processed >= 0, `${name}: ${processed}`)
    }
  })
})
