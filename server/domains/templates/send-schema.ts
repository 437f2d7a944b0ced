import { countCharacters, maxLengths } from '../../../catalog/templates/rules.ts'
import type { TemplateRow } from '../../../storage/templates/templates.ts'
import { parseTemplateParts, templateBodyText, type TemplateParts } from '../messaging/template-components.ts'
import { fillTemplate } from '../messaging/template-fill.ts'
import { isUnsupportedButton } from '../messaging/template-fill-buttons.ts'
import type { TemplateValues } from '../messaging/template-values.ts'
import { describeButtons, describeHeader } from './send-schema-parts.ts'
import {
  describeObject,
  describeTuple,
  type JsonSchema,
  type SendPart,
  TEXT_PATTERN,
  usableSample,
  valueDescription,
  variableRoom,
} from './send-schema-values.ts'
import { fillVariables, listVariables } from './variables.ts'

/** The JSON Schema of the values of a send, and values that it accepts: null where no values fit. */
export type SendDescription = { schema: JsonSchema; example: JsonSchema | null }

const DAY_MS = 86_400_000

/**
 * Describes `template` of a send of this template. Undefined when it cannot be sent: with products, which no
 * value can give. What JSON Schema cannot say is in the descriptions: the length of all values of a text
 * together, and that an offer ends in the future. `now`: ISO 8601 UTC.
 */
export const describeSend = (
  row: Pick<TemplateRow, 'name' | 'language' | 'category' | 'components'>,
  now: string,
): SendDescription | undefined => {
  const parts = parseTemplateParts(row.components)
  const cards = (parts.cards ?? []).map(parseTemplateParts)
  if ([parts, ...cards].some(({ buttons }) => buttons.some(isUnsupportedButton))) return undefined
  const text = templateBodyText(row.category, parts.body)
  const isCode = row.category === 'AUTHENTICATION'
  const { schema, example } = describeObject({
    name: fixed(row.name),
    language: fixed(row.language),
    ...describeParts(parts, text, isCode),
    offer_expires_at: describeOffer(parts, now),
    cards:
      cards.length === 0
        ? undefined
        : describeTuple(
            cards.map((card) => describeObject(describeParts(card, card.body?.text ?? '', false))),
            'Values of each card, in order.',
          ),
  })
  const filled = fillTemplate(row, example as TemplateValues, now)
  return {
    schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema },
    example: 'components' in filled ? (example as JsonSchema) : null,
  }
}

const fixed = (value: string): SendPart => ({
  schema: { type: 'string', const: value },
  example: value,
  required: true,
})

/** Describes header, body and buttons of the message or of a card. */
const describeParts = (parts: TemplateParts, text: string, isCode: boolean) => ({
  header: describeHeader(parts.header),
  body: isCode ? describeCode(text) : describeBody(text, bodySamples(parts)),
  buttons: describeButtons(parts.buttons),
})

/** Returns the samples of a body, by position; those of named variables in the order of the text. */
const bodySamples = ({ body }: TemplateParts): (string | undefined)[] => {
  const { body_text: rows, body_text_named_params: named } = body?.example ?? {}
  if (Array.isArray(named)) {
    const byName = new Map(named.map((one) => [one?.param_name, one?.example]))
    return listVariables(body?.text).map((name) => byName.get(name))
  }
  const [row] = Array.isArray(rows) ? rows : []
  return Array.isArray(row) ? row : []
}

const describeBody = (text: string, samples: readonly unknown[]): SendPart | undefined => {
  const names = listVariables(text)
  if (names.length === 0) return undefined
  const usable = names.map((_, i) => usableSample(samples[i], maxLengths.body) ?? 'sample')
  const fits = countCharacters(fillVariables(text, names, usable)) <= maxLengths.body
  return describeTuple(
    names.map((name, i) => ({
      schema: {
        type: 'string',
        minLength: 1,
        maxLength: variableRoom(text, name, maxLengths.body),
        pattern: TEXT_PATTERN,
        description: valueDescription(name, samples[i]),
        examples: [fits ? usable[i]! : 'x'],
      },
      example: fits ? usable[i]! : 'x',
      required: true,
    })),
    `Values of the variables of the text, in order; filled in, it has at most ${maxLengths.body} characters.`,
  )
}

const describeCode = (text: string): SendPart | undefined =>
  listVariables(text).length === 0
    ? undefined
    : describeTuple(
        [
          {
            schema: {
              type: 'string',
              minLength: 1,
              maxLength: maxLengths.sentCode,
              pattern: `^(?!.*://)${TEXT_PATTERN.slice(1)}`,
              description: 'The code: letters and digits, no link and no emoji.',
            },
            example: '123456',
            required: true,
          },
        ],
        'The code, which the button gets too.',
      )

const describeOffer = ({ offer }: TemplateParts, now: string): SendPart | undefined =>
  offer?.limited_time_offer?.has_expiration === true
    ? {
        schema: {
          type: 'string',
          format: 'date-time',
          description: 'When the offer ends: ISO 8601 with a zone, in the future.',
        },
        // The end of a day, so that the same template reads the same for a while.
        example: new Date((Math.ceil(Date.parse(now) / DAY_MS) + 7) * DAY_MS).toISOString(),
        required: true,
      }
    : undefined
