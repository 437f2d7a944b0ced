import { z } from 'zod'
import { type Alternative, type Fields, getInputSchema, type Operation } from '../../catalog/index.ts'
import { containsApiKey } from '../api-keys.ts'
import { findNearestName } from '../nearest-name.ts'
import { type FieldError, invalidField, toPointer, Problem } from './problem.ts'

const schemas = new WeakMap<Operation, Fields>()

const getCachedInputSchema = (op: Operation): Fields => {
  let schema = schemas.get(op)
  if (!schema) schemas.set(op, (schema = getInputSchema(op)))
  return schema
}

/** Deeper than any valid input; bounds the recursion below. */
const MAX_DEPTH = 64
const MAX_ERRORS = 50

/** Checks the input against the operation's schema. Returns the parsed input, and `dry_run` apart from it. */
export const validate = (
  op: Operation,
  raw: unknown,
): { input: Record<string, unknown>; dryRun: boolean } => {
  const { dry_run: dryRun, ...input } = parseFields(
    getCachedInputSchema(op),
    raw === undefined ? {} : raw,
    op.itemwise,
  ) as Record<string, unknown>
  checkAlternatives(op, input)
  return { input, dryRun: dryRun === true }
}

/**
 * Parses an object by a schema. Throws 400 with every error. Items of the field `itemwise` are only checked
 * for depth; the handler validates them one by one.
 */
export const parseFields = <S extends z.ZodObject>(
  schema: S,
  raw: unknown,
  itemwise?: string,
): z.output<S> => {
  const errors = itemwise === undefined ? findTextErrors(raw) : findItemwiseErrors(raw, itemwise)
  if (errors.length > 0) throw toProblem(errors)
  const parsed = schema.safeParse(stringifyIds(raw))
  if (!parsed.success)
    throw toProblem(
      parsed.error.issues.slice(0, MAX_ERRORS).flatMap((issue) => toFieldErrors(schema, issue, raw)),
    )
  return parsed.data
}

/** Ids are strings, but many JSON writers turn digits into integers: `contact_id: 42` becomes "42". */
const stringifyIds = (raw: unknown): unknown => {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return raw
  const numeric = Object.entries(raw).filter(
    ([name, value]) => name.endsWith('_id') && Number.isSafeInteger(value),
  )
  return numeric.length === 0
    ? raw
    : { ...raw, ...Object.fromEntries(numeric.map(([name, value]) => [name, String(value)])) }
}

const toProblem = (errors: FieldError[]): Problem => {
  // A field that breaks several rules is one field.
  const fields = new Set(errors.map(({ pointer }) => pointer)).size
  const detail =
    fields === 1 ? `${formatFieldName(errors[0]!)}${errors[0]!.detail}.` : `${fields} fields are wrong.`
  const isCursor = errors.every(({ pointer }) => pointer === '#/cursor')
  return new Problem('invalid_input', detail, {
    ...(isCursor ? { reason: 'cursor_invalid' } : {}),
    errors: errors.slice(0, MAX_ERRORS),
  })
}

const formatFieldName = (error: FieldError): string =>
  error.pointer === '#' ? 'The input ' : `${error.pointer!.slice(2)} `

const findItemwiseErrors = (raw: unknown, field: string): FieldError[] => {
  if (raw === null || typeof raw !== 'object') return findTextErrors(raw)
  const { [field]: items, ...rest } = raw as Record<string, unknown>
  return [...findTextErrors(rest), ...(isDeep(items) ? [createTooDeepError([field])] : [])]
}

const isDeep = (value: unknown, levels = MAX_DEPTH): boolean =>
  value !== null &&
  typeof value === 'object' &&
  (levels === 0 || Object.values(value).some((member) => isDeep(member, levels - 1)))

const createTooDeepError = (path: readonly PropertyKey[]): FieldError => ({
  pointer: toPointer(path),
  code: 'too_deep',
  detail: `is nested deeper than ${MAX_DEPTH} levels`,
  fix: 'Send flatter data.',
})

/**
 * Finds text that must not be stored: what no database column or UTF-8 response can hold (NUL and lone
 * surrogates), and API keys, which everyone who may read the field could use.
 */
const findTextErrors = (value: unknown, path: PropertyKey[] = [], found: FieldError[] = []): FieldError[] => {
  if (path.length > MAX_DEPTH) {
    found.push(createTooDeepError(path.slice(0, 8)))
  } else if (typeof value === 'string') {
    const error = checkText(value)
    if (error) found.push({ pointer: toPointer(path), ...error })
  } else if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      if (found.length >= MAX_ERRORS) break
      const error = checkText(key)
      if (error)
        found.push({ pointer: toPointer(path), ...error, detail: `has a field whose name ${error.detail}` })
      // A record schema would drop it silently.
      else if (key === '__proto__' && path.length > 0)
        found.push({
          pointer: toPointer([...path, key]),
          code: 'unknown_field',
          detail: 'is a reserved name',
          fix: 'Use another name.',
        })
      else findTextErrors(member, [...path, key], found)
    }
  }
  return found
}

const checkText = (text: string): Pick<FieldError, 'code' | 'detail' | 'fix'> | undefined => {
  if (text.includes('\0'))
    return { code: 'invalid_text', detail: 'contains a NUL character', fix: 'Remove the character U+0000.' }
  if (!text.isWellFormed())
    return { code: 'invalid_text', detail: 'contains a lone surrogate', fix: 'Send valid Unicode.' }
  if (containsApiKey(text))
    return {
      code: 'contains_api_key',
      detail: 'contains an API key',
      fix: 'Remove it. If others may have seen it, replace it on the server: wcrm admin keys rotate.',
    }
  return undefined
}

type Issue = z.core.$ZodIssue

/** A union whose kind is wrong is a word that is not allowed. */
const toWordIssue = (issue: Issue): Issue =>
  issue.code === 'invalid_union' && 'options' in issue
    ? { ...issue, code: 'invalid_value', values: issue.options as string[] }
    : issue

const toFieldErrors = (schema: Fields, found: Issue, raw: unknown): FieldError[] => {
  const issue = toWordIssue(found)
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, MAX_ERRORS)
      .map((key) => createUnknownFieldError(schema, { path: issue.path, key, raw }))
  const pointer = toPointer(issue.path)
  if (issue.code === 'invalid_key') return [createKeyError(pointer, issue)]
  const given = getValueAt(raw, issue.path)
  if (given === undefined && issue.path.length > 0) {
    return [{ pointer, code: 'required', detail: 'is required', fix: `Send ${String(issue.path.at(-1))}.` }]
  }
  if (issue.code === 'invalid_union') {
    // The branch that matched deepest explains the error best; a union of primitive values needs none.
    const deeper = issue.errors.flat().filter((i) => i.path.length > 0)
    if (deeper.length > 0)
      return deeper.flatMap((i) =>
        toFieldErrors(schema, { ...i, path: [...issue.path, ...i.path] } as Issue, raw),
      )
  }
  const fix = getFix(issue, listFieldNames(schema, issue.path, raw))
  return [{ pointer, code: getErrorCode(issue), detail: describeIssue(issue, given), ...fix }]
}

/** Says what is wrong with the name of a member that the caller chose. */
const createKeyError = (
  pointer: string,
  { code, path, issues }: Issue & { code: 'invalid_key' },
): FieldError => {
  const [wrong] = issues
  if (!wrong) return { pointer, code, detail: 'has a name that is not allowed', fix: 'Use another name.' }
  return { pointer, code, detail: `has a name that ${describeIssue(wrong, path.at(-1))}`, ...getFix(wrong) }
}

const createUnknownFieldError = (
  schema: Fields,
  { path, key, raw }: { path: PropertyKey[]; key: string; raw: unknown },
): FieldError => ({
  pointer: toPointer([...path, key]),
  code: 'unknown_field',
  detail: 'is not a field of this operation',
  fix: suggestField(key, listFieldNames(schema, path, raw)),
})

/** The fix for an unknown field, in a place where `names` are valid. */
export const suggestField = (key: string, names: readonly string[]): string => {
  const nearest = findNearestName(key, names)
  if (nearest) return `Did you mean ${nearest}?`
  return names.length > 0
    ? `Remove it; valid fields are ${names.join(', ')}.`
    : 'Remove it; no fields are allowed here.'
}

/** Returns the names that are valid in place of an unknown one. */
const listFieldNames = (root: Fields, path: PropertyKey[], raw: unknown): string[] => {
  let schemas = chooseMembers(root, raw)
  for (const [i, step] of path.entries()) {
    const value = getValueAt(raw, path.slice(0, i + 1))
    schemas = schemas
      .map(({ shape, element }) => (typeof step === 'number' ? element : shape?.[String(step)]))
      .flatMap((schema) => chooseMembers(schema, value))
  }
  return schemas.flatMap(({ shape }) => Object.keys(shape ?? {}))
}

type Member = {
  shape?: Record<string, unknown>
  element?: unknown
  options?: readonly unknown[]
  _zod?: { def: { innerType?: unknown }; propValues?: Record<string, ReadonlySet<unknown>> }
}

/** Returns what a schema is inside; of a union, the members of the kind that the value says it is. */
const chooseMembers = (schema: unknown, value: unknown): Member[] => {
  const inner = unwrap(schema)
  if (!inner?.options) return inner ? [inner] : []
  return inner.options
    .flatMap((option) => chooseMembers(option, value))
    .filter(({ _zod }) =>
      Object.entries(_zod?.propValues ?? {}).every(([name, values]) => values.has(getValueAt(value, [name]))),
    )
}

const unwrap = (schema: unknown): Member | undefined => {
  let inner = schema as Member | undefined
  while (inner?._zod?.def.innerType) inner = inner._zod.def.innerType as typeof inner
  return inner
}

const getValueAt = (value: unknown, path: PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (parent, step) =>
      parent !== null && typeof parent === 'object'
        ? (parent as Record<PropertyKey, unknown>)[step]
        : undefined,
    value,
  )

/** A schema's own checks may set a code and a fix. */
const getIssueParam = (issue: Issue, name: 'code' | 'fix'): string | undefined =>
  issue.code === 'custom' ? (issue.params?.[name] as string | undefined) : undefined

const getErrorCode = (issue: Issue): string => {
  if (issue.code === 'too_small')
    return issue.origin === 'string' || issue.origin === 'array' ? 'too_short' : 'too_small'
  if (issue.code === 'too_big')
    return issue.origin === 'string' || issue.origin === 'array' ? 'too_long' : 'too_big'
  if (issue.code === 'custom' || issue.code === 'invalid_union')
    return getIssueParam(issue, 'code') ?? 'invalid_value'
  return issue.code
}

/** What zod says of formats is its own jargon. */
const FORMATS: Readonly<Record<string, { detail: string; fix: string }>> = {
  datetime: {
    detail: 'is not a time of ISO 8601',
    fix: 'Send a time such as 2026-10-01T09:30:00Z or 2026-10-01T11:30:00+02:00.',
  },
  date: { detail: 'is not a day', fix: 'Send a day such as 2026-10-01.' },
  url: { detail: 'must be a public https URL', fix: 'Send a URL such as https://example.com/menu.jpg.' },
  base64: {
    detail: 'must be base64',
    fix: 'Send the bytes of the file as base64, without line breaks and without a prefix such as data:.',
  },
}

const findFormat = (issue: Issue) => (issue.code === 'invalid_format' ? FORMATS[issue.format] : undefined)

const describeIssue = (issue: Issue, given: unknown): string => {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(issue.expected)}, not ${describeKind(given, issue.expected)}`
    case 'too_small':
    case 'too_big':
      return `must ${describeBound(issue).verb} ${describeBound(issue).text}`
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${String(issue.values[0])}`
        : `must be one of ${issue.values.join(', ')}`
    default:
      return findFormat(issue)?.detail ?? issue.message.charAt(0).toLowerCase() + issue.message.slice(1)
  }
}

const UNITS: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

/** Describes the bound of a number, of a text's length or of the count of a list's items. */
const describeBound = (
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
): { verb: 'have' | 'be'; text: string } => {
  const isMin = issue.code === 'too_small'
  const bound = isMin ? issue.minimum : issue.maximum
  const unit = UNITS[issue.origin]
  const relation = isMin ? 'at least' : 'at most'
  if (unit !== undefined)
    return { verb: 'have', text: `${relation} ${bound} ${unit}${Number(bound) === 1 ? '' : 's'}` }
  return { verb: 'be', text: `${issue.inclusive ? relation : isMin ? 'more than' : 'less than'} ${bound}` }
}

/** Turns what a value must be into what to send. */
const toFix = (detail: string): string => {
  const [, rule, rest] = /^must (be|have|not) (.+)$/.exec(detail) ?? []
  if (rule === 'be') return `Send ${rest}.`
  if (rule === 'have') return `Send a value that has ${rest}.`
  return rule === 'not' ? `Send a value that does not ${rest}.` : 'Correct the value.'
}

/** `names`: of the fields that an object in this place has. */
const getFix = (issue: Issue, names: readonly string[] = []): Partial<FieldError> => {
  switch (issue.code) {
    case 'invalid_value':
      return {
        allowed: issue.values,
        fix: `Send ${issue.values.length === 1 ? 'this value' : 'one of these values'}.`,
      }
    case 'too_small':
    case 'too_big':
      return { fix: `Send ${describeBound(issue).text}.` }
    case 'invalid_type':
      if (issue.expected === 'boolean') return { fix: 'Send true or false.' }
      return {
        fix: `Send ${withArticle(issue.expected)}${names.length > 0 ? `; its fields are ${names.join(', ')}` : ''}.`,
      }
    default:
      return {
        fix: getIssueParam(issue, 'fix') ?? findFormat(issue)?.fix ?? toFix(describeIssue(issue, undefined)),
      }
  }
}

const withArticle = (kind: string): string => {
  const name = { int: 'integer', record: 'object' }[kind] ?? kind
  return `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`
}

const describeKind = (value: unknown, expected: string): string =>
  expected === 'int' && Number.isFinite(value)
    ? String(value)
    : value === null
      ? 'null'
      : Array.isArray(value)
        ? 'an array'
        : Number.isNaN(value)
          ? 'NaN'
          : withArticle(typeof value)

/** Returns the values that a field takes; undefined when they are not listed. */
const listValues = (op: Operation, field: string): readonly string[] | undefined => {
  const schema = op.input.shape[field]
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  return inner instanceof z.ZodEnum ? inner.options.map(String) : undefined
}

const missingProblem = (alternatives: readonly Alternative[]): Problem => {
  const [first, ...others] = alternatives.map(({ needs }) => needs[0]!)
  const ways = alternatives.map(({ needs }) => needs.join(' with '))
  return invalidField(first!, 'required', `or ${others.join(' or ')} is required`, {
    fix: `Send one of ${ways.slice(0, -1).join(', ')} and ${ways.at(-1)}.`,
  })
}

/**
 * Checks that exactly one alternative of an operation is given, whole, and nothing of the others. The first field
 * that an alternative needs says that it is meant. Throws 400.
 */
const checkAlternatives = (op: Operation, input: Readonly<Record<string, unknown>>): void => {
  const alternatives = op.alternatives ?? []
  if (alternatives.length === 0) return
  const [chosen, second] = alternatives.filter(({ needs }) => input[needs[0]!] !== undefined)
  if (!chosen) throw missingProblem(alternatives)
  const [key, ...rest] = chosen.needs
  if (second)
    throw invalidField(second.needs[0]!, 'ambiguous', `cannot be combined with ${key}`, {
      fix: 'Send only one of them.',
    })
  for (const { needs, takes = [] } of alternatives.filter((other) => other !== chosen)) {
    const stray = [...needs, ...takes].find((field) => input[field] !== undefined)
    if (stray !== undefined)
      throw invalidField(stray, 'not_allowed', `is only allowed with ${needs[0]}`, {
        fix: `Remove it, or send ${needs[0]}.`,
      })
  }
  const missing = rest.find((field) => input[field] === undefined)
  if (missing !== undefined) {
    const allowed = listValues(op, missing)
    throw invalidField(missing, 'required', `is required with ${key}`, {
      fix: 'Send it too.',
      ...(allowed ? { allowed: [...allowed] } : {}),
    })
  }
}
