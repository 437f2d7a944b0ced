import { hash } from 'node:crypto'
import type { Operation, OperationName } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import type { ContactSubjects } from '../../storage/contacts/budgets.ts'
import { canonicalJson } from '../kernel/cursors.ts'

/*
 * Finds the contacts that a call tells of, by the names of the members of its input and its answer. Whatever a new
 * operation shows of a contact is counted without a word about it, as long as it names ids as the others do.
 */

type Json = Record<string, unknown>
type Found = { [kind in keyof ContactSubjects]: Set<string> }
type Kind = Exclude<keyof ContactSubjects, 'questions'>

const ID = /^[1-9]\d{0,17}$/

/** A map by names that are chosen outside, such as those of attributes: an object has `constructor` by itself. */
const toMap = (kinds: Readonly<Record<string, Kind>>): ReadonlyMap<string, Kind> =>
  new Map(Object.entries(kinds))

/** Members that hold an id, or a list of them. */
const idMembers = toMap({
  contact_id: 'contacts',
  contact_ids: 'contacts',
  other_contact_id: 'contacts',
  merged_contact_id: 'contacts',
  merged_into: 'contacts',
  conversation_id: 'conversations',
  conversation_ids: 'conversations',
  message_id: 'messages',
  message_ids: 'messages',
  // Of what is to be sent (`prepare` of a handler).
  contactId: 'contacts',
  conversationId: 'conversations',
})

/** Members that hold a record with its id; the values of `target.type` too. */
const recordMembers = toMap({
  contact: 'contacts',
  conversation: 'conversations',
  message: 'messages',
})

const add = (found: Found, kind: Kind, value: unknown): void => {
  if (Array.isArray(value)) for (const one of value) add(found, kind, one)
  else if (typeof value === 'string' && ID.test(value)) found[kind].add(value)
}

const collect = (found: Found, value: unknown): void => {
  if (Array.isArray(value)) {
    for (const one of value) collect(found, one)
    return
  }
  if (value === null || typeof value !== 'object') return
  const record = value as Json
  // Only contacts have it; see also `isContact` in phones.ts.
  if ('dnd' in record || 'dnd_enabled' in record) add(found, 'contacts', record['id'])
  for (const [name, member] of Object.entries(record)) {
    const kind = idMembers.get(name)
    if (kind) add(found, kind, member)
    else if (member !== null && typeof member === 'object') {
      const recordKind = recordMembers.get(name)
      if (recordKind) add(found, recordKind, (member as Json)['id'])
      if (name === 'target') {
        const { type, id } = member as Json
        const targetKind = typeof type === 'string' ? recordMembers.get(type) : undefined
        if (targetKind) add(found, targetKind, id)
      }
      collect(found, member)
    }
  }
}

/** Fields of searches and counts that say how much is shown of what is found, not what is found. */
const SHAPE_FIELDS = new Set(['cursor', 'limit', 'sort', 'detail', 'fields', 'total'])

/** By what a call finds a person, who is named by the answer alone. */
const identityFields: { readonly [name in OperationName]?: readonly string[] } = {
  crm_get_contact: ['external_id'],
  crm_upsert_contact: ['phone', 'external_id'],
  crm_update_contact: ['external_id'],
  crm_change_phone: ['phone'],
  messaging_get_message: ['external_id'],
}

/** They read no contact: what they answer of one is an example. */
const READS_NO_CONTACT: ReadonlySet<string> = new Set<OperationName>([
  'crm_check_filter',
  'webhooks_list_event_types',
])

/** Returns the fields by which contacts, or conversations by their contacts and texts, are looked for. */
const listQuestionFields = ({ name, jobs, heavy }: Operation, input: Json): string[] => {
  switch (name) {
    case 'crm_search_contacts':
    case 'crm_count_contacts':
    case 'inbox_search_messages':
      return Object.keys(input).filter((field) => !SHAPE_FIELDS.has(field))
    case 'inbox_search_conversations':
    case 'inbox_queue':
      return ['query']
    case 'messaging_send_template':
      // Its rehearsal quotes the contact with the phone, and names it nowhere.
      return ['phone']
    default: {
      if (!heavy) return []
      const isFiltered = input['filter'] !== undefined || input['saved_filter_id'] !== undefined
      // What a change would do to those that match tells who has what already.
      return jobs && isFiltered
        ? Object.keys(input).filter((field) => field !== 'plan_id' && field !== 'dry_run')
        : ['filter', 'saved_filter_id']
    }
  }
}

/** Below zero, so that it is no id. */
const toDigest = (question: Json): string =>
  String(-1n - (hash('sha256', canonicalJson(question), 'buffer').readBigUInt64BE() >> 2n))

/**
 * A count, an empty page or the total of a list tells something of contacts that it does not show, and so does every
 * other one with another filter. So each question counts as a contact does, once a day.
 */
const listQuestions = (op: Operation, input: Json): string[] =>
  toQuestions(input, listQuestionFields(op, input))

const toQuestions = (input: Json, fields: readonly string[]): string[] => {
  const asked = fields.filter((name) => input[name] !== undefined && input[name] !== '')
  return asked.length === 0 ? [] : [toDigest(Object.fromEntries(asked.map((name) => [name, input[name]])))]
}

/**
 * Whether there is a person with a phone or an external id: a question where no other contact is named than those that
 * the caller knows.
 */
const listIdentityQuestions = ({ name }: Operation, input: Json, isNamed: boolean): string[] =>
  isNamed ? [] : toQuestions(input, identityFields[name as OperationName] ?? [])

/** The same for each row of an import whose result has no id. */
const listRowQuestions = (input: Json, answer: unknown): string[] => {
  const { rows } = input
  const results = isObject(answer) ? answer['results'] : undefined
  if (!Array.isArray(rows) || !Array.isArray(results)) return []
  return (results as Json[]).flatMap(({ row, id }) => {
    const given = rows[Number(row)] as unknown
    return typeof id === 'string' || !isObject(given) ? [] : toQuestions(given, ['phone', 'external_id'])
  })
}

/** A job tells of each record that failed, and not of what kind it is. */
const listFailureQuestions = (input: Json, answer: unknown): string[] => {
  const rows = isObject(answer) ? answer['data'] : undefined
  return Array.isArray(rows)
    ? (rows as Json[]).map(({ id }) => toDigest({ job_id: input['job_id'], failed: id }))
    : []
}

/** Lists whose rows are contacts or conversations by their place. */
const rowKinds: Readonly<Record<string, [member: string, kind: Kind]>> = {
  crm_import_contacts: ['results', 'contacts'],
  crm_search_contacts: ['data', 'contacts'],
  inbox_search_conversations: ['data', 'conversations'],
  inbox_queue: ['data', 'conversations'],
}

const toRowId = (row: unknown): unknown =>
  row !== null && typeof row === 'object' ? (row as Json)['id'] : row

const createFound = (questions: readonly string[]): Found => ({
  contacts: new Set(),
  conversations: new Set(),
  messages: new Set(),
  questions: new Set(questions),
})

/** Returns what a call tells of contacts, by its input, and its answer if there is one. */
export const listContactSubjects = (op: Operation, input: Json, answer?: unknown): ContactSubjects => {
  if (READS_NO_CONTACT.has(op.name)) return toLists(createFound([]))
  const found = createFound(listQuestions(op, input))
  for (const [name, kind] of idMembers) add(found, kind, input[name])
  const given = countIds(found)
  collect(found, answer)
  const rows = rowKinds[op.name]
  if (rows && answer !== null && typeof answer === 'object') {
    const members = (answer as Json)[rows[0]]
    if (Array.isArray(members)) for (const row of members) add(found, rows[1], toRowId(row))
  }
  const questions = [
    ...listIdentityQuestions(op, input, countIds(found) > given),
    ...(op.name === 'crm_import_contacts' ? listRowQuestions(input, answer) : []),
    ...(op.name === 'jobs_list_failures' ? listFailureQuestions(input, answer) : []),
  ]
  for (const question of questions) found.questions.add(question)
  return toLists(found)
}

const countIds = ({ contacts, conversations, messages }: Found): number =>
  contacts.size + conversations.size + messages.size

/** Returns what records, such as events, tell of contacts. */
export const listSubjectsOf = (records: unknown): ContactSubjects => {
  const found = createFound([])
  collect(found, records)
  return toLists(found)
}

const toLists = ({ contacts, conversations, messages, questions }: Found): ContactSubjects => ({
  contacts: [...contacts],
  conversations: [...conversations],
  messages: [...messages],
  questions: [...questions],
})
