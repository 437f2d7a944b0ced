import { type RawBuilder, sql } from 'kysely'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'
import type {
  ExactTextTest,
  FlagTest,
  FoldedTextTest,
  IdTest,
  NumberTest,
  TextTest,
  TimeTest,
  WordTest,
} from './filter.ts'
import { prefixPattern, suffixPattern } from './patterns.ts'

/* SQL for the test of one column. */

export type Sql = RawBuilder<unknown>

export const TRUE = sql`true`
export const FALSE = sql`false`
export const allOf = (parts: readonly Sql[]): Sql =>
  parts.length === 0 ? TRUE : parts.length === 1 ? parts[0]! : sql`(${sql.join(parts, sql` and `)})`
export const anyOf = (parts: readonly Sql[]): Sql =>
  parts.length === 0 ? FALSE : parts.length === 1 ? parts[0]! : sql`(${sql.join(parts, sql` or `)})`
export const toTextArray = (values: readonly string[]): Sql => sql`${values}::text[]`
export const toIdArray = (values: readonly string[]): Sql => sql`${values.map(toStorableId)}::bigint[]`

const comparisons = { eq: sql`=`, ne: sql`<>`, gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` } as const

export const orderTest = (column: Sql, cast: Sql, test: NumberTest): Sql => {
  switch (test.op) {
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
    case 'between':
      return sql`${column} between ${test.from}${cast} and ${test.to}${cast}`
    case 'in':
      return anyOf(test.values.map((value) => sql`${column} = ${value}${cast}`))
    case 'notIn':
      return allOf([
        sql`${column} is not null`,
        ...test.values.map((value) => sql`${column} <> ${value}${cast}`),
      ])
    default:
      return sql`${column} ${comparisons[test.op]} ${test.value}${cast}`
  }
}

export const timeTest = (column: Sql, test: TimeTest): Sql => orderTest(column, sql`::timestamptz`, test)
export const numberTest = (column: Sql, test: NumberTest): Sql => orderTest(column, sql`::numeric`, test)

export const flagTest = (column: Sql, test: FlagTest): Sql => {
  if (test.op === 'isNull') return test.value ? sql`${column} is null` : sql`${column} is not null`
  // Written bare, so that the partial indexes on them serve.
  return (test.op === 'eq') === test.value ? column : sql`not ${column}`
}

export const idTest = (column: Sql, test: IdTest): Sql => {
  switch (test.op) {
    case 'eq':
      return sql`${column} = ${toStorableId(test.value)}::bigint`
    case 'ne':
      return sql`${column} <> ${toStorableId(test.value)}::bigint`
    case 'in':
      return sql`${column} = any(${toIdArray(test.values)})`
    case 'notIn':
      return sql`${column} <> all(${toIdArray(test.values)})`
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
  }
}

/** Operators that compare the text without folding. */
export const exactTest = (column: Sql, test: ExactTextTest | WordTest): Sql => {
  switch (test.op) {
    case 'eq':
      return sql`${column} = ${test.value}`
    case 'ne':
      return sql`${column} <> ${test.value}`
    case 'in':
      return sql`${column} = any(${toTextArray(test.values)})`
    case 'notIn':
      return sql`${column} <> all(${toTextArray(test.values)})`
    case 'regex':
      return sql`${column} ~ ${test.value}`
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
  }
}

const FOLDED_OPERATORS: readonly string[] = [
  'contains',
  'notContains',
  'startsWith',
  'endsWith',
] satisfies FoldedTextTest['op'][]
export const isFoldedTest = (test: TextTest): test is FoldedTextTest => FOLDED_OPERATORS.includes(test.op)

const likePattern = ({ op, value }: FoldedTextTest): string =>
  (op === 'startsWith' ? prefixPattern : op === 'endsWith' ? suffixPattern : containsPattern)(fold(value))

/** Operators that ignore case, on a column of folded text. */
export const foldedTest = (column: Sql, test: FoldedTextTest): Sql =>
  sql`${column} ${test.op === 'notContains' ? sql`not like` : sql`like`} ${likePattern(test)}`
