import { isObject } from '../../catalog/values.ts'
import type { Actor } from '../kernel/context.ts'
import { maskFilter } from './filters.ts'
import { showRecord } from './phones.ts'
import { canSeeManagerFields, hasHiddenPhones } from './policy.ts'

/*
 * What operations show of records that hold phones under names that do not tell so: as they are read now, and in
 * answers that are given again.
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

const showMember = (actor: Actor, record: Json, name: string, value: unknown): unknown => {
  if (name === 'filter' && 'owner_staff_id' in record)
    return showOwnedFilter(actor, record['owner_staff_id'], value)
  if (name === 'job' && isObject(value) && isObject(value['input']))
    return { ...value, input: showJobInput(actor, value['input']) }
  return isObject(value) ? showMembers(actor, value) : value
}

const showMembers = (actor: Actor, record: Json): Json =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, showMember(actor, record, name, value)]),
  )

/** Returns a stored answer, JSON text, as its reader may see it now. */
export const showStoredAnswer = (actor: Actor, body: string): string =>
  hasHiddenPhones(actor) ? JSON.stringify(showRecord(actor, showMembers(actor, JSON.parse(body)))) : body
