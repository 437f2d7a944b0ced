import { randomUUID } from 'node:crypto'
import type { Key } from 'ink'
import { describeOffer, type Interactive } from '../../catalog/interactive.ts'
import { openApprovals, pressInApprovals } from './approvals.ts'
import {
  askAssignee,
  askReason,
  askReminder,
  askSharedContact,
  askTags,
  claim,
  markRead,
  reopen,
  unassign,
} from './changes.ts'
import {
  deleteBack,
  insertText,
  moveCursor,
  repeatSends,
  startSend,
  submitDraft,
  switchKind,
} from './compose.ts'
import { type Inbox, loadMore, notify, openThread, reportFailure, showView } from './data.ts'
import { ask, insertInPrompt, openPager, type Pressed, pressInPrompt, askAfter } from './overlays.ts'
import { isTooSmall, type Size } from './size.ts'
import { askTemplate, insertInForm, pressInForm } from './templates.ts'
import {
  type Conversation,
  findFocused,
  findMessage,
  findTargets,
  getDraft,
  type Pager,
  showsApprovals,
  views,
} from './state.ts'
import { escapeControlCharacters } from '../text.ts'

// Any other command, run in this process with the same key; its output fills a pane.

/** Splits a line into words as a shell does: quotes keep spaces together. */
export const splitWords = (line: string): string[] =>
  [...line.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''),
  )

/** Commands that need the terminal for themselves, or never end. */
const OWN_TERMINAL = ['inbox', 'serve', 'worker', 'mcp', 'sandbox', 'login', 'listen', 'admin']

const run = async (inbox: Inbox, line: string): Promise<void> => {
  const [first, ...rest] = splitWords(line)
  const words = first === 'wcrm' ? rest : [first ?? '', ...rest]
  if (words[0] === undefined || words[0] === '') return
  if (OWN_TERMINAL.includes(words[0]) || words.includes('--follow'))
    return notify(inbox, `wcrm ${words[0]} needs a terminal of its own.`)
  const title = `wcrm ${words.join(' ')}`
  const pager = openPager(inbox, ['Running …'], title)
  const { printed, exitCode } = await inbox.runCommand(words)
  pager.lines = printed.replace(/\n$/, '').split('\n').map(escapeControlCharacters)
  if (exitCode !== 0) pager.title = `${title}  (exit code ${exitCode})`
  inbox.changed()
}

const askCommand = (inbox: Inbox): void =>
  void ask(inbox, { label: 'wcrm', submit: (line) => void run(inbox, line) })

/** What each key does; the help screen is made of this. */
const help: readonly (readonly [string, string])[] = [
  ['j k, arrows', 'move; in a conversation from message to message'],
  ['g G, ^D ^U', 'first and last, half a page'],
  [`1-${views.length}`, 'queue, mine, waiting, approvals, all, closed'],
  ['Enter', 'open; write; on a message with a file: its URL'],
  ['n A', 'open who waits longest; in a conversation: add a shared contact'],
  ['/', 'search names and numbers'],
  ['Space', 'select several: c a u x o t r m R act on them until Esc'],
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

const moveInList = (inbox: Inbox, by: number): void => {
  const { state } = inbox
  const at = state.rows.findIndex(({ id }) => id === state.highlighted)
  const to = Math.min(state.rows.length - 1, Math.max(0, at + by))
  state.highlighted = state.rows[to]?.id
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
  const message = state.focus === 'thread' ? findMessage(state) : undefined
  const conversation = findFocused(state)
  const text = shownLink ?? message?.text ?? conversation?.contact?.phone ?? conversation?.id
  if (text === undefined) return
  inbox.copy(text)
  notify(inbox, `Copied: ${text}`)
}

const toggleSelected = (inbox: Inbox): void => {
  const { selection, highlighted } = inbox.state
  if (highlighted === undefined) return
  if (!selection.delete(highlighted)) selection.add(highlighted)
  moveInList(inbox, 1)
}

/** Runs an action on what it hits. Nobody else is hit in place of a selection that has left the list. */
const onTargets =
  (act: (inbox: Inbox, targets: readonly Conversation[]) => unknown) =>
  (inbox: Inbox): unknown => {
    const { selection } = inbox.state
    const targets = findTargets(inbox.state)
    if (targets.length > 0) return act(inbox, targets)
    notify(
      inbox,
      selection.size > 0
        ? 'What was selected has left the list: nothing was done.'
        : 'There is no conversation to act on.',
    )
    return selection.clear()
  }

/** Keys that mean the same in the list and in a conversation. */
const actions: Readonly<Record<string, (inbox: Inbox) => unknown>> = {
  c: onTargets(claim),
  a: onTargets(askAssignee),
  u: onTargets(unassign),
  x: onTargets(askReason),
  o: onTargets(reopen),
  t: onTargets(askTags),
  r: onTargets(askReminder),
  m: onTargets(markRead),
  R: onTargets(repeatSends),
  ':': askCommand,
  '/': (inbox) =>
    ask(inbox, {
      label: 'Search names and numbers',
      submit: (text) => {
        inbox.state.focus = 'list'
        void showView(inbox, inbox.state.view, text.trim())
      },
    }),
  '?': (inbox) =>
    openPager(
      inbox,
      help.map(([keys, what]) => `  ${keys.padEnd(14)}${what}`),
    ),
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
  inbox.state.highlighted = next.id
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
  if (move !== undefined) return moveInList(inbox, move)
  if (key.ctrl || key.meta) return
  if (input === 'q') return quit()
  if (input === ' ') return toggleSelected(inbox)
  if (input === 'n') return openNextWaiting(inbox)
  const view = Number(input) - 1
  if (views[view]) return void openView(inbox, view)
  const { selection, search } = inbox.state
  if (key.escape && selection.size > 0) {
    selection.clear()
    return inbox.changed()
  }
  if (key.escape && search !== '') return void showView(inbox, inbox.state.view)
  const focused = findFocused(inbox.state)
  if (key.return && focused) return void openThread(inbox, focused)
  void actions[input]?.(inbox)
}

const pressInThread = (inbox: Inbox, input: string, key: Key, { height }: KeyContext): void => {
  const move = readMove(input, key, height)
  if (move !== undefined && (key.ctrl || key.pageDown || key.pageUp)) return scroll(inbox, -move)
  if (move !== undefined) return moveInThread(inbox, Math.max(-1e6, Math.min(1e6, move)))
  if (key.ctrl && input === 't') return askTemplate(inbox)
  if (key.ctrl || key.meta) return
  const message = findMessage(inbox.state)
  if (key.return && message?.id && message.media) return void showFile(inbox, message.id)
  if (key.escape || input === 'q' || key.leftArrow) inbox.state.focus = 'list'
  else if (key.return || input === 'i') inbox.state.focus = 'composer'
  else if (key.tab) {
    inbox.state.focus = 'composer'
    switchKind(inbox)
  } else if (input === 'n') openNextWaiting(inbox)
  else if (input === 'A') askSharedContact(inbox)
  else void actions[input]?.(inbox)
  inbox.changed()
}

/** Also while it is asked whether to send the draft. */
const pressInComposer = (inbox: Inbox, input: string, key: Key): void => {
  const isAsking = inbox.state.overlay !== undefined
  if (key.escape) {
    if (isAsking) inbox.state.overlay = undefined
    else inbox.state.focus = 'thread'
    inbox.changed()
  } else if (key.ctrl && input === 's') submitDraft(inbox)
  else if (key.ctrl && input === 't') askTemplate(inbox)
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
  else if (key.return && isAsking) submitDraft(inbox)
  else if (key.return) insertText(inbox, '\n')
  else if (!key.ctrl && !key.meta && input !== '') insertText(inbox, input)
}

const pressInPager = (inbox: Inbox, pager: Pager, { input, key, height }: Pressed & Size): void => {
  const move = input === ' ' ? Math.floor(height / 2) : readMove(input, key, height)
  if (move !== undefined)
    pager.scrolled = Math.max(0, Math.min(pager.lines.length - 1, pager.scrolled + move))
  else if (key.escape || input === 'q' || input === '?') inbox.state.overlay = undefined
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
  const { overlay } = state
  if (overlay?.kind === 'prompt') return pressInPrompt(inbox, overlay, { input, key })
  if (overlay?.kind === 'form') return pressInForm(inbox, overlay, { input, key })
  if (overlay?.kind === 'pager') return pressInPager(inbox, overlay, { input, key, ...context })
  if (state.focus === 'composer') return pressInComposer(inbox, input, key)
  if (input === 'y' && !key.ctrl && !showsApprovals(state)) return copy(inbox, link)
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
const readCharacter = (character: string): Pressed => {
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
  const { overlay } = state
  if (overlay?.kind === 'form') insertInForm(inbox, overlay, text)
  else if (overlay?.kind === 'prompt') insertInPrompt(overlay, text.replaceAll(/\s+/g, ' '))
  else if (state.focus === 'composer') insertText(inbox, text)
  inbox.changed()
}

// Saved replies: found by their code, filled in for the customer.

/** The reader trims the name: with optional spaces in the pattern, matching would take cubic time. */
const PLACEHOLDER = /\{\{([^{}]+)\}\}/g

type Contact = {
  readonly name: string | null
  readonly phone: string | null
  readonly attributes: readonly { readonly key: string; readonly display: string | null }[]
}

/** Returns the values of the placeholders of a customer, as a send by the id of the saved reply fills them in. */
const readValues = async (inbox: Inbox): Promise<ReadonlyMap<string, string | null>> => {
  const { me, thread } = inbox.state
  const values = new Map<string, string | null>([['staff.name', me.name]])
  const id = thread?.conversation.contact?.id
  if (id === undefined) return values
  const { value } = await inbox.api('crm_get_contact', { contact_id: id })
  const { name, phone, attributes } = value as unknown as Contact
  for (const { key, display } of attributes) values.set(`contact.${key}`, display)
  // A masked number would reach the customer as it is.
  return values.set('contact.name', name).set('contact.phone', me.hidesPhones ? null : phone)
}

/** Fills in what is known; what is missing stays a placeholder, and is named. */
const fill = (text: string, values: ReadonlyMap<string, string | null>) => {
  const missing = new Set<string>()
  const filled = text.replaceAll(PLACEHOLDER, (placeholder: string, name: string) => {
    const value = values.get(name.trim()) ?? ''
    if (value === '') missing.add(placeholder)
    return value || placeholder
  })
  return { filled, missing: [...missing].join(', ') }
}

type SavedReply = {
  readonly id: string
  readonly code: string | null
  readonly title: string | null
  readonly type: string
  readonly text: string | null
  readonly media_url: string | null
  readonly interactive?: Interactive
}

/** What a saved reply has beside its text. */
const describeRest = ({ type, media_url: url, interactive }: SavedReply): string =>
  interactive
    ? describeOffer(interactive).join(' ')
    : type === 'TEXT'
      ? ''
      : `[${type.toLowerCase()} ${url ?? ''}]`

/** Asks whether to send a saved reply that is more than text, which the composer cannot hold. */
const askToSend = (
  inbox: Inbox,
  { id, quick, text }: { id: string; quick: SavedReply; text: string },
): void => {
  const shown = `${text} ${describeRest(quick)}`.trim()
  ask(inbox, {
    label: 'Saved reply',
    choices: [
      {
        label: `Send: ${shown}`,
        run: () =>
          startSend(inbox, id, {
            key: randomUUID(),
            kind: 'saved reply',
            text: shown,
            input: { conversation_id: id, quick_message_id: quick.id },
            status: 'sending',
          }),
      },
    ],
  })
}

/**
 * Asks for a saved reply by its code or words, with the texts filled in; inserts the one that is chosen, or asks
 * whether to send it where it is more than text.
 */
const askSavedReply = (inbox: Inbox, text = ''): Promise<void> =>
  askAfter(inbox, { label: 'Saved reply', text, cancel: (typed) => insertText(inbox, typed) }, async () => {
    const [{ value }, values] = await Promise.all([
      inbox.api('messaging_list_quick_messages', { limit: 100 }),
      readValues(inbox),
    ])
    const id = inbox.state.thread?.id
    const found = (value['data'] as SavedReply[]).filter(
      (quick) => quick.type !== 'TEMPLATE' && (quick.text ?? describeRest(quick)) !== '',
    )
    if (found.length === 0) return 'There is no saved reply yet: wcrm quick-messages create --help'
    return found.map((quick) => {
      const { filled, missing } = fill(quick.text ?? '', values)
      const known = missing ? `(no ${missing}) ` : ''
      return {
        label: `/${quick.code ?? ''}  ${known}${quick.title ?? ''}  ${filled} ${describeRest(quick)}`.trim(),
        run: () => {
          if (quick.type !== 'TEXT' && id !== undefined) return askToSend(inbox, { id, quick, text: filled })
          insertText(inbox, filled)
          if (missing) notify(inbox, `The customer has no value for ${missing}: write it yourself.`)
        },
      }
    })
  })
