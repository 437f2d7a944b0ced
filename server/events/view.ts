import type { EventRow } from '../../storage/events.ts'
import { maskPhone } from '../contacts/phone.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, phonesHidden } from '../core/context.ts'

type Data = Record<string, unknown>

/**
 * Fields that hold a phone, and texts of the service and the provider that may quote one. What people wrote
 * is shown as they wrote it.
 */
const masks: Readonly<Record<string, (text: string) => string | null>> = {
  phone: maskPhone,
  chatapp_user_id: maskDigits,
  error: maskDigits,
}

const masked = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(masked)
  if (value === null || typeof value !== 'object') return value
  const isSystem = (value as Data)['type'] === 'SYSTEM'
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const mask = Object.hasOwn(masks, name)
        ? masks[name]
        : isSystem && name === 'text'
          ? maskDigits
          : undefined
      return [name, mask && typeof member === 'string' ? mask(member) : masked(member)]
    }),
  )
}

/** An event as one staff member may see it. */
export const showEvent = (
  actor: Actor,
  { id, type, occurred_at, data }: EventRow,
): { id: string; type: string; occurred_at: string; data: Data } => ({
  id,
  type,
  occurred_at,
  data: (phonesHidden(actor) ? masked(data) : data) as Data,
})
