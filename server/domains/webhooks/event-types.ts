import type { Handler, OutputOf } from '../../handler.ts'
import { catalog } from '../../../catalog/index.ts'
import { type EventTypeId, eventTypes } from '../../../catalog/events.ts'
import { toInlinedJsonSchema } from '../../../catalog/json-schema.ts'
import { findNearestName } from '../../nearest-name.ts'
import { invalidField, type Problem } from '../../kernel/problem.ts'

type Described = OutputOf<'webhooks_list_event_types'>['data'][number]

const ids = (Object.keys(eventTypes) as EventTypeId[]).toSorted()
const described = new Map<EventTypeId, Described>()

const describe = (id: EventTypeId): Described => {
  const known = described.get(id)
  if (known) return known
  const { description, data, sample } = eventTypes[id]
  const type: Described = {
    id,
    description,
    operations: catalog.filter((op) => op.emits?.includes(id)).map((op) => op.name),
    // Longer than all else of a message; the OpenAPI document has it once.
    schema: toInlinedJsonSchema(data, ['MessageContent']),
    sample: sample as Record<string, unknown>,
  }
  described.set(id, type)
  return type
}

export const isEventType = (id: string): id is EventTypeId => Object.hasOwn(eventTypes, id)

/** The ids that a name stands for, oldest version first: its own, or those of all versions of a type. */
export const matchEventTypes = (name: string): EventTypeId[] =>
  ids
    .filter((id) => id === name || id.startsWith(`${name}/`))
    .toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))

/** A 400 problem for an event type that does not exist, with the nearest name. */
export const unknownEventTypeProblem = (
  field: string,
  given: string,
  path: readonly (string | number)[] = [],
  names: readonly string[] = ids,
): Problem => {
  const near = findNearestName(given, names)
  return invalidField(
    field,
    'unknown_event_type',
    `names ${JSON.stringify(given)}, which is not an event type`,
    {
      path,
      fix: near ? `Did you mean ${near}?` : 'webhooks_list_event_types lists them.',
    },
  )
}

export const listEventTypes: Handler<'webhooks_list_event_types'> = async (
  { cursors },
  { search, cursor, limit },
) => {
  const after = cursors.open(cursor)?.map(String)[0]
  const found = ids.filter(
    (id) =>
      (search === undefined || id.includes(search.toLowerCase())) && (after === undefined || id > after),
  )
  const shown = found.slice(0, limit)
  return {
    data: shown.map(describe),
    next_cursor: found.length > limit ? cursors.seal([shown.at(-1)!]) : null,
  }
}
