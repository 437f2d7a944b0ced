import { randomUUID } from 'node:crypto'
import { isCliError } from '../error.ts'
import { retryAfterSeconds } from '../remote.ts'
import type { ThreadMessage } from '../thread.ts'
import { formatWallTime, parseTimePhrase } from '../time-phrase.ts'
import { describeFailure, isFatal } from './api.ts'
import { type Inbox, loadList, loadThread, notify, reportFailure } from './data.ts'
import { ask, askAfter } from './overlays.ts'
import {
  type Choice,
  type Conversation,
  describeTargets,
  findMessage,
  type InboxState,
  type Prompt,
  timeNow,
} from './state.ts'

// Changes of conversations: of those that the key hit when it was pressed, whatever the list does until it is answered.

type Targets = readonly Conversation[]

type Change = {
  operation: string
  input: object
  /** Says what has happened to a conversation. */
  done: string
  /** Says why one was refused, where it knows better than the problem. */
  explain?: (error: unknown, id: string) => Promise<string | undefined>
}

/** Calls an operation for each target, and reports the results. */
const change = async (
  inbox: Inbox,
  targets: Targets,
  { operation, input, done, explain }: Change,
): Promise<void> => {
  if (!inbox.state.scopes.includes('inbox:write'))
    return notify(inbox, 'The key lacks the scope inbox:write.')
  // A server that is slow or away would leave the key without an answer.
  notify(inbox, 'Working …')
  const outcomes = new Map<string, Conversation[]>()
  for (const target of targets) {
    const { id } = target
    let outcome = done
    try {
      await inbox.api(operation, { conversation_id: id, ...input }, { idempotencyKey: randomUUID() })
    } catch (error) {
      if (isFatal(error) || retryAfterSeconds(error) !== undefined) return reportFailure(inbox, error)
      outcome = (await explain?.(error, id)) ?? describeFailure(error)
    }
    outcomes.set(outcome, [...(outcomes.get(outcome) ?? []), target])
  }
  notify(inbox, [...outcomes].map(([outcome, of]) => `${describeTargets(of)}: ${outcome}`).join('; '))
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

export const claim = (inbox: Inbox, targets: Targets): Promise<void> =>
  change(inbox, targets, {
    operation: 'inbox_assign_conversation',
    input: { staff_id: inbox.state.me.staffId, only_if_unassigned: true },
    done: 'claimed',
    explain: (error, id) => explainClaim(inbox, error, id),
  })
export const unassign = (inbox: Inbox, targets: Targets): Promise<void> =>
  change(inbox, targets, { operation: 'inbox_unassign_conversation', input: {}, done: 'unassigned' })
export const reopen = (inbox: Inbox, targets: Targets): Promise<void> =>
  change(inbox, targets, { operation: 'inbox_reopen_conversation', input: {}, done: 'reopened' })
export const markRead = (inbox: Inbox, targets: Targets): Promise<void> =>
  change(inbox, targets, { operation: 'inbox_mark_read', input: {}, done: 'marked as read' })

const readAll = async (inbox: Inbox, operation: string): Promise<Record<string, string>[]> => {
  const { value } = await inbox.api(operation, { limit: 100 })
  return value['data'] as Record<string, string>[]
}

/** Asks for a person or team, and assigns to it. */
export const askAssignee = (inbox: Inbox, targets: Targets): Promise<void> => {
  const offer = (label: string, input: object, name: string): Choice => ({
    label,
    run: () =>
      void change(inbox, targets, {
        operation: 'inbox_assign_conversation',
        input,
        done: `assigned to ${name}`,
      }),
  })
  return askAfter(inbox, { label: `Assign ${describeTargets(targets)} to` }, async () => {
    const [staff, teams] = await Promise.all([
      readAll(inbox, 'workspace_list_staff'),
      readAll(inbox, 'workspace_list_teams'),
    ])
    return [
      ...staff.map(({ id, name = '' }) => offer(name, { staff_id: id }, name)),
      ...teams.map(({ id, name = '' }) => offer(`team ${name}`, { team_id: id }, name)),
    ]
  })
}

export const askReason = (inbox: Inbox, targets: Targets): Prompt =>
  ask(inbox, {
    label: `Close ${describeTargets(targets)}; reason (may be empty)`,
    submit: (text) => {
      const reason = text.trim()
      const input = reason === '' ? {} : { reason }
      void change(inbox, targets, { operation: 'inbox_close_conversation', input, done: 'closed' })
    },
  })

export const askTags = (inbox: Inbox, targets: Targets): Prompt =>
  ask(inbox, {
    label: `Tags of ${describeTargets(targets)} to add, -name removes, separated by commas`,
    submit: (text) => {
      const names = text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '' && name !== '-')
      const add = names.filter((name) => !name.startsWith('-'))
      const remove = names.filter((name) => name.startsWith('-')).map((name) => name.slice(1).trim())
      if (names.length === 0) return notify(inbox, 'No tag was named.')
      const input = { ...(add.length > 0 ? { add } : {}), ...(remove.length > 0 ? { remove } : {}) }
      void change(inbox, targets, { operation: 'inbox_tag_conversation', input, done: 'tagged' })
    },
  })

const PRESETS = ['+1h', '+3h', 'tomorrow 9:00', 'monday 9:00']

/** Asks when the conversations should come up again. */
export const askReminder = (inbox: Inbox, targets: Targets): Prompt => {
  const set = (phrase: string): void => {
    const clock = { now: timeNow(inbox.state), zone: inbox.state.zone }
    const at = phrase === '' ? null : parseTimePhrase(phrase, clock)
    if (at === undefined || (at !== null && at <= clock.now))
      return notify(inbox, `"${phrase}" is no time to come, such as +90m, tomorrow 9:00 or 2026-11-30 9:00.`)
    const done = at === null ? 'reminder cleared' : `reminder at ${formatWallTime(at, clock.zone)}`
    const input = { at: at === null ? null : new Date(at).toISOString() }
    void change(inbox, targets, { operation: 'inbox_set_reminder', input, done })
  }
  return ask(inbox, {
    label: `Remind of ${describeTargets(targets)}, such as +90m or friday 14:00`,
    choices: [
      ...PRESETS.map((label) => ({ label, run: () => set(label) })),
      { label: 'no reminder', run: () => set('') },
    ],
    submit: (text) => set(text.trim()),
  })
}

type SharedContact = {
  readonly name: string | null
  readonly phone: string
  readonly email: string | undefined
}

const listContacts = ({ content }: ThreadMessage): SharedContact[] =>
  content?.kind === 'contacts'
    ? content.contacts.flatMap(({ own, name, phones, emails }) =>
        own
          ? []
          : phones.map(({ phone, chatapp_number: number }) => ({
              name,
              phone: number === null ? phone : `+${number}`,
              email: emails[0]?.email,
            })),
      )
    : []

/**
 * The contacts that can be added: those on the card under the cursor, or on all cards of the open conversation, newest
 * first; one for each number. Nobody adds a number that they do not see.
 */
export const listSharedContacts = (state: InboxState): SharedContact[] => {
  if (state.me.hidesPhones || !state.scopes.includes('crm:write')) return []
  const message = findMessage(state)
  const chosen = message ? listContacts(message) : []
  return chosen.length > 0 ? chosen : (state.thread?.messages ?? []).toReversed().flatMap(listContacts)
}

/** A card changes no contact that there is already: colleagues have named it. */
const addContact = async (inbox: Inbox, shared: SharedContact): Promise<void> => {
  const { name, phone, email } = shared
  try {
    const { value: rehearsed } = await inbox.api('crm_upsert_contact', { phone, dry_run: true })
    const { action, contact } = rehearsed as { action: string; contact: { name: string | null } }
    if (action !== 'created')
      return notify(inbox, `${phone} is a contact already: ${contact.name ?? 'without a name'}.`)
    const input = { phone, ...(name === null ? {} : { name }), ...(email === undefined ? {} : { email }) }
    const { value } = await inbox.api('crm_upsert_contact', input, { idempotencyKey: randomUUID() })
    notify(inbox, `${name ?? phone}: added as contact ${String(value['id'])}`)
  } catch (error) {
    reportFailure(inbox, error)
  }
}

/** Asks for the number, which may need its country code, and with several contacts first for one of them. */
export const askSharedContact = (inbox: Inbox): unknown => {
  const shared = listSharedContacts(inbox.state)
  const askNumber = (one: SharedContact): Prompt =>
    ask(inbox, {
      label: `Add ${one.name ?? 'this contact'}${one.email === undefined ? '' : ` (${one.email})`}; number`,
      text: one.phone,
      submit: (text) => void addContact(inbox, { ...one, phone: text.trim() }),
    })
  if (shared.length === 0) return notify(inbox, 'There is no shared contact here that can be added.')
  if (shared.length === 1) return askNumber(shared[0]!)
  return ask(inbox, {
    label: 'Add which contact',
    choices: shared.map((one) => ({
      label: `${one.name ?? ''}  ${one.phone}`.trim(),
      run: () => void askNumber(one),
    })),
  })
}
