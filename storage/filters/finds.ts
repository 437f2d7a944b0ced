import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { storable } from '../ids.ts'
import { fold, hasTrigram } from '../text.ts'
import { OPTIONS } from '../values.ts'
import type { Filter, IdTest, TextField, TextTest, TimeTest, ValueCondition } from './filter.ts'
import { containing, literalsOf } from './patterns.ts'
import {
  broadcastTest,
  type Condition,
  conversationTest,
  foldedTest,
  idTest,
  isFolded,
  numberTest,
  predicate,
  type Scope,
  type Sql,
  searchHints,
  timeColumns,
  timeTest,
  valueConditions,
} from './predicates.ts'

/**
 * A way to the contacts that meet a condition, and maybe some more: a `select` of their ids, as
 * `contact_id`. The lower the rank, the fewer it is likely to find; estimates of the planner cannot tell
 * (16 for 224, 1 for 621 true rows).
 */
export type Find = { rank: number; ids: Sql }

export const rank = {
  id: 0,
  exact: 1,
  value: 2,
  text: 3,
  label: 4,
  range: 5,
  time: 6,
  state: 7,
  scan: 9,
} as const

/**
 * The ways to what a condition asks for, the most promising first; none where only looking at every contact
 * tells.
 */
export const findsOf = (scope: Scope, node: Condition): Find[] => {
  switch (node.kind) {
    case 'and':
      return node.of.flatMap((child) => findsOf(scope, child)).toSorted((a, b) => a.rank - b.rank)
    case 'or':
      return union(node.of.map((child) => findsOf(scope, child)[0]))
    case 'not':
      return []
    case 'query':
      return hasTrigram(fold(node.text)) ? [contacts(scope, rank.text, predicate(scope, node))] : []
    case 'id':
      return isPositive(node.test) ? [contacts(scope, rank.id, idTest(sql`c.id`, node.test))] : []
    case 'time':
      return isRange(node.test)
        ? [contacts(scope, rank.time, timeTest(timeColumns[node.field], node.test))]
        : []
    case 'flag':
      return node.test.op !== 'isNull' && (node.test.op === 'eq') === node.test.value
        ? [contacts(scope, rank.range, predicate(scope, node))]
        : []
    case 'text':
      return textFinds(scope, node.field, node.test)
    case 'attributes':
      return node.quantifier === 'some' ? valueFinds(scope, node.field, node.where) : []
    case 'tags':
    case 'groups':
      return labelFinds(scope, node)
    case 'conversations': {
      if (node.quantifier !== 'some') return []
      const indexed = node.where.some(({ field }) => field === 'state')
      return [
        from(scope, indexed ? rank.state : rank.scan, sql`conversations`, [
          sql`r.contact_id is not null`,
          ...node.where.map(conversationTest),
        ]),
      ]
    }
    case 'broadcasts': {
      if (node.quantifier !== 'some') return []
      const indexed = node.where.some(({ field, test }) => field === 'id' && isPositive(test as IdTest))
      return [
        from(
          scope,
          indexed ? rank.range : rank.scan,
          sql`broadcast_recipients`,
          node.where.map(broadcastTest),
        ),
      ]
    }
  }
}

const isPositive = (test: IdTest | TextTest): boolean => test.op === 'eq' || test.op === 'in'
const isRange = (test: TimeTest): boolean => test.op !== 'ne' && test.op !== 'isNull'
const valuesOf = (test: { value: string } | { values: readonly string[] }): readonly string[] =>
  'values' in test ? test.values : [test.value]

/** Contacts that meet a condition on their own columns. */
const contacts = ({ workspaceId }: Scope, order: number, test: Sql): Find => ({
  rank: order,
  ids: sql`select c.id as contact_id from contacts c where c.workspace_id = ${workspaceId} and ${test}`,
})

const from = ({ workspaceId }: Scope, order: number, table: Sql, tests: readonly Sql[]): Find => ({
  rank: order,
  ids: sql`select r.contact_id from ${table} r where ${sql.join([sql`r.workspace_id = ${workspaceId}`, ...tests], sql` and `)}`,
})

/** One of several: found when each of them can be. */
const union = (branches: readonly (Find | undefined)[]): Find[] => {
  const all = branches.filter((find): find is Find => find !== undefined)
  if (all.length < branches.length || all.length === 0) return []
  return [
    {
      rank: Math.max(...all.map((find) => find.rank)),
      ids: sql.join(
        all.map((find) => sql`(${find.ids})`),
        sql` union all `,
      ),
    },
  ]
}

const textFinds = (scope: Scope, field: TextField, test: TextTest): Find[] => {
  if (field === 'email')
    return scope.emailFieldId === undefined
      ? []
      : storedTextFinds(scope, { id: scope.emailFieldId, type: 'email' }, test)
  if (isPositive(test)) return [contacts(scope, rank.exact, predicate(scope, { kind: 'text', field, test }))]
  const prefix =
    (test.op === 'startsWith' && (field === 'name' || field === 'phoneNumber')) ||
    (field === 'name' && test.op === 'regex' && literalsOf(test.value).head !== undefined)
  return prefix || searchHints(field, test).length > 0
    ? [contacts(scope, rank.text, predicate(scope, { kind: 'text', field, test }))]
    : []
}

type Field = { id: string; type: CustomFieldType }

/** Text is indexed folded, and by its beginning: what is found may differ in case or further on. */
const storedTextFinds = (scope: Scope, field: Field, test: TextTest): Find[] => {
  const found = (order: number, tests: readonly Sql[]): Find[] => [
    from(scope, order, sql`contact_attributes`, [sql`r.field_id = ${field.id}::bigint`, ...tests]),
  ]
  if (test.op === 'eq' || test.op === 'in') {
    const heads = valuesOf(test).map((text) => [...fold(text)].slice(0, 200).join(''))
    return found(rank.value, [
      sql`left(r.text_key, 200) = any(${heads}::text[])`,
      sql`r.text_key is not null`,
    ])
  }
  // The trigram index holds free text alone, no choices.
  const free = !OPTIONS.includes(field.type)
  if (test.op === 'regex') {
    const { runs } = literalsOf(test.value)
    return free && runs.length > 0
      ? found(rank.text, [sql`r.free`, ...runs.map((run) => sql`r.text_key like ${containing(run)}`)])
      : []
  }
  if (!isFolded(test) || test.op === 'notContains') return []
  // Most addresses share what stands after the @, which would cost the index more than it tells.
  const [, local] = (field.type === 'email' && /^([^@]*[a-z0-9]{3}[^@]*@)[^@]+$/.exec(fold(test.value))) || []
  if (local !== undefined)
    return found(rank.text, [sql`r.free`, foldedTest(sql`r.text_key`, { op: 'contains', value: local })])
  return hasTrigram(fold(test.value)) && free
    ? found(rank.text, [sql`r.free`, foldedTest(sql`r.text_key`, test)])
    : // Patterns of one or two characters would have the trigram index read whole.
      found(rank.scan, [foldedTest(sql`(r.text_key || '')`, test), sql`r.text_key is not null`])
}

const valueFinds = (scope: Scope, field: Field, where: readonly ValueCondition[]): Find[] => {
  const conditions = valueConditions(field, where)
  if (conditions === false) return [{ rank: rank.id, ids: sql`select 0::bigint as contact_id where false` }]
  const found = (order: number, test: Sql): Find =>
    from(scope, order, sql`contact_attributes`, [sql`r.field_id = ${field.id}::bigint`, test])
  return conditions
    .flatMap((condition): Find[] => {
      switch (condition.as) {
        case 'string':
          return storedTextFinds(scope, field, condition.test)
        case 'number':
          return condition.test.op === 'ne' || condition.test.op === 'notIn'
            ? []
            : [
                found(
                  condition.test.op === 'eq' || condition.test.op === 'in' ? rank.value : rank.range,
                  numberTest(sql`r.number_value`, condition.test),
                ),
              ]
        case 'boolean':
          return condition.test.op === 'isNull'
            ? []
            : [
                found(
                  rank.state,
                  sql`r.bool_value = ${(condition.test.op === 'eq') === condition.test.value}`,
                ),
              ]
        // A day is found by its midnight in UTC, as which it is indexed.
        case 'date':
          return isRange(condition.test)
            ? [found(rank.range, timeTest(sql`r.time_value`, condition.test))]
            : []
      }
    })
    .toSorted((a, b) => a.rank - b.rank)
}

const labelFinds = (scope: Scope, node: Extract<Filter, { kind: 'tags' | 'groups' }>): Find[] => {
  if (node.quantifier !== 'some') return []
  const [table, column] =
    node.kind === 'tags' ? [sql`contact_tags`, sql`r.tag_id`] : [sql`contact_groups`, sql`r.group_id`]
  const wanted = scope.labels.get(node)
  return wanted
    ? [from(scope, rank.label, table, [sql`${column} = any(${wanted.map(storable)}::bigint[])`])]
    : []
}
