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
        name: z.string().nullable().describe('Name of the key, or of the AI agent.'),
      })
      .nullable()
      .describe('The API key; null when it is not known.'),
    agent: z.boolean().describe('True: done by an AI agent with its own key.'),
    approved_by: z
      .object({ id: Id.describe('Staff member.'), name: z.string().nullable().describe('Name.') })
      .nullable()
      .describe("The person who approved the AI agent's call; null: no approval was needed."),
  })
  .meta({ id: 'Actor' })

export type ActorView = z.input<typeof ActorView>
