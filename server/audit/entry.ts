import { type Operation, routesOf } from '../../catalog/index.ts'
import type { AuditEntry, AuditOutcome } from '../../storage/audit.ts'
import type { Actor, Door } from '../core/context.ts'
import { Problem } from '../core/problem.ts'
import { bounded, briefOf, differenceOf, resultOf } from './redact.ts'

/**
 * What the audit trail keeps of a call beyond its input: its door, the client's own name, the answer's
 * `Request-Id`, whether the verb was given.
 */
export type Trace = { door: Door; client: string | null; requestId: string; confirmed: boolean }

/** A record as it was, and what of it is written; null when it is gone. */
export type Difference = { before: Record<string, unknown>; after: Record<string, unknown> | null }

/** A call that is told of. The input is known once it was validated. */
export type Told = {
  actor: Actor
  op: Operation
  trace: Trace
  input?: Record<string, unknown> | undefined
  dryRun: boolean
}

export type Went = {
  at: string
  outcome: AuditOutcome
  code?: string | null
  output?: Record<string, unknown>
  difference?: Difference | undefined
}

type Target = { type: string; field?: string; member?: string }

const targets = new WeakMap<Operation, Target>()

/** Where an operation's record is found: by an id in its path, or in its answer when it makes one. */
const targetIn = (op: Operation): Target => {
  let target = targets.get(op)
  if (!target) {
    const [field] = routesOf(op)[0]!.pathFields
    const member = Object.keys(op.output.shape).find(
      (name) => op.name.endsWith(`_${name}`) || (name === 'message' && op.name.startsWith('messaging_send_')),
    )
    const noun = op.name.split('_').slice(2).join('_')
    target = field
      ? { type: field.replace(/_id$/, ''), field }
      : member
        ? { type: member, member }
        : { type: noun }
    targets.set(op, target)
  }
  return target
}

const idIn = (record: unknown): unknown =>
  record !== null && typeof record === 'object' ? (record as { id?: unknown }).id : undefined

const targetOf = (
  op: Operation,
  input: Record<string, unknown> = {},
  output: Record<string, unknown> = {},
): AuditEntry['target'] => {
  const { type, field, member } = targetIn(op)
  const id = field ? input[field] : idIn(member && idIn(output) === undefined ? output[member] : output)
  return typeof id === 'string' ? { type, id } : null
}

const changesOf = ({ op, input }: Told, { output, difference }: Went): Record<string, unknown> | null => {
  if (input === undefined || op.scope === 'mcp:read') return null
  const { field } = targetIn(op)
  const { [field ?? '']: _target, ...asked } = input
  const result = output && resultOf(output)
  return bounded({
    input: briefOf(op.name, asked),
    ...(difference ? differenceOf(op.name, difference.before, difference.after) : {}),
    ...(result ? { result } : {}),
  })
}

/** Of a row what does not depend on the operation. */
export const basisOf = (
  actor: Actor,
  { door, client, confirmed, requestId }: Trace,
  { at, outcome, code = null }: Pick<Went, 'at' | 'outcome' | 'code'>,
) => ({
  at,
  staff_id: actor.staff.id,
  key_id: actor.key.id,
  door,
  client,
  outcome,
  code,
  confirmed,
  request_id: requestId,
})

/** The row of the audit trail for a call. */
export const entryOf = (told: Told, went: Went): AuditEntry => ({
  ...basisOf(told.actor, told.trace, went),
  operation: told.op.name,
  target: targetOf(told.op, told.input, went.output),
  dry_run: told.dryRun,
  changes: changesOf(told, went),
})

/**
 * How a call went that a problem ended: what was not permitted, or not confirmed, is refused, the rest
 * failed.
 */
export const endedBy = (at: string, problem: Problem): Went => ({
  at,
  outcome: problem.status === 403 || problem.code === 'confirm_required' ? 'refused' : 'failed',
  code: problem.code,
})

const CLIENT_CHARACTERS = 120

/** Clients write what they like into their name. */
export const clientName = (name: string | undefined): string | null =>
  name
    ?.replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, CLIENT_CHARACTERS)
    .toWellFormed()
    .trim() || null
