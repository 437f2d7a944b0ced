import { z } from 'zod'
import { mark } from '../marks.ts'
import { Timestamp, Version } from '../fields.ts'

export const since = '2026-10-01'

export const prefixed = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`), `must be ${prefix}_ followed by 26 characters`)

export const EndpointId = mark(prefixed('ep'), { idOf: 'endpoint' }).describe('Endpoint id.')

/** `<type>/<version>` or a type without its version. */
export const EventTypeIdInput = z
  .string()
  .max(200)
  .regex(
    /^[a-z0-9._-]+(?:\/[A-Za-z0-9._-]+)?$/,
    'must be a type with or without its version, such as contact.created/1 or contact.created',
  )

export const Endpoint = z
  .object({
    id: EndpointId,
    url: z.string().describe('Public https URL that events are sent to.'),
    description: z.string().nullable().describe('Description.'),
    status: z
      .enum(['active', 'disabled', 'paused'])
      .describe('`paused`: it failed several times; events queue while it is probed.'),
    custom_headers: z
      .record(z.string(), z.string())
      .describe('Headers sent along; values masked to the last 4 characters.'),
    consecutive_failures: z.int().describe('Attempts that failed in a row.'),
    disabled_at: Timestamp.nullable().describe('When it was disabled.'),
    disabled_reason: z.string().nullable().describe('`manual`, `gone` or `failing`.'),
    signing_secret: z.string().describe('Masked; the secret itself is shown once, when it is created.'),
    payload_format: z
      .enum(['envelope', 'data'])
      .describe('`envelope`: id, type, version and data; `data`: the data alone.'),
    created_at: Timestamp.describe('When it was created.'),
    updated_at: Timestamp.describe('When it was last changed.'),
    version: Version,
    subscriptions: z
      .object({
        count: z.int().describe('Subscribed event types.'),
        all_active: z.boolean().describe('Every item is active.'),
        event_types: z
          .array(
            z.object({
              id: z.string().describe('Event type id; `*`: all.'),
              active: z.boolean().describe('True: events of this type are delivered.'),
              created_at: Timestamp.describe('When it was subscribed.'),
            }),
          )
          .describe('What is subscribed.'),
      })
      .nullable()
      .describe('Subscriptions.'),
  })
  .meta({ id: 'WebhookEndpoint' })

export const SubscriptionList = z
  .array(z.string().min(1).max(200))
  .max(100)
  .describe('Event type ids, or `["*"]` for all, including future types.')

export const endpoint = {
  id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0',
  url: 'https://example.com/hooks',
  description: 'Orders',
  status: 'active' as const,
  custom_headers: { 'X-Team': '****blue' },
  consecutive_failures: 0,
  disabled_at: null,
  disabled_reason: null,
  signing_secret: 'whsec_****k3Jd',
  payload_format: 'envelope' as const,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
  version: '2',
  subscriptions: {
    count: 1,
    all_active: true,
    event_types: [{ id: 'message.received/1', active: true, created_at: '2026-10-01T09:30:00.000Z' }],
  },
}

export const delivery = {
  id: 'dlv_01JABCDEFGHJKMNPQRSTVWXYZ2',
  endpoint_id: endpoint.id,
  event_id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1',
  event_type_id: 'message.received/1',
  status: 'delivered' as const,
  attempts: 1,
  next_attempt_at: null,
  last_response_status: 200,
  created_at: '2026-10-01T09:30:00.000Z',
  delivered_at: '2026-10-01T09:30:00.120Z',
}
