import { normalizeText } from '../../../catalog/text.ts'
import { type JsonObject, asObject, asObjects, asText } from '../inbound/json.ts'

/**
 * Whether the provider's components are those that we sent, to find the outcome of a call without a
 * response. Compares only what the provider returns unchanged: not the samples of media, which it moves, nor
 * the texts of authentication templates, which it writes itself.
 */
export const isSameTemplate = (ours: unknown, theirs: unknown, category: string | null): boolean =>
  category === 'AUTHENTICATION' ||
  JSON.stringify(normalizeComponents(ours)) === JSON.stringify(normalizeComponents(theirs))

const toComparable = (value: unknown): string =>
  normalizeText(asText(value) ?? '', 'NFC')
    .replaceAll(/\s+/g, ' ')
    .trim()
const normalizeType = (value: unknown): string => toComparable(value).toUpperCase()
const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const normalizeComponents = (components: unknown): string[][] =>
  asObjects(components)
    .map(normalizeComponent)
    .toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1))

const normalizeComponent = (part: JsonObject): string[] => {
  const example = asObject(part['example'])
  const type = normalizeType(part['type'])
  return [
    type,
    type === 'HEADER' ? normalizeType(part['format']) : '',
    toComparable(part['text']),
    toComparable(asObject(part['limited_time_offer'])['text']),
    JSON.stringify(
      [toList(example['header_text']), toList(toList(example['body_text'])[0])].map((samples) =>
        samples.map(toComparable),
      ),
    ),
    ...asObjects(part['buttons']).map(normalizeButton),
    ...asObjects(part['cards']).map((card) => JSON.stringify(normalizeComponents(card['components']))),
  ]
}

/** The provider labels COPY_CODE buttons itself. */
const normalizeButton = (button: JsonObject): string => {
  const type = normalizeType(button['type'])
  return JSON.stringify([
    type,
    type === 'COPY_CODE' ? '' : toComparable(button['text']),
    toComparable(button['url']),
    toComparable(button['phone_number']).replaceAll(/\D/g, ''),
    toComparable(button['flow_id']),
  ])
}
