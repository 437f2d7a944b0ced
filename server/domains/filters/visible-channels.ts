import type { ContactFilter, FlagTest, TimeTest } from '../../../storage/filters/filter.ts'
import type { Actor } from '../../kernel/context.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'

/*
 * Conditions on conversations and broadcasts are about those of the channels that the actor may see, as if
 * there were no others. The limit is a condition of its own, so that every way of finding contacts has it:
 * the predicate, the candidates and the counts.
 */

const ofChannels = (channels: readonly string[]) =>
  ({ field: 'channelId', test: { op: 'in', values: channels } }) as const

/** Returns the condition that limits related records of this kind to visible channels; none for others. */
export const listChannelLimits = (
  actor: Actor,
  relation: string,
): readonly ReturnType<typeof ofChannels>[] => {
  const channels = listVisibleChannels(actor)
  const isOfChannel = relation === 'conversations' || relation === 'broadcasts'
  return channels !== null && isOfChannel ? [ofChannels(channels)] : []
}

/**
 * Returns a test of `lastActivityAt`. For staff who may see some channels only it is the latest activity of
 * the conversations on those, as the contact is shown to them.
 */
const toActivityFilter = (actor: Actor, test: TimeTest): ContactFilter => {
  const channels = listVisibleChannels(actor)
  if (channels === null) return { kind: 'time', field: 'lastActivityAt', test }
  const limit = ofChannels(channels)
  const has = (quantifier: 'some' | 'none', when: TimeTest): ContactFilter => ({
    kind: 'conversations',
    quantifier,
    where: [{ field: 'lastActivityAt', test: when }, limit],
  })
  return compareLatest(has, test)
}

const everyContact: ContactFilter = { kind: 'and', of: [] }

/** Returns a test of `awaitingReply`, which every contact has: whether one of the visible conversations waits. */
const toAwaitingFilter = (actor: Actor, test: FlagTest): ContactFilter => {
  if (test.op === 'isNull') return test.value ? { kind: 'not', of: everyContact } : everyContact
  return {
    kind: 'conversations',
    quantifier: (test.op === 'eq') === test.value ? 'some' : 'none',
    where: [{ field: 'awaitingReply' }, ...listChannelLimits(actor, 'conversations')],
  }
}

/** Returns a test of when the customer last wrote, or was written to, in the visible conversations. */
const toExchangeFilter = (
  actor: Actor,
  field: 'lastInboundAt' | 'lastOutboundAt',
  test: TimeTest,
): ContactFilter =>
  compareLatest(
    (quantifier, when) => ({
      kind: 'exchanges',
      quantifier,
      where: [{ field, test: when }, ...listChannelLimits(actor, 'conversations')],
    }),
    test,
  )

/** Returns a test of `neverAnswered`, which every contact has, by what the visible conversations say. */
const toNeverAnsweredFilter = (actor: Actor, test: FlagTest): ContactFilter => {
  if (test.op === 'isNull') return test.value ? { kind: 'not', of: everyContact } : everyContact
  return {
    kind: 'exchanges',
    quantifier: (test.op === 'eq') === test.value ? 'some' : 'none',
    where: [
      { field: 'neverAnswered', channels: listVisibleChannels(actor) },
      ...listChannelLimits(actor, 'conversations'),
    ],
  }
}

/**
 * The latest of some times is at least a bound when one is, and at most a bound when one is and there is no later one.
 * The condition on one is as narrow as it can be: contacts are looked for by it.
 */
const compareLatest = (
  has: (quantifier: 'some' | 'none', when: TimeTest) => ContactFilter,
  test: TimeTest,
): ContactFilter => {
  const isPresent = has('some', { op: 'isNull', value: false })
  const all = (...of: ContactFilter[]): ContactFilter => ({ kind: 'and', of })
  switch (test.op) {
    case 'isNull':
      return test.value ? has('none', { op: 'isNull', value: false }) : isPresent
    case 'gt':
    case 'gte':
      return has('some', test)
    case 'lt':
      return all(has('some', test), has('none', { op: 'gte', value: test.value }))
    case 'lte':
      return all(has('some', test), has('none', { op: 'gt', value: test.value }))
    case 'eq':
      return all(has('some', test), has('none', { op: 'gt', value: test.value }))
    case 'ne':
      return all(isPresent, {
        kind: 'not',
        of: all(has('some', { op: 'eq', value: test.value }), has('none', { op: 'gt', value: test.value })),
      })
    case 'between':
      return all(has('some', test), has('none', { op: 'gt', value: test.to }))
  }
}

/** Fields of a contact that say what happened in its conversations, by those that the actor may see. */
export const conversationFields: Readonly<
  Record<string, (actor: Actor, test: TimeTest & FlagTest) => ContactFilter>
> = {
  lastActivityAt: toActivityFilter,
  awaitingReply: toAwaitingFilter,
  lastInboundAt: (actor, test) => toExchangeFilter(actor, 'lastInboundAt', test),
  lastOutboundAt: (actor, test) => toExchangeFilter(actor, 'lastOutboundAt', test),
  neverAnswered: toNeverAnsweredFilter,
}
