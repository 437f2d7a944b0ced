import { toInlinedJsonSchema, type JsonSchema, mapSchemas } from '../catalog/json-schema.ts'
import { type ConfirmVerb, getInputSchema, type Operation, getOutputSchema } from '../catalog/operation.ts'

/** A tool as `tools/list` shows it. */
export type Tool = {
  name: string
  title: string
  description: string
  inputSchema: JsonSchema & { type: 'object' }
  outputSchema: JsonSchema & { type: 'object' }
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}

/** Characters and length of an Idempotency-Key (spec "Common rules"). */
const idempotencyKey: JsonSchema = {
  type: 'string',
  minLength: 8,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._:-]+$',
  description: 'Makes a retry safe for 24 hours: same key, same result. Generated when absent.',
}

/**
 * Returns the tool of an operation, with schemas that every known client can read: an object at the root, no
 * references, no unions.
 */
export const createTool = (op: Operation): Tool => {
  const input = deduplicate(dropNestedBounds(flatten(toInlinedJsonSchema(getInputSchema(op)))))
  const properties = input.properties as Record<string, JsonSchema>
  return {
    name: op.name,
    title: op.cli.replace(' ', ': '),
    description: describe(op),
    inputSchema: {
      ...input,
      type: 'object',
      properties: op.dryRun ? { ...properties, idempotency_key: idempotencyKey } : properties,
    },
    outputSchema: {
      ...reduceOutputSchema(flatten(toInlinedJsonSchema(getOutputSchema(op)))),
      type: 'object',
    },
    annotations: toHints(op),
  }
}

const describe = (op: Operation): string => {
  const confirmation = op.confirm
    ? `A person must confirm it ("${op.confirm}"); a client that cannot ask gets \`confirm_required\` ` +
      'unless `dry_run` is true.'
    : undefined
  return [`${op.summary}.`, op.description, confirmation].filter(Boolean).join(' ')
}

/** The hints that follow from a confirm verb: whether it destroys data, and whether others see its effect. */
type VerbHints = Pick<Tool['annotations'], 'destructiveHint' | 'openWorldHint'>

/** A new verb does not compile without its hints. */
export const verbHints: Readonly<Record<ConfirmVerb, VerbHints>> = {
  submit: { destructiveHint: false, openWorldHint: true },
  rotate: { destructiveHint: true, openWorldHint: false },
  delete: { destructiveHint: true, openWorldHint: false },
  archive: { destructiveHint: true, openWorldHint: false },
  send: { destructiveHint: false, openWorldHint: true },
}

/** Returns all four hints, always: their defaults are the opposite of most operations. */
const toHints = (op: Operation): Tool['annotations'] => {
  const verb = op.confirm && verbHints[op.confirm]
  return {
    readOnlyHint: op.scope === 'mcp:read',
    destructiveHint: verb?.destructiveHint ?? false,
    idempotentHint: op.scope === 'mcp:read' || op.repeatable,
    openWorldHint: op.scope === 'messaging:write' || (verb?.openWorldHint ?? false),
  }
}

/**
 * Widens each remaining union to one schema that accepts everything its branches accept. Clients reject or
 * drop compositions; the server validates the exact schema anyway.
 */
const flatten = (schema: JsonSchema): JsonSchema => {
  const { anyOf, oneOf, allOf, ...node } = mapSchemas(schema, flatten)
  const branches = (anyOf ?? oneOf ?? allOf) as JsonSchema[] | undefined
  if (!branches) return node
  const types = new Set(branches.flatMap((branch) => ([] as unknown[]).concat(branch.type ?? [])))
  const open = branches.some((branch) => branch.type === undefined)
  const type = open ? {} : { type: types.size === 1 ? [...types][0] : [...types] }
  return { ...type, ...mergeBranches(branches, allOf !== undefined), ...node }
}

/**
 * Merges the objects and arrays among the branches: all properties; a property is required when every object
 * requires it.
 */
const mergeBranches = (branches: readonly JsonSchema[], every: boolean): JsonSchema => {
  const objects = branches.filter((branch) => branch.properties)
  const items = branches.filter((branch) => branch.items)
  const needed = objects.map((branch) => (branch.required as string[] | undefined) ?? [])
  const required = every
    ? [...new Set(needed.flat())]
    : (needed[0] ?? []).filter((name) => needed.every((names) => names.includes(name)))
  return {
    ...(objects.length > 0 ? { properties: mergeProperties(objects) } : {}),
    ...(required.length > 0 && objects.length === branches.length ? { required } : {}),
    ...(items.length === 1 ? { items: items[0]!.items } : {}),
  }
}

const mergeProperties = (objects: readonly JsonSchema[]): Record<string, JsonSchema> => {
  const all: Record<string, JsonSchema[]> = {}
  for (const object of objects) {
    for (const [name, schema] of Object.entries(object.properties as Record<string, JsonSchema>))
      (all[name] ??= []).push(schema)
  }
  return Object.fromEntries(
    Object.entries(all).map(([name, schemas]) => [
      name,
      schemas.length === 1 ? schemas[0]! : flatten({ description: schemas[0]!.description, anyOf: schemas }),
    ]),
  )
}

/** Drops the bounds of deeply nested values, of which a template draft has forty; server errors name them. */
const dropNestedBounds = (schema: JsonSchema, depth = 0): JsonSchema => {
  const node = mapSchemas(schema, (child) => dropNestedBounds(child, depth + 1))
  if (depth < 2) return node
  const { maxLength: _1, minLength: _2, maxItems: _3, additionalProperties, ...rest } = node
  return additionalProperties === undefined || additionalProperties === false
    ? rest
    : { ...rest, additionalProperties }
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
        description: [description, `See \`${first}\`.`].filter(Boolean).join(' '),
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

/** The depth from which an output schema names no properties; those of a list's rows are above it. */
const MAX_OUTPUT_DEPTH = 3

/**
 * Reduces an output schema to names and types, which is all that a model needs of a result that it will read
 * anyway. Every token here is paid in each conversation.
 */
const reduceOutputSchema = (schema: JsonSchema, depth = 0): JsonSchema => {
  if (depth >= MAX_OUTPUT_DEPTH && schema.properties) return { type: schema.type }
  const {
    pattern: _1,
    examples: _2,
    format: _3,
    minLength: _4,
    maxLength: _5,
    maxItems: _6,
    description: _7,
    required,
    ...node
  } = schema
  return {
    ...mapSchemas(node, (child) => reduceOutputSchema(child, depth + 1)),
    ...(required !== undefined && depth === 0 ? { required } : {}),
  }
}
