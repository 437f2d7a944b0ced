import { filterLimits } from '../../catalog/filters.ts'
import type { FlagTest, IdTest, NumberTest, TextTest, TimeTest } from '../../storage/filters/filter.ts'
import { parsePhone } from '../contacts/phone.ts'
import { pointerOf } from '../core/problem.ts'
import { dayOf, type FilterDate, readDate } from './dates.ts'
import type { Leaf } from './grammar.ts'
import { fault, overLimit, type Path, unknownName, type Walk, warn } from './walk.ts'

type Test = TextTest | IdTest | TimeTest | NumberTest | FlagTest
/** An operator with its value: as storage asks it, and as it is kept. `dates`: what was read of its dates. */
export type ReadTest = { op: string; test: Test; absolute: unknown; dates: readonly FilterDate[] }

/** How the values of a field are read: `days` where days are compared, `phone` where E.164 digits are. */
export type Reading = Leaf & { days?: boolean; digits?: boolean }

/** Reads the value of an operator that the field has. Undefined when it is wrong, which is noted. */
export const readTest = (
  walk: Walk,
  leaf: Reading,
  op: string,
  raw: unknown,
  path: Path,
): ReadTest | undefined => {
  if (op === 'isNull')
    return typeof raw === 'boolean' ? plain(op, { op, value: raw }, raw) : fault(walk, path, notAFlag)
  if (op === 'between') return readBetween(walk, leaf, raw, path)
  if (op === 'in' || op === 'notIn') return readList(walk, leaf, op, raw, path)
  const read = readValue(walk, leaf, op, raw, path)
  return (
    read && {
      op,
      test: { op, value: read.value } as Test,
      absolute: read.absolute,
      dates: read.date ? [read.date] : [],
    }
  )
}

const notAFlag = {
  code: 'invalid_type',
  detail: 'must be true or false',
  fix: 'Send true or false, without quotes.',
}

const plain = (op: string, test: Test, absolute: unknown): ReadTest => ({ op, test, absolute, dates: [] })

const readList = (
  walk: Walk,
  leaf: Reading,
  op: 'in' | 'notIn',
  raw: unknown,
  path: Path,
): ReadTest | undefined => {
  if (!Array.isArray(raw))
    return fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be a list',
      fix: 'Send a list, or use eq for one value.',
    })
  requireListLength(walk, raw, path)
  if (raw.length === 0)
    return fault(walk, path, {
      code: 'too_short',
      detail: 'must have at least 1 item',
      fix: 'List the values, or leave the condition out.',
    })
  const values = raw.map((item, n) => readValue(walk, leaf, op, item, [...path, n])?.value)
  if (values.includes(undefined)) return undefined
  const distinct = [...new Set(values)]
  if (distinct.length < values.length) warn(walk, path, 'The list holds a value more than once.')
  return plain(op, { op, values: distinct as string[] }, raw)
}

export const requireListLength = (walk: Walk, list: readonly unknown[], path: Path): void => {
  if (list.length > filterLimits.list)
    throw overLimit(
      walk,
      path,
      'filter_list_too_long',
      `has ${list.length} items`,
      `Send at most ${filterLimits.list} items.`,
    )
}

const readBetween = (walk: Walk, leaf: Reading, raw: unknown, path: Path): ReadTest | undefined => {
  if (!Array.isArray(raw) || raw.length !== 2) {
    return fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be a list of two values',
      fix: 'Send [from, to]; both ends are included.',
    })
  }
  const [from, to] = raw.map((item, n) => readValue(walk, leaf, n === 0 ? 'gte' : 'lte', item, [...path, n]))
  if (!from || !to) return undefined
  const dates = [from.date, to.date].filter((date) => date !== undefined)
  return {
    op: 'between',
    test: { op: 'between', from: String(from.value), to: String(to.value) },
    absolute: [from.absolute, to.absolute],
    dates,
  }
}

/** A value as storage compares it, and as it is kept. */
type Value = { value: string | boolean; absolute: unknown; date?: FilterDate }

const readValue = (walk: Walk, leaf: Reading, op: string, raw: unknown, path: Path): Value | undefined => {
  if (raw === null)
    return fault(walk, path, {
      code: 'invalid_type',
      detail: 'must not be null',
      fix: 'To find what is absent, send {"isNull": true}.',
    })
  if (typeof raw === 'string') requireLength(walk, op, raw, path)
  switch (leaf.kind) {
    case 'text':
      return readText(walk, leaf, op, raw, path)
    case 'id':
    case 'ref':
      return readId(walk, raw, path)
    case 'word':
      return readWord(walk, leaf.words!, raw, path)
    case 'time':
      return readTime(walk, leaf, raw, path)
    case 'number':
      return readNumber(walk, raw, path)
    case 'flag':
      return typeof raw === 'boolean' ? { value: raw, absolute: raw } : fault(walk, path, notAFlag)
  }
}

const requireLength = (walk: Walk, op: string, text: string, path: Path): void => {
  const most = op === 'regex' ? filterLimits.regex : filterLimits.string
  // Code points are at most code units: most texts need no counting.
  const length = text.length <= most ? text.length : [...text].length
  if (length <= most) return
  const reason = op === 'regex' ? 'filter_regex_too_long' : 'filter_string_too_long'
  throw overLimit(walk, path, reason, `has ${length} characters`, `Send at most ${most} characters.`)
}

const readText = (walk: Walk, leaf: Reading, op: string, raw: unknown, path: Path): Value | undefined => {
  if (typeof raw !== 'string')
    return fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be text',
      fix: Array.isArray(raw) ? 'Use in or notIn for a list.' : 'Send a string.',
    })
  if (op === 'regex') walk.patterns.push({ path, pattern: raw })
  return { value: leaf.digits && op !== 'regex' ? phoneDigits(op, raw) : raw, absolute: raw }
}

/** Text of digits and the signs that people write between them. */
const PHONE = /^[\s()+\-./\d\p{Cf}]*\d[\s()+\-./\d\p{Cf}]*$/u

/** A phone, or a part of one, as the digits that are stored. What is no number stays, and meets nothing. */
const phoneDigits = (op: string, text: string): string => {
  const whole = ['eq', 'ne', 'in', 'notIn'].includes(op) ? parsePhone(text) : undefined
  if (whole && 'digits' in whole) return whole.digits
  return PHONE.test(text) ? text.replaceAll(/\D/g, '') : text
}

const readId = (walk: Walk, raw: unknown, path: Path): Value | undefined =>
  (typeof raw === 'string' && /^[1-9]\d{0,18}$/.test(raw)) || (Number.isSafeInteger(raw) && Number(raw) > 0)
    ? { value: String(raw), absolute: raw }
    : fault(walk, path, {
        code: 'invalid_value',
        detail: 'must be an id: 1 to 19 digits as a string, or an integer',
        fix: 'Send an id; to compare names, use name.',
      })

const readWord = (walk: Walk, words: readonly string[], raw: unknown, path: Path): Value | undefined => {
  if (typeof raw !== 'string')
    return fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be text',
      fix: `Send one of ${words.join(', ')}.`,
      allowed: words,
    })
  return words.includes(raw)
    ? { value: raw, absolute: raw }
    : unknownName(walk, path, 'value', raw, words, 'invalid_value')
}

const readTime = (walk: Walk, leaf: Reading, raw: unknown, path: Path): Value | undefined => {
  const date =
    typeof raw === 'string'
      ? readDate(raw, walk.now, walk.zone)
      : { fault: 'must be a date', fix: 'Send it as text, such as "2026-10-01T09:30:00Z" or "-7d".' }
  if ('fault' in date) return fault(walk, path, { code: 'invalid_date', detail: date.fault, fix: date.fix })
  const text = raw as string
  // Where days are compared, a day says all there is to say, and stays as it is.
  if (leaf.days && date.form === 'day') return { value: text, absolute: text, date }
  if (date.form !== 'instant')
    walk.resolvedDates.push({ path: pointerOf(path), input: text, value: date.instant })
  if (!leaf.days) return { value: date.instant, absolute: date.instant, date }
  const day = dayOf(date.instant, walk.zone)
  if (!/^(?!0000)\d{4}-/.test(day))
    return fault(walk, path, {
      code: 'invalid_date',
      detail: 'must lie in the years 0001 to 9999',
      fix: 'Send an earlier or later date.',
    })
  return { value: day, absolute: day, date }
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i

const readNumber = (walk: Walk, raw: unknown, path: Path): Value | undefined => {
  if (typeof raw === 'number' && Number.isFinite(raw)) {
    if (Number.isInteger(raw) && !Number.isSafeInteger(raw))
      warn(walk, path, 'JSON numbers of this size are rounded on their way; send it as text.')
    return { value: String(raw), absolute: raw }
  }
  if (typeof raw === 'string' && NUMBER.test(raw)) return { value: raw, absolute: raw }
  return fault(walk, path, {
    code: 'invalid_type',
    detail: 'must be a number',
    fix: 'Send a number, such as 12.5, or the same as text.',
  })
}
