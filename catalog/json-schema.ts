import { z } from 'zod'

/** A JSON Schema 2020-12 document or a part of one. */
export type JsonSchema = { [keyword: string]: unknown }

/**
 * The JSON Schema of what a client may send or will read, with each schema that carries an id as a `$ref`
 * into `definitions`. Unions of different primitive types become one `type` array, which says the same and
 * which more generators understand than `anyOf`.
 */
export const jsonSchema = (
  schema: z.ZodType,
): { schema: JsonSchema; definitions: Record<string, JsonSchema> } => {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema
  return { schema: tidy(root), definitions: mapValues($defs as Record<string, JsonSchema>, tidy) }
}

/**
 * The same with every reference replaced by what it names; a schema that holds itself ends in an open
 * object.
 */
export const inlinedJsonSchema = (schema: z.ZodType): JsonSchema => {
  const { schema: root, definitions } = jsonSchema(schema)
  return inline(root, definitions, [])
}

const inline = (
  node: JsonSchema,
  definitions: Record<string, JsonSchema>,
  open: readonly string[],
): JsonSchema => {
  if (typeof node.$ref !== 'string')
    return tidy(mapSchemas(node, (child) => inline(child, definitions, open)))
  const name = node.$ref.replace('#/$defs/', '')
  const { $ref: _, ...beside } = node
  const definition = definitions[name]
  if (!definition || node.$ref === '#' || open.includes(name)) return { type: 'object', ...beside }
  return { ...inline(definition, definitions, [...open, name]), ...beside }
}

/** Rebuilds a schema with `change` applied to each schema directly inside it. */
export const mapSchemas = (node: JsonSchema, change: (child: JsonSchema) => JsonSchema): JsonSchema => {
  const child = (value: unknown) => (isSchema(value) ? change(value) : value)
  return mapValues(node, (value, keyword) => {
    if (keyword === 'properties' || keyword === 'patternProperties')
      return mapValues(value as Record<string, unknown>, child)
    if (
      keyword === 'items' ||
      keyword === 'additionalProperties' ||
      keyword === 'propertyNames' ||
      keyword === 'not'
    )
      return child(value)
    if (keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'allOf' || keyword === 'prefixItems')
      return (value as unknown[]).map(child)
    return value
  })
}

/** Drops what says nothing, and writes unions in their shortest form. */
const tidy = (node: JsonSchema): JsonSchema => {
  // `id` here is the schema's own name, which JSON Schema does not know; a field called `id` is inside
  // `properties`.
  const { $schema: _schema, '~standard': _standard, id: _id, ...out } = mapSchemas(node, tidy)
  if (out.minimum === Number.MIN_SAFE_INTEGER) delete out.minimum
  if (out.maximum === Number.MAX_SAFE_INTEGER) delete out.maximum
  if (isSchema(out.propertyNames) && Object.keys(out.propertyNames).join() === 'type')
    delete out.propertyNames
  // The format says it; zod's patterns for it are long and no two generators read them alike.
  if (typeof out.format === 'string') delete out.pattern
  return mergeUnion(out)
}

const mergeUnion = (node: JsonSchema): JsonSchema => {
  const { anyOf, ...outer } = node
  if (!Array.isArray(anyOf)) return node
  const branches = anyOf as JsonSchema[]
  const types = branches.map((branch) => ([] as unknown[]).concat(branch.type ?? []))
  const all = types.flat()
  const disjoint =
    types.every((t) => t.length > 0) &&
    new Set(all).size === all.length &&
    !(all.includes('integer') && all.includes('number'))
  if (!disjoint || branches.some((branch) => branch.anyOf ?? branch.oneOf ?? branch.allOf ?? branch.not))
    return node
  // Each keyword of a branch speaks of one type only, so that laying them together changes nothing; enum
  // and const speak of all types.
  const valued = branches.filter((branch) => 'enum' in branch || 'const' in branch)
  const rest = branches.filter((branch) => !valued.includes(branch))
  if (valued.length > 0 && rest.some((branch) => branch.type !== 'null')) return node
  const values = valued.flatMap((branch) => (branch.enum as unknown[]) ?? [branch.const])
  const merged: JsonSchema = { ...Object.assign({}, ...branches.toReversed()), ...outer, type: all }
  delete merged.const
  if (valued.length > 0) merged.enum = rest.length > 0 ? [...values, null] : values
  return merged
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapValues = <V, R>(from: Record<string, V>, change: (value: V, key: string) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value, key)]))
