import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createDatabase, databases } from '../databases.ts'
import { runWebhookStorm } from './webhook-storm.ts'

const [EVENTS, ENDPOINTS] = [2000, 10]

describe(
  'Webhooks while servers are killed',
  { skip: !databases.includes('postgresql') && 'needs PostgreSQL: several servers share the database' },
  () => {
    it('events reach every endpoint at least once, with few duplicates and stable ids', async () => {
      const place = await createDatabase('postgresql')
      try {
        const { kills, attempts, failedAttempts, missing, duplicates, unstable, unsigned, seconds } =
          await runWebhookStorm(place, {
            events: EVENTS,
            endpoints: ENDPOINTS,
            perSecond: 130,
            killEveryMs: 2500,
            failures: { errors: 100, drops: 98, silences: 2 },
            timeoutMs: 240_000,
          })
        const summary =
          `${attempts} attempts in ${seconds.toFixed(0)} s, ${failedAttempts} failed on purpose, ` +
          `${kills} kills, ${duplicates} duplicates`
        assert.ok(kills >= 3, summary)
        assert.ok(failedAttempts > attempts / 6 && failedAttempts < attempts / 4, summary)
        assert.deepEqual({ missing, unstable, unsigned }, { missing: 0, unstable: 0, unsigned: 0 }, summary)
        assert.ok(duplicates < (EVENTS * ENDPOINTS) / 100, summary)
      } finally {
        await place.remove()
      }
    })
  },
)
