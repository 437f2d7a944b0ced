import { z } from 'zod'
import { Id } from './fields.ts'

/** Who did something: the same on messages, in events and in the audit trail. */
export const ActorView = z
  .object({
    staff: z
      .object({
        id: Id.nullable().describe('Staff member.'),
        name: z.string().nullable().describe('Name.'),
      })
      .describe('Staff member who owns the key.'),
    key: z
      .object({
        id: Id.describe('Key id.'),
        name: z.string().nullable().describe('Purpose of the key; of an AI agent, what it is called.'),
      })
      .nullable()
      .describe('The API key; null when it is not known.'),
    agent: z.boolean().describe('True: an AI agent did it, with a key that is marked as its own.'),
    approved_by: z
      .object({ id: Id.describe('Staff member.'), name: z.string().nullable().describe('Name.') })
      .nullable()
      .describe('The person who approved what the AI agent asked for; null: nobody was asked.'),
  })
  .meta({ id: 'Actor' })

export type ActorView = z.input<typeof ActorView>
