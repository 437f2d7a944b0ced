import { z } from 'zod'
import { mark } from '../marks.ts'
import { EXPENSIVE_READ, Instant, list, page, Timestamp } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { EndpointId, EventTypeIdInput, delivery, endpoint, prefixed, since } from './schemas.ts'

const DeliveryId = mark(prefixed('dlv'), { idOf: 'delivery' }).describe('Delivery id.')

const Delivery = z
  .object({
    id: DeliveryId,
    endpoint_id: EndpointId,
    event_id: z.string().describe('Event; `webhook-id` of every attempt.'),
    event_type_id: z.string().describe('Event type.'),
    status: z
      .enum(['pending', 'delivered', 'failed', 'dead', 'skipped'])
      .describe(
        '`failed`: it will be retried; `dead`: it will not; `skipped`: its endpoint was deleted before it ' +
          'was delivered, or disabled for longer than deliveries are kept.',
      ),
    attempts: z.int().describe('Attempts made.'),
    next_attempt_at: Timestamp.nullable().describe('When it is retried.'),
    last_response_status: z.int().nullable().describe('HTTP status of the last response.'),
    created_at: Timestamp.describe('When it was created.'),
    delivered_at: Timestamp.nullable().describe('When the endpoint accepted it.'),
  })
  .meta({ id: 'WebhookDelivery' })

const Attempt = z.object({
  number: z.int().describe('Number of the attempt, from 1.'),
  started_at: Timestamp.describe('When it started.'),
  duration_ms: z.int().describe('Milliseconds until the response or the failure.'),
  response_status: z.int().optional().describe('HTTP status.'),
  response_excerpt: untrusted(
    z
      .string()
      .optional()
      .describe('Beginning of the response, at most 1 KB, ending in … if truncated; not shown to agents.'),
  ),
  error: untrusted(z.string().optional().describe('Why there was no response.'), { phone: 'text' }),
  trigger: z.enum(['scheduled', 'replay', 'recover', 'test']).describe('What caused the attempt.'),
})

export const listDeliveries = defineOperation({
  name: 'webhooks_list_deliveries',
  cli: 'webhooks deliveries',
  routes: ['GET /v1/webhooks/endpoints/{endpoint_id}/deliveries'],
  since,
  stability: 'stable',
  summary: 'List the deliveries of an endpoint, newest first',
  description:
    'Works for deleted endpoints too. 403 `channels_limited` for staff limited to some channels, ' +
    `because deliveries cover all channels. With \`status\` or \`event_type_id\` it is ${EXPENSIVE_READ}`,
  heavy: ['status', 'event_type_id'],
  slim: [
    'id',
    'event_type_id',
    'status',
    'attempts',
    'last_response_status',
    'next_attempt_at',
    'created_at',
  ],
  words:
    'failed webhook deliveries, delivery log, attempts, errors of a callback, delivery history, why ' +
    'did my server not get the callback, response code',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'status' },
    { path: 'event_type_id', title: 'event type', whole: true },
    { path: 'last_response_status', title: 'http' },
    { path: 'created_at', title: 'created' },
    { path: 'attempts' },
    { path: 'next_attempt_at', title: 'next' },
    { path: 'delivered_at', title: 'delivered' },
    { path: 'endpoint_id', title: 'endpoint' },
    { path: 'event_id', title: 'event' },
  ],
  input: z.object({
    endpoint_id: EndpointId,
    status: z
      .enum(['pending', 'delivered', 'failed', 'dead', 'skipped'])
      .optional()
      .describe('Only in this status.'),
    event_type_id: EventTypeIdInput.optional().describe(
      'Only of this type; without a version, of all its versions.',
    ),
    from: Instant.optional().describe('Created at this time or later.'),
    to: Instant.optional().describe('Created before this time.'),
    ...page,
  }),
  output: z.object(list(Delivery)),
  errors: ['not_found', 'forbidden'],
  examples: [
    {
      title: 'Failed deliveries',
      input: { endpoint_id: endpoint.id, status: 'dead' },
      output: {
        data: [{ ...delivery, status: 'dead', attempts: 10, last_response_status: 500, delivered_at: null }],
        next_cursor: null,
      },
    },
  ],
})

export const getDelivery = defineOperation({
  name: 'webhooks_get_delivery',
  cli: 'webhooks delivery',
  routes: ['GET /v1/webhooks/deliveries/{delivery_id}'],
  since,
  stability: 'stable',
  summary: 'Get one delivery with every attempt',
  description:
    'Agents do not see `response_excerpt`: a receiver can echo what is hidden from them. 403 ' +
    '`channels_limited` for staff limited to some channels.',
  words: 'one webhook delivery, attempts, response of the receiver, payload that was sent',
  scope: 'mcp:read',
  input: z.object({ delivery_id: DeliveryId }),
  output: Delivery.extend({ attempt_history: z.array(Attempt).describe('Every attempt, oldest first.') }),
  errors: ['not_found', 'forbidden'],
  examples: [
    {
      title: 'Delivered on the first attempt',
      input: { delivery_id: delivery.id },
      output: {
        ...delivery,
        attempt_history: [
          {
            number: 1,
            started_at: '2026-10-01T09:30:00.020Z',
            duration_ms: 100,
            response_status: 200,
            response_excerpt: 'ok',
            trigger: 'scheduled',
          },
        ],
      },
    },
  ],
})

export const replayDelivery = defineOperation({
  name: 'webhooks_replay_delivery',
  cli: 'webhooks replay',
  routes: [{ route: 'POST /v1/webhooks/deliveries/{delivery_id}/replay', status: 202 }],
  since,
  stability: 'stable',
  summary: 'Send a delivery again',
  description:
    'At once, whatever its status; a failure is retried as for a new delivery. 403 `channels_limited` ' +
    'for staff limited to some channels.',
  words: 'retry a webhook delivery, resend, redeliver, repeat a failed event',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'sends',
  repeatable: false,
  emits: [],
  input: z.object({ delivery_id: DeliveryId }),
  output: z.object({ delivery: Delivery.describe('The delivery, pending again.') }),
  errors: ['not_found', 'conflict', 'forbidden'],
  examples: [
    {
      title: 'Retry a delivery',
      input: { delivery_id: delivery.id },
      output: {
        delivery: {
          ...delivery,
          status: 'pending',
          next_attempt_at: '2026-10-01T10:00:00.000Z',
          delivered_at: null,
        },
      },
    },
  ],
})

export const recoverEndpoint = defineOperation({
  name: 'webhooks_recover_endpoint',
  cli: 'webhooks recover',
  routes: [{ route: 'POST /v1/webhooks/endpoints/{endpoint_id}/recover', status: 202 }],
  since,
  stability: 'stable',
  summary: 'Resend the events that an endpoint missed in a time range',
  description:
    'Events of its current subscriptions whose delivery is `dead` or `skipped`, or that have none: ' +
    'because it was disabled or not subscribed, or because the delivery was already deleted. 403 ' +
    '`channels_limited` for staff limited to some channels.',
  words:
    'missed webhooks, resend events after downtime, outage, recover, backfill, redeliver a time range, ' +
    'we were down, get what we lost',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'sends',
  repeatable: true,
  // As many deliveries as the endpoint missed, which nothing calls back.
  asks: true,
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    from: Instant.describe('Start; at most 14 days before `to`.'),
    to: Instant.describe('End, exclusive.'),
  }),
  output: z.object({
    endpoint_id: EndpointId,
    recovered: z.int().describe('Deliveries that are now pending.'),
  }),
  errors: ['not_found', 'conflict', 'forbidden'],
  examples: [
    {
      title: 'An outage',
      input: { endpoint_id: endpoint.id, from: '2026-10-01T00:00:00Z', to: '2026-10-01T06:00:00Z' },
      output: { endpoint_id: endpoint.id, recovered: 120 },
    },
  ],
})
