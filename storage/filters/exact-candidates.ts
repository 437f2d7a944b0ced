import { sql } from 'kysely'
import type { Attrs } from '../contacts/values.ts'
import { toStorableId } from '../values/ids.ts'
import { type CandidateQuery, candidateRank } from './candidate-query.ts'
import { allOf, type Sql } from './comparisons.ts'
import type { ContactFilter } from './filter.ts'
import { type Condition, type PredicateScope, valueConditions } from './predicates.ts'
import { filterStrategy } from './strategy.ts'

type Covered = { covered: readonly Condition[]; query: CandidateQuery }

/**
 * Finds the contacts that have all of some values, and some tags and groups but none of others, in one query.
 * Returns exactly those that meet the covered conditions; undefined where no condition requires a value or a
 * label.
 */
export const exactCandidates = (scope: LabelScope, conditions: readonly Condition[]): Covered | undefined => {
  const required = conditions.filter((node) => requiredValue(node) !== undefined)
  const choices = conditions.filter((node) => allowedValues(node) !== undefined)
  const values = [...required, ...choices]
  const labels = conditions.filter((node) => isLabelTest(scope, node))
  const [first] = labels.filter((node) => node.quantifier === 'some')
  if (values.length === 0 && first === undefined) return undefined
  const others = values.length === 0 ? labels.filter((node) => node !== first) : labels
  const base =
    values.length > 0
      ? sql`select r.workspace_id, r.contact_id, r.attrs from contact_facts r
          where r.workspace_id = ${scope.workspaceId} and ${allOf([
            ...(required.length > 0 ? [sql`r.attrs @> ${mergeValues(required)}::jsonb`] : []),
            ...choices.map((node) => sql`r.attrs @> any(${allowedValues(node)}::jsonb[])`),
          ])}`
      : // One contact may have several of the labels.
        sql`select ${scope.labels.get(first!)!.length === 1 ? sql`` : sql`distinct`} r.contact_id
          from ${linkTable(first!)} r
          where r.workspace_id = ${scope.workspaceId} and ${hasLabel(scope, first!, sql`r`)}`
  return {
    covered: [...values, ...labels],
    query: {
      rank: values.length > 0 ? candidateRank.value : candidateRank.label,
      branches: 1,
      derived: true,
      exact: true,
      attrs: values.length > 0,
      sorted: values.length === 0 && scope.labels.get(first!)!.length === 1,
      ids: values.length > 0 ? labelledRows(scope, base, others) : labelledByJoin(scope, base, others),
    },
  }
}

/** About how many contacts have one of the labels that a condition selects, as they are counted. */
export type LabelSizes = ReadonlyMap<ContactFilter, number>

type LabelScope = Pick<PredicateScope, 'workspaceId' | 'labels'> & { sizes: LabelSizes }

/** Selects a row if the contact of `r` has one of the labels that a condition selects. */
const labelOfRow = (scope: LabelScope, node: LabelNode): Sql => sql`
  select 1 from ${linkTable(node)} l
  where l.workspace_id = ${scope.workspaceId} and l.contact_id = r.contact_id
    and ${hasLabel(scope, node, sql`l`)}`

/** Selects the rows `r` of a query whose contacts have these labels, or do not, in the way that the planner takes. */
const labelledByJoin = (scope: LabelScope, base: Sql, labels: readonly LabelNode[]): Sql => {
  const tests = labels.map(
    (node) => sql` and ${node.quantifier === 'some' ? sql`` : sql`not`} exists (${labelOfRow(scope, node)})`,
  )
  return sql`${base}${sql.join(tests, sql``)}`
}

/** Taken for the size of labels that are named by their ids, which nobody counted. */
const UNKNOWN_SIZE = 100_000

/**
 * Selects the same from rows that have values. The planner does not know how many have several of them, and reads the
 * whole list of a label for a thousand. So where the rows turn out to be few for it, each is looked up; `limit` keeps
 * the planner from a join.
 */
const labelledRows = (scope: LabelScope, base: Sql, labels: readonly LabelNode[]): Sql => {
  const { listedPerLookUp, minListed } = filterStrategy
  const listed = labels.reduce((sum, node) => sum + (scope.sizes.get(node) ?? UNKNOWN_SIZE), 0)
  if (labels.length === 0 || listed < minListed) return labelledByJoin(scope, base, labels)
  const few = sql.lit(Math.ceil(listed / listedPerLookUp))
  const tests = labels.map(
    (node) =>
      sql` and (${labelOfRow(scope, node)} limit 1) is ${node.quantifier === 'some' ? sql`not` : sql``} null`,
  )
  return sql`
    select * from (
      with few as materialized (${base} limit ${few} + 1),
      few_size as materialized (select count(*) as n from few)
      (select r.* from few r where (select n from few_size) <= ${few}${sql.join(tests, sql``)})
      union all
      (${labelledByJoin(scope, sql`${base} and (select n from few_size) > ${few}`, labels)})) as r`
}

type LabelNode = Extract<ContactFilter, { kind: 'tags' | 'groups' }>

const isLabelTest = ({ labels }: Pick<PredicateScope, 'labels'>, node: Condition): node is LabelNode =>
  (node.kind === 'tags' || node.kind === 'groups') && node.quantifier !== 'every' && labels.has(node)

const linkTable = ({ kind }: LabelNode): Sql => (kind === 'tags' ? sql`contact_tags` : sql`contact_groups`)

const hasLabel = ({ labels }: Pick<PredicateScope, 'labels'>, node: LabelNode, row: Sql): Sql => {
  const column = node.kind === 'tags' ? sql`tag_id` : sql`group_id`
  const ids = labels.get(node)!.map(toStorableId)
  return ids.length === 1
    ? sql`${row}.${column} = ${ids[0]}::bigint`
    : sql`${row}.${column} = any(${ids}::bigint[])`
}

type RequiredValue = { fieldId: string; value: string | boolean | string[] }

/** Returns the values that these conditions require, as JSON that `attrs` must contain. */
const mergeValues = (nodes: readonly Condition[]): string => {
  const attrs: Attrs = {}
  for (const { fieldId, value } of nodes.flatMap((node) => requiredValue(node) ?? [])) {
    const other = attrs[fieldId]
    attrs[fieldId] = Array.isArray(value) && Array.isArray(other) ? [...other, ...value] : value
  }
  return JSON.stringify(attrs)
}

/** The one value, or the option, that a condition requires; undefined when it allows others. */
const requiredValue = (node: Condition): RequiredValue | undefined => {
  if (node.kind !== 'attributes' || node.quantifier !== 'some') return undefined
  const [condition, ...others] = valueConditions(node.field, node.where) || []
  if (condition === undefined || others.length > 0) return undefined
  const { as, test } = condition
  const fieldId = node.field.id
  if (as === 'string' && test.op === 'eq')
    return { fieldId, value: node.field.type === 'multiselect' ? [test.value] : test.value }
  if (as === 'boolean' && test.op !== 'isNull') return { fieldId, value: (test.op === 'eq') === test.value }
  return undefined
}

/** Each value takes a search of the index. */
const MAX_CHOICES = 50

/** The values that a condition allows, as JSON that `attrs` must contain one of; undefined when there are others. */
const allowedValues = (node: Condition): string[] | undefined => {
  if (node.kind !== 'attributes' || node.quantifier !== 'some') return undefined
  const [condition, ...others] = valueConditions(node.field, node.where) || []
  if (condition?.as !== 'string' || condition.test.op !== 'in' || others.length > 0) return undefined
  const { values } = condition.test
  return values.length > MAX_CHOICES
    ? undefined
    : values.map((value) =>
        JSON.stringify({ [node.field.id]: node.field.type === 'multiselect' ? [value] : value }),
      )
}
