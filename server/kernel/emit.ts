import type { ActorView } from '../../catalog/actor.ts'
import type { EventData, EventTypeId } from '../../catalog/events.ts'
import type { EventRow } from '../../storage/events/events.ts'
import { createEventId } from '../ids.ts'

/**
 * Queues an event of one of the types `E`; it is written in the transaction of the change. The parameters are
 * a union of pairs, one for each type: unlike a type parameter it makes an `Emit` of many types assignable to
 * one of fewer types, and not the other way around.
 */
export type Emit<E extends EventTypeId> = (...event: { [T in E]: [type: T, data: EventData<T>] }[E]) => void

/**
 * Returns an `Emit` that appends to `events`. `actor`: who causes them, unless an event names another; absent when
 * it is not somebody with a key.
 */
export const createEmit =
  (events: EventRow[], now: string, actor?: ActorView): Emit<EventTypeId> =>
  (type, data) => {
    const named = actor && !data.actor ? { ...data, actor } : data
    events.push({ id: createEventId(), type, occurred_at: now, data: named })
  }
