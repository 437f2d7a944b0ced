import type { JsonSchema } from '../../catalog/json-schema.ts'
import { mapSchemas } from '../../catalog/json-schema.ts'
import { createEventSchemas, listDescribedEvents } from '../events/schemas.ts'
import { createFilterSchemas } from '../filters/schema.ts'
import { lazy } from '../lazy.ts'
import { componentRef, type Part } from './openapi-parts.ts'

/** Points references into the components of the document. */
export const toComponents = (schema: JsonSchema): JsonSchema => {
  const move = (ref: unknown): string => String(ref).replace('#/$defs/', '#/components/schemas/')
  const node = mapSchemas(schema, toComponents)
  const { discriminator } = node as {
    discriminator?: { propertyName: string; mapping: Record<string, string> }
  }
  return {
    ...node,
    ...(typeof node.$ref === 'string' ? { $ref: move(node.$ref) } : {}),
    ...(discriminator
      ? {
          discriminator: {
            ...discriminator,
            mapping: Object.fromEntries(
              Object.entries(discriminator.mapping).map(([value, ref]) => [value, move(ref)]),
            ),
          },
        }
      : {}),
  }
}

/** Definitions that say more than what the service validates a request by: filters by their grammar, events by type. */
export const richDefinitions: () => Readonly<Record<string, JsonSchema>> = lazy(() =>
  Object.fromEntries(
    Object.entries({ ...createFilterSchemas(), ...createEventSchemas() }).map(([name, schema]) => [
      name,
      toComponents(schema),
    ]),
  ),
)

const PREFIX = '#/components/schemas/'

/** Adds the definitions that `used`, or one of them, refers to. */
export const addUsedDefinitions = (schemas: Record<string, JsonSchema>, used: unknown): void => {
  const definitions = richDefinitions()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, value] of Object.entries(node)) {
      const name = key === '$ref' && typeof value === 'string' ? value.slice(PREFIX.length) : undefined
      if (name === undefined) visit(value)
      else if (!(name in schemas) && name in definitions) visit((schemas[name] = definitions[name]!))
    }
  }
  visit(used)
}

const signatureParameters: readonly Part[] = [
  ['webhook-id', 'The event id: the same on every attempt.', 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1'],
  ['webhook-timestamp', 'The time of this attempt, in seconds since 1970.', '1759310400'],
  [
    'webhook-signature',
    '`v1,` and base64 of the HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`; several after a rotation.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ],
].map(([name, description, example]) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
}))

/** Returns the webhooks of the document: one for each event type, in the format `envelope`. */
export const createWebhooks = (): Record<string, Part> =>
  Object.fromEntries(
    listDescribedEvents().map(({ id, type, version, description, sample, webhook }) => [
      version === '1' ? type : id,
      {
        post: {
          operationId: `on_${type.replaceAll('.', '_')}${version === '1' ? '' : `_v${version}`}`,
          tags: ['webhooks'],
          summary: description.replace(/\.$/, ''),
          description:
            'Sent to endpoints that subscribe to it, at least once: ignore a `webhook-id` that came before. ' +
            'Verify the signature over the received bytes.',
          security: [],
          parameters: signatureParameters,
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: componentRef('schemas', webhook),
                example: {
                  id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1',
                  type,
                  version,
                  api_version: '2026-10-01',
                  occurred_at: '2026-10-01T09:30:00.000Z',
                  company_id: '1',
                  data: sample,
                },
              },
            },
          },
          responses: {
            '2XX': { description: 'Received. Respond within 15 seconds.' },
            '410': { description: 'The endpoint is gone: it is disabled.' },
            default: { description: 'Not received: it is sent again later.' },
          },
        },
      },
    ]),
  )
