import { randomUUID } from 'node:crypto'
import { describeFailure, mayHaveHappened } from './api.ts'
import { type Inbox, loadThread, notify, reportFailure } from './data.ts'
import {
  type Conversation,
  describeContact,
  describeTargets,
  type Draft,
  explainNoReply,
  getDraft,
  type InboxState,
  type Send,
} from './state.ts'

// The composer: drafts, and replies and notes on their way.

const setDraft = (inbox: Inbox, change: Partial<Draft>): void => {
  const { state } = inbox
  if (!state.thread) return
  state.drafts.set(state.thread.id, { ...getDraft(state), ...change })
  // What was edited is asked about again.
  state.overlay = undefined
  inbox.keepDrafts()
  inbox.changed()
}

/** Indexes of the text where the cursor may stand: between grapheme clusters. */
const boundaries = (text: string): number[] => [
  ...Array.from(
    new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text),
    ({ index }) => index,
  ),
  text.length,
]

export const insertText = (inbox: Inbox, inserted: string): void => {
  const { text, at } = getDraft(inbox.state)
  // Terminals send a carriage return for Enter and within pasted text.
  const clean = inserted.replaceAll(/\r\n?/g, '\n').replaceAll(/(?![\t\n])\p{Cc}/gu, '')
  setDraft(inbox, { text: text.slice(0, at) + clean + text.slice(at), at: at + clean.length })
}

export const moveCursor = (inbox: Inbox, to: 'left' | 'right' | 'home' | 'end'): void => {
  const { text, at } = getDraft(inbox.state)
  const places = boundaries(text)
  const lineStart = text.lastIndexOf('\n', at - 1) + 1
  const lineEnd = text.indexOf('\n', at)
  const found = {
    left: places.findLast((place) => place < at) ?? 0,
    right: places.find((place) => place > at) ?? text.length,
    home: lineStart,
    end: lineEnd === -1 ? text.length : lineEnd,
  }[to]
  setDraft(inbox, { at: found })
}

export const deleteBack = (inbox: Inbox, by: 'character' | 'word' | 'line'): void => {
  const { text, at } = getDraft(inbox.state)
  const before = text.slice(0, at)
  const from = {
    character: boundaries(text).findLast((place) => place < at) ?? 0,
    word: before.replace(/\S*\s*$/u, '').length,
    line: before.lastIndexOf('\n') + 1,
  }[by]
  setDraft(inbox, { text: text.slice(0, from) + text.slice(at), at: from })
}

export const switchKind = (inbox: Inbox): void =>
  setDraft(inbox, { kind: getDraft(inbox.state).kind === 'reply' ? 'note' : 'reply' })

const setSends = (inbox: Inbox, id: string, change: (sends: readonly Send[]) => readonly Send[]): void => {
  inbox.state.sends.set(id, change(inbox.state.sends.get(id) ?? []))
  inbox.changed()
}

/** Whether a customer would read a placeholder as it is. */
const hasPlaceholder = (text: string): boolean => /\{\{[^{}]+\}\}/.test(text)

const OPERATIONS = {
  reply: 'messaging_send_reply',
  note: 'inbox_add_note',
  template: 'messaging_send_template',
  'saved reply': 'messaging_send_reply',
}

/**
 * Calls the operation of a reply, note or template under its key. What was refused goes back to the composer; what
 * may have been sent stays, and is never sent anew by itself.
 */
const attempt = async (inbox: Inbox, id: string, send: Send): Promise<void> => {
  const { key, kind, text, input } = send
  const replaceSend = (next: Send | undefined): void =>
    setSends(inbox, id, (sends) => sends.flatMap((s) => (s.key === key ? (next ? [next] : []) : [s])))
  replaceSend({ key, kind, text, input, status: 'sending' })
  const headers = { idempotencyKey: key, ...(kind === 'note' ? {} : { confirm: 'send' }) }
  try {
    await inbox.api(OPERATIONS[kind], input, headers)
    replaceSend(undefined)
    await loadThread(inbox, id)
  } catch (error) {
    const problem = describeFailure(error)
    if (mayHaveHappened(error)) {
      replaceSend({ ...send, status: 'unknown', problem })
      return
    }
    replaceSend(undefined)
    const draft = inbox.state.drafts.get(id)
    if ((kind === 'reply' || kind === 'note') && (!draft || draft.text === ''))
      inbox.state.drafts.set(id, { kind, text, at: text.length })
    else setSends(inbox, id, (sends) => [...sends, { ...send, status: 'failed', problem }])
    inbox.keepDrafts()
    reportFailure(inbox, error)
  }
}

/** Shows a send in the conversation, and sends it. */
export const startSend = (inbox: Inbox, id: string, send: Send): void => {
  setSends(inbox, id, (sends) => [...sends, send])
  void attempt(inbox, id, send)
}

/** The question before a draft is sent; undefined when there is none. */
export const questionBeforeSend = (state: InboxState): string | undefined => {
  const { thread } = state
  const { kind, text } = getDraft(state)
  if (!thread || kind === 'note') return undefined
  const author = state.answeredBy.get(thread.id)
  const warnings = [
    ...(author === undefined ? [] : [`${author} has replied since you began.`]),
    ...(hasPlaceholder(text) ? ['There is a {{placeholder}} in it.'] : []),
    ...(thread.conversation.state === 'closed' ? ['The conversation is closed.'] : []),
  ]
  if (warnings.length === 0 && !state.asksBeforeSending) return undefined
  return [...warnings, `Send this to ${describeContact(thread.conversation)}?`].join(' ')
}

/** Control-S: asks, then sends the draft of the open conversation. */
export const submitDraft = (inbox: Inbox): void => {
  const { state } = inbox
  const { thread } = state
  const { kind, text } = getDraft(state)
  if (!thread || text.trim() === '') return notify(inbox, 'There is nothing to send.')
  const scope = kind === 'reply' ? 'messaging:write' : 'inbox:write'
  if (!state.scopes.includes(scope)) return notify(inbox, `The key lacks the scope ${scope}.`)
  const refusal = kind === 'reply' ? explainNoReply(thread.conversation) : undefined
  if (refusal !== undefined) return notify(inbox, `${refusal} The text is kept.`)
  if (questionBeforeSend(state) !== undefined && !state.overlay) {
    state.overlay = { kind: 'question' }
    return inbox.changed()
  }
  state.overlay = undefined
  const input = { conversation_id: thread.id, text: text.trim() }
  state.drafts.delete(thread.id)
  state.answeredBy.delete(thread.id)
  inbox.keepDrafts()
  startSend(inbox, thread.id, { key: randomUUID(), kind, text: text.trim(), input, status: 'sending' })
}

/** Repeats what may not have been sent, under the same key. */
export const repeatSends = (inbox: Inbox, targets: readonly Conversation[]): void => {
  const open = targets.flatMap(({ id }) =>
    (inbox.state.sends.get(id) ?? [])
      .filter(({ status }) => status !== 'sending')
      .map((send) => [id, send] as const),
  )
  if (open.length === 0) return notify(inbox, `${describeTargets(targets)}: nothing is left to repeat.`)
  for (const [id, send] of open) void attempt(inbox, id, send)
}
