import { measure, paint, type TerminalStyle } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { drawApprovals } from './approvals.ts'
import { matchChoices } from './changes.ts'
import { help } from './keys.ts'
import { drawList, fit } from './list-pane.ts'
import { type InboxState, showsApprovals, timeNow, views } from './state.ts'
import { drawThreadPane } from './thread-pane.ts'

/** The smallest terminal, and the widths from which two and three panes stand side by side. */
const MIN_WIDTH = 60
const MIN_HEIGHT = 15
const TWO_PANES_WIDTH = 100
const THREE_PANES_WIDTH = 140
const MAX_CHOICES = 8

export type ScreenSize = { readonly width: number; readonly height: number; readonly color: boolean }

const drawHeader = (state: InboxState, style: TerminalStyle): string => {
  const tabs = views.map(({ name, input }, i) => {
    const count =
      input === undefined ? state.approvals.rows.length || '' : i === state.view ? state.total : ''
    const label = `${i + 1} ${name} ${count ?? ''}`.trimEnd()
    return i === state.view ? `[${label}]` : ` ${label} `
  })
  const lost =
    state.lostAt === undefined
      ? 'live'
      : `reconnecting since ${new Date(state.lostAt).toTimeString().slice(0, 8)}`
  const { workspace, name, test } = state.me
  const aside = [workspace, name, test ? 'test key' : '', lost]
    .filter((part) => part !== '')
    .map(escapeControlCharacters)
    .join(' · ')
  const left = tabs.join(' ')
  const room = style.width - measure(left) - 1
  const line =
    room >= measure(aside) ? `${fit(left, style.width - measure(aside))}${aside}` : fit(left, style.width)
  return paint(style, 'inverse', line)
}

const usualKeys = {
  list: 'j k move  Enter open  c claim  a assign  x close  t tag  / find  n next  ? help  q leave',
  thread: 'Enter write  Tab note  j k scroll  c claim  a assign  x close  t tag  n next  Esc back  ? help',
  composer: '^S send  Enter new line  Tab reply or note  ^O saved reply  Esc back',
  prompt: 'Enter takes it  Esc back',
  help: 'Any key goes back.',
}

const describeKeys = (state: InboxState): string =>
  state.focus === 'list' && showsApprovals(state)
    ? 'j k move  y approve  e edit and approve  N decline  1-6 views  ? help  q leave'
    : usualKeys[state.focus]

const drawFooter = (state: InboxState, style: TerminalStyle): string[] => {
  const { prompt, fatal, notice } = state
  if (fatal !== undefined)
    return [paint(style, 'red', fit(`${escapeControlCharacters(fatal)} q leaves.`, style.width))]
  const lines: string[] = []
  if (prompt) {
    const choices = matchChoices(prompt)
    const from = Math.max(0, Math.min(prompt.at - MAX_CHOICES + 1, choices.length - MAX_CHOICES))
    for (const [i, { label }] of choices.slice(from, from + MAX_CHOICES).entries()) {
      const isChosen = from + i === prompt.at
      const line = fit(`${isChosen ? '▌' : ' '} ${escapeControlCharacters(label)}`, style.width)
      lines.push(isChosen ? paint(style, 'inverse', line) : line)
    }
    lines.push(
      paint(style, 'bold', fit(`${prompt.label}: ${escapeControlCharacters(prompt.text)}▏`, style.width)),
    )
  }
  if (notice !== undefined)
    lines.push(paint(style, 'yellow', fit(escapeControlCharacters(notice), style.width)))
  return [...lines, paint(style, 'dim', fit(describeKeys(state), style.width))]
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
        ['Service', conversation.sla?.status],
        ['Conversation', conversation.id],
      ].map(([label, value]) => `${label!.padEnd(13)}${escapeControlCharacters(value ?? '-')}`)
    : []
  return Array.from({ length: height }, (_, i) => fit(lines[i] ?? '', style.width))
}

const drawHelp = (height: number, width: number): string[] =>
  Array.from({ length: height }, (_, i) => {
    const line = help[i]
    return fit(line ? `  ${line[0].padEnd(14)}${line[1]}` : '', width)
  })

/** Puts panes side by side. */
const join = (panes: readonly (readonly string[])[], height: number, style: TerminalStyle): string[] =>
  Array.from({ length: height }, (_, i) =>
    panes.map((lines) => lines[i] ?? '').join(paint(style, 'dim', '│')),
  )

const drawBody = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { width } = style
  const isListShown = state.focus === 'list' || (state.focus === 'prompt' && !state.thread)
  if (state.focus === 'help') return drawHelp(height, width)
  if (showsApprovals(state)) return drawApprovals(state, height, style)
  if (width < TWO_PANES_WIDTH)
    return isListShown ? drawList(state, height, style) : drawThreadPane(state, height, style)
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
  if (width < MIN_WIDTH || height < MIN_HEIGHT) {
    const text = `The inbox needs ${MIN_WIDTH} by ${MIN_HEIGHT} characters; this terminal has ${width} by ${height}.`
    return Array.from({ length: Math.max(1, height) }, (_, i) => (i === 0 ? text.slice(0, width) : ''))
  }
  const style = { width, color, time: { zone: state.zone, now: timeNow(state), utc: false } }
  const footer = drawFooter(state, style)
  return [drawHeader(state, style), ...drawBody(state, height - 1 - footer.length, style), ...footer]
}
