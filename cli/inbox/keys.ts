import type { Key } from 'ink'
import { openApprovals, pressInApprovals } from './approvals.ts'
import {
  askAssignee,
  askReason,
  askReminder,
  askSearch,
  askTags,
  claim,
  markRead,
  matchChoices,
  reopen,
  unassign,
} from './changes.ts'
import { askCommand } from './commands.ts'
import { deleteBack, insertText, moveCursor, repeatSends, submitDraft, switchKind } from './compose.ts'
import { type Inbox, loadMore, notify, openThread, reportFailure, showView } from './data.ts'
import { isTooSmall, type Size } from './size.ts'
import { askSavedReply } from './saved-replies.ts'
import { askTemplate, insertInForm, pressInForm } from './templates.ts'
import { findSelected, getDraft, showsApprovals, views } from './state.ts'

/** What each key does; the help screen is made of this. */
const help: readonly (readonly [string, string])[] = [
  ['j k, arrows', 'move; in a conversation from message to message'],
  ['g G, ^D ^U', 'first and last, half a page'],
  [`1-${views.length}`, 'queue, mine, waiting, approvals, all, closed'],
  ['Enter', 'open; write; on a message with a file: its URL'],
  ['n', 'open who waits longest'],
  ['/', 'search names and numbers'],
  ['Space', 'select several: c a u x o t r m then act on all of them'],
  ['c', 'claim, only if nobody has it'],
  ['a u', 'assign to a person or team; unassign'],
  ['x o', 'close with a reason; reopen'],
  ['t r m', 'tag; set a reminder; mark as read'],
  ['R', 'repeat a send with an unknown outcome, under the same key'],
  ['^S', 'send the reply or note'],
  ['Tab', 'reply or note'],
  ['^T', 'fill in and send an approved template'],
  ['/code, ^O', 'in an empty reply: insert a saved reply'],
  ['!', 'ask before sending, or not'],
  ['y e N', 'of approvals: approve, edit the text and approve, decline'],
  ['y', 'copy the message, or the number'],
  [':', 'any command of wcrm'],
  ['Esc', 'back'],
  ['q, ^C, ^Z', 'quit; suspend (fg resumes); drafts are kept'],
]

/** `quit` ends the inbox; `suspend` gives the terminal back to the shell for a while. The size is the terminal's. */
export type KeyContext = Size & {
  readonly quit: (exitCode?: number) => void
  readonly suspend: () => void
}

const moveSelection = (inbox: Inbox, by: number): void => {
  const { state } = inbox
  const at = state.rows.findIndex(({ id }) => id === state.selected)
  const to = Math.min(state.rows.length - 1, Math.max(0, at + by))
  state.selected = state.rows[to]?.id
  if (to >= state.rows.length - 10) void loadMore(inbox)
  inbox.changed()
}

const scroll = (inbox: Inbox, by: number): void => {
  const { thread } = inbox.state
  if (!thread) return
  inbox.state.thread = { ...thread, scrolled: thread.scrolled + by }
  inbox.changed()
}

/** Moves the cursor of a conversation: from message to message, and below the last to the composer. */
const moveInThread = (inbox: Inbox, by: number): void => {
  const { thread } = inbox.state
  if (!thread) return
  const { length } = thread.messages
  const to = Math.min(length, Math.max(0, (thread.at ?? length) + by))
  inbox.state.thread = { ...thread, at: to >= length ? undefined : to, scrolled: 0 }
  inbox.changed()
}

/** Shows the address of the file of the message under the cursor. */
const showFile = async (inbox: Inbox, id: string): Promise<void> => {
  try {
    const { value } = await inbox.api('messaging_get_media', { message_id: id })
    inbox.state.link = String(value['url'])
    inbox.changed()
  } catch (error) {
    reportFailure(inbox, error)
  }
}

/** Copies the address that is shown, the message under the cursor, or the customer's number. */
const copy = (inbox: Inbox, shownLink?: string): void => {
  const { state } = inbox
  const { thread } = state
  const message =
    state.focus === 'thread' && thread?.at !== undefined ? thread.messages[thread.at] : undefined
  const conversation = state.focus === 'thread' ? thread?.conversation : findSelected(state)
  const text = shownLink ?? message?.text ?? conversation?.contact?.phone ?? conversation?.id
  if (text === undefined) return
  inbox.copy(text)
  notify(inbox, `Copied: ${text}`)
}

const toggleMark = (inbox: Inbox): void => {
  const { marked, selected } = inbox.state
  if (selected === undefined) return
  if (!marked.delete(selected)) marked.add(selected)
  moveSelection(inbox, 1)
}

/** Keys that act on conversations, in the list and in a conversation alike. */
const actions: Readonly<Record<string, (inbox: Inbox) => unknown>> = {
  c: claim,
  a: askAssignee,
  u: unassign,
  x: askReason,
  o: reopen,
  t: askTags,
  r: askReminder,
  ':': askCommand,
  m: markRead,
  R: repeatSends,
  '/': (inbox) =>
    askSearch(inbox, (text) => {
      inbox.state.focus = 'list'
      void showView(inbox, inbox.state.view, text)
    }),
  '?': (inbox) => {
    const lines = help.map(([keys, what]) => `  ${keys.padEnd(14)}${what}`)
    Object.assign(inbox.state, { pager: { lines, scrolled: 0 }, focus: 'pager' })
    inbox.changed()
  },
  '!': (inbox) => {
    inbox.state.asksBeforeSending = !inbox.state.asksBeforeSending
    inbox.state.notice = inbox.state.asksBeforeSending ? 'Asks before sending.' : 'Sends without asking.'
    inbox.changed()
  },
}

const openNextWaiting = (inbox: Inbox): void => {
  const waiting = inbox.state.rows.filter(
    (row) => row.waiting_since !== null && row.id !== inbox.state.thread?.id,
  )
  const next = waiting.toSorted((a, b) => a.waiting_since!.localeCompare(b.waiting_since!))[0]
  if (!next) return
  inbox.state.selected = next.id
  void openThread(inbox, next)
}

const openView = async (inbox: Inbox, view: number): Promise<void> => {
  inbox.state.thread = undefined
  await showView(inbox, view)
  if (showsApprovals(inbox.state)) await openApprovals(inbox)
}

/** How far a key moves; undefined for others. */
const readMove = (input: string, key: Key, height: number): number | undefined => {
  const half = Math.max(1, Math.floor(height / 2))
  if (key.downArrow || input === 'j') return 1
  if (key.upArrow || input === 'k') return -1
  if (key.pageDown || (key.ctrl && input === 'd')) return half
  if (key.pageUp || (key.ctrl && input === 'u')) return -half
  if (key.home || input === 'g') return -Infinity
  return key.end || input === 'G' ? Infinity : undefined
}

const pressInList = (inbox: Inbox, input: string, key: Key, { quit, height }: KeyContext): void => {
  if (showsApprovals(inbox.state) && !key.ctrl && pressInApprovals(inbox, input, key)) return
  const move = readMove(input, key, height)
  if (move !== undefined) return moveSelection(inbox, move)
  if (key.ctrl || key.meta) return
  if (input === 'q') return quit()
  if (input === ' ') return toggleMark(inbox)
  if (input === 'n') return openNextWaiting(inbox)
  const view = Number(input) - 1
  if (views[view]) return void openView(inbox, view)
  if (key.escape && inbox.state.search !== '') return void showView(inbox, inbox.state.view)
  const selected = findSelected(inbox.state)
  if (key.return && selected) return void openThread(inbox, selected)
  void actions[input]?.(inbox)
}

const pressInThread = (inbox: Inbox, input: string, key: Key, { height }: KeyContext): void => {
  const move = readMove(input, key, height)
  if (move !== undefined && (key.ctrl || key.pageDown || key.pageUp)) return scroll(inbox, -move)
  if (move !== undefined) return moveInThread(inbox, Math.max(-1e6, Math.min(1e6, move)))
  if (key.ctrl && input === 't') return void askTemplate(inbox)
  if (key.ctrl || key.meta) return
  const { thread } = inbox.state
  const message = thread?.at === undefined ? undefined : thread.messages[thread.at]
  if (key.return && message?.id && message.media) return void showFile(inbox, message.id)
  if (key.escape || input === 'q' || key.leftArrow) inbox.state.focus = 'list'
  else if (key.return || input === 'i') inbox.state.focus = 'composer'
  else if (key.tab) {
    inbox.state.focus = 'composer'
    switchKind(inbox)
  } else if (input === 'n') openNextWaiting(inbox)
  else void actions[input]?.(inbox)
  inbox.changed()
}

const pressInComposer = (inbox: Inbox, input: string, key: Key): void => {
  if (key.escape) {
    if (inbox.state.isAsking) inbox.state.isAsking = false
    else inbox.state.focus = 'thread'
    inbox.changed()
  } else if (key.ctrl && input === 's') submitDraft(inbox)
  else if (key.ctrl && input === 't') void askTemplate(inbox)
  else if (key.ctrl && input === 'o') void askSavedReply(inbox)
  else if (input === '/' && getDraft(inbox.state).text === '') void askSavedReply(inbox, '/')
  else if (key.ctrl && input === 'w') deleteBack(inbox, 'word')
  else if (key.ctrl && input === 'u') deleteBack(inbox, 'line')
  else if (key.home || (key.ctrl && input === 'a')) moveCursor(inbox, 'home')
  else if (key.end || (key.ctrl && input === 'e')) moveCursor(inbox, 'end')
  else if (key.tab) switchKind(inbox)
  else if (key.backspace || key.delete) deleteBack(inbox, 'character')
  else if (key.leftArrow) moveCursor(inbox, 'left')
  else if (key.rightArrow) moveCursor(inbox, 'right')
  else if (key.return && inbox.state.isAsking) submitDraft(inbox)
  else if (key.return) insertText(inbox, '\n')
  else if (!key.ctrl && !key.meta && input !== '') insertText(inbox, input)
}

const pressInPrompt = (inbox: Inbox, input: string, key: Key): void => {
  const { state } = inbox
  const prompt = state.prompt!
  const choices = matchChoices(prompt)
  const close = (): void => {
    state.prompt = undefined
    state.focus = prompt.from
  }
  if (key.escape) {
    close()
    prompt.cancel?.(prompt.text)
  } else if (key.return) {
    // What it runs acts on what has the focus.
    state.focus = prompt.from === 'list' ? 'list' : 'thread'
    state.prompt = undefined
    const choice = choices[prompt.at]
    if (choice) choice.run()
    else prompt.submit?.(prompt.text)
  } else if (key.downArrow || key.tab)
    state.prompt = { ...prompt, at: Math.min(choices.length - 1, prompt.at + 1) }
  else if (key.upArrow) state.prompt = { ...prompt, at: Math.max(0, prompt.at - 1) }
  else if (key.backspace || key.delete)
    state.prompt = { ...prompt, text: [...prompt.text].slice(0, -1).join(''), at: 0 }
  else if (!key.ctrl && !key.meta && input !== '')
    state.prompt = { ...prompt, text: prompt.text + input, at: 0 }
  inbox.changed()
}

const pressInPager = (inbox: Inbox, input: string, key: Key, { height }: KeyContext): void => {
  const { state } = inbox
  const pager = state.pager!
  const move = input === ' ' ? Math.floor(height / 2) : readMove(input, key, height)
  if (move !== undefined) {
    const scrolled = Math.max(0, Math.min(pager.lines.length - 1, pager.scrolled + move))
    state.pager = { ...pager, scrolled }
  } else if (key.escape || input === 'q' || input === '?') {
    state.pager = undefined
    state.focus = state.thread ? 'thread' : 'list'
  }
  inbox.changed()
}

/** Acts on a key. */
export const pressKey = (inbox: Inbox, input: string, key: Key, context: KeyContext): void => {
  const { state } = inbox
  if (key.ctrl && input === 'c') return context.quit(130)
  if (key.ctrl && input === 'z') return context.suspend()
  // Nothing is drawn: a key would claim, close or send what nobody sees.
  if (isTooSmall(context)) return
  state.notice = undefined
  const link = state.link
  state.link = undefined
  if (state.fatal !== undefined) return input === 'q' ? context.quit() : undefined
  if (
    input === 'y' &&
    !key.ctrl &&
    !showsApprovals(state) &&
    (state.focus === 'list' || state.focus === 'thread')
  )
    return copy(inbox, link)
  if (state.focus === 'prompt') return pressInPrompt(inbox, input, key)
  if (state.focus === 'form') return pressInForm(inbox, input, key)
  if (state.focus === 'pager') return pressInPager(inbox, input, key, context)
  if (state.focus === 'composer') return pressInComposer(inbox, input, key)
  return (state.focus === 'thread' ? pressInThread : pressInList)(inbox, input, key, context)
}

const NO_KEY: Key = {
  upArrow: false,
  downArrow: false,
  leftArrow: false,
  rightArrow: false,
  pageDown: false,
  pageUp: false,
  home: false,
  end: false,
  return: false,
  escape: false,
  ctrl: false,
  shift: false,
  tab: false,
  backspace: false,
  delete: false,
  meta: false,
  super: false,
  hyper: false,
  capsLock: false,
  numLock: false,
}

/** Returns the key of a character that arrived among others. */
const readCharacter = (character: string): { input: string; key: Key } => {
  const code = character.codePointAt(0)!
  if (character === '\r') return { input: '', key: { ...NO_KEY, return: true } }
  if (character === '\t') return { input: '', key: { ...NO_KEY, tab: true } }
  if (character === '\b' || code === 127) return { input: '', key: { ...NO_KEY, backspace: true } }
  if (code === 27) return { input: '', key: { ...NO_KEY, escape: true } }
  if (code >= 1 && code <= 26)
    return { input: String.fromCodePoint(code + 96), key: { ...NO_KEY, ctrl: true } }
  return { input: character, key: NO_KEY }
}

/** Acts on what a terminal delivers at once: a key, or several that were typed fast or came over a slow line. */
export const pressKeys = (inbox: Inbox, input: string, key: Key, context: KeyContext): void => {
  const characters = Array.from(
    new Intl.Segmenter().segment(input.replaceAll('\r\n', '\r')),
    (s) => s.segment,
  )
  // Escape and the key after it arrive as one when the line is slow; no key here is meant with Alt.
  if (key.meta && input !== '') {
    pressKey(inbox, '', { ...NO_KEY, escape: true }, context)
    return pressKeys(inbox, input, { ...key, meta: false, escape: false }, context)
  }
  const isOne = characters.length < 2 && !/^\p{Cc}$/u.test(input)
  if (key.ctrl || isOne) return pressKey(inbox, input, key, context)
  for (const character of characters) {
    const one = readCharacter(character)
    pressKey(inbox, one.input, one.key, context)
  }
}

/** Takes pasted text, where text is written. */
export const pasteText = (inbox: Inbox, text: string, size: Size): void => {
  const { state } = inbox
  if (isTooSmall(size)) return
  if (state.focus === 'composer') insertText(inbox, text)
  else if (state.focus === 'form') insertInForm(inbox, text)
  else if (state.focus === 'prompt' && state.prompt)
    state.prompt = { ...state.prompt, text: state.prompt.text + text.replaceAll(/\s+/g, ' '), at: 0 }
  inbox.changed()
}
