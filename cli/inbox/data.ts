import { isCliError } from '../error.ts'
import type { StreamedEvent } from '../event-stream.ts'
import type { ThreadMessage } from '../thread.ts'
import { retryAfterSeconds } from '../remote.ts'
import { type Api, describeFailure, isFatal } from './api.ts'
import { type Conversation, type InboxState, showsApprovals, views } from './state.ts'

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
  /** Counts loads of the list and of the conversation, so that an answer that was overtaken is dropped. */
  loads: number
  threadLoads: number
  timer: NodeJS.Timeout | undefined
  limitTimer: NodeJS.Timeout | undefined
  /** When the views were counted last, in milliseconds of this machine. */
  countedAt: number
}

const PAGE_SIZE = 50
/** Pages that are read again after a change; rows beyond them come back when they are scrolled to. */
const MAX_REFRESHED_PAGES = 4
const MESSAGES_SHOWN = 100

/** Tells the person at the screen, until the next key. */
export const notify = (inbox: Inbox, text: string): void => {
  inbox.state.notice = text
  inbox.changed()
}

/** Tells a failure. A key that no longer works ends all work; a rate limit is waited out, and then read again. */
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

/** Reads again all that is shown. */
export const reloadAll = (inbox: Inbox): void => {
  void loadList(inbox)
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
  { total, total_is_lower_bound: isMore }: Counted,
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

const searchInput = ({ view, search }: InboxState): object => ({
  ...views[view]!.input,
  ...(search === '' ? {} : { query: search }),
  limit: PAGE_SIZE,
})

/** Keeps the cursor on its conversation; if that is gone, on the one that has its place. */
const keepSelection = (state: InboxState, before: readonly Conversation[]): void => {
  if (state.rows.some(({ id }) => id === state.selected)) return
  const place = before.findIndex(({ id }) => id === state.selected)
  state.selected = state.rows[Math.min(Math.max(place, 0), state.rows.length - 1)]?.id
}

/** Reads the list of the current view, as far as it was read before. */
export const loadList = async (inbox: Inbox): Promise<void> => {
  const { state } = inbox
  if (showsApprovals(state)) return
  const load = ++inbox.loads
  const pages = Math.min(MAX_REFRESHED_PAGES, Math.max(1, Math.ceil(state.rows.length / PAGE_SIZE)))
  state.isLoading = true
  inbox.changed()
  try {
    const rows: Conversation[] = []
    let cursor: string | null = null
    let first: Counted = {}
    for (let page = 0; page < pages && (page === 0 || cursor !== null); page++) {
      const input = { ...searchInput(state), ...(cursor === null ? { count: true } : { cursor }) }
      const { value } = await inbox.api('inbox_search_conversations', input)
      if (load !== inbox.loads) return
      rows.push(...(value['data'] as Conversation[]))
      cursor = value['next_cursor'] as string | null
      if (page === 0) first = value
    }
    const before = state.rows
    Object.assign(state, { rows: sortRows(rows), cursor, isLoading: false })
    setCount(state, state.view, first)
    keepSelection(state, before)
    inbox.changed()
    await countViews(inbox)
  } catch (error) {
    if (load !== inbox.loads) return
    state.isLoading = false
    reportFailure(inbox, error)
  }
}

/** Reads the next page of the list, if there is one. */
export const loadMore = async (inbox: Inbox): Promise<void> => {
  const { state } = inbox
  if (state.cursor === null || state.isLoading) return
  const load = ++inbox.loads
  state.isLoading = true
  try {
    const { value } = await inbox.api('inbox_search_conversations', {
      ...searchInput(state),
      cursor: state.cursor,
    })
    if (load !== inbox.loads) return
    const known = new Set(state.rows.map(({ id }) => id))
    const rows = (value['data'] as Conversation[]).filter(({ id }) => !known.has(id))
    state.rows = [...state.rows, ...rows]
    state.cursor = value['next_cursor'] as string | null
  } catch (error) {
    if (load === inbox.loads) reportFailure(inbox, error)
  } finally {
    if (load === inbox.loads) state.isLoading = false
    inbox.changed()
  }
}

export const showView = async (inbox: Inbox, view: number, search = ''): Promise<void> => {
  const { state } = inbox
  Object.assign(state, { view, search, rows: [], cursor: null, selected: undefined })
  state.marked.clear()
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
      Object.assign(state, { thread: undefined, focus: 'list' })
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

/** Tells who writes in the open conversation what happened to it meanwhile. */
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
  inbox.timer ??= setTimeout(() => {
    inbox.timer = undefined
    void loadList(inbox)
  }, REFRESH_AFTER_MS)
}
