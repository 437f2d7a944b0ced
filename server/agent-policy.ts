import type { AskReason } from '../catalog/approvals.ts'
import type { Operation } from '../catalog/index.ts'
import { type Decision, defaultPolicy, type KeyPolicy } from '../catalog/policy.ts'
import type { EventConsumerRow } from '../storage/events/consumers.ts'
import type { Consent } from './kernel/call.ts'
import type { Actor } from './kernel/context.ts'
import { Problem } from './kernel/problem.ts'

/*
 * What the key of an AI agent may do by itself (catalog/policy.ts). Keys of people have no policy, and pay
 * nothing for those that have one.
 */

type Input = Record<string, unknown>

/** Moves a consumer of the event log, which others may read by. */
export const MOVES_CONSUMERS = 'events_ack'

export const getPolicy = ({ key }: Actor): KeyPolicy => key.policy ?? defaultPolicy

/** By the input alone, so that nothing tells what is stored. */
const asksFor = ({ asks }: Operation, input: Input): boolean =>
  asks === true ||
  Object.entries(asks ?? {}).some(
    ([field, values]) =>
      input[field] !== undefined && (values === true || values?.includes(input[field]) === true),
  )

/**
 * Returns what becomes of a change, bounds aside, and why. `input`: of the call; without one, what becomes of most
 * calls of the operation.
 */
export const getDecision = (
  actor: Actor,
  op: Operation,
  input: Input = {},
): { decision: Decision; by: Extract<AskReason, 'verb' | 'operation'> } => {
  // An agent approves nothing; it may withdraw what it asked for.
  if (op.scope === 'approvals:write') return { decision: op.ownByAgents ? 'allow' : 'deny', by: 'operation' }
  const { operations, verbs } = getPolicy(actor)
  const own = Object.hasOwn(operations, op.name) ? operations[op.name] : undefined
  if (own !== undefined) return { decision: own, by: 'operation' }
  if (op.confirm !== undefined) return { decision: verbs[op.confirm] ?? 'ask', by: 'verb' }
  return { decision: asksFor(op, input) ? 'ask' : 'allow', by: 'operation' }
}

/** Whether the policy says nothing of an operation, so that what it changes decides. */
export const isLeftOpen = (actor: Actor, op: Operation): boolean =>
  op.confirm === undefined && !Object.hasOwn(getPolicy(actor).operations, op.name)

/** Throws 403 where the policy denies the operation, whatever was allowed or approved when its job began. */
export const requireUndenied = (actor: Actor, op: Operation): void => {
  if (!actor.key.agent || getDecision(actor, op).decision !== 'deny') return
  throw new Problem('forbidden', `The policy of the key denies ${op.name}.`, { reason: 'denied_by_policy' })
}

/** Whether the answer of the person behind an MCP client suffices where a person is asked. */
export const mayClientConfirm = (actor: Actor): boolean => getPolicy(actor).approval === 'client'

/** Whether no bound holds for a call: of a person, or confirmed by the one behind the client where that suffices. */
export const mayRunUnasked = (actor: Actor, consent: Consent | undefined): boolean =>
  !actor.key.agent || (consent?.by === 'client' && mayClientConfirm(actor))

/** How long a person may take to decide, in milliseconds. */
export const getApprovalMs = (actor: Actor): number => (getPolicy(actor).expires_after ?? 86_400) * 1000

/** How many requests of an agent may wait for a decision. */
export const getMaxOpenApprovals = (actor: Actor): number => getPolicy(actor).open_approvals ?? 20

/** Whether a person is asked before this agent moves a consumer: no agent of the same staff member made it. */
export const asksForConsumer = (
  actor: Actor,
  { agent_staff_id: madeFor }: Pick<EventConsumerRow, 'agent_staff_id'>,
): boolean => !Object.hasOwn(getPolicy(actor).operations, MOVES_CONSUMERS) && madeFor !== actor.staff.id
