import { eventTypes, type EventTypeId } from '../../../catalog/events.ts'
import { type JsonSchema, toJsonSchema } from '../../../catalog/json-schema.ts'

// Events by type as JSON Schema, for generators of clients: as the log shows them, and as webhooks carry them.

/** An event type with the names of its schemas: of its data, of the event, and of the body of a webhook. */
export type DescribedEvent = {
  readonly id: EventTypeId
  /** Without its version. */
  readonly type: string
  readonly version: string
  readonly description: string
  readonly sample: object
  readonly name: string
  readonly webhook: string
}

const toName = (id: string): string => {
  const [type, version] = id.split('/') as [string, string]
  const words = type.split(/[._]/).map((word) => word[0]!.toUpperCase() + word.slice(1))
  return `${words.join('')}${version === '1' ? '' : `V${version}`}`
}

export const listDescribedEvents = (): DescribedEvent[] =>
  (Object.keys(eventTypes) as EventTypeId[]).map((id) => {
    const [type, version] = id.split('/') as [string, string]
    const { description, sample } = eventTypes[id]
    const name = toName(id)
    return { id, type, version, description, sample, name: `${name}Event`, webhook: `${name}Webhook` }
  })

const refTo = (name: string): JsonSchema => ({ $ref: `#/$defs/${name}` })
const text = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  description,
  ...more,
})

const closed = (properties: Record<string, JsonSchema>, description: string): JsonSchema => ({
  type: 'object',
  description,
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const EVENT_ID = text('Event id.', { examples: ['evt_01JABCDEFGHJKMNPQRSTVWXYZ1'] })
const TIME = text('When it happened.', { format: 'date-time' })

/**
 * Returns definitions by name, which refer to each other as `#/$defs/<name>`: `Event`, a union by `type`, with a schema
 * for each type, and the bodies of webhooks.
 */
export const createEventSchemas = (): Record<string, JsonSchema> => {
  const definitions: Record<string, JsonSchema> = {}
  const events = listDescribedEvents()
  for (const { id, type, version, description, name, webhook } of events) {
    const { schema, definitions: parts } = toJsonSchema(eventTypes[id].data)
    const data = name.replace(/Event$/, 'Data')
    Object.assign(definitions, parts, {
      [data]: { description, ...schema },
      [name]: closed(
        {
          id: EVENT_ID,
          type: { type: 'string', const: id, description: 'Event type id.' },
          occurred_at: TIME,
          data: refTo(data),
        },
        description,
      ),
      [webhook]: closed(
        {
          id: EVENT_ID,
          type: { type: 'string', const: type, description: 'Event type, without its version.' },
          version: { type: 'string', const: version, description: 'Version of the event type.' },
          api_version: text('API version of the data.', { format: 'date' }),
          occurred_at: TIME,
          company_id: text('Workspace id.'),
          data: refTo(data),
        },
        description,
      ),
    })
  }
  return {
    ...definitions,
    Event: {
      description:
        'An event of the log; `type` says which. Clients should ignore types that they do not know.',
      oneOf: events.map(({ name }) => refTo(name)),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(events.map(({ id, name }) => [id, `#/$defs/${name}`])),
      },
    },
  }
}
