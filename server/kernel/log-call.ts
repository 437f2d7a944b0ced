import type { Operation } from '../../catalog/index.ts'
import type { Logger } from 'pino'
import type { Kernel } from './kernel.ts'
import type { Actor, Transport } from './context.ts'
import type { Problem } from './problem.ts'
import { type CallResponse, getResultCode } from './respond.ts'

type LoggedCall = { operation: Operation | undefined; transport: Transport; requestId: string }

/** What a line tells beside the call and its answer. `ms`: its duration. */
type CallFacts = { actor: Actor | undefined; dryRun: boolean; ms: number }

/**
 * Writes one line for a call, at the level `info`.
 * No input, no path and no detail of an error is in it: those hold personal data.
 */
export const logCall = (
  { log }: Kernel,
  { operation, transport, requestId }: LoggedCall,
  response: CallResponse,
  { actor, dryRun, ms }: CallFacts,
): void => {
  if (!log.isLevelEnabled('info')) return
  const { status, headers, problem } = response
  const reason = problem?.reason
  const code = getResultCode(response)
  log.info(
    {
      request_id: requestId,
      door: transport,
      operation: operation?.name ?? 'unknown',
      status,
      ...(code === 'ok' ? {} : { code }),
      ...(reason === undefined ? {} : { reason }),
      duration_ms: Math.round(ms * 10) / 10,
      ...(actor ? { workspace_id: actor.workspace.id, key_id: actor.key.id } : {}),
      ...(dryRun ? { dry_run: true } : {}),
      ...(headers['Idempotent-Replayed'] ? { replayed: true } : {}),
    },
    'call',
  )
}

/**
 * Writes one line for a request that was refused without a call, at the level `info`: its answer has the id, and no
 * call tells of it. Like that of a call it has no path and no detail.
 */
export const logRefusal = (
  log: Pick<Logger, 'info'>,
  requestId: string,
  { status, code, extras }: { status: number } & Partial<Pick<Problem, 'code' | 'extras'>>,
): void =>
  log.info(
    {
      request_id: requestId,
      status,
      ...(code === undefined ? {} : { code }),
      ...(extras?.reason === undefined ? {} : { reason: extras.reason }),
    },
    'refused',
  )
