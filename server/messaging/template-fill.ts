import type { z } from 'zod'
import type { SendTemplate } from '../../catalog/messages.ts'
import { type FieldError, pointerOf } from '../core/problem.ts'
import { fillText, textParameter, variablesOf } from '../templates/variables.ts'
import { bodyText, type Button, type Component, type Parts, partsOf } from './template-components.ts'

export type Fill = z.output<typeof SendTemplate>
type HeaderFill = NonNullable<Fill['header']>
type Values = Pick<Fill, 'header' | 'body' | 'buttons'>

/**
 * What fills a template: the provider's `components`, and the body as the customer will read it. Or all
 * that is wrong with it, and `unsupported` when no fill will do.
 */
export type Filled =
  | { components: object[]; preview: string }
  | { faults: FieldError[] }
  | { unsupported: string }

/** Characters of a filled text (error 132005). */
const LONGEST_BODY = 1024
const LONGEST_HEADER = 60
const LONGEST_URL = 2000
/** Of codes and coupons (reference 2.3; error 132018). */
const LONGEST_CODE = 15

type Path = readonly (string | number)[]
type Say = (path: Path, code: string, detail: string, fix: string) => void

/**
 * Checks every variable against the template, so that the provider sees none that it would refuse, and
 * builds its components (reference 2.2). `now`: ISO 8601 UTC.
 */
export const fillTemplate = (
  { category, components }: { category: string | null; components: unknown },
  fill: Fill,
  now: string,
): Filled => {
  const parts = partsOf(components)
  const impossible = [parts, ...(parts.cards ?? []).map(partsOf)]
    .flatMap((p) => p.buttons)
    .find((button) => UNSUPPORTED.has(button.type.toUpperCase()))
  if (impossible) return { unsupported: impossible.type }
  const faults: FieldError[] = []
  const say: Say = (path, code, detail, fix) => {
    faults.push({ pointer: pointerOf(['template', ...path]), code, detail, fix })
  }
  const text = bodyText(category, parts.body)
  const built = [
    ...fillParts(parts, text, fill, [], say, category === 'AUTHENTICATION'),
    ...fillOffer(parts, fill.offer_expires_at, now, say),
    ...fillCards(parts, fill.cards, say),
  ]
  return faults.length > 0
    ? { faults }
    : { components: built, preview: fillText(text, variablesOf(text), fill.body ?? []) }
}

/**
 * Header, body and buttons of the message or of a card. `isCode`: the one value of the body is a code,
 * which the button copies.
 */
const fillParts = (
  parts: Parts,
  text: string,
  values: Values,
  path: Path,
  say: Say,
  isCode: boolean,
): object[] => [
  ...fillHeader(parts.header, values.header, [...path, 'header'], say),
  ...fillBody(text, values.body ?? [], [...path, 'body'], say, isCode),
  ...fillButtons(parts.buttons, values, [...path, 'buttons'], say),
]

/**
 * What the provider takes in a text value (its code 132018): no line breaks or tabs, no five spaces in a
 * row, not nothing.
 */
const checkValue = (value: string, path: Path, say: Say): void => {
  if (value.trim() === '')
    say(path, 'blank', 'is blank, which the provider refuses', 'Send text that can be read.')
  else if (/[\n\r\t\v\f\u0085\u2028\u2029]/.test(value))
    say(path, 'line_break', 'has a line break or tab, which the provider refuses', 'Put it on one line.')
  else if (/ {5}/.test(value))
    say(
      path,
      'too_many_spaces',
      'has more than four spaces in a row, which the provider refuses',
      'Leave out the extra spaces.',
    )
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

const fillBody = (
  text: string,
  values: readonly string[],
  path: Path,
  say: Say,
  isCode: boolean,
): object[] => {
  const names = variablesOf(text)
  names.slice(values.length).forEach((name, i) => {
    say(
      [...path, values.length + i],
      'required',
      `is missing: the text has ${count(names.length, 'variable')}, and this is the value of {{${name}}}`,
      'Send one value for each variable, in order.',
    )
  })
  values.forEach((value, i) => {
    if (i >= names.length)
      say(
        [...path, i],
        'too_many',
        `is one too many: the text has ${names.length === 0 ? 'no variables' : count(names.length, 'variable')}`,
        'Leave it out.',
      )
    else checkValue(value, [...path, i], say)
  })
  const code = values[0]
  if (isCode && code !== undefined) checkCode(code, [...path, 0], say)
  const filled = fillText(text, names, values)
  if (filled.length > LONGEST_BODY)
    say(
      path,
      'too_long',
      `makes a text of ${filled.length} characters; the provider takes ${LONGEST_BODY}`,
      'Send shorter values.',
    )
  return names.length === 0
    ? []
    : [{ type: 'body', parameters: names.map((name, i) => textParameter(name, values[i] ?? '')) }]
}

const checkCode = (code: string, path: Path, say: Say): void => {
  if (code.length > LONGEST_CODE)
    say(path, 'too_long', `must have at most ${LONGEST_CODE} characters, as a code`, 'Send a shorter code.')
  else if (/\p{Extended_Pictographic}|:\/\/|\p{Regional_Indicator}/u.test(code))
    say(path, 'not_a_code', 'holds an emoji or a link, which no code may', 'Send letters and digits.')
}

const MEDIA = new Set(['IMAGE', 'VIDEO', 'DOCUMENT'])

/** The fields of a header by its format. */
const headerFields: Readonly<Record<string, readonly (keyof HeaderFill)[]>> = {
  TEXT: ['text'],
  IMAGE: ['media_url', 'media_handle'],
  VIDEO: ['media_url', 'media_handle'],
  DOCUMENT: ['media_url', 'media_handle', 'file_name'],
  LOCATION: ['latitude', 'longitude', 'name', 'address'],
}

const fillHeader = (
  header: Component | undefined,
  given: HeaderFill = {},
  path: Path,
  say: Say,
): object[] => {
  const format = (header?.format ?? (header ? 'TEXT' : '')).toUpperCase()
  const names = format === 'TEXT' ? variablesOf(header!.text) : []
  const takes = format === 'TEXT' && names.length === 0 ? [] : (headerFields[format] ?? [])
  for (const field of Object.keys(given) as (keyof HeaderFill)[]) {
    if (given[field] === undefined || takes.includes(field)) continue
    say(
      [...path, field],
      'not_in_template',
      takes.length === 0
        ? 'has nothing to fill: this header takes no values'
        : `is not of this header, which takes ${takes.join(', ')}`,
      'Leave it out.',
    )
  }
  if (takes.length === 0) return []
  if (format === 'TEXT') return textHeader(header!.text!, names, given, path, say)
  return MEDIA.has(format)
    ? mediaHeader(format.toLowerCase(), given, path, say)
    : placeHeader(given, path, say)
}

const textHeader = (
  text: string,
  names: readonly string[],
  given: HeaderFill,
  path: Path,
  say: Say,
): object[] => {
  if (given.text === undefined)
    say([...path, 'text'], 'required', `is missing: the value of {{${names[0]!}}} in the header`, 'Send it.')
  else {
    checkValue(given.text, [...path, 'text'], say)
    const filled = fillText(text, names, [given.text])
    if (filled.length > LONGEST_HEADER)
      say(
        [...path, 'text'],
        'too_long',
        `makes a header of ${filled.length} characters; the provider takes ${LONGEST_HEADER}`,
        'Send a shorter value.',
      )
  }
  return [{ type: 'header', parameters: [textParameter(names[0]!, given.text ?? '')] }]
}

const mediaHeader = (kind: string, given: HeaderFill, path: Path, say: Say): object[] => {
  const { media_url: link, media_handle: id, file_name: filename } = given
  if (link === undefined && id === undefined)
    say(
      [...path, 'media_url'],
      'required',
      `is missing: the header is ${kind === 'image' ? 'an' : 'a'} ${kind}`,
      'Send media_url or media_handle.',
    )
  if (link !== undefined && id !== undefined)
    say([...path, 'media_handle'], 'ambiguous', 'stands beside media_url', 'Send one of them.')
  return [
    {
      type: 'header',
      parameters: [
        {
          type: kind,
          [kind]: {
            ...(link === undefined ? { id } : { link }),
            ...(filename === undefined ? {} : { filename }),
          },
        },
      ],
    },
  ]
}

const placeHeader = ({ latitude, longitude, name, address }: HeaderFill, path: Path, say: Say): object[] => {
  for (const [field, value] of Object.entries({ latitude, longitude }))
    if (value === undefined)
      say([...path, field], 'required', 'is missing: the header is a place', 'Send it in degrees.')
  return [
    {
      type: 'header',
      parameters: [
        {
          type: 'location',
          location: {
            latitude,
            longitude,
            ...(name === undefined ? {} : { name }),
            ...(address === undefined ? {} : { address }),
          },
        },
      ],
    },
  ]
}

/** Buttons whose products or thumbnails nobody can give here. */
const UNSUPPORTED = new Set(['MPM', 'SPM', 'CATALOG'])

type ButtonField = 'text' | 'payload' | 'coupon_code'
type GivenButton = NonNullable<Fill['buttons']>[number]

/** What a button takes from who sends; undefined: nothing. */
const buttonField = (button: Button): { field: ButtonField; required: boolean } | undefined => {
  switch (button.type.toUpperCase()) {
    case 'URL':
      return variablesOf(button.url).length > 0 ? { field: 'text', required: true } : undefined
    case 'COPY_CODE':
      return { field: 'coupon_code', required: true }
    case 'QUICK_REPLY':
      return { field: 'payload', required: false }
    default:
      return undefined
  }
}

const fillButtons = (
  buttons: readonly Button[],
  { buttons: given = [], body = [] }: Values,
  path: Path,
  say: Say,
): object[] => {
  given.forEach(({ index }, place) => {
    if (index >= buttons.length)
      say(
        [...path, place, 'index'],
        'not_in_template',
        buttons.length === 0
          ? 'names no button: there are none'
          : `names no button: the last one is ${buttons.length - 1}`,
        'Leave it out.',
      )
    else if (given.findIndex((g) => g.index === index) < place)
      say(
        [...path, place, 'index'],
        'duplicate',
        'names a button a second time',
        'Send one entry for each button.',
      )
  })
  return buttons.flatMap((button, index) => {
    const place = given.findIndex((g) => g.index === index)
    const parameter = buttonParameter(
      button,
      index,
      given[place],
      [...path, place === -1 ? given.length : place],
      body[0] ?? '',
      say,
    )
    return parameter === undefined
      ? []
      : [{ type: 'button', sub_type: subTypeOf(button), index: String(index), parameters: [parameter] }]
  })
}

/** The provider sends codes by a URL button of its own. */
const subTypeOf = ({ type }: Button): string => (type.toUpperCase() === 'OTP' ? 'url' : type.toLowerCase())

const buttonParameter = (
  button: Button,
  index: number,
  given: GivenButton | undefined,
  path: Path,
  code: string,
  say: Say,
): object | undefined => {
  const takes = buttonField(button)
  for (const field of ['text', 'payload', 'coupon_code'] as const) {
    if (given?.[field] === undefined || takes?.field === field) continue
    say(
      [...path, field],
      'not_in_template',
      takes
        ? `is not of this button, which takes ${takes.field}`
        : 'has nothing to fill: this button takes no value',
      'Leave it out.',
    )
  }
  const value = takes && given?.[takes.field]
  if (value !== undefined) checkButtonValue(button, takes!.field, value, [...path, takes!.field], say)
  else if (takes?.required)
    say(
      [...path, takes.field],
      'required',
      `is missing: the value of button ${index}`,
      `Send {"index": ${index}, "${takes.field}": …}.`,
    )
  switch (button.type.toUpperCase()) {
    case 'OTP':
      return { type: 'text', text: code }
    // A flow takes no value, but the provider wants the parameter.
    case 'FLOW':
      return { type: 'action', action: { flow_token: 'unused' } }
    default:
      return value === undefined ? undefined : { type: takes!.field, [takes!.field]: value }
  }
}

const checkButtonValue = (button: Button, field: ButtonField, value: string, path: Path, say: Say): void => {
  if (field === 'payload')
    return value.trim() === ''
      ? say(path, 'blank', 'is blank', 'Send text, or leave the button out.')
      : undefined
  if (field === 'coupon_code') {
    checkValue(value, path, say)
    return value.length > LONGEST_CODE
      ? say(
          path,
          'too_long',
          `must have at most ${LONGEST_CODE} characters, as a coupon code`,
          'Send a shorter code.',
        )
      : undefined
  }
  if (/\s/.test(value))
    return say(path, 'not_in_url', 'has a space or line break, which no URL may', 'Percent-encode it.')
  const url = fillText(button.url!, variablesOf(button.url), [value])
  if (url.length > LONGEST_URL)
    say(
      path,
      'too_long',
      `makes a URL of ${url.length} characters; the provider takes ${LONGEST_URL}`,
      'Send a shorter value.',
    )
}

const fillOffer = ({ offer }: Parts, expiresAt: string | undefined, now: string, say: Say): object[] => {
  const counts = offer?.limited_time_offer?.has_expiration === true
  const path = ['offer_expires_at']
  if (!counts) {
    if (expiresAt !== undefined)
      say(
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
    say(path, 'required', 'is missing: the offer counts down', 'Send when it ends.')
  else if (Date.parse(expiresAt) <= Date.parse(now))
    say(path, 'in_the_past', 'must be in the future', 'Send a later time.')
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

const fillCards = ({ cards = [] }: Parts, given: NonNullable<Fill['cards']> = [], say: Say): object[] => {
  given.slice(cards.length).forEach((_, i) => {
    say(
      ['cards', cards.length + i],
      'too_many',
      cards.length === 0
        ? 'has nothing to fill: the template is no carousel'
        : `is one too many: the carousel has ${count(cards.length, 'card')}`,
      'Leave it out.',
    )
  })
  const built = cards.map((components, index) => {
    const parts = partsOf(components)
    const values = given[index]
    if (!values)
      say(
        ['cards', index],
        'required',
        `is missing: the carousel has ${count(cards.length, 'card')}`,
        'Send the values of every card, in order.',
      )
    return {
      card_index: index,
      components: values
        ? fillParts(parts, parts.body?.text ?? '', values, ['cards', index], say, false)
        : [],
    }
  })
  return built.length === 0 ? [] : [{ type: 'carousel', cards: built }]
}
