import { z } from 'zod'
import { mark } from '../marks.ts'
import { BY_FILTER, recordsResult, targetIds } from '../bulk-jobs.ts'
import { Id, IdInput, idOf } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { searchFilters } from './filters.ts'

const since = '2026-10-01'

const ConversationFilter = z
  .strictObject({
    ...searchFilters,
    contact: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Only of contacts that match this filter, as `crm_search_contacts` takes it.'),
  })
  .meta({ id: 'ConversationFilter' })

/** The input fields that say for which conversations a change is. */
const target = {
  conversation_ids: targetIds('conversation').optional(),
  filter: ConversationFilter.optional().describe(
    'All conversations that match: the fields of `inbox_search_conversations`, and `contact`. `{}` needs `all`.',
  ),
  saved_filter_id: mark(IdInput, { idOf: 'saved_filter' })
    .optional()
    .describe(
      'All conversations of contacts that match this saved filter. With other conditions: `filter`, whose `contact` ' +
        'may be `{"savedFilter": {"eq": "7"}}`.',
    ),
  all: z
    .literal(true)
    .optional()
    .describe('Required with an empty filter, which matches every conversation.'),
}

const result = {
  ...recordsResult,
  samples: z
    .array(
      z.object({
        conversation_id: idOf('conversation').describe('Conversation id.'),
        contact_name: untrusted(z.string().nullable().describe('Name of the customer.'), { phone: 'name' }),
        channel: z.string().nullable().describe('Name of the channel.'),
      }),
    )
    .optional()
    .describe('Only in a dry run by filter: up to 20 of the conversations.'),
}

const change = {
  since,
  stability: 'beta',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  output: z.object(result),
  alternatives: [
    { needs: ['conversation_ids'] },
    { needs: ['filter'], takes: ['all'] },
    { needs: ['saved_filter_id'] },
  ],
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
} as const

const VISIBLE = 'Conversations that you may not see are neither matched nor counted.'

const oneMissing = {
  requested: 2,
  succeeded: 1,
  failed: 1,
  failures: [{ id: '382', code: 'not_found', message: 'No conversation with the id 382.' }],
  stopped_early: false,
  matched: 1,
}

export const assignConversations = defineOperation({
  ...change,
  name: 'inbox_assign_conversations',
  cli: 'conversations assign-many',
  routes: ['POST /v1/conversations/assign'],
  summary: 'Assign many conversations to a staff member or a team',
  forModels: 'Exactly one of `staff_id` and `team_id`. By filter: dry run first.',
  description:
    'Send exactly one of `staff_id` and `team_id`; each is assigned as by `inbox_assign_conversation`. ' +
    'A conversation that cannot be assigned, such as on a channel without access, is a failure. ' +
    `${VISIBLE} ${BY_FILTER}`,
  words:
    'bulk assign, reassign all conversations of a colleague, transfer many tickets, on vacation, on ' +
    'holiday, move all chats to somebody else',
  effect: 'adds',
  emits: ['conversation.assigned/1'] as const,
  input: z.object({
    ...target,
    staff_id: Id.optional().describe('Staff member to assign them to.'),
    team_id: Id.optional().describe('Team to assign them to.'),
    only_if_unassigned: z
      .boolean()
      .default(false)
      .describe('Conversations that are already assigned are failures, instead of being reassigned.'),
  }),
  errors: ['conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two conversations does not exist',
      input: { conversation_ids: ['381', '382'], staff_id: '5' },
      output: oneMissing,
    },
    {
      title: 'The unassigned queue, to a team',
      input: { filter: { state: 'open', assigned: false }, team_id: '2' },
      output: { ...oneMissing, requested: 1, failed: 0, failures: [] },
    },
  ],
})

export const closeConversations = defineOperation({
  ...change,
  name: 'inbox_close_conversations',
  cli: 'conversations close-many',
  routes: ['POST /v1/conversations/close'],
  summary: 'Close many conversations',
  forModels: 'By filter: dry run first.',
  description:
    'Each is closed as by `inbox_close_conversation`, and reopens when the customer writes. ' +
    `${VISIBLE} ${BY_FILTER}`,
  words: 'bulk close, close all old conversations, resolve many tickets, clean up the inbox',
  effect: 'adds',
  emits: ['conversation.closed/1'] as const,
  input: z.object({
    ...target,
    reason: z.string().trim().max(200).optional().describe('Why they are closed, at most 200 characters.'),
  }),
  errors: ['conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two conversations does not exist',
      input: { conversation_ids: ['381', '382'], reason: 'Delivered' },
      output: oneMissing,
    },
    {
      title: 'What nobody has written in for a month',
      input: { filter: { state: 'open', last_message_before: '-1mo' }, reason: 'Stale' },
      output: { ...oneMissing, requested: 1, failed: 0, failures: [] },
    },
  ],
})
