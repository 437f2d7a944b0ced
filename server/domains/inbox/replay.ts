import type { ReplyStatus } from '../../../storage/database.ts'
import type {
  EpisodeRow,
  ExchangedMessage,
  WaitRow,
} from '../../../storage/conversations/reply-corrections.ts'

/**
 * A wait for a reply as it follows from what happened. `endedBy`: what ended it; null while it runs. `due`:
 * the stored deadline of this wait, or the time from which a new one is counted.
 */
export type ReplayedWait = Omit<WaitRow, 'due_at'> & {
  endedBy: 'reply' | 'close' | null
  due: { at: string | null } | { from: string }
}

export type Replayed = {
  waits: ReplayedWait[]
  /** By the number of the episode; null: without a response. */
  firstResponses: Map<number, string | null>
  replyStatus: ReplyStatus | null
}

/** What was before the first of the episodes that are replayed, or before its first message. */
export type ReplayStart = {
  status: ReplyStatus | null
  /** The first episode has a response and no open wait: its messages are those after a reply. */
  isSettled: boolean
}

type Run = {
  /** The stored waits by their beginning, and the earliest first response of each episode. There may be very many. */
  stored: ReadonlyMap<string, WaitRow>
  firsts: ReadonlyMap<number, WaitRow>
  taken: Set<number>
  waits: ReplayedWait[]
  open: ReplayedWait | null
  status: ReplyStatus | null
}

/**
 * Returns a time at which no wait began: the provider reports whole seconds, so that a later wait of the same
 * second begins at the first millisecond that is free, as in `insertWaitParts`.
 */
const toFreeTime = (at: string, taken: ReadonlySet<number>): string => {
  let ms = Date.parse(at)
  while (taken.has(ms)) ms++
  return new Date(ms).toISOString()
}

/**
 * Finds the deadline of a wait among the stored ones. A first response that is not stored at this time is the
 * stored one of its episode.
 */
const findDue = (run: Run, since: string, kind: WaitRow['kind'], episode: number): ReplayedWait['due'] => {
  const stored = run.stored.get(since) ?? (kind === 'first_response' ? run.firsts.get(episode) : undefined)
  return stored ? { at: stored.due_at } : { from: since }
}

const startWait = (run: Run, at: string, kind: WaitRow['kind'], episode: number): void => {
  const since = toFreeTime(at, run.taken)
  const due = findDue(run, since, kind, episode)
  run.open = { since, kind, episode, due, ended_at: null, ended_by: null, endedBy: null }
  run.taken.add(Date.parse(since))
  run.waits.push(run.open)
}

const endWait = (run: Run, at: string, by: string | null, endedBy: 'reply' | 'close'): void => {
  if (!run.open) return
  const { since } = run.open
  Object.assign(run.open, { ended_at: at > since ? at : since, ended_by: by, endedBy })
  run.open = null
}

/** Replays an episode. Returns the time of its first response; null without one. */
const replayEpisode = (
  run: Run,
  {
    n,
    opened_at: openedAt,
    opened_by: openedBy,
    closed_at: closedAt,
    closed_by: closedBy,
    resumed,
  }: EpisodeRow,
  messages: readonly ExchangedMessage[],
  { isLeftOpen, isAnswered }: { isLeftOpen: boolean; isAnswered: boolean },
): string | null => {
  let firstResponse: string | null = null
  if (resumed && run.open) run.open.episode = n
  else if (openedBy !== null && run.status === 'incoming_no_reply')
    startWait(run, openedAt, 'next_response', n)
  const isAfterClose = ({ direction, created_at: at }: ExchangedMessage): boolean =>
    direction === 'outbound' && closedAt !== null && at > closedAt
  const exchange = (message: ExchangedMessage): void => {
    const { direction, created_at: at, staff_id: staffId } = message
    run.status = direction === 'inbound' ? 'incoming_no_reply' : 'outgoing_no_response'
    if (direction === 'outbound') {
      if (!isAfterClose(message)) firstResponse ??= at > openedAt ? at : openedAt
      endWait(run, at, staffId, 'reply')
    } else if (!run.open) {
      const isFirst = !isAnswered && firstResponse === null && openedBy === null && !resumed
      startWait(run, at, isFirst ? 'first_response' : 'next_response', n)
    }
  }
  for (const message of messages) if (!isAfterClose(message)) exchange(message)
  if (closedAt !== null && !(isLeftOpen && !messages.some(isAfterClose)))
    endWait(run, closedAt, closedBy, 'close')
  for (const message of messages) if (isAfterClose(message)) exchange(message)
  return firstResponse
}

/**
 * Derives the waits and first responses of some episodes from their messages, by the rules of `lifecycle.ts`.
 * `episodes`: consecutive, to the latest one. `messages`: theirs, in the order in which they were written or
 * arrived, of those to the customer only the ones that did not fail. `stored`: all waits of the conversation.
 * The first responses of a settled episode are left out: they are what they were.
 */
export const replayReplies = (
  episodes: readonly EpisodeRow[],
  messages: readonly ExchangedMessage[],
  stored: readonly WaitRow[],
  { status, isSettled }: ReplayStart,
): Replayed => {
  const first = episodes[0]?.n ?? 0
  const run: Run = {
    stored: new Map(stored.map((wait) => [wait.since, wait])),
    firsts: new Map(
      stored.toReversed().flatMap((wait) => (wait.kind === 'first_response' ? [[wait.episode, wait]] : [])),
    ),
    taken: new Set(stored.filter((wait) => wait.episode < first).map((wait) => Date.parse(wait.since))),
    waits: [],
    open: null,
    status,
  }
  const byEpisode = Map.groupBy(messages, (message) => message.episode)
  const firstResponses = new Map<number, string | null>()
  for (const [i, episode] of episodes.entries()) {
    const isAnswered = isSettled && i === 0
    const response = replayEpisode(run, episode, byEpisode.get(episode.n) ?? [], {
      isLeftOpen: episodes[i + 1]?.resumed === true,
      isAnswered,
    })
    if (!isAnswered) firstResponses.set(episode.n, response)
  }
  return { waits: run.waits, firstResponses, replyStatus: run.status }
}
