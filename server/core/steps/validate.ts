import type { z } from 'zod'
import { type Fields, getInputSchema, type Operation } from '../../../catalog/index.ts'
import { findNearestName } from '../../nearest-name.ts'
import { type FieldError, toPointer, Problem } from '../problem.ts'

const schemas = new WeakMap<Operation, Fields>()

const schemaOf = (op: Operation): Fields => {
  let schema = schemas.get(op)
  if (!schema) schemas.set(op, (schema = getInputSchema(op)))
  return schema
}

/** Deeper than any input has reason to be; recursion below must end somewhere. */
const MAX_DEPTH = 64
const MAX_ERRORS = 50

/**
 * Checks the input against the operation's schema. Answers the parsed input, without `dry_run`, which is
 * answered beside it.
 */
export const validate = (
  op: Operation,
  raw: unknown,
): { input: Record<string, unknown>; dryRun: boolean } => {
  const { dry_run: dryRun, ...input } = parseFields(schemaOf(op), raw ?? {}, op.itemwise) as Record<
    string,
    unknown
  >
  return { input, dryRun: dryRun === true }
}

/**
 * Checks an object against a schema and answers what it parses to, or throws 400 with each fault. Of the
 * items of `itemwise` only the depth is checked.
 */
export const parseFields = <S extends z.ZodObject>(
  schema: S,
  raw: unknown,
  itemwise?: string,
): z.output<S> => {
  const faults = itemwise === undefined ? textFaults(raw) : itemwiseFaults(raw, itemwise)
  if (faults.length > 0) throw invalid(faults)
  const parsed = schema.safeParse(withTextIds(raw))
  if (!parsed.success)
    throw invalid(
      parsed.error.issues.slice(0, MAX_ERRORS).flatMap((issue) => fieldErrors(schema, issue, raw)),
    )
  return parsed.data
}

/** Ids are strings, but many JSON writers make integers of digits: `contact_id: 42` is taken as "42". */
const withTextIds = (raw: unknown): unknown => {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return raw
  const numeric = Object.entries(raw).filter(
    ([name, value]) => name.endsWith('_id') && Number.isSafeInteger(value),
  )
  return numeric.length === 0
    ? raw
    : { ...raw, ...Object.fromEntries(numeric.map(([name, value]) => [name, String(value)])) }
}

const invalid = (errors: FieldError[]): Problem => {
  const detail =
    errors.length === 1 ? `${nameOf(errors[0]!)}${errors[0]!.detail}.` : `${errors.length} fields are wrong.`
  return new Problem('invalid_input', detail, { errors: errors.slice(0, MAX_ERRORS) })
}

const nameOf = (error: FieldError): string =>
  error.pointer === '#' ? 'The input ' : `${error.pointer!.slice(2)} `

const itemwiseFaults = (raw: unknown, field: string): FieldError[] => {
  if (raw === null || typeof raw !== 'object') return textFaults(raw)
  const { [field]: items, ...rest } = raw as Record<string, unknown>
  return [...textFaults(rest), ...(isDeep(items) ? [tooDeep([field])] : [])]
}

const isDeep = (value: unknown, levels = MAX_DEPTH): boolean =>
  value !== null &&
  typeof value === 'object' &&
  (levels === 0 || Object.values(value).some((member) => isDeep(member, levels - 1)))

const tooDeep = (path: readonly PropertyKey[]): FieldError => ({
  pointer: toPointer(path),
  code: 'too_deep',
  detail: `is nested deeper than ${MAX_DEPTH} levels`,
  fix: 'Send flatter data.',
})

/** Text that no database column or UTF-8 answer can hold: NUL and lone surrogates. */
const textFaults = (value: unknown, path: PropertyKey[] = [], found: FieldError[] = []): FieldError[] => {
  if (path.length > MAX_DEPTH) {
    found.push(tooDeep(path.slice(0, 8)))
  } else if (typeof value === 'string') {
    const fault = badText(value)
    if (fault) found.push({ pointer: toPointer(path), ...fault })
  } else if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      if (found.length >= MAX_ERRORS) break
      if (badText(key))
        found.push({
          pointer: toPointer(path),
          code: 'invalid_text',
          detail: 'has a key with characters that cannot be stored',
          fix: 'Remove NUL and lone surrogates from keys.',
        })
      // A record schema would drop it in silence.
      else if (key === '__proto__' && path.length > 0)
        found.push({
          pointer: toPointer([...path, key]),
          code: 'unknown_field',
          detail: 'is not a name that can be used',
          fix: 'Use another name.',
        })
      else textFaults(member, [...path, key], found)
    }
  }
  return found
}

const badText = (text: string): Pick<FieldError, 'code' | 'detail' | 'fix'> | undefined => {
  if (text.includes('\0'))
    return { code: 'invalid_text', detail: 'contains a NUL character', fix: 'Remove the character U+0000.' }
  if (!text.isWellFormed())
    return { code: 'invalid_text', detail: 'contains half of a surrogate pair', fix: 'Send valid Unicode.' }
  return undefined
}

type Issue = z.core.$ZodIssue

const fieldErrors = (schema: Fields, issue: Issue, raw: unknown): FieldError[] => {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, MAX_ERRORS).map((key) => unknownField(schema, issue.path, key))
  const pointer = toPointer(issue.path)
  const given = valueAt(raw, issue.path)
  if (given === undefined && issue.path.length > 0) {
    return [{ pointer, code: 'required', detail: 'is required', fix: `Send ${String(issue.path.at(-1))}.` }]
  }
  if (issue.code === 'invalid_union') {
    // The branch that got furthest says best what is wrong; a union of plain values speaks for itself.
    const deeper = issue.errors.flat().filter((i) => i.path.length > 0)
    if (deeper.length > 0)
      return deeper.flatMap((i) =>
        fieldErrors(schema, { ...i, path: [...issue.path, ...i.path] } as Issue, raw),
      )
  }
  return [{ pointer, code: codeOf(issue), detail: plain(issue, given), ...mendOf(issue) }]
}

const unknownField = (schema: Fields, path: PropertyKey[], key: string): FieldError => {
  const names = siblings(schema, path)
  const near = findNearestName(key, names)
  return {
    pointer: toPointer([...path, key]),
    code: 'unknown_field',
    detail: 'is not a field of this operation',
    fix: near
      ? `Did you mean ${near}?`
      : names.length > 0
        ? `Remove it; the fields are ${names.join(', ')}.`
        : 'Remove it; there are no fields here.',
  }
}

/** The names that may stand where an unknown one did. */
const siblings = (root: Fields, path: PropertyKey[]): string[] => {
  let schema: unknown = root
  for (const step of path) {
    schema = unwrap(schema)
    const { shape, element } = schema as { shape?: Record<string, unknown>; element?: unknown }
    schema = typeof step === 'number' ? element : shape?.[String(step)]
  }
  return Object.keys((unwrap(schema) as { shape?: object } | undefined)?.shape ?? {})
}

const unwrap = (schema: unknown): unknown => {
  let inner = schema as { _zod?: { def: { innerType?: unknown } } } | undefined
  while (inner?._zod?.def.innerType) inner = inner._zod.def.innerType as typeof inner
  return inner
}

const valueAt = (value: unknown, path: PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (v, step) =>
      v !== null && typeof v === 'object' ? (v as Record<PropertyKey, unknown>)[step] : undefined,
    value,
  )

/** A schema's own checks may say a code and the mend. */
const paramOf = (issue: Issue, name: 'code' | 'fix'): string | undefined =>
  issue.code === 'custom' ? (issue.params?.[name] as string | undefined) : undefined

const codeOf = (issue: Issue): string => {
  if (issue.code === 'too_small')
    return issue.origin === 'string' || issue.origin === 'array' ? 'too_short' : 'too_small'
  if (issue.code === 'too_big')
    return issue.origin === 'string' || issue.origin === 'array' ? 'too_long' : 'too_big'
  if (issue.code === 'custom' || issue.code === 'invalid_union')
    return paramOf(issue, 'code') ?? 'invalid_value'
  return issue.code
}

const plain = (issue: Issue, given: unknown): string => {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${article(issue.expected)}, not ${kindOf(given)}`
    case 'too_small':
      return issue.origin === 'string'
        ? `must have at least ${issue.minimum} character${issue.minimum === 1 ? '' : 's'}`
        : issue.origin === 'array'
          ? `must have at least ${issue.minimum} item${issue.minimum === 1 ? '' : 's'}`
          : `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string'
        ? `must have at most ${issue.maximum} characters`
        : issue.origin === 'array'
          ? `must have at most ${issue.maximum} items`
          : `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? String(issue.values[0]) : `one of ${issue.values.join(', ')}`}`
    default:
      return issue.message.charAt(0).toLowerCase() + issue.message.slice(1)
  }
}

const mendOf = (issue: Issue): Partial<FieldError> => {
  switch (issue.code) {
    case 'invalid_value':
      return {
        allowed: issue.values,
        fix: `Send ${issue.values.length === 1 ? 'this value' : 'one of these values'}.`,
      }
    case 'too_small':
      return { fix: 'Send more.' }
    case 'too_big':
      return { fix: 'Send less.' }
    case 'invalid_type':
      return { fix: `Send ${article(issue.expected)}.` }
    default:
      return { fix: paramOf(issue, 'fix') ?? 'Correct the value.' }
  }
}

const article = (kind: string): string => {
  const name = { int: 'integer', record: 'object' }[kind] ?? kind
  return `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`
}

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'an array'
      : article(Number.isNaN(value) ? 'number that is not a number' : typeof value)
