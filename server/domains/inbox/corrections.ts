import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import {
  type EpisodeRow,
  findSettledTime,
  hasLateWait,
  loadEpisodes,
  loadExchange,
  loadWaits,
  replaceWaits,
  updateReplyState,
  type WaitRow,
} from '../../../storage/conversations/reply-corrections.ts'
import { invalidateReports } from '../reports/invalidate.ts'
import type { ChangeContext } from '../../change-context.ts'
import { resumeEpisode, toEventConversation } from './lifecycle.ts'
import { type Replayed, type ReplayedWait, replayReplies } from './replay.ts'
import { computeNextResponseDue } from './sla.ts'

/** Whose status changed. `episode`: that in which it was written. */
export type CorrectedMessage = { id: string; created_at: string; episode: number }

/** What a conversation was before its replies were counted again, and what it is. */
type Correction = {
  replayed: Replayed
  episode: EpisodeRow
  stored: readonly WaitRow[]
  waits: WaitRow[]
  changes: WaitChanges
  /** What is here is from this time on; undefined: all of the episodes. */
  replayFrom: string | undefined
}

/** Waits that are not there any more as they were, and those that are there now. */
type WaitChanges = { removed: WaitRow[]; added: WaitRow[] }

/** Compares the waits of the same episodes: of a conversation that is never closed there may be very many. */
const findChanges = (stored: readonly WaitRow[], waits: readonly WaitRow[]): WaitChanges => {
  const toKey = (wait: WaitRow): string =>
    JSON.stringify([wait.since, wait.kind, wait.episode, wait.due_at, wait.ended_at, wait.ended_by])
  const [before, after] = [new Set(stored.map(toKey)), new Set(waits.map(toKey))]
  return {
    removed: stored.filter((wait) => !after.has(toKey(wait))),
    added: waits.filter((wait) => !before.has(toKey(wait))),
  }
}

/**
 * Counts the replies of a locked conversation again, from the episode of a message on: waits, reply status,
 * clocks and first responses become those of the messages that the provider accepted and that did not fail.
 * `resume`: may reopen the conversation before its clocks are written. Returns undefined without episodes.
 */
const recount = async (
  context: ChangeContext,
  conversation: ConversationState,
  message: CorrectedMessage,
  resume: (correction: Correction) => Promise<void>,
): Promise<Correction | undefined> => {
  const { tx, workspaceId } = context
  const all = await loadEpisodes(tx, workspaceId, conversation.id)
  const affected = all.slice(findFirstAffected(all, message.episode))
  const episode = affected.at(-1)
  if (!episode || episode.n !== conversation.episode) return undefined
  // Of a conversation that is never closed there may be very many messages: those after the reply before are enough.
  const replayFrom =
    episode.n === message.episode
      ? await findSettledTime(tx, workspaceId, conversation.id, message, episode)
      : undefined
  const episodes = replayFrom === undefined ? affected : [episode]
  const stored = await loadWaits(tx, workspaceId, conversation.id, replayFrom)
  const from = episodes[0]!.n
  const { messages, before } = await loadExchange(tx, workspaceId, conversation.id, from, replayFrom)
  const start = { status: before, isSettled: replayFrom !== undefined }
  const replayed = replayReplies(episodes, messages, stored, start)
  const waits = await resolveDeadlines(context, conversation, replayed)
  const changes = findChanges(
    stored.filter((wait) => wait.episode >= from),
    waits,
  )
  await replaceWaits(tx, workspaceId, conversation.id, changes, replayed.firstResponses)
  const correction = { replayed, episode, stored, waits, changes, replayFrom }
  await resume(correction)
  await writeState(context, conversation, correction)
  await invalidateReportsOf(context, message, correction)
  return correction
}

/**
 * Corrects a locked conversation after a message was confirmed late: it answered the customer when it was
 * written, whatever happened since.
 */
export const recountReplies = async (
  context: ChangeContext,
  conversation: ConversationState,
  message: CorrectedMessage,
): Promise<void> => {
  await recount(context, conversation, message, async () => {})
}

/** The events of a reply that fails afterwards. */
export type CorrectionEvent = 'conversation.reply_failed/1' | 'conversation.reopened/1'

/**
 * Corrects a locked conversation after a message to the customer failed that may have counted as a reply, or
 * counts again although it had failed. A conversation that was closed after the message, in the belief that it
 * had answered the customer, is reopened. `isNew`: the message did not count before this transaction, so that
 * nothing but a reopened conversation is told.
 */
export const correctReplies = async (
  context: ChangeContext<CorrectionEvent>,
  conversation: ConversationState,
  message: CorrectedMessage,
  { isNew }: { isNew: boolean },
): Promise<void> => {
  const wasClosed = conversation.state === 'closed'
  const correction = await recount(context, conversation, message, async ({ replayed, episode, waits }) => {
    if (wasClosed && wasClosedAfter(message, replayed, episode))
      await resumeEpisode(context, conversation, waits.at(-1)!)
  })
  const open = correction?.waits.find((wait) => wait.ended_at === null)
  const before = correction?.stored.find((wait) => wait.ended_at === null)
  if (open && open.since !== before?.since && (wasClosed || !isNew))
    context.emit('conversation.reply_failed/1', {
      conversation: toEventConversation(conversation),
      message_id: message.id,
      waiting_since: open.since,
    })
}

/** A wait that went on over a close began in an earlier episode, which is replayed too. */
const findFirstAffected = (episodes: readonly EpisodeRow[], episode: number): number => {
  let index = episodes.findIndex(({ n }) => n === episode)
  while (index > 0 && episodes[index]!.resumed) index--
  return index < 0 ? episodes.length : index
}

const resolveDeadlines = async (
  context: ChangeContext,
  conversation: ConversationState,
  { waits }: Replayed,
): Promise<WaitRow[]> => {
  const resolved: WaitRow[] = []
  for (const { due, endedBy: _, ...wait } of waits)
    resolved.push({
      ...wait,
      due_at:
        'at' in due ? due.at : await computeNextResponseDue({ ...context, now: due.from }, conversation),
    })
  return resolved
}

/**
 * Whether the customer, who waited when the message was written, had no other reply when the latest episode
 * was closed after it, and has none since.
 */
const wasClosedAfter = (
  { created_at: at }: CorrectedMessage,
  { waits, replyStatus }: Replayed,
  { n, closed_at: closedAt }: EpisodeRow,
): boolean => {
  const last: ReplayedWait | undefined = waits.at(-1)
  return (
    replyStatus === 'incoming_no_reply' &&
    last?.endedBy === 'close' &&
    last.episode === n &&
    closedAt !== null &&
    at >= last.since &&
    at <= closedAt
  )
}

const writeState = async (
  context: ChangeContext,
  conversation: ConversationState,
  { replayed: { replyStatus }, episode: current, waits, replayFrom }: Correction,
): Promise<void> => {
  const open = waits.find((wait) => wait.ended_at === null)
  const dueOf = (kind: WaitRow['kind']): string | null => (open?.kind === kind ? open.due_at : null)
  const isLate = (due: string | null, at: string | null): boolean => due !== null && at !== null && due < at
  const state = {
    reply_status: replyStatus,
    first_response_due_at: dueOf('first_response'),
    next_response_due_at: dueOf('next_response'),
    sla_breached:
      waits.some((wait) => wait.episode === conversation.episode && isLate(wait.due_at, wait.ended_at)) ||
      (conversation.episode === current.n && isLate(current.resolution_due_at, current.closed_at)) ||
      (replayFrom !== undefined &&
        conversation.episode === current.n &&
        (await hasLateWait(context.tx, context.workspaceId, conversation.id, {
          episode: current.n,
          before: replayFrom,
        }))),
  }
  Object.assign(conversation, state)
  await updateReplyState(
    context.tx,
    context.workspaceId,
    conversation.id,
    { ...state, ...(open ? { waiting_since: open.since } : {}) },
    context.now,
  )
}

/** Stored reports of the days on which something was counted differently are not used any more. */
const invalidateReportsOf = async (
  { tx, workspaceId, now }: ChangeContext,
  message: CorrectedMessage,
  { changes: { removed, added } }: Correction,
): Promise<void> => {
  const times = [...removed, ...added].flatMap(({ since, due_at: due, ended_at: end }) => [since, due, end])
  const earliest = times.reduce<string>(
    (min, time) => (time !== null && time < min ? time : min),
    message.created_at,
  )
  await invalidateReports(tx, workspaceId, earliest, now)
}
