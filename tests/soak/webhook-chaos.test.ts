import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createEmptyDatabase, databases } from '../databases.ts'
import { weather } from './webhook-storm.ts'

const [EVENTS, ENDPOINTS] = [2000, 10]

describe(
  'Webhooks while servers are killed',
  { skip: !databases.includes('postgresql') && 'needs PostgreSQL: several servers share the database' },
  () => {
    it('reach every endpoint at least once, hardly ever twice, with the same id', async () => {
      const place = await createEmptyDatabase('postgresql')
      try {
        const { kills, attempts, troubled, missing, duplicates, unstable, unsigned, seconds } = await weather(
          place,
          {
            events: EVENTS,
            endpoints: ENDPOINTS,
            perSecond: 130,
            killEveryMs: 2500,
            trouble: { errors: 100, drops: 98, silences: 2 },
            longestMs: 240_000,
          },
        )
        const told = `${attempts} attempts in ${seconds.toFixed(0)} s, ${troubled} answered badly, ${kills} kills, ${duplicates} duplicates`
        assert.ok(kills >= 3, told)
        assert.ok(troubled > attempts / 6 && troubled < attempts / 4, told)
        assert.deepEqual({ missing, unstable, unsigned }, { missing: 0, unstable: 0, unsigned: 0 }, told)
        assert.ok(duplicates < (EVENTS * ENDPOINTS) / 100, told)
      } finally {
        await place.remove()
      }
    })
  },
)
