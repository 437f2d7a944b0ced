import { randomUUID } from 'node:crypto'
import { isCliError } from '../error.ts'
import { retryAfterSeconds } from '../remote.ts'
import { formatWallTime, parseTimePhrase } from '../time-phrase.ts'
import { describeFailure, isFatal } from './api.ts'
import { type Inbox, loadList, loadThread, notify, reportFailure } from './data.ts'
import { type Choice, type Conversation, findSelected, type Prompt, timeNow } from './state.ts'

// Changes of conversations: one, or all that are marked.

/** The conversations that a key acts on: the marked ones, or that under the cursor. */
const findTargets = ({ state }: Inbox): readonly Conversation[] => {
  const marked = state.rows.filter(({ id }) => state.marked.has(id))
  if (state.focus === 'list' && marked.length > 0) return marked
  const one = state.focus === 'list' ? findSelected(state) : state.thread?.conversation
  return one ? [one] : []
}

type Change = {
  operation: string
  input: object
  /** Says in a word what has happened. */
  done: string
  /** Says why one was refused, where it knows better than the problem. */
  explain?: (error: unknown, id: string) => Promise<string | undefined>
}

/**
 * Calls an operation for each target. What is asked first is given those of the moment when its key was pressed: the
 * list goes on changing while somebody types.
 */
const change = async (
  inbox: Inbox,
  { operation, input, done, explain }: Change,
  targets = findTargets(inbox),
): Promise<void> => {
  if (targets.length === 0) return notify(inbox, 'No conversation is selected.')
  if (!inbox.state.scopes.includes('inbox:write'))
    return notify(inbox, 'The key lacks the scope inbox:write.')
  // A server that is slow or away would leave the key without an answer.
  notify(inbox, 'Working …')
  const failures: string[] = []
  for (const { id } of targets)
    try {
      await inbox.api(operation, { conversation_id: id, ...input }, { idempotencyKey: randomUUID() })
    } catch (error) {
      if (isFatal(error) || retryAfterSeconds(error) !== undefined) return reportFailure(inbox, error)
      failures.push((await explain?.(error, id)) ?? describeFailure(error))
    }
  inbox.state.marked.clear()
  const count = targets.length - failures.length
  const result = count > 0 ? `${done} (${count})` : ''
  notify(inbox, [result, ...new Set(failures)].filter((text) => text !== '').join('. '))
  await Promise.all([
    loadList(inbox),
    ...(inbox.state.thread ? [loadThread(inbox, inbox.state.thread.id)] : []),
  ])
}

/** Says who has a conversation that was claimed in vain; undefined for any other failure. */
const explainClaim = async (inbox: Inbox, error: unknown, id: string): Promise<string | undefined> => {
  if (!isCliError(error) || error.problem['reason'] !== 'already_assigned') return undefined
  try {
    const { value } = await inbox.api('inbox_get_conversation', { conversation_id: id })
    const { assignee } = value as unknown as Conversation
    if (assignee === null) return 'A team has it: a assigns it.'
    return assignee.staff_id === inbox.state.me.staffId
      ? 'It is yours already.'
      : `${assignee.name ?? 'A colleague'} has already claimed it.`
  } catch {
    return undefined
  }
}

export const claim = (inbox: Inbox): Promise<void> =>
  change(inbox, {
    operation: 'inbox_assign_conversation',
    input: { staff_id: inbox.state.me.staffId, only_if_unassigned: true },
    done: 'Claimed',
    explain: (error, id) => explainClaim(inbox, error, id),
  })
export const unassign = (inbox: Inbox): Promise<void> =>
  change(inbox, { operation: 'inbox_unassign_conversation', input: {}, done: 'Unassigned' })
export const reopen = (inbox: Inbox): Promise<void> =>
  change(inbox, { operation: 'inbox_reopen_conversation', input: {}, done: 'Reopened' })
export const markRead = (inbox: Inbox): Promise<void> =>
  change(inbox, { operation: 'inbox_mark_read', input: {}, done: 'Marked as read' })

/** Opens a prompt; `text` is what stands in it at first. */
export const ask = (
  inbox: Inbox,
  { text = '', ...prompt }: Omit<Prompt, 'text' | 'at' | 'from'> & { text?: string },
): void => {
  const { focus, thread } = inbox.state
  const from =
    inbox.state.prompt?.from ??
    (focus === 'list' || focus === 'composer' ? focus : thread ? 'thread' : 'list')
  inbox.state.prompt = { ...prompt, from, text, at: 0 }
  inbox.state.focus = 'prompt'
  inbox.changed()
}

/** The choices whose label has what was typed, ignoring case. */
export const matchChoices = ({ choices, text }: Prompt): readonly Choice[] =>
  choices.filter(({ label }) => label.toLowerCase().includes(text.trim().toLowerCase()))

const readAll = async (inbox: Inbox, operation: string): Promise<Record<string, string>[]> => {
  const { value } = await inbox.api(operation, { limit: 100 })
  return value['data'] as Record<string, string>[]
}

/** Asks for a person or team, and assigns to it. */
export const askAssignee = async (inbox: Inbox): Promise<void> => {
  const targets = findTargets(inbox)
  try {
    const [staff, teams] = await Promise.all([
      readAll(inbox, 'workspace_list_staff'),
      readAll(inbox, 'workspace_list_teams'),
    ])
    const assign = (input: object, name: string) => () =>
      void change(
        inbox,
        { operation: 'inbox_assign_conversation', input, done: `Assigned to ${name}` },
        targets,
      )
    ask(inbox, {
      label: 'Assign to',
      choices: [
        ...staff.map(({ id, name = '' }) => ({ label: name, run: assign({ staff_id: id }, name) })),
        ...teams.map(({ id, name = '' }) => ({ label: `team ${name}`, run: assign({ team_id: id }, name) })),
      ],
    })
  } catch (error) {
    reportFailure(inbox, error)
  }
}

export const askReason = (inbox: Inbox): void => {
  const targets = findTargets(inbox)
  ask(inbox, {
    label: 'Close; reason (may be empty)',
    choices: [],
    submit: (text) => {
      const reason = text.trim()
      const input = reason === '' ? {} : { reason }
      void change(inbox, { operation: 'inbox_close_conversation', input, done: 'Closed' }, targets)
    },
  })
}

export const askTags = (inbox: Inbox): void => {
  const targets = findTargets(inbox)
  ask(inbox, {
    label: 'Tags to add, -name removes, separated by commas',
    choices: [],
    submit: (text) => {
      const names = text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '' && name !== '-')
      const add = names.filter((name) => !name.startsWith('-'))
      const remove = names.filter((name) => name.startsWith('-')).map((name) => name.slice(1).trim())
      if (names.length === 0) return notify(inbox, 'No tag was named.')
      const input = { ...(add.length > 0 ? { add } : {}), ...(remove.length > 0 ? { remove } : {}) }
      void change(inbox, { operation: 'inbox_tag_conversation', input, done: 'Tagged' }, targets)
    },
  })
}

export const askSearch = (inbox: Inbox, search: (text: string) => void): void =>
  ask(inbox, { label: 'Search names and numbers', choices: [], submit: (text) => search(text.trim()) })

const PRESETS = ['+1h', '+3h', 'tomorrow 9:00', 'monday 9:00']

/** Asks when the conversations should come up again. */
export const askReminder = (inbox: Inbox): void => {
  const targets = findTargets(inbox)
  const set = (phrase: string): void => {
    const clock = { now: timeNow(inbox.state), zone: inbox.state.zone }
    const at = phrase === '' ? null : parseTimePhrase(phrase, clock)
    if (at === undefined || (at !== null && at <= clock.now))
      return notify(inbox, `"${phrase}" is no time to come, such as +90m, tomorrow 9:00 or 2026-11-30 9:00.`)
    const done = at === null ? 'Reminder cleared' : `Reminder at ${formatWallTime(at, clock.zone)}`
    const input = { at: at === null ? null : new Date(at).toISOString() }
    void change(inbox, { operation: 'inbox_set_reminder', input, done }, targets)
  }
  ask(inbox, {
    label: 'Remind, such as +90m or friday 14:00',
    choices: [
      ...PRESETS.map((label) => ({ label, run: () => set(label) })),
      { label: 'no reminder', run: () => set('') },
    ],
    submit: (text) => set(text.trim()),
  })
}
