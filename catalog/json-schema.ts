import { z } from 'zod'

/** A JSON Schema 2020-12 document or a part of one. */
export type JsonSchema = { [keyword: string]: unknown }

/**
 * Returns the JSON Schema of an input or output; each schema with an id becomes a `$ref` into `definitions`.
 * Unions of different primitive types become one `type` array, which is equivalent and which more generators
 * understand than `anyOf`.
 */
export const toJsonSchema = (
  schema: z.ZodType,
): { schema: JsonSchema; definitions: Record<string, JsonSchema> } => {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema
  return { schema: tidy(root), definitions: mapValues($defs as Record<string, JsonSchema>, tidy) }
}

/**
 * The same with every `$ref` inlined; a recursive schema ends in an open object. `folded`: names of schemas that are
 * left open too.
 */
export const toInlinedJsonSchema = (schema: z.ZodType, folded: readonly string[] = []): JsonSchema => {
  const { schema: root, definitions } = toJsonSchema(schema)
  return inline(root, definitions, folded)
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

/** Drops redundant keywords and merges unions where possible. */
const tidy = (node: JsonSchema): JsonSchema => {
  // `id` here is the schema's own name, which is no keyword; a field called `id` is inside `properties`.
  const { $schema: _schema, '~standard': _standard, id: _id, ...out } = mapSchemas(node, tidy)
  if (out.minimum === Number.MIN_SAFE_INTEGER) delete out.minimum
  if (out.maximum === Number.MAX_SAFE_INTEGER) delete out.maximum
  if (isSchema(out.propertyNames) && Object.keys(out.propertyNames).join() === 'type')
    delete out.propertyNames
  // The format implies it; zod's patterns are long, and generators interpret them differently.
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
  // Each keyword of a branch applies to one type only, so merging the branches is safe; enum and const
  // apply to all types.
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

export const mapValues = <V, R>(
  from: Record<string, V>,
  change: (value: V, key: string) => R,
): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value, key)]))
