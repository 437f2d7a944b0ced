import { claimExpiredCalls } from '../../storage/idempotency.ts'
import { findKeyById } from '../../storage/keys.ts'
import type { App } from '../core/app.ts'
import type { CallTrace } from '../audit/entry.ts'
import { isProviderConfigured } from '../provider/port.ts'
import { errorLogDetails } from './log-details.ts'
import type { JobDefinition } from './runner.ts'
import type { ExternalHandler } from '../core/handler.ts'
import { toActor } from '../core/steps/authenticate.ts'
import { completeCall, type StoredIntent } from '../core/external.ts'

const LEASE_SECONDS = 30
const POLL_MS = 5000
/** Of calls that were made before there was an audit trail. */
const untraced: CallTrace = { door: 'rest', client: null, requestId: 'unknown', confirmed: false }

/**
 * Finishes calls to the provider whose process died in between: asks the provider by natural key whether
 * they reached it. Returns how many were taken over.
 */
export const reconcileProviderCalls = async (app: App, limit = 20): Promise<number> => {
  // Without a provider the outcome stays unknown, and nothing is undone.
  if (!isProviderConfigured(app.provider)) return 0
  const abandoned = await claimExpiredCalls(app.db, LEASE_SECONDS, limit)
  for (const { workspace_id: workspaceId, operation, key: idempotencyKey, intent, lease } of abandoned) {
    const op = app.operations.find(({ name }) => name === operation)
    const stored = intent as StoredIntent
    const apiKey = await findKeyById(app.db, workspaceId, stored.keyId)
    if (!op || !apiKey) {
      app.log.error(
        { operation, workspace: workspaceId },
        'Cannot reconcile a call to the provider: its operation or key no longer exists',
      )
      continue
    }
    const call = {
      actor: toActor(apiKey),
      op,
      input: stored.input,
      key: idempotencyKey,
      trace: stored.trace ?? untraced,
    }
    try {
      await completeCall(app, call, app.handlers[op.name] as ExternalHandler<unknown>, {
        intent: stored.intent,
        again: true,
        lease,
      })
    } catch (error) {
      app.log.warn(
        { operation, ...errorLogDetails(error) },
        'Cannot reconcile a call to the provider; retrying',
      )
    }
  }
  return abandoned.length
}

export const reconciliationJob = (app: App): JobDefinition => ({
  name: 'provider-call-reconciliation',
  intervalMs: POLL_MS,
  run: async () => ({ processed: await reconcileProviderCalls(app) }),
})
