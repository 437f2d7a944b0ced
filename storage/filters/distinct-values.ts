import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { fold, hasTrigram } from '../values/text.ts'
import type { FoldedTextTest, MatchingValues, TextTest } from './filter.ts'
import { isFoldedTest } from './comparisons.ts'
import { extractRegexLiterals, foldRegex } from './patterns.ts'
import type { Condition } from './predicates.ts'

/** A field with more values is searched in another way. Reading so many takes about 3 ms. */
const MAX_VALUES = 300
const MAX_FIELDS = 3
/** What the index of values has of each (`contact_attributes_text`). */
export const INDEXED_LENGTH = 200

/** Returns a test of folded text that is met wherever this one is; undefined where an index does better. */
const toValueTest = (test: TextTest): ((key: string) => boolean) | undefined => {
  if (test.op === 'regex') {
    if (extractRegexLiterals(test.value).runs.length > 0) return undefined
    const folded = foldRegex(test.value)
    if (folded === undefined) return undefined
    const regex = new RegExp(folded.source, 'su')
    return (key) => regex.test(key)
  }
  if (!isFoldedTest(test) || test.op === 'notContains' || hasTrigram(fold(test.value))) return undefined
  const text = fold(test.value)
  const tests: Record<Exclude<FoldedTextTest['op'], 'notContains'>, (key: string) => boolean> = {
    contains: (key) => key.includes(text),
    startsWith: (key) => key.startsWith(text),
    endsWith: (key) => key.endsWith(text),
  }
  return tests[test.op]
}

/**
 * Finds the values that meet tests which no index supports, such as a part of two letters, among the values
 * that a field has: a city has few values, however many contacts have it.
 */
export const findMatchingValues = async (
  tx: Db,
  workspaceId: string,
  nodes: readonly Condition[],
): Promise<MatchingValues> => {
  const tests = nodes
    .flatMap((node) => (node.kind === 'attributes' && node.quantifier === 'some' ? [node] : []))
    .flatMap(({ field, where }) =>
      where.flatMap(({ as, test }) => {
        const meets = as === 'string' ? toValueTest(test) : undefined
        return meets ? [{ fieldId: field.id, test: test as TextTest, meets }] : []
      }),
    )
  const found = new Map<TextTest, readonly string[]>()
  for (const [fieldId, ofField] of [...Map.groupBy(tests, (t) => t.fieldId)].slice(0, MAX_FIELDS)) {
    const keys = await listDistinctValues(tx, workspaceId, fieldId)
    if (keys === undefined) continue
    for (const { test, meets } of ofField)
      found.set(
        test,
        keys.filter((key) => [...key].length >= INDEXED_LENGTH || meets(key)),
      )
  }
  return found
}

/** Returns the indexed texts of a field, each by one look-up of the next; undefined when there are many. */
const listDistinctValues = async (
  tx: Db,
  workspaceId: string,
  fieldId: string,
): Promise<string[] | undefined> => {
  const next = (after: ReturnType<typeof sql>) => sql`
    select left(text_key, ${sql.lit(INDEXED_LENGTH)}) as key from contact_attributes
    where workspace_id = ${workspaceId} and field_id = ${fieldId}::bigint and text_key is not null ${after}
    order by 1 limit 1`
  const { rows } = await sql<{ key: string }>`
    with recursive found (key) as (
      (${next(sql``)})
      union all
      select (${next(sql`and left(text_key, ${sql.lit(INDEXED_LENGTH)}) > found.key`)})
      from found where found.key is not null)
    select key from found where key is not null limit ${sql.lit(MAX_VALUES + 1)}`.execute(tx)
  return rows.length > MAX_VALUES ? undefined : rows.map((row) => row.key)
}
