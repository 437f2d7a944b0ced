import { z } from 'zod'
import { Id, idOf, VisibleName } from '../fields.ts'

/** A date as contact filters take them. */
const date = (what: string) => z.string().max(40).optional().describe(what)

/** What lists of conversations filter by besides their own fields. */
export const conversationFilters = {
  assigned_staff_id: z
    .string()
    .regex(/^(?:me|none|[1-9]\d{0,18})$/, 'must be the id of a staff member, me or none')
    .optional()
    .describe(
      "Only assigned to this staff member; `me`: the key's owner; `none`: to nobody, and with `team_id` those of " +
        'the team that nobody has taken.',
    ),
  team_id: Id.optional().describe('Only assigned to this team.'),
  channel_id: Id.optional().describe('Only on this channel.'),
  tag: VisibleName(100).optional().describe('Only with this tag, by name or id; digits are an id.'),
  sla_status: z
    .enum(['running', 'breached', 'met'])
    .optional()
    .describe('Only with this state of their service level, as in `sla`.'),
  last_message_before: date(
    'Only without a message since this instant, day, or relative date such as `-3d`.',
  ),
  last_customer_message_before: date('Only if the customer wrote last before this date.'),
  waiting_longer_than: date('Only who waits since this date or longer, such as `-1h`.'),
}

export const replyStatuses = ['incoming_no_reply', 'outgoing_no_response'] as const

/** What a search of conversations filters by, and changes of many. */
export const searchFilters = {
  query: z
    .string()
    .trim()
    .min(1)
    .max(255)
    .optional()
    .describe('Contact name, phone or username contains this, ignoring case.'),
  state: z.enum(['open', 'closed']).optional().describe('Only in this state.'),
  assigned: z.boolean().optional().describe('False: the unassigned queue.'),
  ...conversationFilters,
  reply_status: z.enum(replyStatuses).optional().describe('Who waits for whom.'),
  contact_id: idOf('contact').optional().describe('Only of this contact.'),
  ad: z.string().min(1).max(255).optional().describe('Only from this ad, by its `ad_id`.'),
  delivery: z
    .enum(['failed', 'unknown'])
    .optional()
    .describe(
      '`failed`: the latest message to the customer failed. `unknown`: the provider has not confirmed a ' +
        'message, which is still `pending`.',
    ),
}

/** Said of totals that stop counting. */
export const MAX_CONVERSATION_TOTAL = 1000
export const TotalIsLowerBound = z
  .boolean()
  .nullable()
  .describe(`True: counting stopped at ${MAX_CONVERSATION_TOTAL}; null if \`total\` is.`)
