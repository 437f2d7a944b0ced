import { z } from 'zod'
import { mark } from '../marks.ts'
import { Changed, list, page } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { Endpoint, EndpointId, SubscriptionList, delivery, endpoint, prefixed, since } from './schemas.ts'

export const EventId = prefixed('evt')

export const sendTestEvent = defineOperation({
  name: 'webhooks_send_test',
  cli: 'webhooks test',
  routes: [{ route: 'POST /v1/webhooks/endpoints/{endpoint_id}/test', status: 202 }],
  since,
  stability: 'stable',
  summary: "Send one signed test event to an endpoint, and return the receiver's response",
  words: 'test a webhook, ping, send a sample event, is the receiver working',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'required',
  effect: 'sends',
  repeatable: false,
  // Data of the agent's own is sent outside as an event of the product.
  asks: { payload: true },
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    event_type_id: z
      .string()
      .max(200)
      .regex(/^[a-z0-9._-]+\/[A-Za-z0-9._-]+$/, 'must be a type and its version, such as contact.created/1')
      .describe('Event type and its version, such as `contact.created/1`.'),
    payload: mark(z.record(z.string(), z.unknown()), { private: 'secret' })
      .optional()
      .describe(
        'Data of the event; when absent, the sample of its type. With data, the key of an AI agent asks a ' +
          'person.',
      )
      .meta({ examples: [{ contact: { id: '42', name: 'Ada Lovelace' } }] }),
    wait_seconds: z
      .int()
      .min(0)
      .max(10)
      .default(10)
      .describe("Seconds to wait for the receiver's response, 10 when absent."),
  }),
  output: z.object({
    event_id: EventId.nullable().describe('The event; null in a dry run.'),
    endpoint_id: EndpointId,
    event_type_id: z.string().describe('The event type that was sent.'),
    delivery_id: mark(prefixed('dlv'), { idOf: 'delivery' })
      .nullable()
      .describe('The delivery; null in a dry run.'),
    outcome: z
      .object({
        status: z
          .enum(['delivered', 'failed', 'pending'])
          .describe(
            '`delivered`: the receiver responded with 2xx. `failed`: it did not, and is retried later. ' +
              '`pending`: not known yet; read the delivery.',
          ),
        response_status: z.int().optional().describe('HTTP status of the receiver.'),
        duration_ms: z.int().optional().describe('Milliseconds until the response or the failure.'),
        response_excerpt: untrusted(
          z.string().optional().describe('Beginning of the response, at most 1 KB; not shown to agents.'),
        ),
        error: mark(z.string().optional().describe('Why there was no response.'), { phone: 'text' }),
      })
      .nullable()
      .describe('Result of the first attempt; null in a dry run.'),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'A contact that is not there',
      input: { endpoint_id: endpoint.id, event_type_id: 'contact.created/1', wait_seconds: 1 },
      output: {
        event_id: delivery.event_id,
        endpoint_id: endpoint.id,
        event_type_id: 'contact.created/1',
        delivery_id: delivery.id,
        outcome: { status: 'delivered', response_status: 200, duration_ms: 120, response_excerpt: 'ok' },
      },
    },
  ],
})

export const setSubscriptions = defineOperation({
  name: 'webhooks_set_subscriptions',
  cli: 'webhooks subscribe',
  routes: ['PUT /v1/webhooks/endpoints/{endpoint_id}/subscriptions'],
  since,
  stability: 'stable',
  summary: 'Set the event types that an endpoint receives',
  words:
    'subscribe a webhook to events, choose event types, which events it receives, unsubscribe, only ' +
    'some events, not everything',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces_and_sends',
  repeatable: true,
  versioned: { kind: 'endpoint', by: 'endpoint_id', at: 'endpoint' },
  // What is sent to which address outside, and when that stops.
  asks: true,
  emits: [],
  input: z.object({ endpoint_id: EndpointId, event_types: SubscriptionList }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found', 'forbidden', 'precondition_failed'],
  examples: [
    {
      title: 'Incoming messages',
      input: { endpoint_id: endpoint.id, event_types: ['message.received/1'] },
      output: { endpoint, changed: true },
    },
  ],
})

export const listEventTypes = defineOperation({
  name: 'webhooks_list_event_types',
  cli: 'webhooks event-types',
  routes: ['GET /v1/webhooks/event-types'],
  since,
  stability: 'stable',
  summary: 'List every event type with its schema and a sample',
  slim: ['id', 'description'],
  words: 'which events are there, event types, payload schema, sample payload, catalog of events',
  scope: 'mcp:read',
  view: [
    { path: 'id', whole: true },
    { path: 'description', wrap: true },
    { path: 'operations', wrap: true },
  ],
  input: z.object({
    search: z.string().trim().min(1).max(100).optional().describe('Event type id contains this.'),
    ...page,
  }),
  output: z.object(
    list(
      z.object({
        id: z.string().describe('Event type id.'),
        description: z.string().describe('What happened.'),
        operations: z
          .array(z.string())
          .describe('Operations that emit it; empty when customers or the provider cause it.'),
        schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `data`.'),
        sample: z.record(z.string(), z.unknown()).describe('A sample of `data`.'),
      }),
    ),
  ),
  errors: [],
  examples: [
    {
      title: 'Event types of groups',
      input: { search: 'group.deleted' },
      output: {
        data: [
          {
            id: 'group.deleted/1',
            description: 'A group was deleted.',
            operations: ['crm_delete_group'],
            schema: { type: 'object' },
            sample: { group: { id: '3', name: 'VIP', emoji: '⭐' } },
          },
        ],
        next_cursor: null,
      },
    },
  ],
})
