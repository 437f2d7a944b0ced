import { isObject } from '../../../catalog/values.ts'
import { hash } from 'node:crypto'
import type { NewProviderUpdate, ProviderUpdateKind } from '../../../storage/channels/provider-updates.ts'
import {
  isTooDeep,
  type JsonObject,
  asObject,
  asObjects,
  quoteLongIds,
  toStorableJson,
  asText,
} from './json.ts'

/**
 * The stored payload of one update: what it is about, and its part of the body as the provider wrote it. `echo`: of a
 * message that a colleague wrote in the phone app. `past`: from before the number was connected.
 */
export type MessagePayload = {
  number: string
  contact: JsonObject
  message: JsonObject
  echo?: true
  past?: true
}
export type StatusPayload = { number: string; status: JsonObject; contact?: JsonObject }
export type PreferencePayload = { number: string; contact: JsonObject; preference: JsonObject }
/** `time`: when the provider wrote it, in Unix seconds; null when it does not say. */
export type ChangePayload = { account: string | null; time: number | null; field: string; value: JsonObject }

/** A key of the unique index must stay short, however long the ids are. */
const MAX_KEY_LENGTH = 300

const toDedupeKey = (...parts: readonly string[]): string => {
  const key = parts.join(':')
  return key.length <= MAX_KEY_LENGTH ? key : `${parts[0]!}:${digest(key)}`
}

/** The provider's ids are far shorter; a longer one fits into no index. */
const toProviderId = (value: unknown): string | null => {
  const id = asText(value)
  return id !== null && id.length <= 500 ? id : null
}

const digest = (text: string): string => hash('sha256', text, 'base64url')

/**
 * The updates of a body, and the count of its parts of unknown form; undefined when the whole is not a body
 * of the provider.
 */
export const parseUpdates = (
  text: string,
): { updates: NewProviderUpdate[]; unknownParts: number } | undefined => {
  const body = parseJson(text)
  if (!isObject(body) || !Array.isArray(body['entry']) || isTooDeep(body)) return undefined
  const updates: NewProviderUpdate[] = []
  let unknownParts = body['entry'].length - asObjects(body['entry']).length
  for (const entry of asObjects(body['entry'])) {
    const changes = asObjects(entry['changes'])
    if (changes.length === 0) unknownParts++
    for (const change of changes) {
      const found = parseChange(
        asText(entry['id']),
        Number(entry['time'] ?? NaN),
        asText(change['field']),
        change['value'],
      )
      if (found.length === 0) unknownParts++
      updates.push(...found)
    }
  }
  return { updates, unknownParts }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(quoteLongIds(text))
  } catch {
    return undefined
  }
}

/** The updates as the JSON array that `insertProviderUpdates` takes. */
export const serializeUpdates = (updates: readonly NewProviderUpdate[]): string => {
  const json = JSON.stringify(updates)
  // Searched in the whole text first, so that a body without such characters, the normal case, is not
  // copied.
  return /\\u(?:0000|d[89a-f])/.test(json) ? JSON.stringify(updates.map(toStorableJson)) : json
}

const numberFields = new Set(['messages', 'user_preferences', 'smb_message_echoes', 'history'])

const parseChange = (
  account: string | null,
  time: number,
  field: string | null,
  value: unknown,
): NewProviderUpdate[] => {
  if (field === null || !isObject(value)) return []
  const number = asText(asObject(value['metadata'])['phone_number_id'])
  if (numberFields.has(field)) return number === null ? [] : parseMessages(number, value)
  return [toChangeUpdate({ account, time: Number.isFinite(time) ? toSeconds(time) : null, field, value })]
}

/** Some entries have milliseconds. */
const toSeconds = (time: number): number => (time > 1e11 ? time / 1000 : time)

const parseMessages = (number: string, value: JsonObject): NewProviderUpdate[] => {
  const contacts = asObjects(value['contacts'])
  const updates: NewProviderUpdate[] = []
  const addMessage = (
    message: JsonObject,
    contact: JsonObject,
    more: Pick<MessagePayload, 'echo' | 'past'> = {},
  ) => {
    const id = toProviderId(message['id'])
    if (id === null) return
    const payload: MessagePayload = { number, contact, message, ...more }
    updates.push({ dedupe: toDedupeKey('message', number, id), kind: 'message', subject: number, payload })
  }
  const messages = asObjects(value['messages'])
  for (const given of messages) {
    // Why a message cannot be shown may stand beside it.
    const { errors = value['errors'] } = messages.length === 1 ? given : { errors: given['errors'] }
    const message = errors === undefined ? given : { ...given, errors }
    addMessage(message, findSender(contacts, message['from'], message['from_user_id']))
  }
  for (const message of asObjects(value['message_echoes']))
    addMessage(message, findSender(contacts, message['to'], message['to_user_id']), { echo: true })
  for (const thread of asObjects(value['history']).flatMap(({ threads }) => asObjects(threads))) {
    const { wa_id: phone = thread['id'], user_id, username } = asObject(thread['context'])
    const contact = { wa_id: phone, user_id, profile: { username } }
    for (const message of asObjects(thread['messages']))
      if (message['from'] === thread['id'] || message['from'] === phone)
        addMessage(message, contact, { past: true })
      else addMessage({ ...message, to: phone, to_user_id: user_id }, contact, { echo: true, past: true })
  }
  for (const status of asObjects(value['statuses'])) {
    const [id, name] = [toProviderId(status['id']), asText(status['status'])]
    if (id === null || name === null) continue
    const payload: StatusPayload = {
      number,
      status,
      ...(contacts.length > 0
        ? { contact: findSender(contacts, status['recipient_id'], status['recipient_user_id']) }
        : {}),
    }
    updates.push({
      dedupe: toDedupeKey('status', number, id, name),
      kind: 'status',
      subject: number,
      payload,
    })
  }
  for (const preference of asObjects(value['user_preferences'])) {
    const payload: PreferencePayload = {
      number,
      contact: findSender(contacts, preference['wa_id'], preference['user_id']),
      preference,
    }
    const time = Number(preference['timestamp'] ?? NaN)
    updates.push({
      dedupe: toDedupeKey(
        preferencePrefix(payload),
        toSortableTime(Number.isFinite(time) ? time : null),
        asText(preference['value']) ?? '',
      ),
      kind: 'preference',
      subject: number,
      payload,
    })
  }
  for (const errors of asObjects(value['errors'])) {
    updates.push({
      dedupe: toDedupeKey('other', number, digest(JSON.stringify(errors))),
      kind: 'other',
      subject: number,
      payload: { field: 'errors', value: errors },
    })
  }
  return updates
}

/** Identifies the customer of a preference. */
export const preferencePrefix = ({ number, preference }: PreferencePayload): string =>
  ['preference', number, asText(preference['user_id']) ?? asText(preference['wa_id']) ?? '']
    .join(':')
    .slice(0, MAX_KEY_LENGTH / 2)

/** The entry of `contacts` that describes the sender. */
const findSender = (contacts: readonly JsonObject[], phone: unknown, userId: unknown): JsonObject =>
  contacts.find(
    (c) =>
      (asText(userId) !== null && c['user_id'] === userId) ||
      (asText(phone) !== null && c['wa_id'] === phone),
  ) ?? (contacts.length === 1 ? contacts[0]! : {})

const kinds: Readonly<Record<string, ProviderUpdateKind>> = {
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
 * Keys of changes to the same thing sort by time, so that one that arrives late is recognized
 * (`hasLaterUpdate` in storage).
 */
const toChangeUpdate = (payload: ChangePayload): NewProviderUpdate => {
  const { account, time, field, value } = payload
  const kind = Object.hasOwn(kinds, field) ? kinds[field]! : 'other'
  const subject =
    asText(value['message_template_id']) ?? asText(value['display_phone_number']) ?? account ?? ''
  return {
    dedupe: toDedupeKey(
      changePrefix(payload),
      toSortableTime(time),
      digest(JSON.stringify(value)).slice(0, 22),
    ),
    kind,
    subject: subject.slice(0, 200),
    payload,
  }
}

/** Identifies the thing that changed. */
export const changePrefix = ({ account, field, value }: ChangePayload): string => {
  const subject = asText(value['message_template_id']) ?? asText(value['display_phone_number']) ?? ''
  const prefix = ['change', account ?? '', field, subject].join(':')
  return prefix.length <= MAX_KEY_LENGTH / 2 ? prefix : `change:${digest(prefix)}`
}

const toSortableTime = (time: number | null): string =>
  String(Math.max(0, Math.floor((time ?? 0) * 1000)))
    .slice(0, 15)
    .padStart(15, '0')
