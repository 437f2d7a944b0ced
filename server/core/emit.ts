import type { EventData, EventTypeId } from '../../catalog/events.ts'
import type { EventRow } from '../../storage/events.ts'
import { newEventId } from '../ids.ts'

/** Notes an event; whoever gathers them writes them with the change. */
export type Emit = <T extends EventTypeId>(type: T, data: EventData<T>) => void

/** An `Emit` that adds to a list. */
export const emitter =
  (events: EventRow[], now: string): Emit =>
  (type, data) => {
    events.push({ id: newEventId(), type, occurred_at: now, data })
  }
