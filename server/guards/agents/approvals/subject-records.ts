import { isObject } from '../../../../catalog/values.ts'
import {
  type Declining,
  listOptOuts,
  listSubjectContacts,
  listSubjectConversations,
  type SubjectContact,
} from '../../../../storage/agents/call-subjects.ts'
import { toIds } from '../../../../storage/contacts/matches.ts'
import type { Db } from '../../../../storage/database.ts'
import { listJobBatches } from '../../../../storage/work/bulk-jobs.ts'
import { findEventConsumer } from '../../../../storage/events/consumers.ts'
import { findLabels } from '../../../../storage/labels/labels.ts'
import type { Read, RecordKind } from '../../snapshot/read-records.ts'
import { isIdText } from '../../../domains/labels/label-cache.ts'

/* What is compared of the records that a call names, beyond who its customer is. */

type Json = Record<string, unknown>
export type Subject = readonly [name: string, value: unknown]
export type DescribedContact = Pick<SubjectContact, 'phone' | 'chatapp_user_id' | 'web_visitor_id'> & {
  id: string | null
}

/** What makes a record another one, or tells what becomes of it; counts change all the time. */
const IDENTITY = [
  'name',
  'title',
  'label',
  'key',
  'url',
  'message',
  'event_type_id',
  'language',
  'filter',
  'role',
  'identifier',
]

const pickFields = (record: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, record[name]]))

const TEMPLATE_CONTENT = [
  'category',
  'header',
  'body',
  'footer',
  'buttons',
  'cards',
  'limited_time_offer',
  'code_expiration_minutes',
]
const QUICK_MESSAGE_CONTENT = [
  'code',
  'type',
  'text',
  'media_url',
  'file_name',
  'template_name',
  'interactive',
  'visibility',
  'team_id',
]

const listSubscriptions = ({ subscriptions }: Json): unknown =>
  isObject(subscriptions)
    ? (subscriptions['event_types'] as { id: string; active: boolean }[])
        .map(({ id, active }) => `${id} ${active}`)
        .sort()
    : null

/** What else a person decides by, under names that tell them what has changed. */
const details: Partial<Record<RecordKind, Readonly<Record<string, (record: Json) => unknown>>>> = {
  endpoint: {
    // It pauses and recovers by itself.
    status: ({ status }) => status === 'disabled',
    subscriptions: listSubscriptions,
    format: (record) => pickFields(record, ['payload_format', 'custom_headers']),
  },
  template: {
    content: (record) => pickFields(record, TEMPLATE_CONTENT),
    status: ({ status }) => status,
  },
  quick_message: { content: (record) => pickFields(record, QUICK_MESSAGE_CONTENT) },
  custom_field: { details: (record) => pickFields(record, ['type', 'options', 'visibility']) },
  broadcast: { time: ({ scheduled_at: at }) => at },
  short_link: { channel: ({ channel }) => (isObject(channel) ? channel['id'] : null) },
}

/** `record`: null where there is none; what becomes of it is then one change. */
export const describeRecord = (name: string, kind: RecordKind, record: Json | null): Subject[] => [
  [name, record && pickFields(record, IDENTITY)],
  ...Object.entries(details[kind] ?? {}).map(([detail, read]): Subject => [
    `${name}_${detail}`,
    record && read(record),
  ]),
]

/** The address is what a message goes to: of the others, some become known by themselves. */
export const describeContact = (name: string, contact: DescribedContact | null | undefined): Subject[] => [
  [name, contact ? contact.id : null],
  [
    contact?.phone === null ? `${name}_address` : `${name}_phone`,
    contact ? (contact.phone ?? contact.chatapp_user_id ?? contact.web_visitor_id) : null,
  ],
]

const toIdList = (value: unknown): string[] => (Array.isArray(value) ? [...new Set(value.map(String))] : [])

/** `planId`: of the plan that keeps what the filter found. */
type Scope = { db: Db; workspaceId: string; input: Json; planId: string | undefined }

/** All contacts and conversations of a list, however long it is. */
export const listNamed = async ({ db, workspaceId, input }: Scope): Promise<Subject[]> => {
  const [contactIds, conversationIds] = [toIdList(input['contact_ids']), toIdList(input['conversation_ids'])]
  const contacts = contactIds.length === 0 ? [] : await listSubjectContacts(db, workspaceId, contactIds)
  const conversations =
    conversationIds.length === 0 ? [] : await listSubjectConversations(db, workspaceId, conversationIds)
  const found = new Map(contacts.map((contact) => [contact.id, contact]))
  return [
    ...contactIds.flatMap((id) => describeContact('contact', found.get(id))),
    ...conversations.flatMap(({ conversation_id: id, channel_id: channelId, ...contact }): Subject[] => [
      ['conversation', [id, channelId]],
      ...describeContact('customer', contact),
    ]),
  ]
}

/** Batches of a plan whose opt-outs are read in one statement. */
const BATCHES_AT_ONCE = 20

const listTargetIds = async ({ db, workspaceId, input, planId }: Scope): Promise<string[][]> => {
  if (planId === undefined) return [toIdList(input['contact_ids'])]
  const batches = await listJobBatches(db, workspaceId, planId)
  return Array.from({ length: Math.ceil(batches.length / BATCHES_AT_ONCE) }, (_, n) =>
    batches.slice(n * BATCHES_AT_ONCE, (n + 1) * BATCHES_AT_ONCE).flatMap(({ ids }) => toIds(ids)),
  )
}

/**
 * Returns who of the contacts of a call that ends do-not-disturb have declined messages; undefined for other calls, and
 * for those of one contact, which are told of it, or which leave its opt-out as it is.
 */
export const listDeclining = async (scope: Scope): Promise<Declining[] | undefined> => {
  const { dnd, contact_ids: named } = scope.input
  if (dnd !== false || !(Array.isArray(named) || scope.planId !== undefined)) return undefined
  const found: Declining[] = []
  for (const ids of await listTargetIds(scope))
    found.push(...(await listOptOuts(scope.db, scope.workspaceId, ids)))
  return found
}

/** Whom a call takes an opt-out from: somebody who declines after a person has agreed to that is not among those. */
export const listUndoneOptOuts = async (scope: Scope): Promise<Subject[]> => {
  const declining = await listDeclining(scope)
  return declining ? [['opt_outs', declining]] : []
}

/** What a customer has declined. */
export const describeOptOuts = async (db: Db, workspaceId: string, id: unknown): Promise<Subject> => [
  'customer_consent',
  typeof id === 'string' ? ((await listOptOuts(db, workspaceId, [id]))[0]?.withdrawn ?? null) : null,
]

/** Returns the tags that a call names by their ids. */
export const listTagIds = (input: Json): string[] =>
  ['tags', 'add', 'remove'].flatMap((field) => toIdList(input[field]).filter(isIdText))

/** Tags by their ids may have got other names: a name is what it says. */
export const listTagSubjects = async ({ db, workspaceId, input }: Scope): Promise<Subject[]> => {
  const ids = listTagIds(input)
  if (ids.length === 0) return []
  const tags = await findLabels(db, workspaceId, 'tag', ids, [])
  return [['tags', tags.map(({ id, name }) => `${id} ${name}`).sort()]]
}

/** Records that no field of an id names: whom a merge is undone for, whose consumer it is, and what a reply quotes. */
export const listOthers = async (read: Read, { db, workspaceId, input }: Scope): Promise<Subject[]> => {
  const { merged_contact_id: mergedId, consumer: name, reply_to_id: quotedId } = input
  const subjects: Subject[] = []
  if (typeof mergedId === 'string') {
    const kept = await read('crm_get_contact', { contact_id: mergedId })
    subjects.push(...describeContact('kept_contact', kept as DescribedContact | null))
  }
  if (typeof name === 'string') {
    const consumer = await findEventConsumer(db, workspaceId, name)
    subjects.push(['consumer', consumer && [consumer.created_at, consumer.agent_staff_id]])
  }
  if (typeof quotedId === 'string') {
    const quoted = await read('messaging_get_message', { message_id: quotedId })
    subjects.push(['reply_to', quoted && [quoted['type'], quoted['text']]])
  }
  return subjects
}
