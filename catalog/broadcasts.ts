import { z } from 'zod'
import {
  ContactName,
  ContactPhone,
  EXPENSIVE_READ,
  Id,
  idOf,
  InstantOrLocal,
  listWithTotal,
  page,
  Search,
  Timestamp,
} from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

const since = '2026-10-01'

const broadcastStatuses = ['scheduled', 'running', 'completed', 'cancelled'] as const
const recipientStatuses = [
  'pending',
  'sent',
  'delivered',
  'read',
  'failed',
  'responded',
  'not_responded',
] as const

const countField = (what: string) => z.int().describe(what)

export const Broadcast = z
  .object({
    id: idOf('broadcast').describe('Broadcast id.'),
    name: z.string().describe('Name.'),
    status: z.enum(broadcastStatuses).describe('`scheduled`, `running`, `completed` or `cancelled`.'),
    template_name: z.string().nullable().describe('Template.'),
    channel_id: Id.nullable().describe('Channel.'),
    scheduled_at: Timestamp.nullable().describe('When it is scheduled to start.'),
    started_at: Timestamp.nullable().describe('When it started.'),
    totals: z
      .object({
        recipients: countField('Contacts chosen.'),
        sent: countField('Sent, including those delivered or read.'),
        delivered: countField('Delivered, including those read.'),
        read: countField('Read.'),
        failed: countField('Failed.'),
        responded: countField('Answered.'),
        opted_out: countField('Opted out.'),
      })
      .describe('Recipients by delivery status.'),
    job_id: idOf('job')
      .nullable()
      .describe('The job that sends it; null if there is none, or it ended long ago.'),
    waiting: z
      .object({
        reason: z
          .enum(['hours', 'messaging_limit', 'provider', 'stopped'])
          .describe(
            '`hours`: no recipient is within the given hours. `messaging_limit`: the daily limit of customers ' +
              'for the number is reached. `provider`: the provider throttles. `stopped`: its job is paused or ' +
              'failed, until it is resumed.',
          ),
        until: Timestamp.nullable().describe(
          'When it continues, at the latest; null if stopped, and with hidden phone numbers, because hours ' +
            'reveal their countries.',
        ),
      })
      .nullable()
      .describe('What its job waits for, or null.'),
  })
  .meta({ id: 'Broadcast' })

const Recipient = z.object({
  contact: z
    .object({
      id: idOf('contact').describe('Contact id.'),
      name: ContactName,
      phone: ContactPhone.describe('E.164 digits, or masked.'),
    })
    .nullable()
    .describe('The contact; null when it was deleted.'),
  message_status: z
    .enum(['pending', 'sent', 'delivered', 'read', 'failed'])
    .describe('Delivery status of the message.'),
  responded: z.boolean().describe('The contact answered.'),
  opted_out: z.boolean().describe('The contact opted out.'),
  sent_at: Timestamp.nullable().describe('When it was sent.'),
  delivered_at: Timestamp.nullable().describe('When it was delivered.'),
  read_at: Timestamp.nullable().describe('When it was read.'),
  failed_at: Timestamp.nullable().describe('When it failed.'),
  responded_at: Timestamp.nullable().describe('When the contact answered.'),
  error: untrusted(z.string().nullable().describe('Why it failed; null if it did not, or if unknown.'), {
    phone: 'text',
  }),
})

export const broadcastExample = {
  id: '1',
  name: 'Autumn blend',
  status: 'completed' as const,
  template_name: 'autumn_blend',
  channel_id: '1',
  scheduled_at: '2026-10-01T09:30:00.000Z',
  started_at: '2026-10-01T09:30:00.000Z',
  totals: { recipients: 300, sent: 296, delivered: 290, read: 214, failed: 4, responded: 31, opted_out: 2 },
  job_id: null,
  waiting: null,
}
const BroadcastId = idOf('broadcast').describe('Broadcast id.')

/** Its recipients are chosen when it is scheduled, so it starts soon enough to be for them still. */
export const MAX_DAYS_AHEAD = 90

export const ScheduledAt = InstantOrLocal.describe(
  `When it starts, at most ${MAX_DAYS_AHEAD} days ahead: ISO 8601; without an offset, in the workspace's time zone.`,
)

const STARTS_AT_EXAMPLE = '2026-10-02T09:00:00+02:00[Europe/Berlin]'

export const StartsAt = z
  .string()
  .meta({ examples: [STARTS_AT_EXAMPLE] })
  .describe("When it starts, in the workspace's time zone.")

export const listBroadcasts = defineOperation({
  name: 'messaging_list_broadcasts',
  cli: 'broadcasts list',
  routes: ['GET /v1/broadcasts'],
  since,
  stability: 'stable',
  summary: 'List broadcasts with their totals, newest first',
  description:
    'Ordered by start time, actual or scheduled. Staff limited to some channels see only broadcasts on ' +
    'those.',
  words: 'campaigns, newsletters, past and scheduled broadcasts, mass messages',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name' },
    { path: 'status' },
    { path: 'template_name', title: 'template' },
    { path: 'scheduled_at', title: 'scheduled' },
    { path: 'started_at', title: 'started' },
    { path: 'channel_id', title: 'channel' },
  ],
  names: { fields: { broadcast_id: 'broadcast' }, by: ['name'], beside: 'status' },
  input: z.object({
    status: z.enum(broadcastStatuses).optional().describe('Only in this status.'),
    search: Search('Name'),
    ...page,
  }),
  output: z.object(listWithTotal(Broadcast)),
  errors: [],
  examples: [
    {
      title: 'Completed broadcasts',
      input: { status: 'completed' },
      output: { data: [broadcastExample], total: 1, next_cursor: null },
    },
  ],
})

export const getBroadcast = defineOperation({
  name: 'messaging_get_broadcast',
  cli: 'broadcasts get',
  routes: ['GET /v1/broadcasts/{broadcast_id}'],
  since,
  stability: 'stable',
  summary: 'Get one broadcast with totals for each status',
  words:
    'broadcast statistics, campaign results, how many recipients read, delivery rate, performance, ' +
    'open rate',
  scope: 'mcp:read',
  input: z.object({ broadcast_id: BroadcastId }),
  output: Broadcast,
  errors: ['not_found'],
  examples: [{ title: 'One broadcast', input: { broadcast_id: '1' }, output: broadcastExample }],
})

export const listBroadcastRecipients = defineOperation({
  name: 'messaging_list_broadcast_recipients',
  cli: 'broadcasts recipients',
  routes: ['GET /v1/broadcasts/{broadcast_id}/recipients'],
  since,
  stability: 'stable',
  summary: 'List the recipients of a broadcast with the delivery status of each',
  description: `With \`message_status\` it is ${EXPENSIVE_READ}`,
  heavy: ['message_status'],
  slim: [
    'contact.id',
    'contact.name',
    'contact.phone',
    'message_status',
    'responded',
    'opted_out',
    'failed_at',
  ],
  words:
    'who got, read, failed or did not respond to a campaign, why did the campaign fail, failed ' +
    'messages, undelivered recipients, bounced, received the newsletter',
  scope: 'mcp:read',
  view: [
    { path: 'contact.id', title: 'contact' },
    { path: 'contact.name', title: 'name' },
    { path: 'contact.phone', title: 'phone' },
    { path: 'message_status', title: 'status' },
    { path: 'responded', words: { true: 'yes', false: '' } },
    { path: 'opted_out', words: { true: 'yes', false: '' } },
    { path: 'sent_at', title: 'sent' },
    { path: 'delivered_at', title: 'delivered' },
    { path: 'read_at', title: 'read' },
    { path: 'failed_at', title: 'failed' },
  ],
  input: z.object({
    broadcast_id: BroadcastId,
    message_status: z
      .enum(recipientStatuses)
      .optional()
      .describe(
        'Only recipients with this status, as in contact filters. `sent`: sent but not yet delivered; ' +
          '`not_responded`: all who did not respond.',
      ),
    ...page,
  }),
  output: z.object(listWithTotal(Recipient)),
  errors: ['not_found'],
  examples: [
    {
      title: 'Recipients who did not answer',
      input: { broadcast_id: '1', message_status: 'not_responded', limit: 1 },
      output: {
        data: [
          {
            contact: { id: '42', name: 'Ada Lovelace', phone: '15550100042' },
            message_status: 'read',
            responded: false,
            opted_out: false,
            sent_at: '2026-10-01T09:30:01.000Z',
            delivered_at: '2026-10-01T09:30:03.000Z',
            read_at: '2026-10-01T09:41:00.000Z',
            failed_at: null,
            responded_at: null,
            error: null,
          },
        ],
        total: 1,
        next_cursor: null,
      },
    },
  ],
})

export const rescheduleBroadcast = defineOperation({
  name: 'messaging_reschedule_broadcast',
  cli: 'broadcasts reschedule',
  routes: ['PUT /v1/broadcasts/{broadcast_id}/schedule'],
  since,
  stability: 'beta',
  summary: 'Change the time of a scheduled broadcast',
  description:
    'For its creator, owners, admins and managers, until it starts; then 409 `already_started`. One that is paused ' +
    'stays so. `jobs_cancel` with its `job_id` calls it off.',
  words:
    'postpone, reschedule, put off to another day, an hour later than planned, change the time of what is planned',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  // A person may have approved the time.
  asks: true,
  effect: 'sends',
  repeatable: true,
  emits: [],
  input: z.object({ broadcast_id: BroadcastId, scheduled_at: ScheduledAt }),
  output: z.object({ broadcast: Broadcast.describe('The broadcast.'), starts_at: StartsAt }),
  errors: ['not_found', 'conflict', 'forbidden'],
  examples: [
    {
      title: 'A later time',
      input: { broadcast_id: '4', scheduled_at: '2026-10-02T09:00:00+02:00' },
      output: {
        broadcast: {
          ...broadcastExample,
          id: '4',
          status: 'scheduled',
          scheduled_at: '2026-10-02T07:00:00.000Z',
          started_at: null,
          totals: {
            ...broadcastExample.totals,
            sent: 0,
            delivered: 0,
            read: 0,
            failed: 0,
            responded: 0,
            opted_out: 0,
          },
          job_id: '4',
        },
        starts_at: STARTS_AT_EXAMPLE,
      },
    },
  ],
})
