import { countCharacters, maxLengths } from '../../../catalog/templates/rules.ts'
import { pluralize } from '../../../catalog/values.ts'
import { type FieldError, toPointer } from '../../kernel/problem.ts'
import { fillVariables, textParameter, listVariables } from '../templates/variables.ts'
import { parseTemplateParts, templateBodyText, type TemplateParts } from './template-components.ts'
import { fillButtons, isUnsupportedButton } from './template-fill-buttons.ts'
import {
  checkTextValue,
  collectValueErrors,
  type TemplateValues,
  type ValueErrors,
} from './template-values.ts'
import { fillHeader } from './template-fill-header.ts'

type PartValues = Pick<TemplateValues, 'header' | 'buttons'> & { body?: readonly string[] | undefined }

/**
 * The provider's `components` and the body as the customer will read it; or all that is wrong with the
 * values; or, as `unsupported`, the type of a button that no value can fill.
 */
export type FillResult =
  | { components: object[]; preview: string }
  | { errors: FieldError[] }
  | { unsupported: string }

/**
 * Checks every value against the template, so that the provider gets none that it would refuse, and builds
 * the components of the send. `now`: ISO 8601 UTC.
 */
export const fillTemplate = (
  { category, components }: { category: string | null; components: unknown },
  values: TemplateValues,
  now: string,
): FillResult => {
  const parts = parseTemplateParts(components)
  const unsupported = [parts, ...(parts.cards ?? []).map(parseTemplateParts)]
    .flatMap(({ buttons }) => buttons)
    .find(isUnsupportedButton)
  if (unsupported) return { unsupported: unsupported.type }
  const found: FieldError[] = []
  const errors = collectValueErrors(found)
  const text = templateBodyText(category, parts.body)
  const body = orderVariables(text, values, errors)
  if (!body) return { errors: found }
  const built = [
    ...fillParts(parts, text, { ...values, body }, errors, category === 'AUTHENTICATION'),
    ...fillOffer(parts, values.offer_expires_at, now, errors),
    ...fillCards(parts, values.cards, errors),
  ]
  return found.length > 0
    ? { errors: values.variables ? found.map((error) => pointToName(text, error)) : found }
    : { components: built, preview: fillVariables(text, listVariables(text), body) }
}

/** Points an error at a value by its name, where values are given so. */
const pointToName = (text: string, error: FieldError): FieldError => {
  const [, index] = /^#\/template\/body\/(\d+)$/.exec(error.pointer ?? '') ?? []
  return index === undefined
    ? error
    : { ...error, pointer: toPointer(['template', 'variables', listVariables(text)[Number(index)]!]) }
}

/** Returns the values of the text in its order, however they are given; undefined when they do not fit. */
const orderVariables = (
  text: string,
  { body = [], variables }: TemplateValues,
  errors: ValueErrors,
): readonly string[] | undefined => {
  if (!variables) return body
  const names = listVariables(text)
  const expected = names.length === 0 ? 'no variables' : `the variables ${names.join(', ')}`
  if (body.length > 0)
    errors.add(['variables'], 'ambiguous', 'cannot be combined with body', 'Send only one of them.')
  const unknown = Object.keys(variables).filter((name) => !names.includes(name))
  const missing = names.filter((name) => !Object.hasOwn(variables, name))
  for (const name of unknown)
    errors.add(
      ['variables', name],
      'unknown_field',
      `is not in the template: the text has ${expected}`,
      'Leave it out, or correct its name.',
    )
  for (const name of missing)
    errors.add(
      ['variables', name],
      'required',
      `is missing: the text has ${expected}`,
      'Send a value for each variable.',
    )
  return body.length > 0 || unknown.length > 0 || missing.length > 0
    ? undefined
    : names.map((name) => variables[name]!)
}

/**
 * Fills header, body and buttons of the message or of a card. `isCode`: the one value of the body is a
 * code, which the button copies.
 */
const fillParts = (
  parts: TemplateParts,
  text: string,
  { header, body = [], buttons = [] }: PartValues,
  errors: ValueErrors,
  isCode: boolean,
): object[] => [
  ...fillHeader(parts.header, header, errors.at('header')),
  ...fillBody(text, body, errors.at('body'), isCode),
  ...fillButtons(parts.buttons, buttons, body[0] ?? '', errors.at('buttons')),
]

const fillBody = (
  text: string,
  values: readonly string[],
  errors: ValueErrors,
  isCode: boolean,
): object[] => {
  const names = listVariables(text)
  const variables = pluralize(names.length, 'variable')
  names.slice(values.length).forEach((name, i) => {
    errors.add(
      [values.length + i],
      'required',
      `is missing: the text has ${variables}, and this is the value of {{${name}}}`,
      'Send one value for each variable, in order.',
    )
  })
  values.forEach((value, i) => {
    if (i >= names.length)
      errors.add(
        [i],
        'too_many',
        `is one too many: the text has ${names.length === 0 ? 'no variables' : variables}`,
        'Leave it out.',
      )
    else checkTextValue(value, [i], errors)
  })
  const code = values[0]
  if (isCode && code !== undefined) checkCode(code, errors)
  const length = countCharacters(fillVariables(text, names, values))
  if (length > maxLengths.body)
    errors.add(
      [],
      'too_long',
      `makes a text of ${length} characters; the provider accepts ${maxLengths.body}`,
      'Send shorter values.',
    )
  return names.length === 0
    ? []
    : [{ type: 'body', parameters: names.map((name, i) => textParameter(name, values[i] ?? '')) }]
}

const checkCode = (code: string, errors: ValueErrors): void => {
  if (countCharacters(code) > maxLengths.sentCode)
    errors.add(
      [0],
      'too_long',
      `must have at most ${maxLengths.sentCode} characters, as a code`,
      'Send a shorter code.',
    )
  else if (/\p{Extended_Pictographic}|:\/\/|\p{Regional_Indicator}/u.test(code))
    errors.add(
      [0],
      'not_a_code',
      'contains an emoji or a link, which no code may contain',
      'Send letters and digits.',
    )
}

const fillOffer = (
  { offer }: TemplateParts,
  expiresAt: string | undefined,
  now: string,
  errors: ValueErrors,
): object[] => {
  const path = ['offer_expires_at']
  if (offer?.limited_time_offer?.has_expiration !== true) {
    if (expiresAt !== undefined)
      errors.add(
        path,
        'not_in_template',
        offer
          ? 'has nothing to fill: this offer has no countdown'
          : 'has nothing to fill: the template has no limited-time offer',
        'Leave it out.',
      )
    return []
  }
  if (expiresAt === undefined)
    errors.add(path, 'required', 'is missing: the offer counts down', 'Send when the offer ends.')
  else if (Date.parse(expiresAt) <= Date.parse(now))
    errors.add(path, 'in_the_past', 'must be in the future', 'Send a later time.')
  return [
    {
      type: 'limited_time_offer',
      parameters: [
        {
          type: 'limited_time_offer',
          limited_time_offer: { expiration_time_ms: Date.parse(expiresAt ?? now) },
        },
      ],
    },
  ]
}

const fillCards = (
  { cards = [] }: TemplateParts,
  values: NonNullable<TemplateValues['cards']> = [],
  errors: ValueErrors,
): object[] => {
  values.slice(cards.length).forEach((_, i) => {
    errors.add(
      ['cards', cards.length + i],
      'too_many',
      cards.length === 0
        ? 'has nothing to fill: the template is not a carousel'
        : `is one too many: the carousel has ${pluralize(cards.length, 'card')}`,
      'Leave it out.',
    )
  })
  const built = cards.map((components, index) => {
    const parts = parseTemplateParts(components)
    const cardValues = values[index]
    if (!cardValues)
      errors.add(
        ['cards', index],
        'required',
        `is missing: the carousel has ${pluralize(cards.length, 'card')}`,
        'Send the values of every card, in order.',
      )
    return {
      card_index: index,
      components: cardValues
        ? fillParts(parts, parts.body?.text ?? '', cardValues, errors.at('cards', index), false)
        : [],
    }
  })
  return built.length === 0 ? [] : [{ type: 'carousel', cards: built }]
}
