import { randomUUID } from 'node:crypto'
import type { Key } from 'ink'
import { cut, formatDuration, paint, type TerminalStyle, wrap } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'
import { type Inbox, notify, reportFailure } from './data.ts'
import { fit } from './list-pane.ts'
import { ask } from './overlays.ts'
import { drawMessage, type ThreadMessage } from '../thread.ts'
import { type Approval, type InboxState, timeNow } from './state.ts'

// What AI agents want to do and a person decides.

const PAGE_SIZE = 50
/** Messages beside what is decided on. */
const MESSAGES_SHOWN = 20

/** Shows these rows, and the cursor on its call: another one may have come above it, or been decided by somebody. */
const setRows = ({ state }: Inbox, rows: readonly Approval[]): void => {
  const { approvals } = state
  const id = approvals.rows[approvals.at]?.id
  const place = rows.findIndex((row) => row.id === id)
  const isGone = id !== undefined && place < 0
  state.approvals = {
    ...approvals,
    rows,
    at: place < 0 ? Math.max(0, Math.min(approvals.at, rows.length - 1)) : place,
    isLoading: false,
    isReplaced: approvals.isReplaced || (isGone && id !== approvals.decided),
  }
}

/** Reads the calls that wait for a decision, and what a person decides on of the one under the cursor. */
export const loadApprovals = async (inbox: Inbox): Promise<void> => {
  const { state, api } = inbox
  try {
    const { value } = await api('approvals_list', { status: 'pending', limit: PAGE_SIZE })
    setRows(inbox, value['data'] as Approval[])
    inbox.changed()
    await loadSummary(inbox)
  } catch (error) {
    state.approvals = { ...state.approvals, isLoading: false }
    reportFailure(inbox, error)
  }
}

/** Reads them for somebody who has just come to look: nothing has changed before their eyes. */
export const openApprovals = async (inbox: Inbox): Promise<void> => {
  await loadApprovals(inbox)
  inbox.state.approvals = { ...inbox.state.approvals, isReplaced: false }
}

const loadSummary = async (inbox: Inbox): Promise<void> => {
  const { state, api } = inbox
  const id = state.approvals.rows[state.approvals.at]?.id
  if (id === undefined || state.approvals.shown?.id === id) return
  try {
    const { value } = await api('approvals_get', { approval_id: id })
    const {
      summary,
      summary_version: version,
      input,
    } = value as { summary: string[]; summary_version?: string | null; input: Record<string, unknown> | null }
    const text = typeof input?.['text'] === 'string' ? input['text'] : undefined
    const conversation = input?.['conversation_id']
    const messages =
      typeof conversation === 'string'
        ? ((await api('inbox_list_messages', { conversation_id: conversation, limit: MESSAGES_SHOWN })).value[
            'data'
          ] as ThreadMessage[])
        : []
    if (state.approvals.rows[state.approvals.at]?.id === id)
      state.approvals = {
        ...state.approvals,
        shown: { id, summary, version: version ?? undefined, text, messages: messages.toReversed() },
      }
    inbox.changed()
  } catch (error) {
    reportFailure(inbox, error)
  }
}

/**
 * The call that a key decides on: one that the person has had before them. Undefined where its summary is not shown
 * yet, or where it has come under the cursor by itself, which they are told.
 */
const takeShown = (inbox: Inbox): Approval | undefined => {
  const { rows, at, shown, isReplaced } = inbox.state.approvals
  const row = rows[at]
  if (!row) return undefined
  inbox.state.approvals = { ...inbox.state.approvals, isReplaced: false }
  if (isReplaced)
    notify(inbox, 'That request was decided elsewhere; this is another one. Read it and press again.')
  else if (shown?.id !== row.id) notify(inbox, 'This call is not shown yet.')
  else return row
  return undefined
}

/** Describes the call and its subject. */
const describeCall = ({ operation, contact }: Approval): string => {
  const [, ...words] = operation.split('_')
  return `${words.join(' ')}${contact?.name ? ` · ${contact.name}` : ''}`
}

const decide = async (
  inbox: Inbox,
  row: Approval,
  verb: 'approve' | 'decline',
  input: Readonly<Record<string, string>> = {},
): Promise<void> => {
  const { id } = row
  inbox.state.approvals = { ...inbox.state.approvals, decided: id }
  try {
    const headers = { idempotencyKey: randomUUID() }
    await inbox.api(`approvals_${verb}`, { approval_id: id, ...input }, headers)
    const outcome = verb === 'approve' ? 'approved, it runs now' : 'declined, it never runs'
    notify(inbox, `${describeCall(row)}: ${outcome}`)
  } catch (error) {
    reportFailure(inbox, error)
    // What was refused may read otherwise by now.
    inbox.state.approvals = { ...inbox.state.approvals, shown: undefined }
  }
  await loadApprovals(inbox)
}

/** What the person has before them, so that nothing else is approved. */
const takeVersion = ({ state }: Inbox): Record<string, string> => {
  const { version } = state.approvals.shown ?? {}
  return version === undefined ? {} : { summary_version: version }
}

const approve = (inbox: Inbox): void => {
  const row = takeShown(inbox)
  if (row) void decide(inbox, row, 'approve', takeVersion(inbox))
}

const askNote = (inbox: Inbox): void => {
  const row = takeShown(inbox)
  if (!row) return
  ask(inbox, {
    label: `Decline ${describeCall(row)}; what to tell the agent (may be empty)`,
    submit: (text) => void decide(inbox, row, 'decline', text.trim() === '' ? {} : { note: text.trim() }),
  })
}

const askText = (inbox: Inbox): void => {
  const row = takeShown(inbox)
  if (!row) return
  const text = inbox.state.approvals.shown?.text
  const version = takeVersion(inbox)
  if (text === undefined) return notify(inbox, 'This call has no text to edit.')
  ask(inbox, {
    label: `Approve ${describeCall(row)} with this text`,
    text,
    submit: (edited) =>
      void decide(inbox, row, 'approve', edited === text ? version : { ...version, text: edited }),
  })
}

const move = (inbox: Inbox, by: number): void => {
  const { approvals } = inbox.state
  const at = Math.max(0, Math.min(approvals.rows.length - 1, approvals.at + by))
  inbox.state.approvals = { ...approvals, at, isReplaced: false }
  inbox.changed()
  void loadSummary(inbox)
}

/** Acts on a key of this view; false for a key that it does not have. */
export const pressInApprovals = (inbox: Inbox, input: string, key: Key): boolean => {
  if (key.downArrow || input === 'j') move(inbox, 1)
  else if (key.upArrow || input === 'k') move(inbox, -1)
  else if (input === 'y') approve(inbox)
  else if (input === 'e') askText(inbox)
  else if (input === 'N') askNote(inbox)
  else return false
  return true
}

const drawRow = (row: Approval, isSelected: boolean, state: InboxState, style: TerminalStyle): string[] => {
  const left = `${formatDuration(Date.parse(row.expires_at) - timeNow(state))} left`
  const who = escapeControlCharacters(row.asked_by.key.name ?? row.asked_by.staff.name ?? 'agent')
  const mark = isSelected ? '▌ ' : '  '
  const lines = [
    `${mark}${fit(escapeControlCharacters(describeCall(row)), style.width - 3 - left.length)} ${left}`,
    `${mark}${fit(`${who}: ${escapeControlCharacters(row.reason ?? 'no reason given')}`, style.width - 2)}`,
  ]
  return isSelected ? lines.map((line) => paint(style, 'inverse', line)) : lines
}

/** Draws the end of the conversation that the approval under the cursor is about. */
export const drawApprovalThread = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { rows, at, shown } = state.approvals
  const messages = rows[at] && shown?.id === rows[at].id ? shown.messages : []
  const lines = messages.flatMap((message) => [...drawMessage(message, { ...style, color: false }), ''])
  const end = lines.slice(-height - 1, -1)
  return Array.from({ length: height }, (_, i) => fit(end[i] ?? '', style.width))
}

/** Draws what waits on top, and whole what is decided on below it. */
export const drawApprovals = (state: InboxState, height: number, style: TerminalStyle): string[] => {
  const { rows, at, shown, isLoading } = state.approvals
  const room = Math.max(1, Math.min(rows.length, Math.floor(height / 6)))
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), rows.length - room))
  const list = rows.slice(from, from + room).flatMap((row, i) => drawRow(row, from + i === at, state, style))
  const summary = rows[at] && shown?.id === rows[at].id ? shown.summary : []
  const empty = isLoading ? 'Loading …' : 'No request is pending.'
  const lines = [
    ...(rows.length === 0 ? [empty] : list),
    cut('─'.repeat(style.width), style.width),
    ...summary.flatMap((line) => wrap(escapeControlCharacters(line), style.width)),
  ]
  return Array.from({ length: height }, (_, i) =>
    i < list.length ? lines[i]! : fit(lines[i] ?? '', style.width),
  )
}
