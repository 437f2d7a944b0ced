import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { createUlid } from '../../server/ids.ts'
import { BREAKER_RULES } from '../../server/domains/webhooks/breaker.ts'
import type { Db } from '../../storage/database.ts'
import { type EndpointResult, recordDeliveryResults } from '../../storage/webhooks/results.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { type BreakerState, decideBreaker } from './breaker-model.ts'

/** A batch of attempts, and the seconds that pass before it. */
type Step = { pauseSeconds: number; batch: Omit<EndpointResult, 'workspace_id' | 'id'> }

const DAY = 86_400
const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  // Around the thresholds of the warnings and of disabling: 2.5, 3.5, 4.5 and 5 days.
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
      {
        weight: 2,
        arbitrary: fc.record({ failures: fc.constant(0), ours: fc.constantFrom(0, 7, 3000, DAY) }),
      },
    )
    .map((batch) => ({ succeeded: false, gone: false, ours: null, ...batch })),
})
/** Histories of several endpoints, whose batches are recorded together. */
const histories = fc.array(fc.array(stepArbitrary, { minLength: 1, maxLength: 10 }), {
  minLength: 1,
  maxLength: 4,
})

type StoredState = BreakerState & { reason: string | null; probeAfterSeconds: number | null }

const readState = async (tx: Db, workspaceId: string, id: string): Promise<StoredState> =>
  (
    await sql<StoredState>`
    select status, consecutive_failures as "consecutiveFailures", warned as "warnedPercent",
      extract(epoch from now() - failing_since)::float8 as "failingForSeconds", disabled_reason as reason,
      extract(epoch from next_probe_at - now())::float8 as "probeAfterSeconds"
    from webhook_endpoints where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
  ).rows[0]!

type TestEndpoint = { id: string; steps: Step[]; state: BreakerState; reason: string | null }

const insertEndpoints = async (
  tx: Db,
  workspaceId: string,
  all: Step[][],
  now: string,
): Promise<TestEndpoint[]> => {
  const endpoints = all.map((steps): TestEndpoint => ({
    id: `ep_${createUlid()}`,
    steps,
    state: { status: 'active', consecutiveFailures: 0, failingForSeconds: null, warnedPercent: 0 },
    reason: null,
  }))
  for (const { id } of endpoints)
    await sql`
      insert into webhook_endpoints
        (workspace_id, id, url, payload_format, custom_headers, signing_secret, created_at, updated_at)
      values (${workspaceId}, ${id}, 'https://example.com/', 'envelope', '', '', ${now}, ${now})`.execute(tx)
  return endpoints
}

/** Applies one batch by the rule in TypeScript, and asserts that the database came to the same state. */
const assertSameDecision = async (
  tx: Db,
  workspaceId: string,
  endpoint: TestEndpoint,
  { pauseSeconds, batch }: Step,
  seen: Set<string>,
): Promise<number | null> => {
  const { state } = endpoint
  const failingForSeconds = state.failingForSeconds === null ? null : state.failingForSeconds + pauseSeconds
  const { disabledReason, warnPercent, probeAfterSeconds, ...after } = decideBreaker(
    { ...state, failingForSeconds },
    batch,
  )
  // The database counts in microseconds.
  const toMillis = (seconds: number | null) => seconds && Math.round(seconds * 1000) / 1000
  endpoint.state = { ...after, failingForSeconds: toMillis(after.failingForSeconds) }
  endpoint.reason = after.status === 'disabled' ? (endpoint.reason ?? disabledReason) : null
  const stored = await readState(tx, workspaceId, endpoint.id)
  const { probeAfterSeconds: storedProbe, reason, ...storedState } = stored
  assert.deepEqual(
    { ...storedState, failingForSeconds: toMillis(stored.failingForSeconds), reason },
    { ...endpoint.state, reason: endpoint.reason },
  )
  if (probeAfterSeconds === null) assert.equal(storedProbe, null)
  else {
    const ratio = storedProbe! / probeAfterSeconds
    assert.ok(ratio > 0.8999 && ratio < 1.1001, `a probe after ${storedProbe} seconds`)
  }
  seen.add(after.status).add(`warned ${warnPercent}`).add(`disabled ${disabledReason}`)
  return warnPercent
}

/** Runs the histories of several endpoints; `seen` collects the outcomes. */
const checkHistories = async (
  tx: Db,
  workspaceId: string,
  all: Step[][],
  now: string,
  seen: Set<string>,
): Promise<void> => {
  const endpoints = await insertEndpoints(tx, workspaceId, all, now)
  for (let n = 0; n < Math.max(...all.map(({ length }) => length)); n++) {
    const due = endpoints.flatMap((endpoint) => {
      const step = endpoint.steps[n]
      return step ? [{ endpoint, step }] : []
    })
    // now() is constant within a transaction: time passes by moving the start of the outage back.
    for (const { endpoint, step } of due)
      await sql`
        update webhook_endpoints
        set failing_since = failing_since - ${step.pauseSeconds} * interval '1 second'
        where workspace_id = ${workspaceId} and id = ${endpoint.id}`.execute(tx)
    const changed = await recordDeliveryResults(
      tx,
      [],
      due.map(({ endpoint, step }) => ({ workspace_id: workspaceId, id: endpoint.id, ...step.batch })),
      BREAKER_RULES,
      now,
    )
    for (const { endpoint, step } of due) {
      const warnPercent = await assertSameDecision(tx, workspaceId, endpoint, step, seen)
      assert.equal(changed.find(({ id }) => id === endpoint.id)?.percent ?? null, warnPercent)
    }
  }
}

class Rollback extends Error {}

everyDatabase('The circuit breaker', (server) => {
  it('recordDeliveryResults decides as decideBreaker does', async () => {
    const { id: workspaceId } = await makeWorkspace(server())
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(histories, async (all) => {
        await server()
          .db.transaction()
          .execute(async (tx) => {
            await checkHistories(tx, workspaceId, all, server().app.now(), seen)
            throw new Rollback()
          })
          .catch((error: unknown) => {
            if (!(error instanceof Rollback)) throw error
          })
      }),
      { numRuns: 60 },
    )
    // The histories must reach every outcome.
    for (const outcome of ['active', 'paused', 'disabled', 'warned 50', 'warned 70', 'warned 90'])
      assert.ok(seen.has(outcome), `no history led to: ${outcome}`)
    for (const reason of ['gone', 'failing']) assert.ok(seen.has(`disabled ${reason}`), reason)
  })
})
