import { cut, formatDuration, measure, paint, type TerminalStyle } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { type Conversation, describeContact, type InboxState, timeNow } from './state.ts'

/** Pads or cuts a text without styles to exactly this width. */
export const fit = (text: string, width: number): string => {
  const shown = cut(text, width)
  return shown + ' '.repeat(Math.max(0, width - measure(shown)))
}

/** Moves to this column of the terminal, the first being 0, whatever width it gave to the text before. */
export const toColumn = (column: number): string => `\u001b[${column + 1}G`

const HOUR = 3_600_000
const HURRY_MS = 15 * 60_000

/** Whether and how long a free-form reply may still be sent, and how urgent that is. */
export const describeWindow = (
  { window, channel, can_reply: canReply, reason = '' }: Conversation,
  now: number,
): { text: string; color?: 'red' | 'yellow' } => {
  if (!canReply)
    return {
      text:
        reason === 'group'
          ? 'read only'
          : reason === 'window_closed' && channel?.type === 'chatapp'
            ? 'template only'
            : 'no reply',
    }
  if (window.closes_at === null) return { text: '' }
  const left = Date.parse(window.closes_at) - now
  const text = `${formatDuration(left)} left`
  return left < HURRY_MS ? { text, color: 'red' } : left < 2 * HOUR ? { text, color: 'yellow' } : { text }
}

const describeLastMessage = ({ last_message: last }: Conversation): string => {
  if (!last) return ''
  const who = last.direction === 'outbound' ? '> ' : ''
  return (
    who +
    (last.text === null
      ? `[${last.type.toLowerCase()}]`
      : escapeControlCharacters(last.text.replaceAll('\n', ' ')))
  )
}

/** Rows of the terminal that a conversation takes. */
const ROW_HEIGHT = 2

const drawRow = (row: Conversation, state: InboxState, style: TerminalStyle): string[] => {
  const now = timeNow(state)
  const { width } = style
  const isHighlighted = row.id === state.highlighted
  const mark = `${isHighlighted ? '▌' : ' '}${state.selection.has(row.id) ? '*' : ' '}`
  const waits = row.waiting_since === null ? '' : formatDuration(now - Date.parse(row.waiting_since))
  const window = describeWindow(row, now)
  const isFailed = row.last_message?.status === 'failed'
  const isDue = row.reminder_at != null && Date.parse(row.reminder_at) <= now
  const alarm = isFailed ? 'failed' : row.sla?.status === 'breached' ? 'late' : isDue ? 'reminder' : ''
  const facts = [waits, window.text].filter((text) => text !== '').join('  ')
  const unread = row.unread_count > 0 ? `(${row.unread_count})` : ''
  const flags = [unread, alarm].filter((text) => text !== '').join(' ')
  const name = escapeControlCharacters(describeContact(row))
  const first = fit(name, Math.max(0, width - 3 - measure(facts)))
  const second = fit(describeLastMessage(row), Math.max(0, width - 3 - measure(flags)))
  const shownFacts =
    toColumn(width - measure(facts)) + (window.color ? paint(style, window.color, facts) : facts)
  const shownFlags = toColumn(width - measure(flags)) + (alarm ? paint(style, 'red', flags) : flags)
  const bold = (text: string): string => (row.unread_count > 0 ? paint(style, 'bold', text) : text)
  const lines = [
    `${mark}${bold(first)} ${shownFacts}`,
    `${isHighlighted ? '▌' : ' '} ${paint(style, 'dim', second)} ${shownFlags}`,
  ]
  return isHighlighted && state.focus === 'list' ? lines.map((line) => paint(style, 'inverse', line)) : lines
}

/** Draws as many conversations as fit, around the one under the cursor. */
export const drawList = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { rows } = state
  if (rows.length === 0) {
    const text = state.isLoading
      ? 'Loading …'
      : state.search
        ? 'No match. Esc ends the search.'
        : 'Nothing here.'
    return Array.from({ length: height }, (_, i) => fit(i === 0 ? text : '', style.width))
  }
  const room = Math.max(1, Math.floor(height / ROW_HEIGHT))
  const at = Math.max(
    0,
    rows.findIndex(({ id }) => id === state.highlighted),
  )
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), rows.length - room))
  const lines = rows.slice(from, from + room).flatMap((row) => drawRow(row, state, style))
  return [...lines, ...Array.from({ length: height }, () => ' '.repeat(style.width))].slice(0, height)
}
