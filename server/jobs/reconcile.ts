import type { ErasedExternalHandler } from '../kernel/handler.ts'
import type { CallTrace } from '../kernel/context.ts'
import { claimOpenCalls } from '../../storage/access/idempotency.ts'
import { findKeyById } from '../../storage/access/keys.ts'
import type { App } from '../app.ts'
import { notifyEvents } from '../domains/events/signal.ts'
import { isProviderConfigured } from '../provider/port.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { getIdleMs, type JobDefinition } from '../work/runner.ts'
import { toActor } from '../kernel/authenticate.ts'
import { settleOpenCall, type StoredIntent } from '../kernel/external.ts'

/** Longer than a claimed batch may take, whose calls are looked for at the same time. */
const LEASE_SECONDS = 30
const BATCH_SIZE = 10
/** Those beyond wait for the next run, which takes what became due meanwhile in its order. */
const MAX_PER_RUN = 1000
/** Of calls that were made before there was an audit trail. */
const untraced: CallTrace = { door: 'rest', client: null, requestId: 'unknown', confirmed: false }

type OpenCall = Awaited<ReturnType<typeof claimOpenCalls>>[number]

/**
 * Looks for the outcomes of calls to the provider that were left open: their answers were lost, or their
 * process died. It asks by natural key and never makes a call; one without an outcome is given up after 24
 * hours of business time. Returns how many were looked for.
 */
export const reconcileProviderCalls = async (app: App, signal?: AbortSignal): Promise<number> => {
  // Without a provider the outcome stays unknown, and nothing is undone.
  if (!isProviderConfigured(app.provider)) return 0
  for (let count = 0; ;) {
    if (signal?.aborted) return count
    // The server's own offsets: where a true provider is configured, what a sandbox left counts for nothing.
    const batch = await claimOpenCalls(app.db, app.now(), app.clockOffsets, LEASE_SECONDS, BATCH_SIZE)
    await Promise.all(batch.map((open) => settle(app, open)))
    count += batch.length
    if (batch.length < BATCH_SIZE || count >= MAX_PER_RUN) return count
  }
}

const settle = async (app: App, open: OpenCall): Promise<void> => {
  const { workspace_id: workspaceId, operation, key, lease, over } = open
  const op = app.operations.find(({ name }) => name === operation)
  const { intent, input, keyId, trace = untraced, approvedBy } = open.intent as StoredIntent
  const apiKey = await findKeyById(app.db, workspaceId, keyId)
  if (!op || !apiKey) {
    app.log.error(
      { operation, workspace: workspaceId },
      'Cannot reconcile a call to the provider: its operation or key no longer exists',
    )
    return
  }
  const call = { actor: { ...toActor(apiKey), ...(approvedBy ? { approvedBy } : {}) }, op, input, key, trace }
  const handler = app.handlers[op.name] as unknown as ErasedExternalHandler
  try {
    const result = await settleOpenCall(app, call, handler, { intent, lease, isOver: over })
    if (result) notifyEvents(app, { workspaceId, needsDelivery: result.needsDelivery ?? false })
  } catch (error) {
    app.log.warn(
      { operation, ...errorLogDetails(error) },
      'Cannot reconcile a call to the provider; retrying',
    )
  }
}

export const reconciliationJob = (app: App): JobDefinition => ({
  name: 'provider-call-reconciliation',
  intervalMs: getIdleMs(app),
  run: async (signal) => ({ processed: await reconcileProviderCalls(app, signal) }),
})
