import type { Operation } from '../../catalog/index.ts'
import type { App } from './app.ts'
import type { Actor, Transport } from './context.ts'
import type { CallResponse } from './respond.ts'

type LoggedCall = { operation: Operation | undefined; transport: Transport; requestId: string }

/** What a line tells beside the call and its answer. `ms`: its duration. */
type CallFacts = { actor: Actor | undefined; dryRun: boolean; ms: number }

/**
 * Writes one line for a call, at the level `info`.
 * No input, no path and no detail of an error is in it: those hold personal data.
 */
export const logCall = (
  { log }: App,
  { operation, transport, requestId }: LoggedCall,
  { status, headers, problem }: CallResponse,
  { actor, dryRun, ms }: CallFacts,
): void => {
  if (!log.isLevelEnabled('info')) return
  const reason = problem?.reason
  log.info(
    {
      request_id: requestId,
      door: transport,
      operation: operation?.name ?? 'unknown',
      status,
      ...(problem ? { code: problem.code, ...(reason === undefined ? {} : { reason }) } : {}),
      duration_ms: Math.round(ms * 10) / 10,
      ...(actor ? { workspace_id: actor.workspace.id, key_id: actor.key.id } : {}),
      ...(dryRun ? { dry_run: true } : {}),
      ...(headers['Idempotent-Replayed'] ? { replayed: true } : {}),
    },
    'call',
  )
}
