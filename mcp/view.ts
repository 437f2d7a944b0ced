import { type JsonSchema, toInlinedJsonSchema } from '../catalog/json-schema.ts'
import { getOutputSchema, type Operation } from '../catalog/operation.ts'
import { isObject } from '../catalog/values.ts'
import { invalidField } from '../server/kernel/problem.ts'
import { cutToBudget, DEFAULT_PAGE_TOKENS, estimateTokens, fits, MAX_ANSWER_TOKENS } from './budget.ts'
import type { ToolSchema } from './input-schema.ts'
import { listUntrusted } from './untrusted.ts'

/*
 * What a model reads costs tokens in every later turn, so an answer over MCP shows of each row what a person
 * would read, unless the call asks for more, and has an upper bound. Only reads are shortened so.
 */

/** Fields of a row: all of them (`true`), or those named, each with its own. */
type Selection = true | Map<string, Selection>

/** How one call shows the output of a read. */
export type View = {
  /** The operation's own input. */
  readonly input: Record<string, unknown>
  /** JSON Pointers of the fields shown that outsiders wrote. */
  readonly untrusted: readonly string[]
  /** Returns the output as JSON text, or how many rows would fit. */
  readonly present: (output: unknown) => string | number
}

/** What is known of an operation's answers without a call. */
type Shape = {
  readonly untrusted: readonly string[]
  /** Pointer of a row, '' when the answer is the row. */
  readonly row: '' | '/data/*'
  readonly rowSchema: JsonSchema
  readonly slim: Selection
  readonly slimUntrusted: readonly string[]
  readonly idPath: string
  /** The values of the operation's own `detail`. */
  readonly details: readonly string[]
}

const levels = ['ids', 'slim', 'full'] as const

const toSelection = (paths: readonly string[]): Selection => {
  const root = new Map<string, Selection>()
  for (const path of paths) {
    let at: Map<string, Selection> = root
    const names = path.split('.')
    for (const [index, name] of names.entries()) {
      const next = at.get(name)
      if (next === true) break
      if (index === names.length - 1) at.set(name, true)
      else if (next) at = next
      else {
        const made = new Map<string, Selection>()
        at.set(name, made)
        at = made
      }
    }
  }
  return root
}

/** Returns the selected fields of a value; lists are passed through. What is empty is left out of slim rows. */
const select = (value: unknown, selection: Selection, dropsEmpty: boolean): unknown => {
  if (selection === true || value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item) => select(item, selection, dropsEmpty))
  const shown: Record<string, unknown> = {}
  for (const [name, inner] of selection) {
    if (!Object.hasOwn(value, name)) continue
    const child = select((value as Record<string, unknown>)[name], inner, dropsEmpty)
    if (dropsEmpty && (child === null || child === '' || (Array.isArray(child) && child.length === 0)))
      continue
    shown[name] = child
  }
  return shown
}

/** Whether a pointer inside a row, such as `/contact/name` or `/tags/*\/name`, is selected. */
const isSelected = (pointer: string, selection: Selection): boolean => {
  let at: Selection = selection
  for (const name of pointer.split('/').slice(1)) {
    if (at === true) return true
    if (name === '*') continue
    const next = at.get(name)
    if (next === undefined) return false
    at = next
  }
  return true
}

const narrow = (pointers: readonly string[], row: string, selection: Selection): string[] =>
  pointers.filter((pointer) => !pointer.startsWith(row) || isSelected(pointer.slice(row.length), selection))

const createShape = (op: Operation): Shape => {
  const root = toInlinedJsonSchema(getOutputSchema(op))
  const data = (root.properties as Record<string, JsonSchema>).data
  const row = data?.type === 'array' ? '/data/*' : ''
  const rowSchema = row === '' ? root : (data!.items as JsonSchema)
  const untrusted = listUntrusted(op)
  const slim = op.slim ? toSelection(op.slim) : true
  const input = toInlinedJsonSchema(op.input).properties as Record<string, JsonSchema>
  return {
    untrusted,
    row,
    rowSchema,
    slim,
    slimUntrusted: narrow(untrusted, row, slim),
    idPath: isObject(rowSchema.properties) && 'id' in rowSchema.properties ? 'id' : (op.slim?.[0] ?? 'id'),
    details: (input.detail?.enum as string[] | undefined) ?? [],
  }
}

const shapes = new WeakMap<Operation, Shape>()

const getShape = (op: Operation): Shape => {
  const known = shapes.get(op)
  if (known) return known
  const shape = createShape(op)
  shapes.set(op, shape)
  return shape
}

/** Returns the JSON Pointers of the fields of an operation's whole answer that outsiders wrote. */
export const getUntrusted = (op: Operation): readonly string[] => getShape(op).untrusted

/** Returns every value of `detail`: those of all lists, and those of the operation. */
const listDetails = ({ details }: Shape): string[] => [...new Set([...levels, ...details])]

/** Returns the arguments that a tool takes beside the fields of its operation, for its input schema. */
export const listViewArguments = (op: Operation): Record<string, ToolSchema> => {
  if (!op.slim) return {}
  const shape = getShape(op)
  return {
    detail: {
      type: 'string',
      enum: listDetails(shape),
      description: `\`${shape.row === '' ? 'full' : 'slim'}\` when absent.`,
    },
    fields: {
      type: 'array',
      items: { type: 'string' },
      description: `Show only these, such as \`${op.slim[1] ?? 'id'}\`.`,
    },
  }
}

/** Returns the names of the fields at a place of a schema; undefined when any name is possible. */
const listFields = (schema: JsonSchema | undefined): string[] | undefined => {
  if (schema === undefined) return []
  if (isObject(schema.items)) return listFields(schema.items)
  if (isObject(schema.properties)) return Object.keys(schema.properties)
  return schema.additionalProperties === undefined && schema.type !== 'object' && !Array.isArray(schema.type)
    ? []
    : undefined
}

const stepInto = (schema: JsonSchema, name: string): JsonSchema | undefined =>
  isObject(schema.items)
    ? stepInto(schema.items, name)
    : isObject(schema.properties)
      ? Object.hasOwn(schema.properties, name)
        ? (schema.properties[name] as JsonSchema)
        : undefined
      : {}

/** Throws 400 for a field that the rows do not have. */
const requireField = (shape: Shape, path: string, index: number): void => {
  let at: JsonSchema = shape.rowSchema
  for (const name of path.split('.')) {
    const next = stepInto(at, name)
    if (next === undefined) {
      const allowed = listFields(at) ?? []
      throw invalidField('fields', 'unknown_field', `has no ${path}`, {
        path: [index],
        allowed,
        fix: `Name fields of the rows, nested ones with a dot: ${allowed.join(', ')}.`,
      })
    }
    at = next
  }
}

const readFields = (shape: Shape, given: unknown): string[] | undefined => {
  if (given === undefined || given === null) return undefined
  if (
    !Array.isArray(given) ||
    given.length === 0 ||
    given.length > 50 ||
    given.some((f) => typeof f !== 'string')
  )
    throw invalidField('fields', 'invalid_type', 'must be a list of 1 to 50 names of fields', {
      fix: 'Send, for example, ["id", "name"]; leave it out for the usual fields.',
    })
  for (const [index, path] of (given as string[]).entries()) requireField(shape, path, index)
  return given as string[]
}

/** Says in the answer that rows are missing, and how to get them. */
const sayShortened = (shown: number): string =>
  `The first ${shown} rows, to keep the answer small: pass next_cursor as cursor for the rest. ` +
  'detail "ids" or fewer fields show more rows at once.'

/** Returns a page as JSON text, or how many of its rows fit. `isCut`: rows were left out, which the page says. */
const writePage = (
  page: Record<string, unknown>,
  selection: Selection,
  { budget, isSlim, isCut }: { budget: number; isSlim: boolean; isCut: boolean },
): string | number => {
  const rows = page.data as unknown[]
  if (selection === true && !isCut) {
    const json = JSON.stringify(page)
    if (fits(json, budget)) return json
  }
  const texts = rows.map((row) => JSON.stringify(select(row, selection, isSlim)))
  const { data: _, ...rest } = page
  if (isCut) rest.shortened = sayShortened(rows.length)
  const envelope = JSON.stringify(rest)
  const json = `{"data":[${texts.join(',')}]${envelope === '{}' ? '}' : `,${envelope.slice(1)}`}`
  if (fits(json, budget)) return json
  let left = budget - estimateTokens(envelope) - estimateTokens(sayShortened(100))
  let fitting = 0
  for (const text of texts) {
    left -= estimateTokens(text) + 1
    if (left < 0) break
    fitting++
  }
  if (texts.length > 1) return Math.max(1, Math.min(fitting, texts.length - 1))
  return cutToBudget({ ...rest, data: rows.map((row) => select(row, selection, isSlim)) }, json)
}

/**
 * Reads `detail` and `fields` of a tool call and returns how to show the answer; undefined for what is not
 * shortened: a change. Throws 400.
 */
export const readView = (op: Operation, args: Record<string, unknown>): View | undefined => {
  if (op.scope !== 'mcp:read') return undefined
  const shape = getShape(op)
  const isList = shape.row !== ''
  if (!op.slim)
    return createView(shape, args, shape.untrusted, true, {
      budget: isList && args.limit === undefined ? DEFAULT_PAGE_TOKENS : MAX_ANSWER_TOKENS,
      isSlim: false,
    })
  const { detail: given, fields: names, ...input } = args
  const fields = readFields(shape, names)
  const detail = given ?? (isList ? 'slim' : 'full')
  const allowed = listDetails(shape)
  if (!allowed.includes(detail as string))
    throw invalidField('detail', 'invalid_value', `must be one of ${allowed.join(', ')}`, {
      allowed,
      fix: 'Send one of the allowed values.',
    })
  const isSlim = detail === 'slim' && fields === undefined
  const selection = fields
    ? toSelection(fields)
    : detail === 'ids'
      ? toSelection([shape.idPath])
      : detail === 'slim'
        ? shape.slim
        : true
  return createView(
    shape,
    { ...input, ...passDetail(shape, detail as string, fields) },
    isSlim ? shape.slimUntrusted : narrow(shape.untrusted, shape.row, selection),
    selection,
    {
      budget:
        isList && args.limit === undefined && detail !== 'full' && !fields
          ? DEFAULT_PAGE_TOKENS
          : MAX_ANSWER_TOKENS,
      isSlim,
    },
  )
}

/** Returns the operation's own `detail`: what it must read for these fields. */
const passDetail = (
  { details, slim }: Shape,
  detail: string,
  fields: readonly string[] | undefined,
): { detail?: string } => {
  if (fields && details.includes('full') && slim !== true && fields.some((f) => !slim.has(f.split('.')[0]!)))
    return { detail: 'full' }
  return details.includes(detail) ? { detail } : {}
}

const createView = (
  { row }: Shape,
  input: Record<string, unknown>,
  untrusted: readonly string[],
  selection: Selection,
  { budget, isSlim }: { budget: number; isSlim: boolean },
): View => {
  let isCut = false
  return {
    input,
    untrusted,
    present: (output) => {
      const answer = output as Record<string, unknown>
      if (row === '') {
        const shown = select(answer, selection, isSlim) as Record<string, unknown>
        return cutToBudget(shown, JSON.stringify(shown))
      }
      const json = writePage(answer, selection, { budget, isSlim, isCut })
      isCut ||= typeof json === 'number'
      return json
    },
  }
}
