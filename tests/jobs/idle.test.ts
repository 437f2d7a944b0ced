import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findSecondsUntilPassed } from '../../storage/channels/health.ts'
import type { Db } from '../../storage/database.ts'
import { findSecondsUntilNextUpdate } from '../../storage/channels/provider-updates.ts'
import { findSecondsUntilNextSandboxWork } from '../../packages/sandbox/storage/updates.ts'
import { secondsUntilRun } from '../../storage/work/runs.ts'
import { findSecondsUntilNextDelivery } from '../../storage/webhooks/deliveries.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

const NOW = '2026-03-01T12:00:00.000Z'
const AT_MOST_S = 60

/** When each kind of background work is due next. A job whose query answers 0 runs again at once, for ever. */
const queries: Record<string, (db: Db) => Promise<number | undefined>> = {
  runs: (db) => secondsUntilRun(db, { kind: 'approved_calls', knows: ['messaging_send_reply'] }),
  'problems of channels': (db) => findSecondsUntilPassed(db, NOW),
  'provider updates': findSecondsUntilNextUpdate,
  'sandbox deliveries': (db) => findSecondsUntilNextSandboxWork(db, NOW),
}

for (const database of databases)
  describe(`background work of an empty database on ${database}`, () => {
    it('is not due', () =>
      onMigratedDatabase(database, async (db) => {
        for (const [name, find] of Object.entries(queries)) assert.equal(await find(db), undefined, name)
        assert.equal(await findSecondsUntilNextDelivery(db, AT_MOST_S), AT_MOST_S)
      }))
  })
