import { z } from 'zod'
import { list, page, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

const since = '2026-10-01'

const prefixed = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`), `must be ${prefix}_ followed by 26 characters`)
const EndpointId = prefixed('ep').describe('Endpoint id.')
const DeliveryId = prefixed('dlv').describe('Delivery id.')
export const EventId = prefixed('evt')

/** `<type>/<version>` (spec, POST test). */
const EventTypeIdInput = z
  .string()
  .max(200)
  .regex(/^[a-z0-9._-]+\/[A-Za-z0-9._-]+$/, 'must be <type>/<version>, such as contact.created/1')

const Endpoint = z
  .object({
    id: EndpointId,
    url: z.string().describe('Where events are sent: a public https address.'),
    description: z.string().nullable().describe('Description.'),
    status: z
      .enum(['active', 'disabled', 'paused'])
      .describe('`paused`: it failed several times; events wait while it is probed.'),
    custom_headers: z
      .record(z.string(), z.string())
      .describe('Headers sent along; values masked to the last 4 characters.'),
    consecutive_failures: z.int().describe('Attempts that failed in a row.'),
    disabled_at: Timestamp.nullable().describe('When it was disabled.'),
    disabled_reason: z.string().nullable().describe('`manual`, `gone` or `failing`.'),
    signing_secret: z.string().describe('Masked; the secret itself is shown once, when it is made.'),
    payload_format: z
      .enum(['envelope', 'data'])
      .describe('`envelope`: id, type, version and data; `data`: the data alone.'),
    created_at: Timestamp.describe('When it was made.'),
    updated_at: Timestamp.describe('When it last changed.'),
    subscriptions: z
      .object({
        count: z.int().describe('Subscribed event types.'),
        all_active: z.boolean().describe('Every item is active.'),
        event_types: z
          .array(
            z.object({
              id: z.string().describe('Event type id; `*`: all.'),
              active: z.boolean().describe('It is delivered.'),
              created_at: Timestamp.describe('When it was subscribed.'),
            }),
          )
          .describe('What is subscribed.'),
      })
      .nullable()
      .describe('Subscriptions.'),
  })
  .meta({ id: 'WebhookEndpoint' })

const NewEndpoint = Endpoint.extend({
  id: EndpointId.nullable().describe('Endpoint id; null when a dry run would create it.'),
})

const Delivery = z
  .object({
    id: DeliveryId,
    endpoint_id: EndpointId,
    event_id: z.string().describe('Event; `webhook-id` of every attempt.'),
    event_type_id: z.string().describe('Event type.'),
    status: z
      .enum(['pending', 'delivered', 'failed', 'dead', 'skipped'])
      .describe('`failed`: it is tried again; `dead`: it is not; `skipped`: dropped with its endpoint.'),
    attempts: z.int().describe('Attempts made.'),
    next_attempt_at: Timestamp.nullable().describe('When it is tried again.'),
    last_response_status: z.int().nullable().describe('HTTP status of the last answer.'),
    created_at: Timestamp.describe('When it was made.'),
    delivered_at: Timestamp.nullable().describe('When the endpoint took it.'),
  })
  .meta({ id: 'WebhookDelivery' })

const Attempt = z.object({
  number: z.int().describe('1, then one more each time.'),
  started_at: Timestamp.describe('When it began.'),
  duration_ms: z.int().describe('Milliseconds until the answer, or until it failed.'),
  response_status: z.int().optional().describe('HTTP status.'),
  response_excerpt: z.string().optional().describe('Beginning of the answer, at most 1 KB.'),
  error: z.string().optional().describe('Why no answer came.'),
  trigger: z.enum(['scheduled', 'replay', 'recover', 'test']).describe('What caused it.'),
})

const Url = z.string().min(1).max(2048).describe('Public https address, 1 to 2048 characters.')
const Description = z
  .string()
  .max(500)
  .nullable()
  .describe('Description, at most 500 characters; null clears it.')
const CustomHeaders = z
  .record(z.string().min(1).max(100), z.string().max(1000))
  .describe(
    'Headers to send along; replaces the whole set, `{}` removes all. Reserved: `Webhook-*`, `Wc-*`, `Content-*`, `Host`, `User-Agent`, `Idempotency-Key`, `Proxy-*`.',
  )
const PayloadFormat = z.enum(['envelope', 'data'])
const SubscriptionList = z
  .array(z.string().min(1).max(200))
  .max(100)
  .describe('Event type ids, or `["*"]` for all, also those to come.')

const endpoint = {
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
  subscriptions: {
    count: 1,
    all_active: true,
    event_types: [{ id: 'message.received/1', active: true, created_at: '2026-10-01T09:30:00.000Z' }],
  },
}
const delivery = {
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
const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDu1Iq1FQ8k3Jd'
const Changed = z.boolean().describe('False: it was so already.')

export const listEndpoints = operation({
  name: 'webhooks_list_endpoints',
  cli: 'webhooks list',
  routes: ['GET /v1/webhooks/endpoints'],
  since,
  stability: 'stable',
  summary: 'List webhook endpoints, newest first',
  scope: 'mcp:read',
  input: z.object({
    status: z.enum(['active', 'disabled', 'paused']).optional().describe('Only in this status.'),
    url_contains: z.string().min(1).max(200).optional().describe('Address contains this, ignoring case.'),
    ...page,
  }),
  output: z.object(list(Endpoint)),
  errors: [],
  examples: [
    {
      title: 'Those that work',
      input: { status: 'active' },
      output: { data: [endpoint], next_cursor: null },
    },
  ],
})

export const getEndpoint = operation({
  name: 'webhooks_get_endpoint',
  cli: 'webhooks get',
  routes: ['GET /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Get one webhook endpoint',
  scope: 'mcp:read',
  input: z.object({ endpoint_id: EndpointId }),
  output: Endpoint,
  errors: ['not_found'],
  examples: [{ title: 'One endpoint', input: { endpoint_id: endpoint.id }, output: endpoint }],
})

export const createEndpoint = operation({
  name: 'webhooks_create_endpoint',
  cli: 'webhooks create',
  routes: [{ route: 'POST /v1/webhooks/endpoints', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Register an address that events are sent to',
  description:
    'The signing secret is shown in this answer alone. A new endpoint gets no events until `event_types` or `webhooks_set_subscriptions` names some.',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: false,
  emits: [],
  secret: true,
  input: z.object({
    url: Url,
    description: Description.optional(),
    custom_headers: CustomHeaders.optional(),
    payload_format: PayloadFormat.default('envelope').describe('What is sent.'),
    event_types: SubscriptionList.optional(),
  }),
  output: z.object({
    endpoint: NewEndpoint.describe('The endpoint.'),
    signing_secret: z.string().nullable().describe('The secret, this once; null in a dry run.'),
  }),
  errors: ['forbidden'],
  examples: [
    {
      title: 'Incoming messages',
      input: { url: endpoint.url, description: 'Orders', event_types: ['message.received/1'] },
      output: { endpoint, signing_secret: secret },
    },
  ],
})

export const updateEndpoint = operation({
  name: 'webhooks_update_endpoint',
  cli: 'webhooks update',
  routes: ['PATCH /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Change address, description, headers or format of an endpoint',
  description: 'Omitted fields stay. Event types are changed with `webhooks_set_subscriptions`.',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    url: Url.optional(),
    description: Description.optional(),
    custom_headers: CustomHeaders.optional(),
    payload_format: PayloadFormat.optional().describe('What is sent.'),
  }),
  output: z.object({
    endpoint: Endpoint.describe('The endpoint.'),
    changed: z.array(z.string()).describe('Names of the fields that changed.'),
  }),
  errors: ['not_found', 'forbidden'],
  examples: [
    {
      title: 'Another address',
      input: { endpoint_id: endpoint.id, url: 'https://example.com/new' },
      output: { endpoint: { ...endpoint, url: 'https://example.com/new' }, changed: ['url'] },
    },
  ],
})

export const deleteEndpoint = operation({
  name: 'webhooks_delete_endpoint',
  cli: 'webhooks delete',
  routes: ['DELETE /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Delete an endpoint with its subscriptions; its delivery log stays',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: [],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ id: EndpointId, deleted: z.boolean().describe('True: it is gone.') }),
  errors: ['not_found', 'confirm_required'],
  examples: [
    { title: 'Gone', input: { endpoint_id: endpoint.id }, output: { id: endpoint.id, deleted: true } },
  ],
})

export const rotateSecret = operation({
  name: 'webhooks_rotate_secret',
  cli: 'webhooks rotate-secret',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/rotate-secret'],
  since,
  stability: 'stable',
  summary: 'Give an endpoint a new signing secret',
  description:
    'Shown in this answer alone. The old one stays valid for 24 hours, during which deliveries carry both signatures.',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'required',
  confirm: 'rotate',
  repeatable: false,
  emits: [],
  secret: true,
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({
    endpoint: Endpoint.describe('The endpoint.'),
    signing_secret: z.string().nullable().describe('The new secret, this once; null in a dry run.'),
    old_secret_valid_until: Timestamp.describe('Until when the old one signs too.'),
    warning: z.string().describe('What to do now.'),
  }),
  errors: ['not_found', 'forbidden', 'confirm_required'],
  examples: [
    {
      title: 'A new secret',
      input: { endpoint_id: endpoint.id },
      output: {
        endpoint,
        signing_secret: secret,
        old_secret_valid_until: '2026-10-02T09:30:00.000Z',
        warning: 'Store the new secret now: it is not shown again. The old one stops signing in 24 hours.',
      },
    },
  ],
})

export const disableEndpoint = operation({
  name: 'webhooks_disable_endpoint',
  cli: 'webhooks disable',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/disable'],
  since,
  stability: 'stable',
  summary: 'Stop sending events to an endpoint',
  description:
    'Deliveries pending now wait until it is enabled. Events that happen meanwhile get none; `webhooks_recover_endpoint` is the way back.',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['webhook.endpoint_disabled/1'],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Switched off',
      input: { endpoint_id: endpoint.id },
      output: {
        endpoint: {
          ...endpoint,
          status: 'disabled',
          disabled_at: '2026-10-01T10:00:00.000Z',
          disabled_reason: 'manual',
        },
        changed: true,
      },
    },
  ],
})

export const enableEndpoint = operation({
  name: 'webhooks_enable_endpoint',
  cli: 'webhooks enable',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/enable'],
  since,
  stability: 'stable',
  summary: 'Send events to an endpoint again',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found', 'forbidden'],
  examples: [
    { title: 'Switched on', input: { endpoint_id: endpoint.id }, output: { endpoint, changed: true } },
  ],
})

export const sendTestEvent = operation({
  name: 'webhooks_send_test',
  cli: 'webhooks test',
  routes: [{ route: 'POST /v1/webhooks/endpoints/{endpoint_id}/test', status: 202 }],
  since,
  stability: 'stable',
  summary: 'Send one signed test event that looks like a real one',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'required',
  repeatable: false,
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    event_type_id: EventTypeIdInput.describe('Event type, such as `contact.created/1`.'),
    payload: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Data of the event; a sample when absent.'),
  }),
  output: z.object({
    event_id: EventId.nullable().describe('The event; null in a dry run.'),
    endpoint_id: EndpointId,
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'A contact that is not there',
      input: { endpoint_id: endpoint.id, event_type_id: 'contact.created/1' },
      output: { event_id: delivery.event_id, endpoint_id: endpoint.id },
    },
  ],
})

export const setSubscriptions = operation({
  name: 'webhooks_set_subscriptions',
  cli: 'webhooks subscribe',
  routes: ['PUT /v1/webhooks/endpoints/{endpoint_id}/subscriptions'],
  since,
  stability: 'stable',
  summary: 'Settle which events an endpoint gets',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  input: z.object({ endpoint_id: EndpointId, event_types: SubscriptionList }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found', 'forbidden'],
  examples: [
    {
      title: 'Incoming messages',
      input: { endpoint_id: endpoint.id, event_types: ['message.received/1'] },
      output: { endpoint, changed: true },
    },
  ],
})

export const listEventTypes = operation({
  name: 'webhooks_list_event_types',
  cli: 'webhooks event-types',
  routes: ['GET /v1/webhooks/event-types'],
  since,
  stability: 'stable',
  summary: 'List every event type with its schema and a sample',
  scope: 'mcp:read',
  input: z.object({
    search: z.string().trim().min(1).max(100).optional().describe('Id contains this.'),
    ...page,
  }),
  output: z.object(
    list(
      z.object({
        id: z.string().describe('Event type id.'),
        description: z.string().describe('What happened.'),
        operations: z
          .array(z.string())
          .describe('Operations that cause it; others come from customers and the provider.'),
        schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `data`.'),
        sample: z.record(z.string(), z.unknown()).describe('A sample of `data`.'),
      }),
    ),
  ),
  errors: [],
  examples: [
    {
      title: 'About groups',
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

export const listDeliveries = operation({
  name: 'webhooks_list_deliveries',
  cli: 'webhooks deliveries',
  routes: ['GET /v1/webhooks/endpoints/{endpoint_id}/deliveries'],
  since,
  stability: 'stable',
  summary: 'List the deliveries of an endpoint, newest first',
  description: 'Also of one that was deleted.',
  scope: 'mcp:read',
  input: z.object({
    endpoint_id: EndpointId,
    status: z
      .enum(['pending', 'delivered', 'failed', 'dead', 'skipped'])
      .optional()
      .describe('Only in this status.'),
    event_type_id: EventTypeIdInput.optional().describe('Only of this type.'),
    from: z.iso.datetime({ offset: true }).optional().describe('Made at this time or later.'),
    to: z.iso.datetime({ offset: true }).optional().describe('Made before this time.'),
    ...page,
  }),
  output: z.object(list(Delivery)),
  errors: ['not_found'],
  examples: [
    {
      title: 'What did not arrive',
      input: { endpoint_id: endpoint.id, status: 'dead' },
      output: {
        data: [{ ...delivery, status: 'dead', attempts: 10, last_response_status: 500, delivered_at: null }],
        next_cursor: null,
      },
    },
  ],
})

export const getDelivery = operation({
  name: 'webhooks_get_delivery',
  cli: 'webhooks delivery',
  routes: ['GET /v1/webhooks/deliveries/{delivery_id}'],
  since,
  stability: 'stable',
  summary: 'Get one delivery with every attempt',
  scope: 'mcp:read',
  input: z.object({ delivery_id: DeliveryId }),
  output: Delivery.extend({ attempts_made: z.array(Attempt).describe('Every attempt, oldest first.') }),
  errors: ['not_found'],
  examples: [
    {
      title: 'At the first try',
      input: { delivery_id: delivery.id },
      output: {
        ...delivery,
        attempts_made: [
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

export const replayDelivery = operation({
  name: 'webhooks_replay_delivery',
  cli: 'webhooks replay',
  routes: [{ route: 'POST /v1/webhooks/deliveries/{delivery_id}/replay', status: 202 }],
  since,
  stability: 'stable',
  summary: 'Send a delivery once more',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: false,
  emits: [],
  input: z.object({ delivery_id: DeliveryId }),
  output: z.object({ delivery: Delivery.describe('The delivery, pending again.') }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'Once more',
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

export const recoverEndpoint = operation({
  name: 'webhooks_recover_endpoint',
  cli: 'webhooks recover',
  routes: [{ route: 'POST /v1/webhooks/endpoints/{endpoint_id}/recover', status: 202 }],
  since,
  stability: 'stable',
  summary: 'Send what an endpoint missed in a span of time',
  description:
    'Events of its subscriptions that it never took: failed for good, or made while it was disabled.',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    from: z.iso.datetime({ offset: true }).describe('Begin; at most 14 days before `to`.'),
    to: z.iso.datetime({ offset: true }).describe('End, exclusive.'),
  }),
  output: z.object({
    endpoint_id: EndpointId,
    recovered: z.int().describe('Deliveries that were made pending.'),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'An outage',
      input: { endpoint_id: endpoint.id, from: '2026-10-01T00:00:00Z', to: '2026-10-01T06:00:00Z' },
      output: { endpoint_id: endpoint.id, recovered: 120 },
    },
  ],
})
