import { hash } from 'node:crypto'
import type { NewUpdate, UpdateKind } from '../../storage/provider-updates.ts'
import {
  isObject,
  isTooDeep,
  type Json,
  objectOf,
  objectsOf,
  quoteLongIds,
  storableJson,
  textOf,
} from './json.ts'

/** What is stored of one update: what it is about, and its part of the body as the provider wrote it. */
export type MessagePayload = { number: string; contact: Json; message: Json }
export type StatusPayload = { number: string; status: Json }
export type PreferencePayload = { number: string; contact: Json; preference: Json }
/** `time`: seconds, when the provider wrote it; null: it does not say. */
export type ChangePayload = { account: string | null; time: number | null; field: string; value: Json }

/** A key of the unique index must stay short, whatever ids are sent. */
const LONGEST_KEY = 300

const keyOf = (...parts: readonly string[]): string => {
  const key = parts.join(':')
  return key.length <= LONGEST_KEY ? key : `${parts[0]!}:${digest(key)}`
}

/** Ids of the provider are far shorter; a longer one fits into no index. */
const idOf = (value: unknown): string | null => {
  const id = textOf(value)
  return id !== null && id.length <= 500 ? id : null
}

const digest = (text: string): string => hash('sha256', text, 'base64url')

/**
 * The updates of a body, and how many of its parts were not understood; undefined when it is no body of the
 * provider at all.
 */
export const splitBody = (text: string): { updates: NewUpdate[]; unread: number } | undefined => {
  const body = parsed(text)
  if (!isObject(body) || !Array.isArray(body['entry']) || isTooDeep(body)) return undefined
  const updates: NewUpdate[] = []
  let unread = body['entry'].length - objectsOf(body['entry']).length
  for (const entry of objectsOf(body['entry'])) {
    const changes = objectsOf(entry['changes'])
    if (changes.length === 0) unread++
    for (const change of changes) {
      const found = splitChange(
        textOf(entry['id']),
        Number(entry['time'] ?? NaN),
        textOf(change['field']),
        change['value'],
      )
      if (found.length === 0) unread++
      updates.push(...found)
    }
  }
  return { updates, unread }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(quoteLongIds(text))
  } catch {
    return undefined
  }
}

/** The updates as the JSON array that storage takes. */
export const updatesJson = (updates: readonly NewUpdate[]): string => {
  const json = JSON.stringify(updates)
  // Looked for in the whole first: a body without such signs, which is every one that the provider sends,
  // is not copied.
  return /\\u(?:0000|d[89a-f])/.test(json) ? JSON.stringify(updates.map(storableJson)) : json
}

const splitChange = (
  account: string | null,
  time: number,
  field: string | null,
  value: unknown,
): NewUpdate[] => {
  if (field === null || !isObject(value)) return []
  const number = textOf(objectOf(value['metadata'])['phone_number_id'])
  if (field === 'messages' || field === 'user_preferences')
    return number === null ? [] : splitMessages(number, value)
  return [changeUpdate({ account, time: Number.isFinite(time) ? seconds(time) : null, field, value })]
}

/** Some entries count in milliseconds. */
const seconds = (time: number): number => (time > 1e11 ? time / 1000 : time)

const splitMessages = (number: string, value: Json): NewUpdate[] => {
  const contacts = objectsOf(value['contacts'])
  const updates: NewUpdate[] = []
  for (const message of objectsOf(value['messages'])) {
    const id = idOf(message['id'])
    if (id === null) continue
    const payload: MessagePayload = {
      number,
      contact: contactOf(contacts, message['from'], message['from_user_id']),
      message,
    }
    updates.push({ dedupe: keyOf('message', number, id), kind: 'message', subject: number, payload })
  }
  for (const status of objectsOf(value['statuses'])) {
    const [id, name] = [idOf(status['id']), textOf(status['status'])]
    if (id === null || name === null) continue
    const payload: StatusPayload = { number, status }
    updates.push({ dedupe: keyOf('status', number, id, name), kind: 'status', subject: number, payload })
  }
  for (const preference of objectsOf(value['user_preferences'])) {
    const payload: PreferencePayload = {
      number,
      contact: contactOf(contacts, preference['wa_id'], preference['user_id']),
      preference,
    }
    const time = Number(preference['timestamp'] ?? NaN)
    updates.push({
      dedupe: keyOf(
        preferencePrefix(payload),
        sortable(Number.isFinite(time) ? time : null),
        textOf(preference['value']) ?? '',
      ),
      kind: 'preference',
      subject: number,
      payload,
    })
  }
  for (const errors of objectsOf(value['errors'])) {
    updates.push({
      dedupe: keyOf('other', number, digest(JSON.stringify(errors))),
      kind: 'other',
      subject: number,
      payload: { field: 'errors', value: errors },
    })
  }
  return updates
}

/** Names the customer whose wish a preference is. */
export const preferencePrefix = ({ number, preference }: PreferencePayload): string =>
  ['preference', number, textOf(preference['user_id']) ?? textOf(preference['wa_id']) ?? '']
    .join(':')
    .slice(0, LONGEST_KEY / 2)

/** What the body says about the sender beside the message. */
const contactOf = (contacts: readonly Json[], phone: unknown, userId: unknown): Json =>
  contacts.find(
    (c) =>
      (textOf(userId) !== null && c['user_id'] === userId) ||
      (textOf(phone) !== null && c['wa_id'] === phone),
  ) ?? (contacts.length === 1 ? contacts[0]! : {})

const kinds: Readonly<Record<string, UpdateKind>> = {
  message_template_status_update: 'template',
  template_category_update: 'template',
  message_template_quality_update: 'template',
  message_template_components_update: 'template',
  phone_number_quality_update: 'number',
  phone_number_name_update: 'number',
  account_update: 'number',
  business_capability_update: 'number',
}

/**
 * Keys of changes to the same thing sort by time, so that one that comes late is known for it (storage
 * `hasLaterUpdate`).
 */
const changeUpdate = (payload: ChangePayload): NewUpdate => {
  const { account, time, field, value } = payload
  const kind = kinds[field] ?? 'other'
  const subject =
    textOf(value['message_template_id']) ?? textOf(value['display_phone_number']) ?? account ?? ''
  return {
    dedupe: keyOf(changePrefix(payload), sortable(time), digest(JSON.stringify(value)).slice(0, 22)),
    kind,
    subject: subject.slice(0, 200),
    payload,
  }
}

/** Names the thing that a change is about. */
export const changePrefix = ({ account, field, value }: ChangePayload): string => {
  const subject = textOf(value['message_template_id']) ?? textOf(value['display_phone_number']) ?? ''
  const prefix = ['change', account ?? '', field, subject].join(':')
  return prefix.length <= LONGEST_KEY / 2 ? prefix : `change:${digest(prefix)}`
}

const sortable = (time: number | null): string =>
  String(Math.max(0, Math.floor((time ?? 0) * 1000)))
    .slice(0, 15)
    .padStart(15, '0')
