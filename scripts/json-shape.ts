import type { z } from 'zod'
import { catalog, type Operation } from '../catalog/index.ts'
import type { Field } from '../cli/manifest.ts'

// What help says of a field that takes JSON: its shape in a line, and an example.

/** A JSON Schema, with what it refers to in its place. */
export type ShapeSchema = {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, ShapeSchema>>
  readonly additionalProperties?: ShapeSchema | boolean
  readonly required?: readonly string[]
  readonly items?: ShapeSchema
  readonly anyOf?: readonly ShapeSchema[]
  readonly oneOf?: readonly ShapeSchema[]
  readonly description?: string
  readonly examples?: readonly unknown[]
}

/** Longer shapes leave out what is inside of some fields. */
const MAX_LENGTH = 300
const MAX_CHOICES = 5

/** The shape in the words of a description, where the schema takes any field: `{field: {operator: value}}`. */
const DESCRIBED = /`(\{[^`]+\})`/

const describeScalar = ({ type, const: only, enum: choices }: ShapeSchema): string => {
  const all = choices ?? (only === undefined ? [] : [only])
  if (all.length > 0 && all.length <= MAX_CHOICES) return all.map(String).join('|')
  if (type === 'boolean') return 'true|false'
  return type === 'integer' || type === 'number' ? 'number' : 'text'
}

const describeVariants = (variants: readonly ShapeSchema[], depth: number): string => {
  const shapes = variants
    .filter((variant) => variant.type !== 'null' && variant.const !== '')
    .map((variant) => describeAt(variant, depth))
  return [...new Set(shapes)].join(' or ')
}

/** Renders an object of which each field is described as deep as `depthOf` says. */
const describeObject = (schema: ShapeSchema, depthOf: (name: string) => number): string => {
  const { properties = {}, required = [], additionalProperties: others } = schema
  const fields = Object.entries(properties).map(([name, field]) => {
    const shape = describeAt(field, depthOf(name))
    const key = `${name}${required.includes(name) ? '' : '?'}`
    return shape === 'text' ? key : `${key}: ${shape}`
  })
  if (fields.length > 0) return `{${fields.join(', ')}}`
  return `{key: ${typeof others === 'object' && others.type ? describeAt(others, depthOf('')) : 'value'}}`
}

/** Describes a schema; what is deeper than `depth` is left out. */
const describeAt = (schema: ShapeSchema, depth: number): string => {
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return describeVariants(variants, depth)
  if (schema.type === 'array') return depth < 1 ? '[…]' : `[${describeAt(schema.items ?? {}, depth)}]`
  if (schema.type !== 'object') return describeScalar(schema)
  return depth < 1 ? '{…}' : describeObject(schema, () => depth - 1)
}

/** Describes the JSON that a schema takes, in a line, with as much of the inner fields as fits. */
const describeShape = (schema: ShapeSchema): string => {
  const described = schema.properties ? undefined : DESCRIBED.exec(schema.description ?? '')?.[1]
  if (described !== undefined) return described
  if (!schema.properties) return describeAt(schema, 2)
  const depths = new Map<string, number>()
  const render = (): string => describeObject(schema, (name) => depths.get(name) ?? 0)
  // The fields that are described shortest first: most of them.
  const names = Object.keys(schema.properties).toSorted(
    (a, b) => describeAt(schema.properties![a]!, 1).length - describeAt(schema.properties![b]!, 1).length,
  )
  for (const name of names) {
    depths.set(name, 1)
    if (render().length > MAX_LENGTH) depths.set(name, 0)
  }
  return render()
}

/** A list is explained by its first item. */
const shorten = (example: unknown): unknown => (Array.isArray(example) ? example.slice(0, 1) : example)

/** The values of a field in the examples of an operation; where it has none, in those of others that it takes too. */
const findExamples = (op: Operation, name: string): unknown[] => {
  const valuesOf = ({ examples }: Operation): unknown[] =>
    examples
      .map(({ input }) => (input as Record<string, unknown>)[name])
      .filter((value) => value !== undefined)
  const own = valuesOf(op)
  const schema = op.input.shape[name] as z.ZodType
  return own.length > 0 ? own : catalog.flatMap(valuesOf).filter((value) => schema.safeParse(value).success)
}

/** What help says of a field that takes JSON; nothing for others. The shortest example is shown. */
export const jsonHelp = (
  op: Operation,
  name: string,
  { type, items }: Pick<Field, 'type' | 'items'>,
  schema: ShapeSchema,
): Partial<Field> => {
  const isJson =
    type === 'object' || type === 'any' || items === 'object' || items === 'any' || items === 'list'
  if (!isJson) return {}
  const [example] = [...(schema.examples ?? []), ...findExamples(op, name)]
    .filter((value) => value !== undefined && value !== null)
    .map(shorten)
    .toSorted((a, b) => JSON.stringify(a).length - JSON.stringify(b).length)
  return { json: { shape: describeShape(schema), ...(example === undefined ? {} : { example }) } }
}
