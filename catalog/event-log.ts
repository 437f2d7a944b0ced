import { z } from 'zod'
import { Limit, list, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'
import { EventId } from './webhooks/subscriptions.ts'

/** As `after`: only what happens from now on. */
export const NOW = 'now'

const Event = z
  .object({
    id: EventId.describe('Event id; pass it as `after`.'),
    type: z.string().describe('Event type id, such as `contact.created/1`.'),
    occurred_at: Timestamp.describe('When it happened.'),
    data: untrusted(
      z
        .record(z.string(), z.unknown())
        .describe("Data of the event, by its type; phones are masked when hidden from the key's owner."),
    ),
  })
  .meta({ id: 'Event' })

export const listEvents = defineOperation({
  name: 'events_list',
  cli: 'events list',
  routes: ['GET /v1/events'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Read the event log, oldest first',
  description:
    'Poll with `after` set to the last id you received: no event is skipped or repeated. With ' +
    '`Accept: text/event-stream` the response stays open and streams; it resumes from ' +
    '`Last-Event-ID`. A page can be empty although more events follow, when no event searched ' +
    'has a requested type: continue with `next_cursor` as `cursor`, as in all lists (`after` means the same). ' +
    "Events of channels that the key's owner may not see are left out, and so are the names of " +
    'manager-only fields in `changes` for agents.',
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
    from: z.iso
      .datetime({ offset: true })
      .optional()
      .describe(
        'Begin with the first event, in the order of the log, that happened at this time or later; a few that ' +
          'happened shortly before may follow it. Continue with `next_cursor` alone.',
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
  errors: ['not_found'],
  examples: [
    {
      title: 'The oldest of one type',
      input: { types: ['group.deleted/1'], limit: 1 },
      output: {
        data: [
          {
            id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ2',
            type: 'group.deleted/1',
            occurred_at: '2026-10-01T09:30:00.000Z',
            data: { group: { id: '3', name: 'VIP', emoji: '⭐' } },
          },
        ],
        next_cursor: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ2',
      },
    },
  ],
})
