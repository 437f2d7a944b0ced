import { z } from 'zod'
import { deleted, Instant, Limit, list, listWithTotal, page, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'
import { EventId } from './webhooks/subscriptions.ts'

/** As `after`: only what happens from now on. */
export const NOW = 'now'

const ConsumerName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
    'must be 1 to 100 letters, digits and . _ -, not starting with a sign',
  )
  .meta({ examples: ['nightly'] })

const Event = z
  .object({
    id: EventId.describe('Event id; pass it as `after`.'),
    type: z.string().describe('Event type id, such as `contact.created/1`.'),
    occurred_at: Timestamp.describe('When it happened.'),
    data: untrusted(
      z
        .record(z.string(), z.unknown())
        .describe("Data of the event, by its type; phones are masked when hidden from the key's owner."),
      { holds: { kind: 'event', by: 'type' } },
    ),
  })
  .meta({ id: 'Event' })

/** The event that the examples name; the demo workspace has it. */
export const loggedEvent = {
  id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ2',
  type: 'group.deleted/1',
  occurred_at: '2026-10-01T09:30:00.000Z',
  data: { group: { id: '3', name: 'VIP', emoji: '⭐' } },
}

export const listEvents = defineOperation({
  name: 'events_list',
  cli: 'events list',
  routes: ['GET /v1/events'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Read the event log, oldest first',
  description:
    'Poll with `after` set to the last id you received: no event is skipped or repeated, and events of ' +
    'one record are in the order of its changes. With `Accept: text/event-stream` the response stays ' +
    'open and streams; it resumes from `Last-Event-ID`. A page can be empty although more events ' +
    'follow, if none of those searched has a requested type: continue with `next_cursor` as `cursor` ' +
    '(or `after`). The server stores the position of a consumer: read with `consumer`, process the ' +
    'page, acknowledge its last event. A consumer that was away for longer than events are kept gets ' +
    "the reason `events_deleted`. Events of channels that the key's owner may not see are left out, " +
    'and so are the names of manager-only fields in `changes` for agents.',
  words:
    'event log, what happened recently, changes since yesterday, activity feed, stream, poll for new ' +
    'messages, sync, updates',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'type', whole: true },
    { path: 'occurred_at', title: 'at' },
    { path: 'data.contact.id', title: 'contact', else: 'data.contact_id' },
    { path: 'data.conversation.id', title: 'conversation' },
    { path: 'data.contact.name', title: 'name' },
    { path: 'data.message.text', title: 'text', wrap: true },
  ],
  input: z.object({
    after: z
      .string()
      .regex(/^(?:now|evt_[0-9A-HJKMNP-TV-Z]{26})$/, 'must be an event id, or now')
      .optional()
      .describe(
        'Return events after this one; from the oldest kept when absent. `now`: none of those in the log; ' +
          '`next_cursor` is then the newest event, to continue after it.',
      ),
    cursor: EventId.optional().describe('`next_cursor` of the previous page; the same as `after`.'),
    from: Instant.optional().describe(
      'Begin with the first event, in the order of the log, that happened at this time or later; a few that ' +
        'happened shortly before may follow it. Continue with `next_cursor` alone.',
    ),
    consumer: ConsumerName.optional().describe(
      'Begin after the event that this consumer acknowledged last (`events_ack`). Where there is no such consumer ' +
        'yet, with `after`, `from` or the oldest event. Send `next_cursor` as `cursor` beside it for ' +
        'the pages that follow.',
    ),
    types: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(100)
      .optional()
      .describe('Only these types; a type without a version means all its versions.'),
    limit: Limit,
  }),
  output: z.object(list(Event)),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'The oldest of some types',
      input: { types: ['group.created/1', 'group.deleted/1'], limit: 1 },
      output: {
        data: [loggedEvent],
        next_cursor: loggedEvent.id,
      },
    },
  ],
})

const Consumer = z
  .object({
    name: ConsumerName.describe('Name of the consumer.'),
    event_id: EventId.describe('The event that it acknowledged last.'),
    acknowledged_at: Timestamp.describe('When.'),
    complete: z
      .boolean()
      .describe(
        'False: events after that one were, or will soon be, deleted without being acknowledged. It reads on when it ' +
          'has acknowledged an event that is in the log.',
      ),
    created_at: Timestamp.describe('When it acknowledged its first event.'),
  })
  .meta({ id: 'EventConsumer' })

/** The demo workspace has this one. */
export const consumer = {
  name: 'nightly',
  event_id: loggedEvent.id,
  acknowledged_at: '2026-10-01T09:31:00.000Z',
  complete: true,
  created_at: '2026-09-01T09:30:00.000Z',
}

export const acknowledgeEvents = defineOperation({
  name: 'events_ack',
  cli: 'events ack',
  routes: ['PUT /v1/events/consumers/{consumer}'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Acknowledge all events up to one, for a consumer',
  description:
    'The first acknowledgement creates the consumer. Acknowledging an earlier event changes nothing, ' +
    'unless `rewind` is set, so late and repeated calls do no harm. Acknowledge after processing a ' +
    'page: after a crash, an unacknowledged page is read again. Several programs can share a consumer; ' +
    'a workspace has at most 100. The key of an AI agent asks a person to move a consumer that no ' +
    'agent of the same staff member created.',
  words: 'acknowledge events, commit a cursor, offset, consumer position, mark as processed',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: [],
  input: z.object({
    consumer: ConsumerName.describe('Name of the consumer.'),
    event_id: EventId.describe('The last event that was handled, or `next_cursor` of the page.'),
    rewind: z.boolean().default(false).describe('Go back to an earlier event too.'),
  }),
  output: z.object({
    consumer: Consumer.describe('The consumer.'),
    changed: z.boolean().describe('False: it had acknowledged this event, or a later one.'),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'A page was handled',
      input: { consumer: 'nightly', event_id: loggedEvent.id },
      output: { consumer, changed: true },
    },
  ],
})

export const listConsumers = defineOperation({
  name: 'events_list_consumers',
  cli: 'events consumers',
  routes: ['GET /v1/events/consumers'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List the consumers of the event log by name',
  words: 'consumers, readers of the event log, lag, positions',
  scope: 'mcp:read',
  view: [
    { path: 'name' },
    { path: 'event_id', title: 'event' },
    { path: 'acknowledged_at', title: 'acknowledged' },
    { path: 'complete' },
    { path: 'created_at', title: 'created' },
  ],
  input: z.object(page),
  output: z.object(listWithTotal(Consumer)),
  errors: [],
  examples: [
    { title: 'Every consumer', input: {}, output: { data: [consumer], total: 1, next_cursor: null } },
  ],
})

export const deleteConsumer = defineOperation({
  name: 'events_delete_consumer',
  cli: 'events delete-consumer',
  routes: ['DELETE /v1/events/consumers/{consumer}'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Delete a consumer of the event log',
  description: 'Its position is deleted; events stay.',
  words: 'remove a consumer, forget its position',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: [],
  input: z.object({ consumer: ConsumerName.describe('Name of the consumer.') }),
  output: z.object({ name: ConsumerName.describe('Name of the consumer.'), deleted: deleted.deleted }),
  errors: ['not_found', 'conflict', 'confirm_required'],
  examples: [
    { title: 'Delete it', input: { consumer: 'nightly' }, output: { name: 'nightly', deleted: true } },
  ],
})
