import { z } from 'zod'
import { ActorView } from './actor.ts'

/** What an event means, the shape of its `data`, and a sample. */
type EventType<S extends z.ZodObject = z.ZodObject> = {
  readonly description: string
  readonly data: S
  readonly sample: z.input<S>
}

/** A member of the data of every event. */
const By = {
  actor: ActorView.optional().describe(
    'Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service.',
  ),
}

/** Declares an event type. `data` has `actor` beside what is given. */
export const defineEventType = <S extends z.ZodObject>(
  description: string,
  data: S,
  sample: z.input<z.ZodObject<S['shape'] & typeof By>>,
): EventType<z.ZodObject<S['shape'] & typeof By>> => ({
  description,
  data: data.extend(By) as unknown as z.ZodObject<S['shape'] & typeof By>,
  sample,
})
