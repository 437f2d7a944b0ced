import { cut, formatTime, measure, paint, type TerminalStyle, wrap } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { drawApprovals, drawApprovalThread } from './approvals.ts'
import { listSharedContacts } from './changes.ts'
import { drawList, fit, toColumn } from './list-pane.ts'
import { matchChoices } from './overlays.ts'
import { isTooSmall, MIN_SIZE } from './size.ts'
import {
  describeContact,
  findTargets,
  type InboxState,
  type Pager,
  showsApprovals,
  takesTemplates,
  timeNow,
  views,
} from './state.ts'
import { drawThreadPane } from './thread-pane.ts'

/** The smallest terminal, and the widths from which two and three panes stand side by side. */
const TWO_PANES_WIDTH = 100
const THREE_PANES_WIDTH = 140
const MAX_CHOICES = 8
const MAX_PROMPT_LINES = 6

export type ScreenSize = { readonly width: number; readonly height: number; readonly color: boolean }

/** The names of the views with their counts; of those that are not shown the numbers alone where `isShort`. */
const drawTabs = (state: InboxState, isShort: boolean): string =>
  views
    .map(({ name, input }, i) => {
      const count = input === undefined ? state.approvals.rows.length || undefined : state.counts[i]
      if (i !== state.view && isShort) return ` ${i + 1}${count === undefined ? '' : ` (${count})`} `
      const label = `${i + 1} ${name} ${count ?? ''}`.trimEnd()
      return i === state.view ? `[${label}]` : ` ${label} `
    })
    .join('')
    .trimEnd()

const drawHeader = (state: InboxState, style: TerminalStyle): string => {
  const lost =
    state.fatal !== undefined
      ? 'disconnected'
      : state.lostAt === undefined
        ? 'live'
        : `reconnecting since ${new Date(state.lostAt).toTimeString().slice(0, 8)}`
  const { workspace, name, test, hidesPhones } = state.me
  const isReadOnly = !state.scopes.some((scope) => scope === 'inbox:write' || scope === 'messaging:write')
  const seconds = state.limitedUntil === undefined ? 0 : Math.ceil((state.limitedUntil - Date.now()) / 1000)
  const aside = [
    workspace,
    name,
    test ? 'test key' : '',
    isReadOnly ? 'read only' : '',
    hidesPhones ? 'phones hidden' : '',
    seconds > 0 ? `rate limited, ${seconds} s` : '',
    lost,
  ]
    .filter((part) => part !== '')
    .map(escapeControlCharacters)
  const least = aside.length - (seconds > 0 ? 2 : 1)
  const isShort = measure(`${drawTabs(state, false)} ${aside.slice(least).join(' · ')}`) > style.width
  const left = drawTabs(state, isShort)
  const room = style.width - measure(left) - 1
  // Where not all fits, the end is kept: what is wrong, and whether the screen is live.
  const parts = aside.findIndex((_, i) => measure(aside.slice(i).join(' · ')) <= room)
  const shown = cut(aside.slice(parts === -1 ? least : parts).join(' · '), style.width)
  const line = `${fit(left, style.width - measure(shown) - (shown ? 1 : 0))}${shown ? ' ' : ''}${shown}`
  return paint(style, 'inverse', line)
}

const usualKeys = {
  list: 'j k move  Enter open  c claim  a assign  x close  t tag  r remind  / find  ? help  q leave',
  thread: 'Enter write  Tab note  j k scroll  c claim  a assign  x close  t tag  n next  Esc back  ? help',
  composer: '^S send  Enter new line  Tab reply or note  /code saved reply  ^T template  Esc back',
  form: 'Enter next  ^S check and send  ↑ ↓ move  Esc back',
  pager: 'j k scroll  Space page  g G first and last  Esc back',
  prompt: 'Enter takes it  Esc back',
  question: 'Enter or ^S send  Esc back',
}

/** The footer of a key that changes nothing leaves those keys out. */
const readingKeys = {
  list: 'j k move  Enter open  / find  n next  y copy  : command  ? help  q leave',
  thread: 'j k move  Enter address of a file  y copy  n next  Esc back  ? help',
}

/** Leaves keys out that do not fit, so that the last, which lead back and to the help, always show. */
const fitKeys = (keys: string, width: number): string => {
  const parts = keys.split('  ')
  while (parts.length > 3 && measure(parts.join('  ')) > width) parts.splice(-3, 1)
  return parts.join('  ')
}

const describeKeys = (state: InboxState): string => {
  const place = state.overlay?.kind ?? state.focus
  return !state.scopes.includes('inbox:write') &&
    !state.scopes.includes('messaging:write') &&
    (place === 'list' || place === 'thread')
    ? readingKeys[place]
    : place === 'list' && showsApprovals(state)
      ? 'j k move  y approve  e edit and approve  N decline  1-6 views  ? help  q leave'
      : place === 'composer' && state.thread && !takesTemplates(state.thread.conversation)
        ? usualKeys.composer.replace('^T template  ', '')
        : place === 'thread' && listSharedContacts(state).length > 0
          ? `A add the shared contact  ${usualKeys.thread}`
          : usualKeys[place]
}

/** A text that leads to an address, where the terminal knows OSC 8. */
const linkTo = (url: string, text: string): string => `\u001b]8;;${url}\u001b\\${text}\u001b]8;;\u001b\\`

/** Names the targets of the next actions, also while the list is hidden. */
const describeSelection = (state: InboxState): string => {
  const targets = findTargets(state)
  const names = targets.map(describeContact).join(', ') || 'all have left it'
  return `${targets.length} selected, Esc in the list ends it: ${names}`
}

const drawFooter = (state: InboxState, style: TerminalStyle): string[] => {
  const { overlay, selection, fatal, notice } = state
  if (fatal !== undefined)
    return [paint(style, 'red', fit(`${escapeControlCharacters(fatal)} q leaves.`, style.width))]
  const lines: string[] = []
  if (!overlay && state.focus !== 'composer' && selection.size > 0)
    lines.push(paint(style, 'bold', fit(escapeControlCharacters(describeSelection(state)), style.width)))
  if (overlay?.kind === 'prompt') {
    const choices = matchChoices(overlay)
    const from = Math.max(0, Math.min(overlay.at - MAX_CHOICES + 1, choices.length - MAX_CHOICES))
    if (!overlay.choices) lines.push(fit('Loading …', style.width))
    for (const [i, { label }] of choices.slice(from, from + MAX_CHOICES).entries()) {
      const isChosen = from + i === overlay.at
      const line = fit(`${isChosen ? '▌' : ' '} ${escapeControlCharacters(label)}`, style.width)
      lines.push(isChosen ? paint(style, 'inverse', line) : line)
    }
    const text = `${overlay.label}: ${overlay.text}▏`
    const wrapped = text.split('\n').flatMap((line) => wrap(escapeControlCharacters(line), style.width))
    // The end is where one types.
    for (const line of wrapped.slice(-MAX_PROMPT_LINES))
      lines.push(paint(style, 'bold', fit(line, style.width)))
  }
  // Addresses are never cut, and each of their lines leads to the whole.
  if (state.link !== undefined)
    for (const line of wrap(escapeControlCharacters(state.link), style.width))
      lines.push(linkTo(escapeControlCharacters(state.link), line) + ' '.repeat(style.width - measure(line)))
  if (notice !== undefined)
    lines.push(paint(style, 'yellow', fit(escapeControlCharacters(notice), style.width)))
  return [...lines, paint(style, 'dim', fit(fitKeys(describeKeys(state), style.width), style.width))]
}

const drawContact = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const conversation = state.thread?.conversation
  const lines = conversation
    ? [
        ['Contact', conversation.contact?.id],
        ['Name', conversation.contact?.name],
        ['Phone', conversation.contact?.phone],
        ['Channel', conversation.channel?.name],
        ['Tags', conversation.tags.map(({ name }) => name).join(', ')],
        ['Groups', conversation.contact?.groups?.join(', ')],
        ['Service', conversation.sla?.status],
        ['Reminder', conversation.reminder_at ? formatTime(conversation.reminder_at, style.time) : undefined],
        ['Conversation', conversation.id],
      ].map(([label, value]) => `${label!.padEnd(13)}${escapeControlCharacters(value || '-')}`)
    : []
  return Array.from({ length: height }, (_, i) => fit(lines[i] ?? '', style.width))
}

const drawPager = ({ title, lines, scrolled }: Pager, height: number, width: number): string[] => {
  const wrapped = lines.slice(scrolled, scrolled + height).flatMap((line) => wrap(line, width))
  const shown = title === undefined ? wrapped : [title, ...wrapped]
  return Array.from({ length: height }, (_, i) => fit(shown[i] ?? '', width))
}

/**
 * Puts panes side by side, each in its column: terminals disagree about the width of some scripts, such as Devanagari.
 */
const join = (panes: readonly (readonly string[])[], height: number, style: TerminalStyle): string[] =>
  Array.from({ length: height }, (_, i) => {
    let column = 0
    return panes
      .map((lines) => {
        const begin = column === 0 ? '' : `${toColumn(column - 1)}${paint(style, 'dim', '│')}`
        column += measure(lines[0] ?? '') + 1
        return begin + (lines[i] ?? '')
      })
      .join('')
  })

const drawBody = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { width } = style
  if (state.overlay?.kind === 'pager') return drawPager(state.overlay, height, width)
  if (showsApprovals(state)) {
    if (width < TWO_PANES_WIDTH) return drawApprovals(state, height, style)
    const half = Math.floor(width * 0.55)
    const beside = { ...style, width: width - half - 1 }
    return join(
      [drawApprovals(state, height, { ...style, width: half }), drawApprovalThread(state, height, beside)],
      height,
      style,
    )
  }
  if (width < TWO_PANES_WIDTH)
    return state.focus === 'list' ? drawList(state, height, style) : drawThreadPane(state, height, style)
  const isWide = width >= THREE_PANES_WIDTH
  const listWidth = Math.floor(width * (isWide ? 0.3 : 0.4))
  const contactWidth = isWide ? Math.floor(width * 0.22) : 0
  const threadWidth = width - listWidth - 1 - (isWide ? contactWidth + 1 : 0)
  const panes = [
    drawList(state, height, { ...style, width: listWidth }),
    drawThreadPane(state, height, { ...style, width: threadWidth }),
  ]
  if (isWide) panes.push(drawContact(state, height, { ...style, width: contactWidth }))
  return join(panes, height, style)
}

/** Draws the whole screen: exactly `height` lines, none wider than `width`. */
export const drawScreen = (state: InboxState, { width, height, color }: ScreenSize): string[] => {
  if (isTooSmall({ width, height })) {
    const text =
      `The inbox needs ${MIN_SIZE.width} by ${MIN_SIZE.height} characters; this terminal has ${width} by ${height}. ` +
      'Make it larger, or leave with ^C.'
    const lines = wrap(text, Math.max(1, width))
    return Array.from({ length: Math.max(1, height) }, (_, i) => lines[i] ?? '')
  }
  const style = { width, color, time: { zone: state.zone, now: timeNow(state), utc: false } }
  const footer = drawFooter(state, style)
  return [drawHeader(state, style), ...drawBody(state, height - 1 - footer.length, style), ...footer]
}
