import { catalog, type Operation, listRoutes } from '../../../catalog/index.ts'
import type { AuditEntry, AuditOutcome } from '../../../storage/access/audit.ts'
import type { Actor, CallTrace, PendingWrites, RecordChange } from '../../kernel/context.ts'
import type { Problem } from '../../kernel/problem.ts'
import { limitSize, redactChange, redactObject, redactResult } from './redact.ts'

/** A call to record. The input is known once it was validated. */
export type AuditedCall = {
  actor: Actor
  op: Operation
  trace: CallTrace
  input?: Record<string, unknown> | undefined
  dryRun: boolean
}

/** How a call ended. `at`: real time, ISO 8601 UTC. */
export type CallOutcome = {
  at: string
  outcome: AuditOutcome
  code?: string | null
  output?: Record<string, unknown>
  change?: RecordChange | undefined
}

/**
 * Where the id of an operation's record is: in the input field `field` when its path has one, else in the
 * output, under `member` when that holds the record.
 */
type TargetLocation = { type: string; field?: string; member?: string }

/** Whether an operation takes a contact by what it is known by elsewhere, rather than by its id alone. */
const namesPeople = ({ input: { shape } }: Operation): boolean => 'phone' in shape || 'external_id' in shape

const locateTarget = (op: Operation): TargetLocation => {
  const [field] = listRoutes(op)[0]!.pathFields
  if (field) return { type: field.replace(/_id$/, ''), field }
  const member = Object.keys(op.output.shape).find(
    (name) => op.name.endsWith(`_${name}`) || (name === 'message' && op.name.startsWith('messaging_send_')),
  )
  return member ? { type: member, member } : { type: op.name.split('_').slice(2).join('_') }
}

/** Of every operation of the catalog: finding one takes longer than writing the row. */
const locations = new Map(catalog.map((op) => [op.name as string, locateTarget(op)]))

const getLocation = (op: Operation): TargetLocation => locations.get(op.name) ?? locateTarget(op)

const getId = (record: unknown): unknown =>
  record !== null && typeof record === 'object' ? (record as { id?: unknown }).id : undefined

const toTarget = (
  { type, field, member }: TargetLocation,
  input: Record<string, unknown> = {},
  output: Record<string, unknown> = {},
): AuditEntry['target'] => {
  const id = field ? input[field] : getId(member && getId(output) === undefined ? output[member] : output)
  return typeof id === 'string' ? { type, id } : null
}

const toChanges = (
  { op, input }: AuditedCall,
  { output, change }: CallOutcome,
  { field = '' }: TargetLocation,
  target: AuditEntry['target'],
): Record<string, unknown> | null => {
  if (input === undefined || op.scope === 'mcp:read') return null
  const { [field]: _target, ...fields } = input
  const result = output && redactResult(output)
  return limitSize({
    input: redactObject(op.name, fields, { omitTexts: target === null && namesPeople(op) }),
    ...(change ? redactChange(op.name, change.before, change.after) : {}),
    ...(result ? { result } : {}),
  })
}

/** Returns the part of a row that does not depend on the operation. */
export const toAuditBase = (
  actor: Actor,
  { door, client, confirmed, requestId }: CallTrace,
  { at, outcome, code = null }: Pick<CallOutcome, 'at' | 'outcome' | 'code'>,
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
  approved_by: actor.approvedBy?.staffId ?? null,
})

/** Returns the row of the audit trail for a call. */
export const toAuditEntry = (call: AuditedCall, outcome: CallOutcome): AuditEntry => {
  const location = getLocation(call.op)
  const target = toTarget(location, call.input, outcome.output)
  return {
    ...toAuditBase(call.actor, call.trace, outcome),
    operation: call.op.name,
    target,
    dry_run: call.dryRun,
    changes: toChanges(call, outcome, location, target),
  }
}

/** Returns the outcome of a successful run of the handler. */
export const toSuccess = (output: unknown, { change }: PendingWrites): Omit<CallOutcome, 'at'> => ({
  outcome: 'done',
  output: output as Record<string, unknown>,
  change,
})

/** What may be done again tomorrow. */
const BUDGET_REASONS = new Set<unknown>(['phone_budget', 'contact_budget'])

/**
 * Returns the outcome of a call that ended with a problem: `refused` when it was not permitted (any more
 * today) or not confirmed, otherwise `failed`.
 */
export const toFailure = (problem: Problem): Omit<CallOutcome, 'at'> => ({
  outcome:
    problem.status === 403 || problem.code === 'confirm_required' || BUDGET_REASONS.has(problem.extras.reason)
      ? 'refused'
      : 'failed',
  code: problem.code,
})
