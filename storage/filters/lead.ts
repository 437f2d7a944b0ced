import type { CandidateQuery } from './candidate-query.ts'
import { type Condition, readsOnlyValues } from './predicates.ts'
import { filterStrategy } from './strategy.ts'

/**
 * A way to all matches: the candidates of a query, with conditions that are tested `onRow`, the row that it finds;
 * those of them that meet the `narrowed` conditions, whose contacts an index lists, or whose ids are `listed` by an
 * index for other conditions; and then a test of each for the `rest`.
 */
export type Lead = {
  query: CandidateQuery
  onRow: readonly Condition[]
  narrowed: readonly Condition[]
  /** `isLong`: there are many more of them than candidates. */
  listed: { query: CandidateQuery; isLong: boolean } | undefined
  rest: readonly Condition[]
  /** With more candidates it leads nowhere. */
  maxCandidates: number
  /** About how many there are, as far as that is known. */
  size: number | undefined
}

/** Conditions that must hold, a candidate query for them, and at most or about how many contacts meet them. */
export type ProbeTarget = { covered: readonly Condition[]; query: CandidateQuery; size?: number }

/** How many times more candidates may be listed than looked up. */
const MORE_IF_LISTED = 6
/** How many times more may have their labels tested, or nothing. */
export const MORE_IF_LABELLED = 2
/** How many times more are looked up where so few may match that their number must be exact. */
const MORE_IF_FEW_MATCH = 2.5

/**
 * Returns what else is needed after the candidates of a target. A time or a flag of which an index lists all contacts
 * narrows them down before they are looked up.
 */
export const toLead = (
  conditions: readonly Condition[],
  targets: readonly ProbeTarget[],
  { covered, query, size }: ProbeTarget,
  fewMatch: boolean,
): Lead => {
  const done = query.exact ? covered : []
  const candidates = Math.max(size ?? filterStrategy.maxCandidates, filterStrategy.maxFirstRows)
  const narrowing = targets
    .filter(
      (target) =>
        !target.covered.some((node) => covered.includes(node)) &&
        (isOfContact(target) || isListed(target)) &&
        (target.size ?? Infinity) <= filterStrategy.listedPerLookUp * candidates,
    )
    .toSorted((a, b) => a.size! - b.size!)[0]
  const left = conditions.filter((node) => !done.includes(node) && !narrowing?.covered.includes(node))
  const onRow = query.attrs ? left.filter(readsOnlyValues) : []
  const rest = left.filter((node) => !onRow.includes(node))
  const isCheap = rest.every(({ kind }) => kind === 'tags' || kind === 'groups')
  const factor = narrowing
    ? MORE_IF_LISTED
    : Math.max(fewMatch ? MORE_IF_FEW_MATCH : 1, isCheap ? MORE_IF_LABELLED : 1)
  const isNarrowed = narrowing !== undefined && isOfContact(narrowing)
  return {
    query,
    onRow,
    size,
    maxCandidates: Math.ceil(filterStrategy.maxCandidates * factor),
    narrowed: isNarrowed ? narrowing.covered : [],
    listed:
      narrowing && !isNarrowed
        ? { query: narrowing.query, isLong: narrowing.size! > filterStrategy.maxListedPerHash * candidates }
        : undefined,
    rest,
  }
}

const isOfContact = ({ covered }: ProbeTarget): boolean =>
  covered.every(({ kind }) => kind === 'time' || kind === 'flag')
/** Whether an index alone has the ids of all contacts that meet the conditions. */
const isListed = ({ covered, query }: ProbeTarget): boolean =>
  query.listed === true ||
  (query.exact === true && covered.every((node) => node.kind === 'tags' || node.kind === 'groups'))
