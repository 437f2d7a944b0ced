import { z } from 'zod'
import type { Alternative, Fields, Operation } from './operation.ts'
import { isObject } from './values.ts'
import { type ApiVersionId, apiVersions, type Rename, type Removal, type VersionChange } from './versions.ts'

type Json = Record<string, unknown>

/** An operation as an earlier API version had it. */
export type PastOperation = {
  /** Its declaration, with the fields and examples of that version. */
  readonly operation: Operation
  /** Turns a valid input of that version into one of the current version. */
  readonly toCurrentInput: (input: Json) => Json
  /** Turns an answer of the current version into one of that version. */
  readonly toPastOutput: (output: Json) => Json
  /** Returns the name of an input field in that version. */
  readonly toPastName: (field: string) => string
}

const renameKey = (object: Json, from: string, to: string): Json =>
  Object.hasOwn(object, from)
    ? Object.fromEntries(Object.entries(object).map(([name, value]) => [name === from ? to : name, value]))
    : object

/** `data[].health` is `data`, `[]`, `health`. */
const splitPath = (path: string): string[] =>
  path.split('.').flatMap((step) => (step.endsWith('[]') ? [step.slice(0, -2), '[]'] : [step]))

/** Applies `change` to each object at a path; what is null or absent on the way stays so. */
const changeAt = (
  value: unknown,
  [step, ...rest]: readonly string[],
  change: (object: Json, around: readonly Json[]) => Json,
  around: readonly Json[] = [],
): unknown => {
  if (step === '[]')
    return Array.isArray(value) ? value.map((item) => changeAt(item, rest, change, around)) : value
  if (!isObject(value)) return value
  if (step === undefined) return change(value, around)
  return Object.hasOwn(value, step)
    ? { ...value, [step]: changeAt(value[step], rest, change, [value, ...around]) }
    : value
}

/** The part of a schema's definition that wraps or lists other schemas. */
type Wrapping = { type: string; innerType?: z.ZodType; element?: z.ZodType }

/** Rebuilds a schema with `change` applied to the object schema at a path. */
const changeSchemaAt = (
  schema: z.ZodType,
  path: readonly string[],
  change: (fields: Fields) => Fields,
): z.ZodType => {
  const [step, ...rest] = path
  const { type, innerType, element } = schema.def as unknown as Wrapping
  const rebuild = (): z.ZodType => {
    if (type === 'nullable') return changeSchemaAt(innerType!, path, change).nullable()
    if (type === 'optional') return changeSchemaAt(innerType!, path, change).optional()
    if (type === 'array' && step === '[]') return z.array(changeSchemaAt(element!, rest, change))
    if (type !== 'object') throw new Error(`There is no object at ${path.join('.')}: ${type}`)
    const object = schema as Fields
    return step === undefined
      ? change(object)
      : object.extend({ [step]: changeSchemaAt(object.shape[step] as z.ZodType, rest, change) })
  }
  const meta = schema.meta()
  return meta ? rebuild().meta(meta) : rebuild()
}

const renameField = (fields: Fields, from: string, to: string): Fields =>
  z.object(
    Object.fromEntries(
      Object.entries(fields.shape).map(([name, field]) => [name === from ? to : name, field]),
    ),
  )

/** Undoes a change of the input in its fields. */
const undoInInput = (input: Fields, change: VersionChange): Fields => {
  if (change.kind === 'required')
    return input.extend({ [change.field]: (input.shape[change.field] as z.ZodType).optional() })
  return isRename('input')(change) ? renameField(input, change.to, change.from) : input
}

const isRename =
  (place: Rename['in']) =>
  (change: VersionChange): change is Rename =>
    change.kind === 'renamed' && change.in === place
const isRemoval = (change: VersionChange): change is Removal => change.kind === 'removed'

/** Undoes a change of the output in a value. */
const undoInOutput = (output: Json, change: VersionChange): Json => {
  if (isRemoval(change))
    return changeAt(output, splitPath(change.at), (object, around) => ({
      ...object,
      [change.field]: change.restore(object, around),
    })) as Json
  return isRename('output')(change) ? renameKey(output, change.to, change.from) : output
}

const undoInSchema = (output: Fields, change: VersionChange): Fields => {
  if (isRemoval(change))
    return changeSchemaAt(output, splitPath(change.at), (object) =>
      object.extend({ [change.field]: change.schema }),
    ) as Fields
  return isRename('output')(change) ? renameField(output, change.to, change.from) : output
}

/** Names the fields of routes as a version had them; those in the path are the same in all versions. */
const renameInRoutes = ({ routes }: Operation, toPastName: (field: string) => string): Operation['routes'] =>
  routes.map((spec) =>
    typeof spec === 'string'
      ? spec
      : {
          ...spec,
          ...(spec.fields ? { fields: spec.fields.map(toPastName) } : {}),
          ...(spec.query ? { query: spec.query.map(toPastName) } : {}),
        },
  )

const renameInAlternative = (
  { needs: [first, ...others], takes }: Alternative,
  toPastName: (field: string) => string,
): Alternative => ({
  needs: [toPastName(first), ...others.map(toPastName)],
  ...(takes ? { takes: takes.map(toPastName) } : {}),
})

/**
 * Returns an operation as an earlier version had it; undefined where it was the same. The changes since then are undone
 * one by one, the latest first.
 */
export const createPastOperation = (op: Operation, version: ApiVersionId): PastOperation | undefined => {
  const since = apiVersions.slice(apiVersions.indexOf(version) + 1)
  const undone = (op.changes ?? [])
    .filter((change) => since.includes(change.version))
    .toSorted((a, b) => apiVersions.indexOf(b.version) - apiVersions.indexOf(a.version))
  if (undone.length === 0) return undefined
  const renames = undone.filter(isRename('input'))
  const toPastName = (field: string): string =>
    renames.reduce((name, { from, to }) => (name === to ? from : name), field)
  const toPastInput = (input: Json): Json =>
    renames.reduce((fields, { from, to }) => renameKey(fields, to, from), input)
  const toPastOutput = (output: Json): Json => undone.reduce(undoInOutput, output)
  return {
    toPastName,
    toPastOutput,
    toCurrentInput: (input) =>
      renames.reduceRight((fields, { from, to }) => renameKey(fields, from, to), input),
    operation: {
      ...op,
      input: undone.reduce(undoInInput, op.input),
      output: undone.reduce(undoInSchema, op.output),
      routes: renameInRoutes(op, toPastName),
      ...(op.alternatives
        ? { alternatives: op.alternatives.map((each) => renameInAlternative(each, toPastName)) }
        : {}),
      ...(op.itemwise ? { itemwise: toPastName(op.itemwise) } : {}),
      examples: op.examples.map(({ title, input, output }) => ({
        title,
        input: toPastInput(input as Json),
        output: toPastOutput(output as Json),
      })),
    } as Operation,
  }
}
