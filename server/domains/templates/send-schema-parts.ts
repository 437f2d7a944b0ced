import { maxLengths } from '../../../catalog/templates/rules.ts'
import type { TemplateButton, TemplateComponent } from '../messaging/template-components.ts'
import { buttonFieldOf, type ButtonField } from '../messaging/template-fill-buttons.ts'
import { describeHeaderFile, findUrlFault } from './sample-types.ts'
import {
  describeObject,
  type JsonSchema,
  type SendPart,
  TEXT_PATTERN,
  usableSample,
  valueDescription,
  variableRoom,
} from './send-schema-values.ts'
import { fillVariables, listVariables } from './variables.ts'

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? (value as unknown[])[0] : value)

/** Describes the values of a header; undefined when it takes none. */
export const describeHeader = (header: TemplateComponent | undefined): SendPart | undefined => {
  if (!header) return undefined
  const format = (header.format ?? 'TEXT').toUpperCase()
  if (format === 'TEXT') return describeTextHeader(header)
  if (format === 'LOCATION') return describeLocation()
  const file = describeHeaderFile(format)
  return file === undefined ? undefined : describeMediaHeader(header, format, file)
}

const describeTextHeader = ({ text = '', example }: TemplateComponent): SendPart | undefined => {
  const [name] = listVariables(text)
  if (name === undefined) return undefined
  const named = firstOf(example?.header_text_named_params) as { example?: unknown } | undefined
  const sample = named?.example ?? firstOf(example?.header_text)
  const maxLength = variableRoom(text, name, maxLengths.header)
  return describeObject({
    text: {
      schema: {
        type: 'string',
        minLength: 1,
        maxLength,
        pattern: TEXT_PATTERN,
        description: valueDescription(name, sample),
        examples: [usableSample(sample, maxLength) ?? 'x'],
      },
      example: usableSample(sample, maxLength) ?? 'x',
      required: true,
    },
  })
}

const SAMPLE_URLS: Readonly<Record<string, string>> = {
  IMAGE: 'https://www.example.com/sample.jpg',
  VIDEO: 'https://www.example.com/sample.mp4',
  DOCUMENT: 'https://www.example.com/sample.pdf',
}

/** The provider returns the sample of an approved template as a URL, which can be sent. */
const sampleUrl = ({ example }: TemplateComponent, format: string): string => {
  const sample = firstOf(example?.header_handle)
  return typeof sample === 'string' &&
    sample.length <= 2000 &&
    URL.parse(sample)?.protocol === 'https:' &&
    findUrlFault(format, sample) === undefined
    ? sample
    : SAMPLE_URLS[format]!
}

const describeMediaHeader = (header: TemplateComponent, format: string, file: string): SendPart => {
  const { schema } = describeObject({
    media_url: {
      schema: {
        type: 'string',
        format: 'uri',
        pattern: '^https://',
        maxLength: 2000,
        description: `Public https URL of ${file}.`,
      },
      example: null,
      required: false,
    },
    media_handle: {
      schema: {
        type: 'string',
        minLength: 1,
        maxLength: 4000,
        pattern: '^(?!\\d+:)',
        description: 'Instead: the id of a file that was uploaded for messages; not the handle of a sample.',
      },
      example: null,
      required: false,
    },
    file_name:
      format === 'DOCUMENT'
        ? {
            schema: { type: 'string', minLength: 1, maxLength: 200, description: 'Name of the document.' },
            example: null,
            required: false,
          }
        : undefined,
  })
  return {
    schema: { ...schema, oneOf: [{ required: ['media_url'] }, { required: ['media_handle'] }] },
    example: { media_url: sampleUrl(header, format) },
    required: true,
  }
}

const describeLocation = (): SendPart => {
  const number = (most: number, description: string, example: number): SendPart => ({
    schema: { type: 'number', minimum: -most, maximum: most, description },
    example,
    required: true,
  })
  const text = (description: string): SendPart => ({
    schema: { type: 'string', maxLength: 1000, description },
    example: null,
    required: false,
  })
  return describeObject({
    latitude: number(90, 'Latitude in degrees.', 52.52),
    longitude: number(180, 'Longitude in degrees.', 13.405),
    name: text('Name of the place.'),
    address: text('Address of the place.'),
  })
}

type ButtonEntry = { index: number; required: boolean; part: SendPart }

/** Describes the values of buttons; undefined when none takes a value. */
export const describeButtons = (buttons: readonly TemplateButton[]): SendPart | undefined => {
  const entries = buttons.flatMap((button, index) => describeButton(button, index) ?? [])
  if (entries.length === 0) return undefined
  const required = entries.filter((entry) => entry.required)
  const schemas = entries.map(({ part }) => part.schema)
  return {
    schema: {
      type: 'array',
      description: 'Values of buttons, each with the index of its button.',
      items: schemas.length === 1 ? schemas[0] : { oneOf: schemas },
      ...(required.length > 0 ? { minItems: required.length } : {}),
      maxItems: entries.length,
      ...(entries.length > 1 ? { allOf: entries.map(containsOnce) } : {}),
    },
    example: required.map(({ part }) => part.example),
    required: required.length > 0,
  }
}

const containsOnce = ({ index, required }: ButtonEntry): JsonSchema => ({
  contains: { properties: { index: { const: index } }, required: ['index'] },
  minContains: required ? 1 : 0,
  maxContains: 1,
})

const describeButton = (button: TemplateButton, index: number): ButtonEntry | undefined => {
  const expected = buttonFieldOf(button)
  if (!expected) return undefined
  const { schema, example } = describeButtonValue[expected.field](button)
  const label = button.text === undefined ? '' : ` ${JSON.stringify(button.text)}`
  return {
    index,
    required: expected.required,
    part: describeObject(
      {
        index: { schema: { const: index }, example: index, required: true },
        [expected.field]: { schema, example, required: true },
      },
      `Button ${index}, ${button.type.toUpperCase()}${label}.`,
    ),
  }
}

/** The example of a URL is the whole one, or the value of its variable. */
const suffixOf = (example: unknown, start: string): string =>
  typeof example !== 'string' || (!example.startsWith(start) && example.includes('://'))
    ? ''
    : example.startsWith(start)
      ? example.slice(start.length)
      : example

const describeButtonValue: Readonly<
  Record<ButtonField, (button: TemplateButton) => Pick<SendPart, 'schema' | 'example'>>
> = {
  text: ({ url = '', example }) => {
    const maxLength = variableRoom(url, listVariables(url)[0]!, maxLengths.buttonUrl)
    const sample = firstOf(example)
    const start = fillVariables(url, listVariables(url), [''])
    const suffix = suffixOf(sample, start)
    return {
      schema: {
        type: 'string',
        minLength: 1,
        maxLength,
        pattern: '^\\S+$',
        description: `The end of the URL ${url}${suffix === '' ? '' : `, such as ${JSON.stringify(suffix)}`}.`,
      },
      example: /^\S+$/.test(suffix) && [...suffix].length <= maxLength ? suffix : 'x',
    }
  },
  payload: () => ({
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      pattern: '\\S',
      description: 'Optional: what a reply by this button carries.',
    },
    example: null,
  }),
  coupon_code: ({ example }) => ({
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: maxLengths.sentCode,
      pattern: TEXT_PATTERN,
      description: 'The code that the customer copies.',
    },
    example: usableSample(firstOf(example), maxLengths.sentCode) ?? 'SAMPLE',
  }),
}
