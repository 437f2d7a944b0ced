import type { StatementResult } from './session.ts'

/* Rows as objects. postgres.js returns arrays of values (`values()`), in the order of the columns. */

type Row = Record<string, unknown>
type MakeRow = (values: unknown) => Row

const MAX_KNOWN = 2000
const known = new Map<string, MakeRow>()
/** The same by the columns of a prepared statement, which are one object for all its results. */
const ofStatement = new WeakMap<object, MakeRow>()

/**
 * Compiles an object literal of these names, which are those of our own statements. Adding the columns to an empty
 * object one by one takes ten times as long where they are many, since it grows with every third
 * (docs/decisions/0070-rows-by-literals.md).
 */
const compile = (names: readonly string[]): MakeRow => {
  const members = names.map((name, i) => `${JSON.stringify(name)}: values[${i}]`)
  // oxlint-disable-next-line typescript/no-implied-eval -- Names of columns, written as JSON.
  return new Function('values', `return { ${members.join(', ')} }`) as MakeRow
}

const findMaker = (columns: StatementResult['columns']): MakeRow => {
  const found = ofStatement.get(columns)
  if (found) return found
  const names = columns.map(({ name }) => name)
  const key = JSON.stringify(names)
  const maker = known.get(key) ?? compile(names)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(key, maker)
  ofStatement.set(columns, maker)
  return maker
}

/** Returns the rows of a result as objects; those of the simple protocol, which are objects, as they are. */
export const toRows = (result: StatementResult): Row[] => {
  const rows: Row[] = Array.from({ length: result.length })
  const make = Array.isArray(result[0]) && result.columns ? findMaker(result.columns) : undefined
  for (let i = 0; i < rows.length; i++) rows[i] = make ? make(result[i]) : (result[i] as Row)
  return rows
}
