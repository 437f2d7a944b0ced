import { filterLimits } from '../../../catalog/filters.ts'
import type { FlagTest, IdTest, NumberTest, TextTest, TimeTest } from '../../../storage/filters/filter.ts'
import { parsePhone } from '../contacts/phone.ts'
import { toPointer } from '../../kernel/problem.ts'
import { toLocalDay, type FilterDate, parseFilterDate } from './dates.ts'
import type { FilterField } from './grammar.ts'
import {
  addError,
  createLimitProblem,
  type FilterPath,
  addUnknownName,
  type ParseState,
  addWarning,
} from './parse-state.ts'

type Test = TextTest | IdTest | TimeTest | NumberTest | FlagTest
/** An operator with its value as storage runs it and as it is stored (`absolute`); `dates`: its dates. */
export type ParsedTest = { op: string; test: Test; absolute: unknown; dates: readonly FilterDate[] }

/** How the values of a field are parsed: `days` where days are compared, `digits` where E.164 digits are. */
export type OperandRules = FilterField & { days?: boolean; digits?: boolean }

/** Parses the value of an operator. Undefined when it is invalid; the error is recorded. */
export const parseTest = (
  state: ParseState,
  leaf: OperandRules,
  op: string,
  raw: unknown,
  path: FilterPath,
): ParsedTest | undefined => {
  if (op === 'isNull')
    return typeof raw === 'boolean'
      ? createTest(op, { op, value: raw }, raw)
      : addError(state, path, notABoolean)
  if (op === 'between') return parseBetween(state, leaf, raw, path)
  if (op === 'in' || op === 'notIn') return parseList(state, leaf, op, raw, path)
  const parsed = parseValue(state, leaf, op, raw, path)
  return (
    parsed && {
      op,
      test: { op, value: parsed.value } as Test,
      absolute: parsed.absolute,
      dates: parsed.date ? [parsed.date] : [],
    }
  )
}

const notABoolean = {
  code: 'invalid_type',
  detail: 'must be true or false',
  fix: 'Send true or false, without quotes.',
}

const createTest = (op: string, test: Test, absolute: unknown): ParsedTest => ({
  op,
  test,
  absolute,
  dates: [],
})

const parseList = (
  state: ParseState,
  leaf: OperandRules,
  op: 'in' | 'notIn',
  raw: unknown,
  path: FilterPath,
): ParsedTest | undefined => {
  if (!Array.isArray(raw))
    return addError(state, path, {
      code: 'invalid_type',
      detail: 'must be a list',
      fix: 'Send a list, or use eq for one value.',
    })
  requireListLength(state, raw, path)
  if (raw.length === 0)
    return addError(state, path, {
      code: 'too_short',
      detail: 'must have at least 1 item',
      fix: 'List the values, or omit the condition.',
    })
  const values = raw.map((item, n) => parseValue(state, leaf, op, item, [...path, n])?.value)
  if (values.includes(undefined)) return undefined
  const distinct = [...new Set(values)]
  if (distinct.length < values.length) addWarning(state, path, 'The list contains a value more than once.')
  return createTest(op, { op, values: distinct as string[] }, raw)
}

export const requireListLength = (state: ParseState, list: readonly unknown[], path: FilterPath): void => {
  if (list.length > filterLimits.list)
    throw createLimitProblem(
      state,
      path,
      'filter_list_too_long',
      `has ${list.length} items`,
      `Send at most ${filterLimits.list} items.`,
    )
}

const parseBetween = (
  state: ParseState,
  leaf: OperandRules,
  raw: unknown,
  path: FilterPath,
): ParsedTest | undefined => {
  if (!Array.isArray(raw) || raw.length !== 2) {
    return addError(state, path, {
      code: 'invalid_type',
      detail: 'must be a list of two values',
      fix: 'Send [from, to]; both ends are included.',
    })
  }
  const [from, to] = raw.map((item, n) =>
    parseValue(state, leaf, n === 0 ? 'gte' : 'lte', item, [...path, n]),
  )
  if (!from || !to) return undefined
  const dates = [from.date, to.date].filter((date) => date !== undefined)
  return {
    op: 'between',
    test: { op: 'between', from: String(from.value), to: String(to.value) },
    absolute: [from.absolute, to.absolute],
    dates,
  }
}

/** A value as storage compares it, and as it is stored. */
type ParsedValue = { value: string | boolean; absolute: unknown; date?: FilterDate }

const parseValue = (
  state: ParseState,
  leaf: OperandRules,
  op: string,
  raw: unknown,
  path: FilterPath,
): ParsedValue | undefined => {
  if (raw === null)
    return addError(state, path, {
      code: 'invalid_type',
      detail: 'must not be null',
      fix: 'To find absent values, send {"isNull": true}.',
    })
  if (typeof raw === 'string') requireLength(state, op, raw, path)
  switch (leaf.kind) {
    case 'text':
    case 'code':
      return parseText(state, leaf, op, raw, path)
    case 'id':
    case 'ref':
      return parseId(state, raw, path)
    case 'key':
      return parseText(state, leaf, op, raw, path)
    case 'word':
    case 'country':
      return parseWord(state, leaf.words!, raw, path)
    case 'time':
      return parseTime(state, leaf, raw, path)
    case 'number':
      return parseNumber(state, raw, path)
    case 'flag':
      return typeof raw === 'boolean' ? { value: raw, absolute: raw } : addError(state, path, notABoolean)
  }
}

const requireLength = (state: ParseState, op: string, text: string, path: FilterPath): void => {
  const max = op === 'regex' ? filterLimits.regex : filterLimits.string
  // A text has at most as many code points as code units, so most texts need no counting.
  const length = text.length <= max ? text.length : [...text].length
  if (length <= max) return
  const reason = op === 'regex' ? 'filter_regex_too_long' : 'filter_string_too_long'
  throw createLimitProblem(state, path, reason, `has ${length} characters`, `Send at most ${max} characters.`)
}

const parseText = (
  state: ParseState,
  leaf: OperandRules,
  op: string,
  raw: unknown,
  path: FilterPath,
): ParsedValue | undefined => {
  if (typeof raw !== 'string')
    return addError(state, path, {
      code: 'invalid_type',
      detail: 'must be text',
      fix: Array.isArray(raw) ? 'Use in or notIn for a list.' : 'Send a string.',
    })
  if (op === 'regex') state.patterns.push({ path, pattern: raw })
  return { value: leaf.digits && op !== 'regex' ? toPhoneDigits(op, raw) : raw, absolute: raw }
}

/** Digits and the separators that people write between them. */
const PHONE = /^[\s()+\-./\d\p{Cf}]*\d[\s()+\-./\d\p{Cf}]*$/u

/** Returns a phone number or a part of one as stored digits; other text unchanged, which matches nothing. */
const toPhoneDigits = (op: string, text: string): string => {
  const whole = ['eq', 'ne', 'in', 'notIn'].includes(op) ? parsePhone(text) : undefined
  if (whole && 'digits' in whole) return whole.digits
  return PHONE.test(text) ? text.replaceAll(/\D/g, '') : text
}

const parseId = (state: ParseState, raw: unknown, path: FilterPath): ParsedValue | undefined =>
  (typeof raw === 'string' && /^[1-9]\d{0,18}$/.test(raw)) || (Number.isSafeInteger(raw) && Number(raw) > 0)
    ? { value: String(raw), absolute: raw }
    : addError(state, path, {
        code: 'invalid_value',
        detail: 'must be an id: 1 to 19 digits as a string, or an integer',
        fix: 'Send an id; to compare names, use name.',
      })

const parseWord = (
  state: ParseState,
  words: readonly string[],
  raw: unknown,
  path: FilterPath,
): ParsedValue | undefined => {
  if (typeof raw !== 'string')
    return addError(state, path, {
      code: 'invalid_type',
      detail: 'must be text',
      fix: `Send one of ${words.join(', ')}.`,
      allowed: words,
    })
  return words.includes(raw)
    ? { value: raw, absolute: raw }
    : addUnknownName(state, path, { what: 'value', given: raw, valid: words, code: 'invalid_value' })
}

const parseTime = (
  state: ParseState,
  leaf: OperandRules,
  raw: unknown,
  path: FilterPath,
): ParsedValue | undefined => {
  const date =
    typeof raw === 'string'
      ? parseFilterDate(raw, state.now, state.zone)
      : { detail: 'must be a date', fix: 'Send it as text, such as "2026-10-01T09:30:00Z" or "-7d".' }
  if ('detail' in date)
    return addError(state, path, { code: 'invalid_date', detail: date.detail, fix: date.fix })
  const text = raw as string
  // A day needs no resolving where days are compared.
  if (leaf.days && date.form === 'day') return { value: text, absolute: text, date }
  if (date.form !== 'instant')
    state.resolvedDates.push({ path: toPointer(path), input: text, value: date.instant })
  if (!leaf.days) return { value: date.instant, absolute: date.instant, date }
  const day = toLocalDay(date.instant, state.zone)
  if (!/^(?!0000)\d{4}-/.test(day))
    return addError(state, path, {
      code: 'invalid_date',
      detail: 'must lie in the years 0001 to 9999',
      fix: 'Send an earlier or later date.',
    })
  return { value: day, absolute: day, date }
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/i

const parseNumber = (state: ParseState, raw: unknown, path: FilterPath): ParsedValue | undefined => {
  if (typeof raw === 'number' && Number.isFinite(raw)) {
    if (Number.isInteger(raw) && !Number.isSafeInteger(raw))
      addWarning(state, path, 'JSON numbers of this size lose precision; send the number as text.')
    return { value: String(raw), absolute: raw }
  }
  if (typeof raw === 'string' && NUMBER.test(raw)) return { value: raw, absolute: raw }
  return addError(state, path, {
    code: 'invalid_type',
    detail: 'must be a number',
    fix: 'Send a number, such as 12.5, or the same as text.',
  })
}
