import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import type { JsonSchema } from '../../catalog/json-schema.ts'
import { guideTools } from '../../mcp/guide-tools.ts'
import { createTool, type Tool } from '../../mcp/tools.ts'

const tools: Tool[] = catalog.map(createTool)
const everyTool = [...tools, ...guideTools]

/** Every schema in a schema, with the path to it. */
const schemasIn = function* (schema: JsonSchema, path = '#'): Generator<[string, JsonSchema]> {
  yield [path, schema]
  for (const [name, child] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>))
    yield* schemasIn(child, `${path}/properties/${name}`)
  if (schema.items) yield* schemasIn(schema.items as JsonSchema, `${path}/items`)
}

/** What a client refuses in one schema: undefined, or the reason. */
type Rule = (schema: JsonSchema) => string | undefined

const known = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])
const isTyped: Rule = ({ type }) =>
  known.has(type as string) ? undefined : `type is ${JSON.stringify(type)}, not one type`
const arrayHasItems: Rule = ({ type, items }) =>
  type !== 'array' || (typeof items === 'object' && items !== null && !Array.isArray(items))
    ? undefined
    : 'an array without items'
const requiredExists: Rule = ({ required = [], properties = {} }) =>
  (required as string[]).every((name) => Object.hasOwn(properties as object, name))
    ? undefined
    : `required ${required as string} is not in properties`
const takesOnly =
  (allowed: readonly string[]): Rule =>
  (schema) => {
    const other = Object.keys(schema).find((keyword) => !allowed.includes(keyword))
    return other === undefined ? undefined : `keyword ${other}`
  }

/** The rules of OpenAI's function parameters, beside those of JSON Schema. */
const openAi: readonly Rule[] = [
  isTyped,
  arrayHasItems,
  requiredExists,
  ({ properties = {} }) =>
    Object.keys(properties as object).find((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name)),
  ({ enum: values }) =>
    values === undefined || (values as unknown[]).length > 0 ? undefined : 'an empty enum',
]
/** Gemini reads the subset of OpenAPI 3.0 that its `Schema` has; any other keyword is an unknown field. */
const gemini: readonly Rule[] = [
  isTyped,
  arrayHasItems,
  requiredExists,
  takesOnly([
    'type',
    'format',
    'title',
    'description',
    'nullable',
    'enum',
    'items',
    'maxItems',
    'minItems',
    'properties',
    'required',
    'minimum',
    'maximum',
    'minLength',
    'maxLength',
  ]),
  ({ type, enum: values }) =>
    values === undefined ||
    (type === 'string' && (values as unknown[]).every((value) => typeof value === 'string' && value !== ''))
      ? undefined
      : 'an enum of other values than words',
  ({ type, format }) =>
    format === undefined || (type === 'string' && format === 'date-time')
      ? undefined
      : `format ${format as string}`,
]
/** Anthropic refuses compositions at the root; VS Code and Copilot every `$ref`, nested union and bare array. */
const anthropicAndVsCode: readonly Rule[] = [
  arrayHasItems,
  requiredExists,
  (schema) =>
    ['$ref', '$defs', 'definitions', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'prefixItems', '$schema'].find(
      (keyword) => keyword in schema,
    ),
]

describe('MCP tools for strict clients', () => {
  for (const [client, rules] of Object.entries({ openAi, gemini, anthropicAndVsCode })) {
    it(`${client} takes the input of every tool`, () => {
      for (const { name, inputSchema } of everyTool) {
        assert.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
        assert.equal(inputSchema.type, 'object')
        assert.equal(typeof inputSchema.properties, 'object')
        for (const [path, schema] of schemasIn(inputSchema))
          for (const rule of rules) assert.equal(rule(schema), undefined, `${name} ${path}`)
      }
    })
  }

  it('no tool has an output schema', () => {
    for (const tool of everyTool) assert.ok(!('outputSchema' in tool), tool.name)
  })

  it('every argument says what it is, and whether it takes null', () => {
    for (const [index, { name, inputSchema }] of tools.entries()) {
      for (const [field, { description }] of Object.entries(inputSchema.properties)) {
        assert.ok(description, `${name} ${field} has no description`)
        const exact = catalog[index]!.input.shape[field]
        if (exact && exact.safeParse(null).success && !exact.safeParse('').success)
          assert.match(description as string, /null/, `${name} ${field} takes null, and does not say so`)
      }
    }
  })

  it('the examples of every operation fit its tool', () => {
    const fits = (schema: JsonSchema, value: unknown): boolean => {
      switch (schema.type) {
        case 'object':
          return (
            typeof value === 'object' &&
            Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).every(
              ([name, child]) => !(name in value!) || fits(child, (value as Record<string, unknown>)[name]),
            )
          )
        case 'array':
          return Array.isArray(value) && value.every((item) => fits(schema.items as JsonSchema, item))
        case 'integer':
          return Number.isInteger(value)
        default:
          return typeof value === schema.type
      }
    }
    for (const [index, { name, inputSchema }] of tools.entries())
      for (const { title, input } of catalog[index]!.examples)
        assert.ok(fits(inputSchema, input), `${name}: ${title} ${JSON.stringify(input)}`)
  })
})
