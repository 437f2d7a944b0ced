import { eventTypes } from '../../../catalog/events.ts'
import { isObject } from '../../../catalog/values.ts'
import type { Scrubber } from './scrub.ts'

/** In place of a text: no contact has it. */
export const ERASED = 'erased'

const readAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (at, name) =>
      isObject(at) || Array.isArray(at) ? (at as Record<PropertyKey, unknown>)[name] : undefined,
    value,
  )

/**
 * Empties the data of an event, and keeps it what the schema of its type says, which receivers rely on. What may not be
 * null there is the vocabulary of the workspace (names of tags and groups, purposes, sources) and counts; only a
 * text that names the person is replaced.
 */
export const scrubEvent = (type: string, data: unknown, { scrub, isNamed }: Scrubber): unknown => {
  const scrubbed = scrub(data)
  const schema = eventTypes[type as keyof typeof eventTypes]?.data
  for (const { path } of schema?.safeParse(scrubbed).error?.issues ?? []) {
    const parent = readAt(scrubbed, path.slice(0, -1))
    const was = readAt(data, path)
    if (!isObject(parent) || (typeof was !== 'string' && typeof was !== 'number')) continue
    const name = String(path.at(-1))
    parent[name] = typeof was === 'string' && isNamed(was, name, true) ? ERASED : was
  }
  return scrubbed
}
