import { takeLeftOvers } from '../../storage/idempotency.ts'
import { findKeyById } from '../../storage/keys.ts'
import type { App } from '../app.ts'
import type { Trace } from '../audit/entry.ts'
import type { ProviderHandler } from '../core/handler.ts'
import { actorOf } from '../core/steps/authenticate.ts'
import { finishCall, type StoredIntent } from '../core/execute.ts'

const LEASE_SECONDS = 30
/** Of a call that was made before there was an audit trail. */
const untraced: Trace = { door: 'rest', client: null, requestId: 'unknown', confirmed: false }

/**
 * Finishes provider calls whose process died between the parts: finds out by natural key whether they
 * reached the provider. Answers how many.
 */
export const reconcile = async (app: App, most = 20): Promise<number> => {
  const leftOvers = await takeLeftOvers(app.db, LEASE_SECONDS, most)
  for (const left of leftOvers) {
    const op = app.operations.find((o) => o.name === left.operation)
    const stored = left.intent as StoredIntent
    const key = await findKeyById(app.db, left.workspace_id, stored.keyId)
    if (!op || !key) {
      app.log.error(
        { operation: left.operation, workspace: left.workspace_id },
        'a call to the provider cannot be finished: its operation or key is gone',
      )
      continue
    }
    const work = {
      actor: actorOf(key),
      op,
      input: stored.input,
      key: left.key,
      trace: stored.trace ?? untraced,
    }
    try {
      await finishCall(app, work, app.handlers[op.name] as ProviderHandler<unknown>, {
        intent: stored.intent,
        again: true,
        lease: left.lease,
      })
    } catch (error) {
      app.log.warn({ operation: left.operation, error }, 'a call to the provider is still unsettled')
    }
  }
  return leftOvers.length
}
