import type { ContactFilter, MatchingValues, TextTest, TimeTest, ValueCondition } from './filter.ts'
import { type Condition, valueConditions } from './predicates.ts'

/*
 * Recognizes conditions that no contact meets, so that they are not searched for: the planner of the database
 * knows nothing of them, and reads every contact.
 */

/** The ids of the labels that nodes select, and the values that tests select. */
type Known = { labels: ReadonlyMap<ContactFilter, readonly string[]>; values?: MatchingValues }

/** Met by every contact, and by none. */
const ALWAYS: Condition = { kind: 'and', of: [] }
const NEVER: Condition = { kind: 'or', of: [] }
const isAlways = (node: Condition): boolean => node.kind === 'and' && node.of.length === 0
export const isNever = (node: Condition): boolean => node.kind === 'or' && node.of.length === 0

/**
 * Returns equivalent conditions that must all hold: without those that always do, and `NEVER` alone when they
 * contradict each other. Nodes that stay are the given objects, since what is known is by object.
 */
export const simplifyAll = (known: Known, conditions: readonly Condition[]): readonly Condition[] => {
  const all = conjunction(known, conditions)
  return all.kind === 'and' ? all.of : [NEVER]
}

/** Returns an `and` without an `and` in it, or `NEVER`. */
const conjunction = (known: Known, conditions: readonly Condition[]): Condition => {
  const parts = conditions
    .map((node) => simplify(known, node))
    .flatMap((node): readonly Condition[] => (node.kind === 'and' ? node.of : [node]))
  if (parts.some(isNever) || contradict(known, parts)) return NEVER
  return { kind: 'and', of: parts as ContactFilter[] }
}

const simplify = (known: Known, node: Condition): Condition => {
  switch (node.kind) {
    case 'and': {
      const all = conjunction(known, node.of)
      return all.kind === 'and' && all.of.length === 1 ? all.of[0]! : all
    }
    case 'or': {
      const parts = node.of.map((child) => simplify(known, child)).filter((child) => !isNever(child))
      if (parts.some(isAlways)) return ALWAYS
      return parts.length === 1 ? parts[0]! : { kind: 'or', of: parts as ContactFilter[] }
    }
    case 'not': {
      const child = simplify(known, node.of)
      if (isAlways(child)) return NEVER
      if (isNever(child)) return ALWAYS
      return child.kind === 'not' ? child.of : { kind: 'not', of: child as ContactFilter }
    }
    case 'tags':
    case 'groups':
      if (known.labels.get(node)?.length !== 0 || node.quantifier === 'every') return node
      return node.quantifier === 'some' ? NEVER : ALWAYS
    case 'attributes': {
      const impossible =
        valueConditions(node.field, node.where) === false ||
        node.where.some(({ test }) => known.values?.get(test as TextTest)?.length === 0) ||
        contradictValues([node])
      return !impossible ? node : node.quantifier === 'some' ? NEVER : ALWAYS
    }
    default:
      return node
  }
}

/** Whether conditions that must all hold exclude each other. Overlooks some that do. */
const contradict = (known: Known, parts: readonly Condition[]): boolean => {
  const required = new Set(parts.map((node) => signature(known, node)))
  const excluded = parts.flatMap((node): string[] =>
    node.kind === 'not'
      ? [signature(known, node.of)]
      : 'quantifier' in node && node.quantifier === 'none'
        ? [signature(known, { ...node, quantifier: 'some' } as ContactFilter, node)]
        : [],
  )
  return (
    excluded.some((text) => required.has(text)) ||
    contradictLabels(known, parts) ||
    contradictByField(parts) ||
    contradictTimes(parts)
  )
}

/** The same for equal conditions. `labelled`: the node that has the entry in `labels`. */
const signature = (known: Known, node: Condition, labelled: Condition = node): string =>
  node.kind === 'tags' || node.kind === 'groups'
    ? JSON.stringify([
        node.kind,
        node.quantifier,
        known.labels.get(labelled as ContactFilter)?.toSorted() ?? null,
      ])
    : JSON.stringify(node)

/** Some of these tags, but none of the same and perhaps others. */
const contradictLabels = (known: Known, parts: readonly Condition[]): boolean =>
  parts.some(
    (has) =>
      (has.kind === 'tags' || has.kind === 'groups') &&
      has.quantifier === 'some' &&
      parts.some((lacks) => {
        if (lacks.kind !== has.kind || lacks.quantifier !== 'none') return false
        const lacking = known.labels.get(lacks)
        const having = known.labels.get(has)
        return lacking === undefined || having?.every((id) => lacking.includes(id)) === true
      }),
  )

type AttributeNode = Extract<ContactFilter, { kind: 'attributes' }>

const contradictByField = (parts: readonly Condition[]): boolean => {
  const byField = Map.groupBy(
    parts.flatMap((node) => (node.kind === 'attributes' && node.quantifier === 'some' ? [node] : [])),
    (node) => node.field.id,
  )
  // Of a multiselect, two options may be chosen.
  return [...byField.values()].some(
    (nodes) => nodes[0]!.field.type !== 'multiselect' && contradictValues(nodes),
  )
}

/** Whether no one value meets the conditions of these nodes, which are of one field. */
const contradictValues = (nodes: readonly AttributeNode[]): boolean => {
  const allowed = nodes.flatMap((node) => node.where).flatMap((condition) => allowedValues(condition) ?? [])
  const [first, ...others] = allowed
  return first !== undefined && ![...first].some((value) => others.every((set) => set.has(value)))
}

/** The values that a condition allows, as text; undefined when it allows more than a few. */
const allowedValues = ({ as, test }: ValueCondition): [ReadonlySet<string>] | undefined => {
  if (as === 'string' && test.op === 'eq') return [new Set([test.value])]
  if (as === 'string' && test.op === 'in') return [new Set(test.values)]
  if (as === 'boolean' && test.op !== 'isNull') return [new Set([String((test.op === 'eq') === test.value)])]
  return undefined
}

/** Whether the ranges of one point in time do not overlap. Instants are written alike, so text is compared. */
const contradictTimes = (parts: readonly Condition[]): boolean => {
  const byField = Map.groupBy(
    parts.flatMap((node) => (node.kind === 'time' ? [node] : [])),
    (node) => node.field,
  )
  return [...byField.values()].some((nodes) => {
    const ranges = nodes.map(({ test }) => rangeOf(test))
    const from = ranges.map((range) => range.from).reduce((a, b) => (a > b ? a : b), '')
    const to = ranges.map((range) => range.to).reduce((a, b) => (a < b ? a : b), '~')
    return from > to
  })
}

const rangeOf = (test: TimeTest): { from: string; to: string } => {
  switch (test.op) {
    case 'eq':
      return { from: test.value, to: test.value }
    case 'gt':
    case 'gte':
      return { from: test.value, to: '~' }
    case 'lt':
    case 'lte':
      return { from: '', to: test.value }
    case 'between':
      return test
    default:
      return { from: '', to: '~' }
  }
}
