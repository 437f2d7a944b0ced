import { paint, type TerminalStyle, wrap } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { drawMessage } from '../thread.ts'
import { describeWindow, fit } from './list-pane.ts'
import { type Conversation, getDraft, type InboxState, type Send, takesReply, timeNow } from './state.ts'

const clean = (text: string | null | undefined): string => escapeControlCharacters(text ?? '')

/** Who it is, and whether and how long a reply may go. */
const describeConversation = (conversation: Conversation, state: InboxState): string[] => {
  const { contact, channel, assignee, tags } = conversation
  const window = describeWindow(conversation, timeNow(state)).text
  return [
    [
      clean(contact?.name) || 'Deleted contact',
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

const drawComposer = (state: InboxState, style: TerminalStyle): string[] => {
  const { thread, focus } = state
  const draft = getDraft(state)
  if (!thread || (focus !== 'composer' && draft.text === '')) return []
  const shut = draft.kind === 'reply' && !takesReply(thread.conversation)
  const label = `${draft.kind}${shut ? ' (cannot be sent now)' : ''}`
  const lines = drawDraft(draft.text, focus === 'composer' ? draft.at : draft.text.length, style.width)
  const shown = lines.slice(-MAX_COMPOSER_LINES)
  const name = clean(thread.conversation.contact?.name ?? thread.conversation.contact?.phone)
  const question = state.isAsking ? [`Send this to ${name}? Enter or ^S sends, Esc does not.`] : []
  return [
    paint(style, 'dim', fit(`── ${label} `.padEnd(style.width, '─'), style.width)),
    ...shown.map((line) => fit(line, style.width)),
    ...question.map((line) => paint(style, 'yellow', fit(line, style.width))),
  ]
}

/** Draws the open conversation: who it is, the end of its messages, what is on its way, and the composer. */
export const drawThreadPane = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { thread } = state
  const { width } = style
  if (!thread)
    return Array.from({ length: height }, (_, i) => fit(i === 0 ? 'Enter opens a conversation.' : '', width))
  const head = describeConversation(thread.conversation, state).map((line, i) =>
    i === 0 ? paint(style, 'bold', fit(line, width)) : fit(line, width),
  )
  const composer = drawComposer(state, style)
  const room = Math.max(1, height - head.length - 1 - composer.length)
  const plain = { ...style, color: false }
  const messages = thread.messages.flatMap((message) => [...drawMessage(message, plain), ''])
  const sends = (state.sends.get(thread.id) ?? []).flatMap((send) => [...drawSend(send, plain), ''])
  const lines = thread.isLoading ? ['Loading …'] : [...messages, ...sends].slice(0, -1)
  const scrolled = Math.min(thread.scrolled, Math.max(0, lines.length - room))
  const end = lines.length - scrolled
  const shown = lines.slice(Math.max(0, end - room), end)
  const body = [...shown, ...Array.from({ length: room - shown.length }, () => '')]
  return [
    ...head,
    paint(style, 'dim', '─'.repeat(width)),
    ...body.map((line) => fit(line, width)),
    ...composer,
  ].slice(0, height)
}
