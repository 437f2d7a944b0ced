import { mapValues } from '../../catalog/json-schema.ts'
import { findMarked, mapMarked } from '../../catalog/marked.ts'
import type { PhoneMark, SchemaKind } from '../../catalog/marks.ts'
import type { Operation } from '../../catalog/operation.ts'
import { isObject } from '../../catalog/values.ts'
import { maskFilter } from './filters.ts'
import type { Actor } from '../kernel/context.ts'
import { maskNumbers, maskPhone } from './numbers.ts'
import { maskName, quotesPhones } from './phones.ts'
import { canSeeManagerFields, hasHiddenPhones } from './policy.ts'

/*
 * What is shown of records by the marks of their fields (catalog/marks.ts): of those that were written for nobody in
 * particular, and of answers that are given again.
 */

type Json = Record<string, unknown>

/**
 * Values of fields are shown to those from whom neither phones nor fields are hidden: which of them these are is not
 * known here.
 */
export const showJobInput = (actor: Actor, { attributes, ...rest }: Json): Json => {
  if (!isObject(attributes)) return rest
  const isHidden = hasHiddenPhones(actor) || !canSeeManagerFields(actor)
  return {
    ...rest,
    attributes: isHidden
      ? Object.fromEntries(Object.keys(attributes).map((key) => [key, '(hidden)']))
      : attributes,
  }
}

/**
 * Staff from whom phone numbers are hidden do not see those in a colleague's filter either. Their own filters
 * are returned as they wrote them, but not to an AI agent, which may have another key than they.
 */
export const showOwnedFilter = <T>(actor: Actor, ownerStaffId: unknown, filter: T): T =>
  hasHiddenPhones(actor) && (actor.key.agent || ownerStaffId !== actor.staff.id) ? maskFilter(filter) : filter

type Mask = (value: unknown, record: Json, actor: Actor) => unknown

const ofText =
  (mask: (text: string) => string | null): Mask =>
  (value) =>
    typeof value === 'string' ? mask(value) : value

const maskText = ofText((text) => maskNumbers(text))
const maskNumber = ofText(maskPhone)

/** How marked fields are masked. What is masked already stays. */
const masks: Readonly<Record<PhoneMark, Mask>> = {
  number: maskNumber,
  text: maskText,
  name: ofText(maskName),
  message: (value, record, actor) => (quotesPhones(record['type']) ? maskText(value, record, actor) : value),
  value: (value, record, actor) => (record['type'] === 'phone' ? maskNumber(value, record, actor) : value),
  masked: (_, record) => typeof record['phone'] === 'string',
  anything: () => undefined,
  filter: (value, record, actor) => showOwnedFilter(actor, record['owner_staff_id'], value),
  unknown: (value) => maskEveryText(value),
  job: (value, _, actor) => (isObject(value) ? showJobInput(actor, value) : value),
}

/** Masks what may be a phone in every text: of rows whose schema nobody knows any more. */
const maskEveryText = (value: unknown): unknown =>
  typeof value === 'string'
    ? maskNumbers(value)
    : Array.isArray(value)
      ? value.map(maskEveryText)
      : isObject(value)
        ? mapValues(value, maskEveryText)
        : value

/**
 * Returns a record that was written for nobody in particular, such as an event, as this actor may see it. `kind` and
 * `of` are what its schema is found by.
 */
export const showRecord = <T>(actor: Actor, [kind, of]: readonly [SchemaKind, string], record: T): T => {
  if (!hasHiddenPhones(actor)) return record
  const tree = findMarked('phone', kind, of)
  return tree === null
    ? (maskEveryText(record) as T)
    : mapMarked(tree, record, (mark, value, around) => masks[mark](value, around, actor))
}

/** Returns a stored answer of an operation, JSON text, as its reader may see it now. */
export const showStoredAnswer = (actor: Actor, { name }: Operation, body: string): string =>
  hasHiddenPhones(actor) ? JSON.stringify(showRecord(actor, ['answer', name], JSON.parse(body))) : body
