import { countCharacters } from '../../../catalog/templates/rules.ts'
import { checkTextValue, collectValueErrors } from '../messaging/template-values.ts'
import type { FieldError } from '../../kernel/problem.ts'
import { fillVariables, listVariables } from './variables.ts'

export type JsonSchema = Record<string, unknown>

/** A value of a send: its schema, an example, and whether every send has it. */
export type SendPart = { schema: JsonSchema; example: unknown; required: boolean }

/** Texts that the provider takes: on one line, not blank, with at most four spaces in a row. */
export const TEXT_PATTERN = '^(?!\\s*$)(?!.* {5})[^\\n\\r\\t\\v\\f\\u0085\\u2028\\u2029]+$'

/** Describes an object of these members; an optional one is not in the example. */
export const describeObject = (
  members: Readonly<Record<string, SendPart | undefined>>,
  description?: string,
): SendPart => {
  const given = Object.entries(members).filter((entry): entry is [string, SendPart] => entry[1] !== undefined)
  const required = given.filter(([, part]) => part.required)
  return {
    schema: {
      type: 'object',
      ...(description === undefined ? {} : { description }),
      properties: Object.fromEntries(given.map(([name, { schema }]) => [name, schema])),
      ...(required.length > 0 ? { required: required.map(([name]) => name) } : {}),
      additionalProperties: false,
    },
    example: Object.fromEntries(required.map(([name, { example }]) => [name, example])),
    required: true,
  }
}

/** Describes an array of exactly these items. */
export const describeTuple = (items: readonly SendPart[], description: string): SendPart => ({
  schema: {
    type: 'array',
    description,
    prefixItems: items.map(({ schema }) => schema),
    items: false,
    minItems: items.length,
  },
  example: items.map(({ example }) => example),
  required: true,
})

/** Returns a sample when it can be sent as it is, within a number of characters. */
export const usableSample = (sample: unknown, maxLength: number): string | undefined => {
  if (typeof sample !== 'string') return undefined
  const found: FieldError[] = []
  checkTextValue(sample, [], collectValueErrors(found))
  return found.length === 0 && countCharacters(sample) <= maxLength ? sample : undefined
}

export const valueDescription = (name: string, sample: unknown): string =>
  `Value of {{${name}}}${typeof sample === 'string' && sample !== '' ? `, such as ${JSON.stringify(sample)}` : ''}.`

/** The characters that a text leaves for one variable when every other one has a single character. */
export const variableRoom = (text: string, name: string, maxLength: number): number => {
  const names = listVariables(text)
  const at = names.indexOf(name)
  const lengthWith = (value: string): number =>
    countCharacters(
      fillVariables(
        text,
        names,
        names.map((_, i) => (i === at ? value : 'x')),
      ),
    )
  const fixedLength = lengthWith('')
  return Math.max(1, Math.floor((maxLength - fixedLength) / Math.max(1, lengthWith('x') - fixedLength)))
}
