import { hash } from 'node:crypto'
import type { Operation, OperationName } from '../../catalog/index.ts'
import { visitIds } from '../../catalog/marked.ts'
import { isByFilter } from '../../catalog/operation.ts'
import type { SchemaKind } from '../../catalog/marks.ts'
import { isObject } from '../../catalog/values.ts'
import type { ContactSubjects } from '../../storage/contacts/budgets.ts'
import { canonicalJson } from '../kernel/cursors.ts'

/* Finds the contacts that a call tells of, by the ids in its input and its answer (`idOf` in catalog/marks.ts). */

type Json = Record<string, unknown>
type Found = { [kind in keyof ContactSubjects]: Set<string> }
type Kind = Exclude<keyof ContactSubjects, 'questions'>

const ID = /^[1-9]\d{0,17}$/

const kinds: Readonly<Partial<Record<string, Kind>>> = {
  contact: 'contacts',
  conversation: 'conversations',
  message: 'messages',
}

const collect = (found: Found, schema: readonly [SchemaKind, string], value: unknown): void =>
  visitIds(schema, value, {
    rows: true,
    add: (of, id, record) => {
      const kind = Object.hasOwn(kinds, of) ? kinds[of] : undefined
      // The conversation of a message is told with it.
      const isTold = kind === 'messages' && typeof record['conversation_id'] === 'string'
      if (kind && !isTold && ID.test(id)) found[kind].add(id)
    },
  })

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

/** Returns the fields by which contacts, or conversations by their contacts and texts, are looked for. */
const listQuestionFields = (op: Operation, input: Json): string[] => {
  switch (op.name) {
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
    case 'crm_check_filter':
      // It reads no contact.
      return []
    default:
      if (!op.heavy) return []
      // What a change would do to those that match tells who has what already.
      return op.jobs && isByFilter(op, input) ? Object.keys(input) : ['filter', 'saved_filter_id']
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

const createFound = (questions: readonly string[]): Found => ({
  contacts: new Set(),
  conversations: new Set(),
  messages: new Set(),
  questions: new Set(questions),
})

/** Returns what a call tells of contacts, by its input, and its answer if there is one. */
export const listContactSubjects = (op: Operation, input: Json, answer?: unknown): ContactSubjects => {
  const found = createFound(listQuestions(op, input))
  collect(found, ['input', op.name], input)
  const given = countIds(found)
  collect(found, ['answer', op.name], answer)
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

const toLists = ({ contacts, conversations, messages, questions }: Found): ContactSubjects => ({
  contacts: [...contacts],
  conversations: [...conversations],
  messages: [...messages],
  questions: [...questions],
})
