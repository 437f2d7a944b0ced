import { z } from 'zod'
import { Id, VisibleName } from '../fields.ts'

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
}

/** Said of totals that stop counting. */
export const MAX_CONVERSATION_TOTAL = 1000
export const TotalIsLowerBound = z
  .boolean()
  .nullable()
  .describe(`True: counting stopped at ${MAX_CONVERSATION_TOTAL}, there are more; null where \`total\` is.`)
