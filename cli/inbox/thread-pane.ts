import { paint, type TerminalStyle, wrap } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { drawMessage, type ThreadMessage } from '../thread.ts'
import { describeWindow, fit } from './list-pane.ts'
import { questionBeforeSend } from './compose.ts'
import {
  type Conversation,
  describeContact,
  getDraft,
  type InboxState,
  type Send,
  takesTemplates,
  type TemplateForm,
  type Thread,
  timeNow,
} from './state.ts'
import { previewBody } from './templates.ts'

const clean = (text: string | null | undefined): string => escapeControlCharacters(text ?? '')

/** Who it is, and whether and how long a reply may go. */
const describeConversation = (conversation: Conversation, state: InboxState): string[] => {
  const { contact, channel, assignee, tags } = conversation
  const window = describeWindow(conversation, timeNow(state)).text
  return [
    [
      contact ? clean(contact.name) : describeContact(conversation),
      clean(contact?.phone),
      ...tags.map(({ name }) => `#${clean(name)}`),
    ],
    [
      clean(channel?.name),
      conversation.state,
      assignee ? clean(assignee.name) : 'unassigned',
      window.endsWith('left') ? `window ${window}` : window,
    ],
  ].map((parts) => parts.filter((part) => part !== '').join(' · '))
}

const drawSend = (send: Send, style: TerminalStyle): string[] => {
  const state = {
    sending: 'sending …',
    failed: 'not sent',
    unknown: 'may not have been sent: R repeats it under the same key, and never sends it twice',
  }[send.status]
  const lines = [`${send.kind}  ${state}`, ...(send.problem ? [`  ${clean(send.problem)}`] : [])]
  const text = send.text.split('\n').map((line) => `  ${clean(line)}`)
  return [...lines, ...text].flatMap((line) => wrap(line, style.width))
}

/** The text with the cursor in it, one entry a line of the terminal. */
const drawDraft = (text: string, at: number, width: number): string[] =>
  `${text.slice(0, at)}▏${text.slice(at)}`.split('\n').flatMap((line) => wrap(clean(line), width))

const MAX_COMPOSER_LINES = 8
/** Lines around what is about to be sent: the rule above it, the question, and one of the thread. */
const LINES_BESIDE = 5

/** Shows as much of what is about to be sent as fits the screen, and says how much is left out. */
const showWhole = (lines: readonly string[], height: number): readonly string[] => {
  const most = Math.max(MAX_COMPOSER_LINES, height - LINES_BESIDE)
  if (lines.length <= most) return lines
  return [...lines.slice(0, most - 1), `… ${lines.length - most + 1} more lines`]
}

const drawComposer = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { thread, focus } = state
  const draft = getDraft(state)
  if (!thread || (focus !== 'composer' && draft.text === '')) return []
  const shut = draft.kind === 'reply' && !thread.conversation.can_reply
  const other = takesTemplates(thread.conversation) ? '; ^T sends a template' : ''
  const label = `${draft.kind}${shut ? ` (cannot be sent now${other})` : ''}`
  const lines = drawDraft(draft.text, focus === 'composer' ? draft.at : draft.text.length, style.width)
  const isAsking = state.overlay?.kind === 'question'
  const shown = isAsking ? showWhole(lines, height) : lines.slice(-MAX_COMPOSER_LINES)
  const asked = isAsking ? questionBeforeSend(state) : undefined
  const question =
    asked === undefined ? [] : wrap(`${clean(asked)} Enter or ^S sends, Esc does not.`, style.width)
  return [
    paint(style, 'dim', fit(`── ${label} `.padEnd(style.width, '─'), style.width)),
    ...shown.map((line) => fit(line, style.width)),
    ...question.map((line) => paint(style, 'yellow', fit(line, style.width))),
  ]
}

/** Draws the values of a template, and what the customer will read. */
const drawForm = (
  form: TemplateForm,
  conversation: Conversation,
  height: number,
  style: TerminalStyle,
): string[] => {
  const { width } = style
  const fields = form.fields.map(({ label, text, sample }, i) => {
    const isHere = i === form.at && !form.rehearsed
    const value = `${clean(text)}${isHere ? '▏' : ''}${text === '' ? `  such as ${clean(sample)}` : ''}`
    return `${isHere ? '▌' : ' '} ${clean(label)}: ${value}`
  })
  const from = Math.max(0, form.at - MAX_COMPOSER_LINES + 2)
  const preview = form.rehearsed?.preview ?? previewBody(form)
  const lines = preview.split('\n').flatMap((line) => wrap(clean(line), width - 2))
  const shown = form.rehearsed
    ? showWhole(lines, height - Math.min(fields.length, MAX_COMPOSER_LINES - 1))
    : lines.slice(0, MAX_COMPOSER_LINES)
  const hint = form.rehearsed
    ? `Send this to ${describeContact(conversation)}? Enter or ^S sends, Esc does not.`
    : undefined
  return [
    paint(style, 'dim', fit(`── template ${clean(form.name)} `.padEnd(width, '─'), width)),
    ...fields.slice(from, from + MAX_COMPOSER_LINES - 1).map((line) => fit(line, width)),
    ...shown.map((line) => fit(`│ ${line}`, width)),
    ...[form.problem, hint].flatMap((line) =>
      line === undefined
        ? []
        : wrap(clean(line), width).map((part) => paint(style, 'yellow', fit(part, width))),
    ),
  ]
}

/** Relative times are as old as this at most. */
const REDRAWN_AFTER_MS = 15_000

/** Draws a message; what was drawn of it is kept, because a key changes none. */
const drawOnce = (state: InboxState, message: ThreadMessage, style: TerminalStyle): readonly string[] => {
  const key = `${style.width} ${Math.floor(timeNow(state) / REDRAWN_AFTER_MS)}`
  const known = state.drawn.get(message)
  if (known?.key === key) return known.lines
  const lines = drawMessage(message, style)
  state.drawn.set(message, { key, lines })
  return lines
}

/**
 * Draws what is seen of the messages and of what is on its way, and no more: wrapping a hundred long messages takes far
 * longer than a key may. The end of the message under the cursor is at the bottom, unless it was scrolled from there.
 */
const drawVisible = (state: InboxState, thread: Thread, room: number, style: TerminalStyle): string[] => {
  const { id, messages, at, scrolled } = thread
  const sends = state.sends.get(id) ?? []
  const inner = { ...style, width: style.width - 1 }
  const draw = (i: number): string[] =>
    i < messages.length
      ? [...drawOnce(state, messages[i]!, inner), ''].map(
          (line) => `${i === at && line !== '' ? '▌' : ' '}${line}`,
        )
      : [...drawSend(sends[i - messages.length]!, style), '']
  const last = messages.length + sends.length - 1
  const anchor = at ?? last
  const above: string[][] = []
  let [height, first] = [0, anchor + 1]
  while (first > 0 && height < room + 1 + Math.max(0, scrolled)) {
    const lines = draw(--first)
    above.push(lines)
    height += lines.length
  }
  const below: string[] = []
  for (let i = anchor + 1; i <= last && below.length < Math.max(-scrolled, room + 1 - height); i++)
    below.push(...draw(i))
  // The empty line behind the last of them is not shown.
  const lines = [...above.toReversed().flat(), ...below].slice(0, -1)
  const end = Math.min(lines.length, Math.max(room, height - 1 - scrolled))
  // Only here is known how far there is to scroll; a key beyond that is as if it had not been pressed.
  const reached = height - 1 - end
  const kept =
    scrolled > 0 ? Math.max(0, Math.min(scrolled, reached)) : Math.min(0, Math.max(scrolled, reached))
  if (kept !== scrolled) state.thread = { ...thread, scrolled: kept }
  return lines.slice(Math.max(0, end - room), end)
}

/** Draws the open conversation: who it is, the end of its messages, what is on its way, and the composer. */
export const drawThreadPane = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { thread, overlay } = state
  const { width } = style
  if (!thread)
    return Array.from({ length: height }, (_, i) => fit(i === 0 ? 'Enter opens a conversation.' : '', width))
  const head = describeConversation(thread.conversation, state).map((line, i) =>
    i === 0 ? paint(style, 'bold', fit(line, width)) : fit(line, width),
  )
  const below = height - head.length
  const composer =
    overlay?.kind === 'form'
      ? drawForm(overlay, thread.conversation, below, style)
      : drawComposer(state, below, style)
  const room = Math.max(1, height - head.length - 1 - composer.length)
  const plain = { ...style, color: false }
  const shown = thread.isLoading ? ['Loading …'] : drawVisible(state, thread, room, plain)
  const body = [...shown, ...Array.from({ length: room - shown.length }, () => '')]
  return [
    ...head,
    paint(style, 'dim', '─'.repeat(width)),
    ...body.map((line) => fit(line, width)),
    ...composer,
  ].slice(0, height)
}
