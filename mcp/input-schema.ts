import { type JsonSchema, mapSchemas, toInlinedJsonSchema } from '../catalog/json-schema.ts'
import { getInputSchema, type Operation } from '../catalog/operation.ts'

/** A schema without unions: an object, an array with `items`, or a value of one type. */
export type ToolSchema = {
  type: string
  nullable?: true
  description?: string
  enum?: string[]
  format?: string
  properties?: Record<string, ToolSchema>
  required?: string[]
  items?: ToolSchema
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxLength?: number
}

/** The input of a tool. */
export type ToolInputSchema = ToolSchema & { type: 'object'; properties: Record<string, ToolSchema> }

/**
 * Returns the schema of an operation's input in the part of JSON Schema that every known client takes: some
 * refuse a whole list of tools for one union, reference, list of types or array without `items`. Null is therefore
 * the `nullable` of OpenAPI 3.0, which Gemini and many validators know and the others skip. It accepts less than
 * the server does (ids as numbers); descriptions say what else is taken, and the server checks the exact schema.
 */
export const toToolInput = (op: Operation): ToolInputSchema => {
  const schema = deduplicate(narrow(toInlinedJsonSchema(getInputSchema(op)))) as ToolSchema
  return { ...schema, type: 'object', properties: schema.properties ?? {} }
}

/** Keywords kept at every depth, and those that are kept near the root; below, they cost more than they help. */
const keptKeywords = ['type', 'description', 'enum', 'properties', 'required', 'items']
const keptNearRoot = ['minimum', 'maximum', 'minItems', 'maxItems', 'maxLength']

const narrow = (schema: JsonSchema, depth = 0): JsonSchema => {
  const { anyOf, oneOf, allOf, ...node } = mapSchemas(schema, (child) => narrow(child, depth + 1))
  const branches = (anyOf ?? oneOf ?? allOf) as JsonSchema[] | undefined
  const merged: JsonSchema = branches ? { ...mergeBranches(branches), ...node } : node
  const kept = depth < 2 ? [...keptKeywords, ...keptNearRoot] : keptKeywords
  const types = merged.type
  const type = Array.isArray(types) ? typesByPreference.find((each) => types.includes(each)) : types
  return {
    ...Object.fromEntries(Object.entries(merged).filter(([keyword]) => kept.includes(keyword))),
    ...(type === undefined ? {} : { type }),
    ...(Array.isArray(merged.type) && merged.type.includes('null') ? { nullable: true } : {}),
    ...(merged.format === 'date-time' && depth < 2 ? { format: 'date-time' } : {}),
    ...(Array.isArray(merged.enum)
      ? { enum: merged.enum.filter((value) => value !== null && value !== '') }
      : {}),
  }
}

/** Of several types the one that a model writes most easily; the server takes a number's text for a number. */
const typesByPreference = ['string', 'array', 'object', 'number', 'integer', 'boolean']

/**
 * Merges the branches of a union into one schema: all properties of its objects, required where each of them
 * requires it. Bounds of a branch hold for that branch alone and are dropped.
 */
const mergeBranches = (branches: readonly JsonSchema[]): JsonSchema => {
  const types = [...new Set(branches.flatMap((branch) => ([] as unknown[]).concat(branch.type ?? [])))]
  const objects = branches.filter((branch) => branch.properties)
  const needed = objects.map((branch) => (branch.required as string[] | undefined) ?? [])
  const required = (needed[0] ?? []).filter((name) => needed.every((names) => names.includes(name)))
  const items = branches.find((branch) => branch.items)?.items
  return {
    type: types,
    ...(objects.length > 0
      ? { properties: Object.assign({}, ...objects.map((branch) => branch.properties)) as JsonSchema }
      : {}),
    ...(required.length > 0 ? { required } : {}),
    ...(items ? { items } : {}),
  }
}

/** Length of JSON from which a repeated schema is replaced by a reference in words. */
const MIN_DEDUPLICATED_CHARACTERS = 250

/**
 * Writes out a large schema only where it occurs first; later occurrences refer to that place. The server
 * validates all of them anyway.
 */
const deduplicate = (schema: JsonSchema): JsonSchema => {
  const seen = new Map<string, string>()
  const visit = (node: JsonSchema, path: string): JsonSchema => {
    const { description, ...shape } = node
    const key = JSON.stringify(shape)
    const first = key.length > MIN_DEDUPLICATED_CHARACTERS ? seen.get(key) : undefined
    if (first !== undefined)
      return {
        type: node.type,
        ...(node.nullable ? { nullable: true } : {}),
        description: [description, `See \`${first}\`.`].filter(Boolean).join(' '),
        // An array without `items` is refused.
        ...(node.type === 'array' ? { items: { type: (node.items as JsonSchema).type } } : {}),
      }
    if (key.length > MIN_DEDUPLICATED_CHARACTERS) seen.set(key, path)
    const { properties, items } = node as { properties?: Record<string, JsonSchema>; items?: JsonSchema }
    return {
      ...node,
      ...(properties
        ? {
            properties: Object.fromEntries(
              Object.entries(properties).map(([name, child]) => [
                name,
                visit(child, path === '' ? name : `${path}.${name}`),
              ]),
            ),
          }
        : {}),
      ...(items ? { items: visit(items, `${path}[]`) } : {}),
    }
  }
  return visit(schema, '')
}
