import { z } from 'zod'
import { mark, marks } from '../marks.ts'
import { Changed, Timestamp, list, page } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { Endpoint, EndpointId, SubscriptionList, endpoint, since } from './schemas.ts'

const NewEndpoint = Endpoint.extend({
  id: EndpointId.nullable().describe('Endpoint id; null when a dry run would create it.'),
})

const Url = z.string().min(1).max(2048).describe('Public https URL, 1 to 2048 characters.')

const Description = z
  .string()
  .max(500)
  .nullable()
  .describe('Description, at most 500 characters; null clears it.')

const CustomHeaders = z
  .record(z.string().min(1).max(100), z.string().max(1000))
  .describe(
    'Headers to send with each event; replaces the whole set, `{}` removes all. Reserved: ' +
      '`Webhook-*`, `Wc-*`, `Content-*`, `Host`, `User-Agent`, `Idempotency-Key`, `Proxy-*`.',
  )
  .meta({ examples: [{ 'X-Shop': 'berlin' }] })
  .register(marks, { private: 'secrets' })

const PayloadFormat = z.enum(['envelope', 'data'])

const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDu1Iq1FQ8k3Jd'

export const listEndpoints = defineOperation({
  name: 'webhooks_list_endpoints',
  cli: 'webhooks list',
  routes: ['GET /v1/webhooks/endpoints'],
  since,
  stability: 'stable',
  summary: 'List webhook endpoints, newest first',
  slim: [
    'id',
    'url',
    'description',
    'status',
    'consecutive_failures',
    'disabled_reason',
    'subscriptions.event_types.id',
  ],
  words: 'webhooks, callbacks, integrations, endpoints, URLs',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'status' },
    { path: 'url' },
    { path: 'consecutive_failures', title: 'failures', words: { 0: '' } },
    { path: 'disabled_reason', title: 'why', wrap: true },
    { path: 'description', wrap: true },
    { path: 'created_at', title: 'created' },
  ],
  input: z.object({
    status: z.enum(['active', 'disabled', 'paused']).optional().describe('Only in this status.'),
    url_contains: z.string().min(1).max(200).optional().describe('URL contains this, ignoring case.'),
    ...page,
  }),
  output: z.object(list(Endpoint)),
  errors: [],
  examples: [
    {
      title: 'Active endpoints',
      input: { status: 'active' },
      output: { data: [endpoint], next_cursor: null },
    },
  ],
})

export const getEndpoint = defineOperation({
  name: 'webhooks_get_endpoint',
  cli: 'webhooks get',
  routes: ['GET /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Get one webhook endpoint',
  words: 'webhook details, health, is my endpoint enabled, why was it disabled',
  scope: 'mcp:read',
  versioned: { kind: 'endpoint', by: 'endpoint_id' },
  input: z.object({ endpoint_id: EndpointId }),
  output: Endpoint,
  errors: ['not_found'],
  examples: [{ title: 'One endpoint', input: { endpoint_id: endpoint.id }, output: endpoint }],
})

export const createEndpoint = defineOperation({
  name: 'webhooks_create_endpoint',
  cli: 'webhooks create',
  routes: [{ route: 'POST /v1/webhooks/endpoints', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Create an endpoint that events are sent to',
  description:
    'The signing secret is shown only in this response. A new endpoint receives no events until ' +
    '`event_types` or `webhooks_set_subscriptions` names some. An endpoint whose URL was set by an ' +
    'agent does not receive the names of manager-only fields.',
  words:
    'create a webhook, add a callback, send events to my server, get notified when a message arrives, ' +
    'integration, notify a URL, push, subscribe',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'sends',
  repeatable: false,
  versioned: { kind: 'endpoint', at: 'endpoint' },
  // What is sent to which address outside, and when that stops.
  asks: true,
  emits: [],
  secret: true,
  input: z.object({
    url: Url,
    description: Description.optional(),
    custom_headers: CustomHeaders.optional(),
    payload_format: PayloadFormat.default('envelope').describe('Format of the body.'),
    event_types: SubscriptionList.optional(),
  }),
  output: z.object({
    endpoint: NewEndpoint.describe('The endpoint.'),
    signing_secret: mark(z.string(), { private: 'secret' })
      .nullable()
      .describe('The secret, shown only here; null in a dry run.'),
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

export const updateEndpoint = defineOperation({
  name: 'webhooks_update_endpoint',
  cli: 'webhooks update',
  routes: ['PATCH /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Change URL, description, headers or format of an endpoint',
  description: 'Omitted fields do not change. Event types are changed with `webhooks_set_subscriptions`.',
  words: 'edit a webhook, change the URL, headers',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces_and_sends',
  repeatable: true,
  versioned: { kind: 'endpoint', by: 'endpoint_id', at: 'endpoint' },
  // What is sent to which address outside, and when that stops.
  asks: true,
  emits: [],
  input: z.object({
    endpoint_id: EndpointId,
    url: Url.optional(),
    description: Description.optional(),
    custom_headers: CustomHeaders.optional(),
    payload_format: PayloadFormat.optional().describe('Format of the body.'),
  }),
  output: z.object({
    endpoint: Endpoint.describe('The endpoint.'),
    changed: z.array(z.string()).describe('Names of the fields that changed.'),
  }),
  errors: ['not_found', 'forbidden', 'precondition_failed'],
  examples: [
    {
      title: 'Change the URL',
      input: { endpoint_id: endpoint.id, url: 'https://example.com/new' },
      output: { endpoint: { ...endpoint, url: 'https://example.com/new' }, changed: ['url'] },
    },
  ],
})

export const deleteEndpoint = defineOperation({
  name: 'webhooks_delete_endpoint',
  cli: 'webhooks delete',
  routes: ['DELETE /v1/webhooks/endpoints/{endpoint_id}'],
  since,
  stability: 'stable',
  summary: 'Delete an endpoint with its subscriptions; its delivery log remains',
  words: 'remove a webhook, callback, integration',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  versioned: { kind: 'endpoint', by: 'endpoint_id' },
  emits: [],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ id: EndpointId, deleted: z.boolean().describe('True: it was deleted.') }),
  errors: ['not_found', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'Delete an endpoint',
      input: { endpoint_id: endpoint.id },
      output: { id: endpoint.id, deleted: true },
    },
  ],
})

export const rotateSecret = defineOperation({
  name: 'webhooks_rotate_secret',
  cli: 'webhooks rotate-secret',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/rotate-secret'],
  since,
  stability: 'stable',
  summary: 'Give an endpoint a new signing secret',
  description:
    'The new secret is shown only in this response. The previous one stays valid for 24 hours, even if ' +
    'rotated again; deliveries have a signature for each valid secret. At most 5 are valid at a time.',
  words: 'rotate a webhook secret, signing key leaked, new secret, signature',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'required',
  confirm: 'rotate',
  repeatable: false,
  versioned: { kind: 'endpoint', by: 'endpoint_id', at: 'endpoint' },
  emits: [],
  secret: true,
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({
    endpoint: Endpoint.describe('The endpoint.'),
    signing_secret: mark(z.string(), { private: 'secret' })
      .nullable()
      .describe('The new secret, shown only here; null in a dry run.'),
    old_secret_valid_until: Timestamp.describe('When the secret before this one expires.'),
    old_secrets_valid_until: z
      .array(Timestamp)
      .describe('When each replaced secret that is still valid expires, newest first.'),
    warning: z.string().describe('What to do now.'),
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'A new secret',
      input: { endpoint_id: endpoint.id },
      output: {
        endpoint,
        signing_secret: secret,
        old_secret_valid_until: '2026-10-02T09:30:00.000Z',
        old_secrets_valid_until: ['2026-10-02T09:30:00.000Z'],
        warning: 'Store the new secret now: it is not shown again. The one before stops signing in 24 hours.',
      },
    },
  ],
})

export const disableEndpoint = defineOperation({
  name: 'webhooks_disable_endpoint',
  cli: 'webhooks disable',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/disable'],
  since,
  stability: 'stable',
  summary: 'Stop sending events to an endpoint',
  description:
    'Pending deliveries wait until it is enabled. Events that occur meanwhile are not delivered; ' +
    'recover them later with `webhooks_recover_endpoint`.',
  words: 'pause a webhook, stop deliveries, turn off, deactivate',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  versioned: { kind: 'endpoint', by: 'endpoint_id', at: 'endpoint' },
  // What is sent to which address outside, and when that stops.
  asks: true,
  emits: ['webhook.endpoint_disabled/1'],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found', 'precondition_failed'],
  examples: [
    {
      title: 'Disable an endpoint',
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

export const enableEndpoint = defineOperation({
  name: 'webhooks_enable_endpoint',
  cli: 'webhooks enable',
  routes: ['POST /v1/webhooks/endpoints/{endpoint_id}/enable'],
  since,
  stability: 'stable',
  summary: 'Resume sending events to an endpoint',
  words: 'resume a webhook, turn on, activate, reactivate',
  scope: 'webhooks:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'sends',
  repeatable: true,
  versioned: { kind: 'endpoint', by: 'endpoint_id', at: 'endpoint' },
  // What is sent to which address outside, and when that stops.
  asks: true,
  emits: [],
  input: z.object({ endpoint_id: EndpointId }),
  output: z.object({ endpoint: Endpoint.describe('The endpoint.'), changed: Changed }),
  errors: ['not_found', 'forbidden', 'precondition_failed'],
  examples: [
    { title: 'Enable an endpoint', input: { endpoint_id: endpoint.id }, output: { endpoint, changed: true } },
  ],
})
