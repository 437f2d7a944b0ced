import { filterLimits } from '../../../catalog/filters.ts'
import { findRegexError } from '../../../storage/filters/regex.ts'
import type { Problem } from '../../kernel/problem.ts'
import { createFilterProblem, type FilterContext, type FilterPath } from './parse-state.ts'
import { estimateRegex } from './regex-cost.ts'

/** A regular expression of a filter, and where the request has it, itself or by a saved filter. */
export type FilterPattern = { path: FilterPath; pattern: string; isSaved: boolean }

const MAX_REMEMBERED_VERDICTS = 5_000

type RegexCheck = Pick<FilterContext, 'heavy' | 'services'>

/**
 * Checks the regular expressions of a filter: by an estimate first, and only then by the database, which
 * may take minutes to compile one. Throws 400 `regex_too_complex` or `filter_regex_invalid`.
 */
export const requireValidPatterns = async (
  check: RegexCheck,
  patterns: readonly FilterPattern[],
): Promise<void> => {
  requireSimplePatterns(patterns)
  const unknown = patterns.flatMap(({ pattern }) =>
    check.services.regexVerdicts.has(pattern) ? [] : [pattern],
  )
  // Usually the database takes them all. Where others wait for it, they are compiled one by one.
  if (unknown.length > 1 && check.services.config.filters.stepMs === undefined) {
    const rejection = await findRegexError(check.heavy, unknown)
    if (rejection === null) for (const pattern of unknown) remember(check, pattern, null)
  }
  for (const one of patterns) {
    const message = await findRejection(check, one.pattern)
    if (message !== null) throw createInvalidProblem(one, message)
  }
}

/** Returns the database's message when it rejects the expression, else null. */
const findRejection = async (check: RegexCheck, pattern: string): Promise<string | null> => {
  const known = check.services.regexVerdicts.get(pattern)
  if (known !== undefined) return known
  const message = await findRegexError(check.heavy, [pattern])
  remember(check, pattern, message)
  return message
}

const remember = (
  { services: { regexVerdicts } }: RegexCheck,
  pattern: string,
  message: string | null,
): void => {
  regexVerdicts.set(pattern, message)
  if (regexVerdicts.size > MAX_REMEMBERED_VERDICTS) regexVerdicts.delete(regexVerdicts.keys().next().value!)
}

const requireSimplePatterns = (patterns: readonly FilterPattern[]): void => {
  const { regexCost, regexTotalCost, regexBackReferences } = filterLimits
  const distinct = new Map(patterns.map((one) => [one.pattern, one]))
  let total = 0
  for (const one of distinct.values()) {
    const { cost, backReferences, isForeign } = estimateRegex(one.pattern)
    total += cost
    if (isForeign)
      throw createTooComplexProblem(one, 'selects another syntax by (?b) or (?e), whose cost is not known')
    if (backReferences > regexBackReferences)
      throw createTooComplexProblem(
        one,
        `has ${backReferences} back-references, and at most ${regexBackReferences} are allowed`,
      )
    if (cost > regexCost)
      throw createTooComplexProblem(one, `has a complexity of ${cost}, and at most ${regexCost} is allowed`)
    if (total > regexTotalCost)
      throw createTooComplexProblem(
        one,
        `brings the complexity of all expressions to ${total}, and at most ${regexTotalCost} is allowed`,
      )
  }
}

const createTooComplexProblem = ({ path, pattern, isSaved }: FilterPattern, detail: string): Problem =>
  createFilterProblem(
    path,
    'regex_too_complex',
    // What a colleague saved may be hidden from the caller.
    isSaved ? `refers to a regular expression that ${detail}` : `${detail}: ${pattern}`,
    'Repeat less: lower counts such as {0,100}, no counts within counts, nothing repeated that contains ' +
      '^, $, \\y or (?=…), fewer back-references. Or use contains, startsWith or endsWith.',
  )

const createInvalidProblem = ({ path }: FilterPattern, message: string): Problem =>
  createFilterProblem(
    path,
    'filter_regex_invalid',
    `is not a regular expression that PostgreSQL takes: ${message}`,
    'Correct the expression, or use contains for plain text.',
  )
