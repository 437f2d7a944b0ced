import { type Json, objectOf, objectsOf, textOf } from '../inbound/json.ts'

/**
 * Whether what the provider holds is what we gave it, to find out what became of a call without an answer.
 * Compared is what it hands back as it got it: not the samples of media, which it moves, nor the texts of
 * codes, which it writes itself.
 */
export const sameTemplate = (ours: unknown, held: unknown, category: string | null): boolean =>
  category === 'AUTHENTICATION' || JSON.stringify(partsOf(ours)) === JSON.stringify(partsOf(held))

const plain = (value: unknown): string =>
  (textOf(value) ?? '').normalize('NFC').replaceAll(/\s+/g, ' ').trim()
const upper = (value: unknown): string => plain(value).toUpperCase()
const listed = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const partsOf = (components: unknown): string[][] =>
  objectsOf(components)
    .map(partOf)
    .toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1))

const partOf = (part: Json): string[] => {
  const example = objectOf(part['example'])
  const type = upper(part['type'])
  return [
    type,
    type === 'HEADER' ? upper(part['format']) : '',
    plain(part['text']),
    plain(objectOf(part['limited_time_offer'])['text']),
    JSON.stringify(
      [listed(example['header_text']), listed(listed(example['body_text'])[0])].map((samples) =>
        samples.map(plain),
      ),
    ),
    ...objectsOf(part['buttons']).map(buttonOf),
    ...objectsOf(part['cards']).map((card) => JSON.stringify(partsOf(card['components']))),
  ]
}

/** The provider labels the buttons that copy a code itself. */
const buttonOf = (button: Json): string => {
  const type = upper(button['type'])
  return JSON.stringify([
    type,
    type === 'COPY_CODE' ? '' : plain(button['text']),
    plain(button['url']),
    plain(button['phone_number']).replaceAll(/\D/g, ''),
    plain(button['flow_id']),
  ])
}
