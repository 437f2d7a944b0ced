import type { AskReason } from '../../../catalog/approvals.ts'
import type { Operation } from '../../../catalog/index.ts'
import { type KeyPolicy, weekdays } from '../../../catalog/policy.ts'
import { findEventConsumer } from '../../../storage/events/consumers.ts'
import { type BoundFacts, findBoundFacts } from '../../../storage/agents/policy.ts'
import { lockContact } from '../../../storage/contacts/contacts.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import { businessTime, toMinuteOfDay } from '../../clock.ts'
import { toWindow } from '../../domains/inbox/window.ts'
import type { Db } from '../../../storage/database.ts'
import { findSendingChannel } from '../../domains/messaging/channels.ts'
import { changesMany } from '../snapshot/touched.ts'
import { listFiltersOfCall } from '../../domains/saved-filters/naming.ts'
import { canSeeChannel, listVisibleChannels } from '../../visibility/policy.ts'
import type { App } from '../../app.ts'
import {
  asksForConsumer,
  getDecision,
  getPolicy,
  isLeftOpen,
  mayRunUnasked,
  MOVES_CONSUMERS,
} from '../../agent-policy.ts'
import type { Call } from '../../kernel/call.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem } from '../../kernel/problem.ts'
import { type SendCount, SENDS_MANY } from './send-count.ts'

type Input = Record<string, unknown>

/** Whether a time is within the hours, which may go over midnight: such a night belongs to the day it begins. */
const isWithinHours = (
  { days, from, to }: NonNullable<KeyPolicy['bounds']['hours']>,
  now: string,
  timezone: string,
): boolean => {
  const time = Temporal.Instant.from(now).toZonedDateTimeISO(timezone)
  const minute = time.hour * 60 + time.minute
  const isDay = (dayOfWeek: number): boolean => days.includes(weekdays[(dayOfWeek + 6) % 7]!)
  const [start, end] = [toMinuteOfDay(from), toMinuteOfDay(to)]
  if (start < end) return isDay(time.dayOfWeek) && minute >= start && minute < end
  return (isDay(time.dayOfWeek) && minute >= start) || (isDay(time.dayOfWeek - 1) && minute < end)
}

const toText = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** `lock`: its contact too, which everything that locks both locks first. */
const findLockedFacts = async (
  db: Db,
  workspaceId: string,
  target: { conversationId: string } | { contactId: string; channelId: string | undefined },
  lock: boolean,
): Promise<BoundFacts | undefined> => {
  const facts = await findBoundFacts(db, workspaceId, target)
  if (!lock || !facts) return facts
  if (facts.contact_id !== null) await lockContact(db, workspaceId, facts.contact_id)
  return await findBoundFacts(db, workspaceId, { ...target, lock })
}

/**
 * Returns the conversation that a call is about: the one it names, or that of its contact on the channel on which the
 * call sends; undefined when there is none that the caller may see, so that no bound tells of one. A phone is not
 * looked up, so that no bound tells whether a contact has it.
 */
const findFacts = async (
  db: Db,
  actor: Actor,
  input: Input,
  lock: boolean,
): Promise<BoundFacts | undefined> => {
  const conversationId = toText(input['conversation_id'])
  const contactId = toText(input['contact_id'])
  const target =
    conversationId === null
      ? contactId && {
          contactId,
          channelId: toText(input['channel_id']) ?? (await findSendingChannel(db, actor, contactId))?.id,
        }
      : { conversationId }
  if (!target || ('channelId' in target && target.channelId === undefined)) return undefined
  const facts = await findLockedFacts(db, actor.workspace.id, target, lock)
  const isVisible =
    listVisibleChannels(actor) === null || (facts?.channel_id && canSeeChannel(actor, facts.channel_id))
  return isVisible ? facts : undefined
}

const isTemplateOutside = (input: Input, templates: readonly string[]): boolean => {
  const { template } = input as { template?: { name?: string } }
  return template?.name !== undefined && !templates.includes(template.name)
}

const asksForNamedConsumer = async (app: App, actor: Actor, input: Input): Promise<boolean> => {
  const row = await findEventConsumer(app.db, actor.workspace.id, toText(input['consumer']) ?? '')
  return row !== undefined && asksForConsumer(actor, row)
}

/**
 * Returns the bounds on the state of a conversation that a call which is allowed does not meet: the window, of sends;
 * `assigned`, of every change of a conversation. `lock`: for the transaction that makes the change.
 */
const listUnmetByConversation = async (
  db: Db,
  actor: Actor,
  op: Operation,
  { input, now, lock }: { input: Input; now: string; lock: boolean },
): Promise<AskReason[]> => {
  const { bounds } = getPolicy(actor)
  const isSend = op.confirm === 'send'
  // Many at once are never known to be the agent's own.
  const isOfConversations = 'conversation_id' in op.input.shape || 'conversation_ids' in op.input.shape
  const needsAssigned = bounds.assigned && (isSend || isOfConversations)
  const needsWindow = isSend && bounds.window_open
  if (!needsAssigned && !needsWindow) return []
  const facts = await findFacts(db, actor, input, lock)
  return [
    ...(needsWindow && !(facts && toWindow(facts, now).open) ? ['window_open' as const] : []),
    ...(needsAssigned && facts?.assigned_staff_id !== actor.staff.id ? ['assigned' as const] : []),
  ]
}

/**
 * Returns the bounds that a call which is allowed does not meet: those of its conversation; of sends, the templates,
 * the hours and the count. A consumer of the event log that somebody else reads by is one too, unless the policy names
 * the operation: moved on, it would lose events. So is what saved filters name and the call renames or deletes.
 */
const listUnmetBounds = async (app: App, actor: Actor, op: Operation, input: Input): Promise<AskReason[]> => {
  const { bounds } = getPolicy(actor)
  const isSend = op.confirm === 'send'
  const now = businessTime(app, actor.workspace.id)
  const unmet = await listUnmetByConversation(app.db, actor, op, { input, now, lock: false })
  if (isSend && bounds.templates && isTemplateOutside(input, bounds.templates)) unmet.push('templates')
  if (op.name === MOVES_CONSUMERS && (await asksForNamedConsumer(app, actor, input))) unmet.push('operation')
  const isMany = op.name === SENDS_MANY
  if (isSend && bounds.hours && (isMany || !isWithinHours(bounds.hours, now, actor.workspace.timezone)))
    unmet.push('hours')
  if (isMany && bounds.sends_per_hour !== undefined) unmet.push('sends_per_hour')
  if (isLeftOpen(actor, op) && (await listFiltersOfCall(app.db, actor.workspace.id, op, input)).length > 0)
    unmet.push('saved_filters')
  return unmet
}

const deniedProblem = (op: Operation): Problem =>
  new Problem(
    'forbidden',
    `The policy of this key denies ${op.name}. workspace_whoami shows the policy; a person may make the call.`,
    { reason: 'denied_by_policy' },
  )

/**
 * Decides on a change of an agent's key. Returns why a person is asked; empty when it may run, which counts it
 * where sends are limited. Throws 403 `denied_by_policy`.
 */
export const applyPolicy = async (
  app: App,
  { actor, op, input, consent }: Call,
  count: SendCount,
): Promise<AskReason[]> => {
  const { decision, by } = getDecision(actor, op, input)
  if (decision === 'deny') throw deniedProblem(op)
  if (mayRunUnasked(actor, consent)) {
    await count.take(false)
    return []
  }
  if (decision === 'ask') return [by]
  const unmet = await listUnmetBounds(app, actor, op, input)
  if (unmet.length > 0) return unmet
  return (await count.take(true)) ? [] : ['sends_per_hour']
}

/** Whether the bounds of the policy hold for an approved call, but for those that were the reason to ask. */
const isBoundedThough = (
  actor: Actor,
  op: Operation,
  input: Input,
  askedFor: readonly AskReason[],
): boolean =>
  getDecision(actor, op, input).decision === 'allow' &&
  !askedFor.includes('verb') &&
  !askedFor.includes('operation')

/** Throws 403 `denied_by_policy`. */
const requireOverridden = (unmet: readonly AskReason[], askedFor: readonly AskReason[]): void => {
  const first = unmet.find((bound) => !askedFor.includes(bound))
  if (first === undefined) return
  throw new Problem(
    'forbidden',
    `The call was approved, but the bound ${first} of the key's policy is not met any more.`,
    { reason: 'denied_by_policy' },
  )
}

/** Checks the bounds on its conversation in the transaction of an approved call. Throws 403 `denied_by_policy`. */
export const requireApprovedBounds = async (
  app: App,
  tx: Db,
  { actor, op, input }: { actor: Actor; op: Operation; input: Input },
  askedFor: readonly AskReason[],
): Promise<void> => {
  if (!isBoundedThough(actor, op, input, askedFor)) return
  const now = businessTime(app, actor.workspace.id)
  requireOverridden(await listUnmetByConversation(tx, actor, op, { input, now, lock: true }), askedFor)
}

/**
 * Checks an approved call again when it runs: the approval stands for what was asked for, and for nothing else.
 * Throws 403 `denied_by_policy`.
 */
export const applyPolicyToApproved = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Input,
  askedFor: readonly AskReason[],
): Promise<void> => {
  if (getDecision(actor, op, input).decision === 'deny') throw deniedProblem(op)
  if (isBoundedThough(actor, op, input, askedFor))
    requireOverridden(await listUnmetBounds(app, actor, op, input), askedFor)
}

/**
 * Checks in the transaction of a change what its policy was applied to before: somebody may have changed the
 * conversation since, which now stays until the end. Throws 409 where the same call would be asked for.
 */
export const requireBounds = async (
  app: App,
  tx: Db,
  actor: Actor,
  op: Operation,
  input: Input,
): Promise<void> => {
  const now = businessTime(app, actor.workspace.id)
  const [first] = await listUnmetByConversation(tx, actor, op, { input, now, lock: true })
  if (first !== undefined)
    throw new Problem(
      'conflict',
      `The bound ${first} of the key's policy was met a moment ago, and is not any more. Retry: a person is asked.`,
      { reason: 'still_running' },
    )
}

/**
 * Returns why a person is asked about a change of an agent, by the events of its transaction, which is still open: it
 * changes several records that were there before. What a job changes can be undone, and is none of its events.
 */
export const listQuestions = (
  actor: Actor,
  op: Operation,
  events: readonly EventRow[],
): AskReason[] | undefined =>
  actor.key.agent && isLeftOpen(actor, op) && changesMany(events) ? ['many'] : undefined

/** Whether a person would be asked about a call; for dry runs, which count nothing. */
export const wouldAsk = async (app: App, actor: Actor, op: Operation, input: Input): Promise<boolean> => {
  const { decision } = getDecision(actor, op, input)
  return (
    decision === 'ask' || (decision === 'allow' && (await listUnmetBounds(app, actor, op, input)).length > 0)
  )
}
