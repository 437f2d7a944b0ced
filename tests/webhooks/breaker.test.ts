import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { createUlid } from '../../server/ids.ts'
import { type BreakerState, BREAKER_RULES, decideBreaker } from '../../server/webhooks/breaker.ts'
import type { Db } from '../../storage/database.ts'
import { type EndpointResult, recordDeliveryResults } from '../../storage/webhook-results.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

/** A batch of attempts, and the seconds that pass before it. */
type Step = { pauseSeconds: number; batch: Pick<EndpointResult, 'succeeded' | 'failures' | 'gone'> }

const DAY = 86_400
const step: fc.Arbitrary<Step> = fc.record({
  // Around the thresholds of warnings and of the end: 2.5, 3.5, 4.5 and 5 days.
  pauseSeconds: fc.oneof(
    fc.constantFrom(0, 1, 49, 50, 51, 2999, 3000, 3001, DAY / 2, DAY, 2.5 * DAY, 5 * DAY - 1, 5 * DAY),
    fc.integer({ min: 0, max: 3 * DAY }),
  ),
  batch: fc
    .oneof(
      { weight: 6, arbitrary: fc.record({ failures: fc.integer({ min: 1, max: 12 }) }) },
      { weight: 1, arbitrary: fc.constant({ failures: 0, succeeded: true }) },
      {
        weight: 1,
        arbitrary: fc.record({ failures: fc.integer({ min: 1, max: 12 }), succeeded: fc.constant(true) }),
      },
      { weight: 1, arbitrary: fc.constant({ failures: 1, gone: true }) },
    )
    .map((batch) => ({ succeeded: false, gone: false, ...batch })),
})
/** Of several endpoints, whose batches are recorded together. */
const histories = fc.array(fc.array(step, { minLength: 1, maxLength: 10 }), { minLength: 1, maxLength: 4 })

type StoredState = BreakerState & { reason: string | null; probeAfterSeconds: number | null }

const readState = async (tx: Db, workspaceId: string, id: string): Promise<StoredState> =>
  (
    await sql<StoredState>`
    select status, consecutive_failures as "consecutiveFailures", warned as "warnedPercent",
      extract(epoch from now() - failing_since)::float8 as "failingForSeconds", disabled_reason as reason,
      extract(epoch from next_probe_at - now())::float8 as "probeAfterSeconds"
    from webhook_endpoints where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
  ).rows[0]!

class Rollback extends Error {}

everyDatabase('The circuit breaker', (server) => {
  it('decides in the database as its rule says', async () => {
    const { id: workspaceId } = await makeWorkspace(server())
    const seen = new Set<string>()
    const check = async (tx: Db, all: Step[][]): Promise<void> => {
      const now = server().app.now()
      const endpoints = all.map((steps) => ({
        id: `ep_${createUlid()}`,
        steps,
        state: {
          status: 'active',
          consecutiveFailures: 0,
          failingForSeconds: null,
          warnedPercent: 0,
        } as BreakerState,
        reason: null as string | null,
      }))
      for (const { id } of endpoints)
        await sql`
          insert into webhook_endpoints
            (workspace_id, id, url, payload_format, custom_headers, signing_secret, created_at, updated_at)
          values (${workspaceId}, ${id}, 'https://example.com/', 'envelope', '', '', ${now}, ${now})`.execute(
          tx,
        )
      for (let n = 0; n < Math.max(...all.map(({ length }) => length)); n++) {
        const due = endpoints.flatMap((endpoint) => {
          const next = endpoint.steps[n]
          return next ? [{ endpoint, ...next }] : []
        })
        // now() stands still within a transaction: time passes by moving the outage back.
        for (const { endpoint, pauseSeconds } of due)
          await sql`
            update webhook_endpoints set failing_since = failing_since - ${pauseSeconds} * interval '1 second'
            where workspace_id = ${workspaceId} and id = ${endpoint.id}`.execute(tx)
        const changed = await recordDeliveryResults(
          tx,
          [],
          due.map(({ endpoint, batch }) => ({ workspace_id: workspaceId, id: endpoint.id, ...batch })),
          BREAKER_RULES,
          now,
        )
        for (const { endpoint, pauseSeconds, batch } of due) {
          const { state } = endpoint
          const failingForSeconds =
            state.failingForSeconds === null ? null : state.failingForSeconds + pauseSeconds
          const { disabledReason, warnPercent, probeAfterSeconds, ...after } = decideBreaker(
            { ...state, failingForSeconds },
            batch,
          )
          endpoint.state = after
          endpoint.reason = after.status === 'disabled' ? (endpoint.reason ?? disabledReason) : null
          const stored = await readState(tx, workspaceId, endpoint.id)
          const { probeAfterSeconds: storedProbe, reason, ...storedState } = stored
          assert.deepEqual({ ...storedState, reason }, { ...after, reason: endpoint.reason })
          if (probeAfterSeconds === null) assert.equal(storedProbe, null)
          else {
            const ratio = storedProbe! / probeAfterSeconds
            assert.ok(ratio > 0.8999 && ratio < 1.1001, `a probe after ${storedProbe} seconds`)
          }
          assert.equal(changed.find(({ id }) => id === endpoint.id)?.percent ?? null, warnPercent)
          seen.add(after.status).add(`warned ${warnPercent}`).add(`disabled ${disabledReason}`)
        }
      }
    }
    await fc.assert(
      fc.asyncProperty(histories, async (all) => {
        await server()
          .db.transaction()
          .execute(async (tx) => {
            await check(tx, all)
            throw new Rollback()
          })
          .catch((error: unknown) => {
            if (!(error instanceof Rollback)) throw error
          })
      }),
      { numRuns: 60 },
    )
    // Otherwise the histories prove little.
    for (const outcome of ['active', 'paused', 'disabled', 'warned 50', 'warned 70', 'warned 90'])
      assert.ok(seen.has(outcome), `no history led to: ${outcome}`)
    for (const reason of ['gone', 'failing']) assert.ok(seen.has(`disabled ${reason}`), reason)
  })
})
