import type { TextTest, WordTest } from '../../../storage/filters/filter.ts'
import { listSpellings } from '../contacts/phone-lines.ts'

const isWholeTest = (test: TextTest): test is TextTest & WordTest =>
  ['eq', 'ne', 'in', 'notIn'].includes(test.op)

/** A whole phone number matches in all spellings of its line. */
export const matchSpellings = (test: TextTest): TextTest => {
  if (!isWholeTest(test)) return test
  const given = 'values' in test ? test.values : [test.value]
  const spellings = given.map(listSpellings)
  if (spellings.every(({ length }) => length === 1)) return test
  const values = [...new Set(given.flatMap((value, n) => [value, ...spellings[n]!]))]
  return { op: test.op === 'eq' || test.op === 'in' ? 'in' : 'notIn', values }
}
