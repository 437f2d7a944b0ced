import { isCliError } from '../error.ts'
import type { StreamedEvent } from '../event-stream.ts'
import type { ThreadMessage } from '../thread.ts'
import { retryAfterSeconds } from '../remote.ts'
import { type Api, describeFailure, isFatal } from './api.ts'
import { belongsTo, type Conversation, type InboxState, showsApprovals, views } from './state.ts'

/**
 * The inbox as the modules that change it know it. `changed` draws it anew; `keepDrafts` stores the drafts;
 * `approvalsChanged` reads what waits for a decision.
 */
export type Inbox = {
  readonly state: InboxState
  readonly api: Api
  readonly changed: () => void
  readonly keepDrafts: () => void
  readonly approvalsChanged: () => void
  /** Puts a text into the clipboard of the terminal. */
  readonly copy: (text: string) => void
  /** Runs a command as a shell would. Resolves to what it printed, and its exit code. */
  readonly runCommand: (words: readonly string[]) => Promise<{ printed: string; exitCode: number }>
  /** Counts what the list and the conversation were opened for, so that an answer that was overtaken is dropped. */
  loads: number
  threadLoads: number
  /** Reads of the list run one after another; `waiting` is one that has not begun, and serves all who want it. */
  turn: Promise<void>
  waiting: Promise<void> | undefined
  isLoadingMore: boolean
  /** The rows of the list in the order of the server. */
  read: readonly Conversation[]
  /** Conversations that changed since the list was read. */
  readonly changedIds: Set<string>
  timer: NodeJS.Timeout | undefined
  limitTimer: NodeJS.Timeout | undefined
  /** When the views were counted last, in milliseconds of this machine. */
  countedAt: number
}

const PAGE_SIZE = 100
/** Rows that are read again after a change. Of those below them, only what has changed is, unless that is much. */
const MAX_REFRESHED = 200
const MAX_CHANGED_BELOW = 20
const MESSAGES_SHOWN = 100

/** Shows a notice until the next key. */
export const notify = (inbox: Inbox, text: string): void => {
  inbox.state.notice = text
  inbox.changed()
}

/** Reports a failure. A key that no longer works ends all work; after a rate limit the list is read again. */
export const reportFailure = (inbox: Inbox, error: unknown): void => {
  const { state } = inbox
  if (isFatal(error)) state.fatal = describeFailure(error)
  const seconds = retryAfterSeconds(error)
  if (seconds !== undefined) {
    state.limitedUntil = Date.now() + seconds * 1000
    clearTimeout(inbox.limitTimer)
    inbox.limitTimer = setTimeout(() => {
      state.limitedUntil = undefined
      reloadAll(inbox)
    }, seconds * 1000)
  }
  notify(inbox, describeFailure(error))
}

/** Reads again all that is shown, as far as it was read before. */
export const reloadAll = (inbox: Inbox): void => {
  void loadList(inbox, Infinity)
  inbox.approvalsChanged()
  if (inbox.state.thread) void loadThread(inbox, inbox.state.thread.id)
}

/** Failed deliveries stand on top, otherwise in the order of the server. */
const sortRows = (rows: readonly Conversation[]): readonly Conversation[] =>
  rows.toSorted(
    (a, b) => Number(b.last_message?.status === 'failed') - Number(a.last_message?.status === 'failed'),
  )

type Counted = { readonly total?: unknown; readonly total_is_lower_bound?: unknown }

/** Views are counted at most this often: each count is a call. */
const COUNT_EVERY_MS = 15_000

/** Keeps the rows of a view as they are shown; none where they were not counted, as in a search. */
const setCount = (
  state: InboxState,
  view: number,
  { total, total_is_lower_bound: isMore }: Counted = {},
): void => {
  const count = typeof total === 'number' ? `${total}${isMore === true ? '+' : ''}` : undefined
  state.counts = views.map((_, i) => (i === view ? count : state.counts[i]))
}

const countViews = async (inbox: Inbox): Promise<void> => {
  const { state } = inbox
  if (Date.now() - inbox.countedAt < COUNT_EVERY_MS) return
  inbox.countedAt = Date.now()
  for (const [i, { input, isCounted }] of views.entries()) {
    if (!isCounted || i === state.view) continue
    try {
      const { value } = await inbox.api('inbox_search_conversations', { ...input, limit: 1, count: true })
      setCount(state, i, value)
    } catch {
      return
    }
  }
  inbox.changed()
}

/** A cursor belongs to all of this, `count` too, which counts on the first page alone. */
const searchInput = ({ view, search }: InboxState): object => ({
  ...views[view]!.input,
  ...(search === '' ? {} : { query: search }),
  limit: PAGE_SIZE,
  count: true,
})

/** Keeps the cursor on its conversation; if that is gone, on the one that has its place. */
const keepHighlighted = (state: InboxState, before: readonly Conversation[]): void => {
  if (state.rows.some(({ id }) => id === state.highlighted)) return
  const place = before.findIndex(({ id }) => id === state.highlighted)
  state.highlighted = state.rows[Math.min(Math.max(place, 0), state.rows.length - 1)]?.id
}

/** Runs a read of the list when those before it are done, unless another list was opened meanwhile. */
const takeTurn = (inbox: Inbox, read: (isCurrent: () => boolean) => Promise<void>): Promise<void> => {
  const load = inbox.loads
  const isCurrent = (): boolean => load === inbox.loads
  inbox.turn = inbox.turn.then(async () => {
    if (!isCurrent()) return
    try {
      await read(isCurrent)
    } catch (error) {
      if (isCurrent()) reportFailure(inbox, error)
    }
  })
  return inbox.turn
}

/** Reads one conversation anew. Returns undefined when it is gone, or no longer in the view. */
const readRow = async (inbox: Inbox, id: string): Promise<Conversation | undefined> => {
  const { state, api } = inbox
  try {
    const { value } = await api('inbox_get_conversation', { conversation_id: id })
    const row = value as unknown as Conversation
    return belongsTo(views[state.view]!, row, state.me.staffId) ? row : undefined
  } catch (error) {
    if (isCliError(error) && error.exitCode === 3) return undefined
    throw error
  }
}

/** Returns the rows below those that were read anew, with what has changed of them. */
const refreshBelow = async (
  inbox: Inbox,
  read: readonly Conversation[],
  changed: ReadonlySet<string>,
): Promise<Conversation[]> => {
  const before = inbox.read
  const known = new Set(read.map(({ id }) => id))
  const from = before.findLastIndex(({ id }) => known.has(id)) + 1
  const rows: Conversation[] = []
  for (const row of before.slice(from)) {
    const now = changed.has(row.id) ? await readRow(inbox, row.id) : row
    if (now) rows.push(now)
  }
  return rows
}

/** How many rows are read anew: many changes below the first ones take the whole list. */
const countRefreshed = ({ read }: Inbox, changed: ReadonlySet<string>, most: number): number => {
  const below = read.slice(MAX_REFRESHED).filter(({ id }) => changed.has(id)).length
  return Math.min(read.length, below > MAX_CHANGED_BELOW ? Infinity : most)
}

/** Shows these rows, and the cursor on its conversation. */
const setRows = (inbox: Inbox, read: readonly Conversation[]): void => {
  const { state } = inbox
  const before = state.rows
  inbox.read = read
  state.rows = sortRows(read)
  keepHighlighted(state, before)
  inbox.changed()
}

const refreshList = async (inbox: Inbox, most: number, isCurrent: () => boolean): Promise<void> => {
  const { state } = inbox
  const changed = new Set(inbox.changedIds)
  inbox.changedIds.clear()
  const wanted = countRefreshed(inbox, changed, most)
  const rows: Conversation[] = []
  let cursor: string | null = null
  let first: Counted | undefined
  do {
    const input = { ...searchInput(state), ...(cursor === null ? {} : { cursor }) }
    const { value } = await inbox.api('inbox_search_conversations', input)
    if (!isCurrent()) return
    rows.push(...(value['data'] as Conversation[]))
    cursor = value['next_cursor'] as string | null
    first ??= value
  } while (rows.length < wanted && cursor !== null)
  const isPart = cursor !== null && rows.length < inbox.read.length
  const below = isPart ? await refreshBelow(inbox, rows, changed) : []
  if (!isCurrent()) return
  if (below.length === 0) state.cursor = cursor
  state.isLoading = false
  setCount(state, state.view, first)
  setRows(inbox, [...rows, ...below])
}

/** Reads the list of the current view; of a long one the first rows, and what has changed below. */
export const loadList = async (inbox: Inbox, most = MAX_REFRESHED): Promise<void> => {
  const { state } = inbox
  if (showsApprovals(state)) return
  if (most <= MAX_REFRESHED && inbox.waiting) return inbox.waiting
  const load = inbox.loads
  const waiting = takeTurn(inbox, async (isCurrent) => {
    if (inbox.waiting === waiting) inbox.waiting = undefined
    await refreshList(inbox, most, isCurrent).finally(() => {
      if (isCurrent()) state.isLoading = false
    })
  })
  inbox.waiting = waiting
  await waiting
  if (load === inbox.loads) await countViews(inbox)
}

/** Reads the next page of the list, if there is one. */
export const loadMore = async (inbox: Inbox): Promise<void> => {
  const { state } = inbox
  if (state.cursor === null || inbox.isLoadingMore) return
  inbox.isLoadingMore = true
  await takeTurn(inbox, async (isCurrent) => {
    if (state.cursor === null) return
    const input = { ...searchInput(state), cursor: state.cursor }
    const { value } = await inbox.api('inbox_search_conversations', input)
    if (!isCurrent()) return
    const known = new Set(inbox.read.map(({ id }) => id))
    const rows = (value['data'] as Conversation[]).filter(({ id }) => !known.has(id))
    state.cursor = value['next_cursor'] as string | null
    setRows(inbox, [...inbox.read, ...rows])
  })
  inbox.isLoadingMore = false
}

export const showView = async (inbox: Inbox, view: number, search = ''): Promise<void> => {
  const { state } = inbox
  Object.assign(state, { view, search, rows: [], cursor: null, highlighted: undefined, isLoading: true })
  Object.assign(inbox, { turn: Promise.resolve(), waiting: undefined, read: [], loads: inbox.loads + 1 })
  state.selection.clear()
  inbox.changed()
  await loadList(inbox)
}

/** Reads the messages of a conversation, and opens it if `open`. */
export const loadThread = async (inbox: Inbox, id: string): Promise<void> => {
  const { state, api } = inbox
  const load = ++inbox.threadLoads
  try {
    const [messages, conversation] = await Promise.all([
      api('inbox_list_messages', { conversation_id: id, limit: MESSAGES_SHOWN }),
      api('inbox_get_conversation', { conversation_id: id }),
    ])
    if (state.thread?.id !== id || load !== inbox.threadLoads) return
    state.thread = {
      ...state.thread,
      conversation: conversation.value as unknown as Conversation,
      messages: (messages.value['data'] as ThreadMessage[]).toReversed(),
      isLoading: false,
    }
    inbox.changed()
  } catch (error) {
    if (state.thread?.id === id && isCliError(error) && error.exitCode === 3) {
      // What lies over the list is not about it.
      if (state.focus !== 'list') Object.assign(state, { overlay: undefined, focus: 'list' })
      state.thread = undefined
      return notify(inbox, 'This conversation is gone. What you wrote is kept in the drafts.')
    }
    reportFailure(inbox, error)
  }
}

export const openThread = async (inbox: Inbox, conversation: Conversation): Promise<void> => {
  const { state } = inbox
  state.thread = {
    id: conversation.id,
    conversation,
    messages: [],
    isLoading: true,
    at: undefined,
    scrolled: 0,
  }
  state.focus = 'thread'
  inbox.changed()
  await loadThread(inbox, conversation.id)
}

/** Events come in bursts; the lists are read once for all of a moment. */
const REFRESH_AFTER_MS = 250

const readConversationId = ({ data }: StreamedEvent): string | undefined => {
  const { conversation, message } = (data ?? {}) as Record<string, Record<string, string> | undefined>
  return conversation?.['id'] ?? message?.['conversation_id']
}

type EventActor = { staff: { id: string | null }; agent: boolean }

/** Returns who else answered a conversation: a colleague, or an AI agent, which may act for the same person. */
const describeOtherAuthor = ({ type, data }: StreamedEvent, { me }: InboxState): string | undefined => {
  const { actor } = data as { actor?: EventActor }
  if (!String(type).startsWith('message.sent') || !actor) return undefined
  if (actor.agent) return 'An AI agent'
  return actor.staff.id === me.staffId ? undefined : 'A colleague'
}

/** Reports what happened to the open conversation while its draft was written. */
const warnOfChange = (inbox: Inbox, id: string, event: StreamedEvent): void => {
  const { state } = inbox
  if ((state.drafts.get(id)?.text ?? '') === '') return
  const author = describeOtherAuthor(event, state)
  if (author !== undefined) {
    state.answeredBy.set(id, author)
    notify(inbox, `${author} has just replied here.`)
  }
  if (String(event['type']).startsWith('conversation.closed'))
    notify(inbox, 'This conversation was just closed.')
}

/** Takes an event of the stream: reads again what it may have changed. */
export const takeEvent = (inbox: Inbox, event: StreamedEvent): void => {
  const { state } = inbox
  if (String(event['type']).startsWith('approval.')) inbox.approvalsChanged()
  const id = readConversationId(event)
  if (id === undefined) return
  if (id === state.thread?.id) {
    void loadThread(inbox, id)
    warnOfChange(inbox, id, event)
  }
  inbox.changedIds.add(id)
  inbox.timer ??= setTimeout(() => {
    inbox.timer = undefined
    void loadList(inbox)
  }, REFRESH_AFTER_MS)
}
