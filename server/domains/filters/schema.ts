import { filterLimits } from '../../../catalog/filters.ts'
import type { JsonSchema } from '../../../catalog/json-schema.ts'
import { contactFields, type FilterField, operators, relations } from './grammar.ts'

// The grammar of contact filters as JSON Schema, for generators of clients. The parser checks more: limits of the whole
// filter, names of the workspace, dates.

const NUMBER: JsonSchema = { type: ['number', 'string'] }
const DATE: JsonSchema = {
  type: 'string',
  description: 'An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`.',
}

const toValue = ({ kind, words }: FilterField, op: string): JsonSchema => {
  if (kind === 'time') return DATE
  if (kind === 'number') return NUMBER
  if (kind === 'flag') return { type: 'boolean' }
  if (words) return { type: 'string', enum: [...words] }
  if (kind === 'text' || kind === 'code')
    return { type: 'string', maxLength: op === 'regex' ? filterLimits.regex : filterLimits.string }
  return { type: ['string', 'integer'] }
}

const toOperand = (field: FilterField, op: string): JsonSchema => {
  if (op === 'isNull') return { type: 'boolean' }
  if (op === 'between') return { type: 'array', items: toValue(field, op), minItems: 2, maxItems: 2 }
  if (op === 'in' || op === 'notIn')
    return { type: 'array', items: toValue(field, op), minItems: 1, maxItems: filterLimits.list }
  return toValue(field, op)
}

const toObject = (properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
})

const toTests = (field: FilterField): JsonSchema =>
  toObject(Object.fromEntries(operators[field.kind].map((op) => [op, toOperand(field, op)])), {
    minProperties: 1,
  })

const capitalize = (text: string): string => text[0]!.toUpperCase() + text.slice(1)
const refTo = (name: string): JsonSchema => ({ $ref: `#/$defs/${name}` })

/** Fields of a kind share a schema, unless they have values of their own. */
const toField = (field: FilterField): JsonSchema =>
  field.words ? toTests(field) : refTo(`${capitalize(field.kind)}Test`)

const toFields = (fields: Readonly<Record<string, FilterField>>): Record<string, JsonSchema> =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, toField(field)]))

const toRelation = (name: string): JsonSchema => {
  const { quantifiers, fields } = relations[name]!
  const record =
    name === 'attributes'
      ? toObject(
          { attributeName: toObject({ eq: { type: 'string' } }, { required: ['eq'] }), ...toFields(fields) },
          { required: ['attributeName'] },
        )
      : toObject(toFields(fields))
  return toObject(Object.fromEntries(quantifiers.map((quantifier) => [quantifier, record])), {
    minProperties: 1,
  })
}

/** Returns definitions by name, which refer to each other as `#/$defs/<name>`: `ContactFilter`, and its parts. */
export const createFilterSchemas = (): Record<string, JsonSchema> => {
  const all = [contactFields, ...Object.values(relations).map(({ fields }) => fields)]
  const kinds = [...new Set(all.flatMap((fields) => Object.values(fields)).map(({ kind }) => kind))]
  const list = { type: 'array', items: refTo('ContactFilter'), minItems: 1, maxItems: filterLimits.list }
  return {
    ContactFilter: toObject(
      {
        ...toFields(contactFields),
        ...Object.fromEntries(Object.keys(relations).map((name) => [name, toRelation(name)])),
        savedFilter: toObject({ eq: { type: ['string', 'integer'] } }, { required: ['eq'] }),
        and: list,
        or: list,
        not: refTo('ContactFilter'),
      },
      {
        description:
          'Contact filter: all keys must match; `and` and `or` take lists, `not` one filter. At most ' +
          `${filterLimits.depth} deep, ${filterLimits.conditions} conditions and ${filterLimits.bytes} bytes.`,
      },
    ),
    ...Object.fromEntries(
      kinds
        .filter((kind) => kind !== 'word')
        .map((kind) => [`${capitalize(kind)}Test`, toTests({ kind })] as const),
    ),
  }
}
