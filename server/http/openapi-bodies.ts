import type { JsonSchema } from '../../catalog/json-schema.ts'
import type { Operation } from '../../catalog/operation.ts'
import type { Part } from './openapi-parts.ts'

/** What a request takes, with references into the components. */
type Described = { op: Operation; input: JsonSchema }

/** Returns an object of these fields. */
const toObject = (
  { properties, required = [] }: JsonSchema,
  fields: readonly string[],
  needed: readonly string[] = [],
): JsonSchema => {
  const needs = fields.filter((name) => needed.includes(name) || (required as string[]).includes(name))
  return {
    type: 'object',
    properties: pick(properties as Part, fields),
    ...(needs.length > 0 ? { required: needs } : {}),
    additionalProperties: false,
  }
}

const pick = (from: Part, fields: readonly string[]): Part =>
  Object.fromEntries(fields.filter((name) => name in from).map((name) => [name, from[name]]))

/** Each alternative of an input is an object of its own, so that a generated type holds what the service checks. */
const createBodySchema = ({ op, input }: Described, fields: readonly string[]): JsonSchema => {
  const alternatives = op.alternatives ?? []
  if (alternatives.length === 0) return toObject(input, fields)
  const listOwn = ({ needs, takes = [] }: (typeof alternatives)[number]) => [...needs, ...takes]
  return {
    oneOf: alternatives.map((alternative) => {
      const others = alternatives.filter((other) => other !== alternative).flatMap(listOwn)
      const own = listOwn(alternative)
      const kept = fields.filter((name) => own.includes(name) || !others.includes(name))
      return { title: `With ${alternative.needs[0]}`, ...toObject(input, kept, alternative.needs) }
    }),
  }
}

export const createRequestBody = ({ op, input }: Described, fields: readonly string[]): Part => {
  const required = (input.required ?? []) as string[]
  const examples = createExamples(op, (example) => pick(example.input as Part, fields))
  return {
    required: op.alternatives !== undefined || fields.some((name) => required.includes(name)),
    content: {
      'application/json': {
        schema: createBodySchema({ op, input }, fields),
        ...(examples ? { examples } : {}),
      },
    },
  }
}

/**
 * Returns the catalog's examples by name; a request and a response with the same name belong together.
 */
export const createExamples = (
  op: Operation,
  part: (example: Operation['examples'][number]) => unknown,
): Part | undefined => {
  const found = op.examples
    .map((example) => [toSlug(example.title), { summary: example.title, value: part(example) }] as const)
    .filter(([, { value }]) => value !== undefined)
  return found.length > 0 ? Object.fromEntries(found) : undefined
}

const toSlug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
