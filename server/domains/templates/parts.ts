import { type JsonObject, asObjects, asText } from '../inbound/json.ts'
import { listVariables } from './variables.ts'

/** Finds the component of a type, whose case may differ, among those of a message or card. */
export const findPart = (parts: readonly JsonObject[], type: string): JsonObject | undefined =>
  parts.find((part) => asText(part['type'])?.toUpperCase() === type)

/** Whether a text of the message or of its cards has a variable with a name, rather than a number. */
export const hasNamedVariables = (parts: readonly JsonObject[]): boolean =>
  parts.some(
    (part) =>
      listVariables(asText(part['text']) ?? '').some((name) => !/^\d+$/.test(name)) ||
      asObjects(part['cards']).some(({ components }) => hasNamedVariables(asObjects(components))),
  )
