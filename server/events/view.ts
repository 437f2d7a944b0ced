import type { EventRow } from '../../storage/events.ts'
import { maskPhone } from '../contacts/phone.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, hasHiddenPhones } from '../core/context.ts'

type Data = Record<string, unknown>

/**
 * Masks by field: fields that hold a phone number, and texts of the service and the provider that can quote
 * one. What people wrote is not masked.
 */
const masks: Readonly<Record<string, (text: string) => string | null>> = {
  phone: maskPhone,
  chatapp_user_id: maskDigits,
  error: maskDigits,
}

const maskData = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(maskData)
  if (value === null || typeof value !== 'object') return value
  const isSystem = (value as Data)['type'] === 'SYSTEM'
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const mask = Object.hasOwn(masks, name)
        ? masks[name]
        : isSystem && name === 'text'
          ? maskDigits
          : undefined
      return [name, mask && typeof member === 'string' ? mask(member) : maskData(member)]
    }),
  )
}

/** An event as a staff member may see it. */
export const showEvent = (
  actor: Actor,
  { id, type, occurred_at, data }: EventRow,
): { id: string; type: string; occurred_at: string; data: Data } => ({
  id,
  type,
  occurred_at,
  data: (hasHiddenPhones(actor) ? maskData(data) : data) as Data,
})
