import { describeOffer, isOffer } from '../catalog/interactive.ts'
import type { Content } from '../catalog/message-content.ts'
import { formatTime, indentLines, paint, type TerminalStyle, wrap } from './table.ts'
import { escapeControlCharacters } from './text.ts'

/** What a thread shows of a message. */
export type ThreadMessage = {
  readonly id: string | null
  readonly type: string
  readonly direction: 'inbound' | 'outbound' | 'system'
  readonly status: string
  readonly text: string | null
  readonly from: { readonly name: string | null } | null
  readonly actor?: {
    readonly key: { readonly name: string | null } | null
    readonly agent: boolean
    readonly approved_by: { readonly name: string | null } | null
  } | null
  readonly note: boolean
  readonly error: string | null
  readonly created_at: string | null
  readonly edited_at: string | null
  readonly deleted_at: string | null
  readonly media: { readonly file_name: string | null; readonly content_type: string | null } | null
  readonly template: { readonly name: string } | null
  readonly content?: Content | null
  readonly ad?: { readonly headline: string | null; readonly ad_id: string | null }
  readonly product?: { readonly product_id: string | null }
  readonly held?: string
  readonly author?: { readonly name: string | null }
  readonly forwarded?: string
  readonly reactions: readonly { readonly emoji: string }[]
}

/** An AI agent is shown by the name of its key, and always marked as one. */
const describeAuthor = ({ from, actor }: ThreadMessage): string => {
  if (!actor?.agent) return from?.name ?? ''
  const approver = actor.approved_by ? `, approved by ${actor.approved_by.name ?? 'a colleague'}` : ''
  return `${actor.key?.name ?? from?.name ?? 'agent'} · AI${approver}`
}

const describeSender = (message: ThreadMessage): string => {
  const { direction, note } = message
  const name = escapeControlCharacters(describeAuthor(message))
  if (note) return name ? `note by ${name}` : 'note'
  if (direction === 'inbound' && message.author)
    return escapeControlCharacters(message.author.name ?? 'a member of the group')
  return direction === 'inbound' ? 'customer' : name || (direction === 'system' ? 'system' : 'team')
}

/** The ids behind what a customer chose or filled in, which `text` does not say. */
const describeIds = ({ content }: ThreadMessage): string[] => {
  if (content?.kind === 'list' && content.row_id !== null) return [`[row ${content.row_id}]`]
  if (content?.kind === 'button' && content.payload !== null) return [`[button ${content.payload}]`]
  if (content?.kind === 'form') return [`[fields ${content.values.map(({ field }) => field).join(', ')}]`]
  return []
}

/** What is not text: a file, a template, and what became of the message. */
const describeParts = (message: ThreadMessage): string[] => [
  ...(message.media
    ? [`[${message.type.toLowerCase()}${message.media.file_name ? ` ${message.media.file_name}` : ''}]`]
    : []),
  ...describeIds(message),
  ...(message.template ? [`[template ${message.template.name}]`] : []),
  ...(message.ad ? [`[from the ad ${message.ad.headline ?? message.ad.ad_id ?? ''}]`] : []),
  ...(message.product ? [`[about the product ${message.product.product_id ?? ''}]`] : []),
  ...(message.held
    ? [`[${message.held.replaceAll('_', ' ')} by the provider: wait, and do not send it again]`]
    : []),
  ...(message.forwarded ? ['[forwarded]'] : []),
  ...(message.deleted_at ? ['[deleted]'] : []),
]

export const drawMessage = (message: ThreadMessage, style: TerminalStyle): string[] => {
  const facts = [
    message.created_at ? formatTime(message.created_at, style.time) : '',
    paint(style, 'bold', describeSender(message)),
    message.direction === 'outbound' ? message.status : '',
    message.edited_at ? 'edited' : '',
    message.reactions.map(({ emoji }) => escapeControlCharacters(emoji)).join(' '),
    paint(style, 'dim', message.id === null ? '' : `#${message.id}`),
  ]
  const { content } = message
  const offer = isOffer(content) ? describeOffer(content) : []
  const text = [...describeParts(message), ...(message.text ?? '').split('\n'), ...offer]
    .map(escapeControlCharacters)
    .filter((line, i, all) => line !== '' || i < all.length - 1)
  const error = message.error ? [`Failed: ${escapeControlCharacters(message.error)}`] : []
  const body = [...text, ...error].flatMap((line) => wrap(line, Math.max(20, style.width - 2)))
  return [facts.filter((fact) => fact !== '').join('  '), ...indentLines(body)]
}

/** Draws the messages of a page, which is newest first, as a chat: the newest at the bottom. */
export const drawThread = (messages: readonly unknown[], style: TerminalStyle): string =>
  messages.length === 0
    ? 'Nothing found.\n'
    : `${[...(messages as readonly ThreadMessage[])]
        .reverse()
        .map((message) => drawMessage(message, style).join('\n'))
        .join('\n\n')}\n`
