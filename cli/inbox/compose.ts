import { randomUUID } from 'node:crypto'
import { describeFailure, mayHaveHappened } from './api.ts'
import { type Inbox, loadThread, notify } from './data.ts'
import { type Draft, getDraft, type Send, takesReply } from './state.ts'

// The composer: drafts, and replies and notes on their way.

const setDraft = (inbox: Inbox, change: Partial<Draft>): void => {
  const { state } = inbox
  if (!state.thread) return
  state.drafts.set(state.thread.id, { ...getDraft(state), ...change })
  state.isAsking = false
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

/**
 * Calls the operation of a reply or note under its key. What was refused goes back to the composer; what may have been
 * sent stays, and is never sent anew by itself.
 */
const attempt = async (inbox: Inbox, id: string, send: Send): Promise<void> => {
  const { key, kind, text } = send
  const replaceSend = (next: Send | undefined): void =>
    setSends(inbox, id, (sends) => sends.flatMap((s) => (s.key === key ? (next ? [next] : []) : [s])))
  replaceSend({ key, kind, text, status: 'sending' })
  const headers = { idempotencyKey: key, ...(kind === 'reply' ? { confirm: 'send' } : {}) }
  try {
    const operation = kind === 'reply' ? 'messaging_send_reply' : 'inbox_add_note'
    await inbox.api(operation, { conversation_id: id, text }, headers)
    replaceSend(undefined)
    await loadThread(inbox, id)
  } catch (error) {
    const problem = describeFailure(error)
    if (mayHaveHappened(error)) {
      replaceSend({ key, kind, text, status: 'unknown', problem })
      return
    }
    replaceSend(undefined)
    const draft = inbox.state.drafts.get(id)
    if (!draft || draft.text === '') inbox.state.drafts.set(id, { kind, text, at: text.length })
    else setSends(inbox, id, (sends) => [...sends, { key, kind, text, status: 'failed', problem }])
    inbox.keepDrafts()
    notify(inbox, problem)
  }
}

/** Control-S: asks, then sends the draft of the open conversation. */
export const submitDraft = (inbox: Inbox): void => {
  const { state } = inbox
  const { thread } = state
  const { kind, text } = getDraft(state)
  if (!thread || text.trim() === '') return notify(inbox, 'There is nothing to send.')
  const scope = kind === 'reply' ? 'messaging:write' : 'inbox:write'
  if (!state.scopes.includes(scope)) return notify(inbox, `The key lacks the scope ${scope}.`)
  if (kind === 'reply' && !takesReply(thread.conversation))
    return notify(
      inbox,
      'No reply can be sent now: only a template, on channels that take one. The text is kept.',
    )
  if (kind === 'reply' && state.asksBeforeSending && !state.isAsking) {
    state.isAsking = true
    return inbox.changed()
  }
  state.isAsking = false
  const send: Send = { key: randomUUID(), kind, text: text.trim(), status: 'sending' }
  state.drafts.delete(thread.id)
  inbox.keepDrafts()
  setSends(inbox, thread.id, (sends) => [...sends, send])
  void attempt(inbox, thread.id, send)
}

/** Repeats what may not have been sent, under the same key. */
export const repeatSends = (inbox: Inbox): void => {
  const { thread, sends } = inbox.state
  const open = (thread && sends.get(thread.id)?.filter(({ status }) => status !== 'sending')) ?? []
  if (!thread || open.length === 0) return notify(inbox, 'Nothing is left to repeat here.')
  for (const send of open) void attempt(inbox, thread.id, send)
}
