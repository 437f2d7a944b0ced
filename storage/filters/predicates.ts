import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { containsPattern, fold, hasTrigram } from '../values/text.ts'
import {
  type Sql,
  TRUE,
  FALSE,
  allOf,
  anyOf,
  toTextArray,
  toIdArray,
  orderTest,
  timeTest,
  numberTest,
  flagTest,
  idTest,
  exactTest,
  isFoldedTest,
  foldedTest,
} from './comparisons.ts'
import {
  type ExactTextTest,
  type ContactFilter,
  type FoldedTextTest,
  type LabelCondition,
  type MatchingValues,
  type TextField,
  type TextTest,
  type TimeField,
  type ValueCondition,
  valueKinds,
} from './filter.ts'
import { extractRegexLiterals, prefixPattern } from './patterns.ts'
import { broadcastTest, consentTest, conversationTest, exchangeTest } from './related-tests.ts'

/** A condition of a search: a filter, or text in the name, phone or username (`query`). */
export type Condition = ContactFilter | { kind: 'query'; text: string }

/**
 * How conditions on related records are written. `row`: as a scalar subquery for each contact, which the
 * planner leaves where it is; right where few contacts are tested. `set`: as `exists`, which the planner may
 * join or hash, with `from` and `to` for contacts with ids in between; right where many are. (With `in`, a
 * set that does not fit in memory to be hashed is read whole for each contact: minutes.)
 */
export type PredicateForm = { as: 'row' } | { as: 'set'; from?: string; to?: string }

export type PredicateScope = {
  workspaceId: string
  /** The custom field that `email` is kept in. */
  emailFieldId: string | undefined
  /** Ids of the tags or groups that meet the conditions of a node. */
  labels: ReadonlyMap<ContactFilter, readonly string[]>
  values: MatchingValues
  form: PredicateForm
}

/**
 * Returns the SQL test of one contact, `c`, with its values, `f` (`contact_facts`, null when there are none).
 * Null counts as false; `is not true` keeps it so under a `not`.
 */
export const toPredicate = (scope: PredicateScope, node: Condition): Sql => {
  switch (node.kind) {
    case 'and':
      return allOf(node.of.map((child) => toPredicate(scope, child)))
    case 'or':
      return anyOf(node.of.map((child) => toPredicate(scope, child)))
    case 'not':
      return sql`(${toPredicate(scope, node.of)}) is not true`
    case 'query':
      return queryTest(node.text)
    case 'id':
      return idTest(sql`c.id`, node.test)
    case 'time':
      return timeTest(timeColumns[node.field], node.test)
    case 'flag':
      return flagTest(node.field === 'dnd' ? sql`c.dnd` : sql`c.starred`, node.test)
    case 'text':
      return node.field === 'email' ? emailTest(scope, node.test) : columnTest(node.field, node.test)
    case 'tags':
    case 'groups':
      return labelTest(scope, node)
    case 'attributes':
      return quantified(node.quantifier, valueTest(scope, node.field, node.where))
    case 'conversations':
      return quantifiedRows(
        scope,
        node.quantifier,
        sql`conversations`,
        allOf(node.where.map(conversationTest)),
      )
    case 'exchanges':
      return quantifiedRows(
        scope,
        node.quantifier,
        sql`contact_exchanges`,
        allOf(node.where.map(exchangeTest)),
      )
    case 'phonePrefix':
      return prefixTest(node)
    case 'consents':
      return quantifiedRows(scope, node.quantifier, sql`consents`, allOf(node.where.map(consentTest)))
    case 'broadcasts':
      return quantifiedRows(
        scope,
        node.quantifier,
        sql`broadcast_recipients`,
        allOf(node.where.map(broadcastTest)),
      )
  }
}

/** Whether a condition is on columns of the contact `c` beside its id. */
export const readsContact = (node: Condition): boolean => {
  switch (node.kind) {
    case 'and':
    case 'or':
      return node.of.some(readsContact)
    case 'not':
      return readsContact(node.of)
    case 'query':
    case 'time':
    case 'flag':
    case 'phonePrefix':
      return true
    case 'text':
      return node.field !== 'email' || !isFoldedTest(node.test)
    default:
      return false
  }
}

/** Whether the test of a condition reads nothing but the values of the contact, `f`. */
export const readsOnlyValues = (node: Condition): boolean => {
  if (node.kind !== 'attributes') return false
  const conditions = valueConditions(node.field, node.where)
  return (
    conditions === false ||
    conditions.length === 0 ||
    (node.field.type !== 'multiselect' &&
      !conditions.some((condition) => condition.as === 'string' && isFoldedTest(condition.test)))
  )
}

/** `some`, or `none`, of what the test is about. */
const quantified = (quantifier: 'some' | 'none', test: Sql): Sql =>
  quantifier === 'some' ? test : sql`(${test}) is not true`

/** The same of related rows: `not exists` can be joined as `exists` can. */
const quantifiedRows = (scope: PredicateScope, quantifier: 'some' | 'none', table: Sql, test: Sql): Sql =>
  quantifier === 'none' && scope.form.as === 'set'
    ? sql`not ${related(scope, table, test)}`
    : quantified(quantifier, related(scope, table, test))

/** True where the contact has a row `r` of this table that meets the test. */
const related = ({ workspaceId, form }: PredicateScope, table: Sql, test: Sql): Sql => {
  if (form.as === 'row')
    return sql`(
      select true from ${table} r
      where r.workspace_id = ${workspaceId} and r.contact_id = c.id and ${test} limit 1)`
  // Bounded here too, so that a hash holds no other rows.
  const range =
    form.from === undefined
      ? sql``
      : sql`and r.contact_id >= ${form.from}::bigint and r.contact_id < ${form.to}::bigint`
  return sql`exists (
    select 1 from ${table} r
    where r.workspace_id = ${workspaceId} and r.contact_id = c.id ${range} and ${test})`
}

export const timeColumns: Record<TimeField, Sql> = {
  createdAt: sql`c.created_at`,
  updatedAt: sql`c.updated_at`,
  lastActivityAt: sql`c.last_activity_at`,
}

/** Patterns that `search` must match where the test is met; none when its trigram index cannot help. */
export const trigramPatterns = (field: TextField, test: TextTest): string[] => {
  if (field !== 'name' && field !== 'phoneNumber') return []
  if (test.op === 'regex') return extractRegexLiterals(test.value).runs.map(containsPattern)
  if (!isFoldedTest(test) || test.op === 'notContains') return []
  const text = fold(test.value)
  return hasTrigram(text) ? [containsPattern(text)] : []
}

const begins = (prefixes: readonly string[]): Sql =>
  anyOf(
    [...Map.groupBy(prefixes, ({ length }) => length)].map(
      ([length, group]) => sql`left(c.phone, ${sql.lit(length)}) = any(${toTextArray(group)})`,
    ),
  )

/** Whether a phone begins with digits. Without a phone it is null. */
export const prefixTest = ({ any, none }: PhonePrefixes): Sql =>
  none.length === 0 ? begins(any) : sql`(${begins(any)} and not ${begins(none)})`

const idColumns = {
  chatappUserId: sql`c.chatapp_user_id`,
  webVisitorId: sql`c.web_visitor_id`,
  externalId: sql`c.external_id`,
}

/** A name as it is written; its key is what the index has. */
const nameTest = (name: Sql, key: Sql, test: ExactTextTest): Sql => {
  if (test.op === 'eq') return sql`(${key} = ${fold(test.value)} and ${name} = ${test.value})`
  if (test.op === 'in')
    return sql`(${key} = any(${toTextArray(test.values.map(fold))})
        and ${name} = any(${toTextArray(test.values)}))`
  return exactTest(name, test)
}

const columnTest = (field: Exclude<TextField, 'email'>, test: TextTest): Sql => {
  const hints = trigramPatterns(field, test).map((pattern) => sql`c.search like ${pattern}`)
  if (field === 'name') {
    if (isFoldedTest(test))
      return allOf([
        ...hints,
        // The key of an absent name is empty. An index that has only the key may suffice for the others.
        ...(test.op === 'notContains' || fold(test.value) === '' ? [sql`c.name is not null`] : []),
        foldedTest(sql`c.name_key`, test),
      ])
    if (test.op === 'eq' || test.op === 'in') return nameTest(sql`c.name`, sql`c.name_key`, test)
    const prefix = test.op === 'regex' ? extractRegexLiterals(test.value).prefix : undefined
    return allOf([
      ...hints,
      ...(prefix === undefined ? [] : [sql`c.name_key like ${prefixPattern(prefix)}`]),
      exactTest(sql`c.name`, test),
    ])
  }
  if (field === 'phoneNumber') {
    // The expression of the index that lists are sorted by.
    if (test.op === 'eq' || test.op === 'in')
      return allOf([sql`c.phone is not null`, exactTest(sql`coalesce(c.phone, '') collate "C"`, test)])
    return allOf([
      ...hints,
      isFoldedTest(test) ? foldedTest(sql`c.phone`, test) : exactTest(sql`c.phone`, test),
    ])
  }
  const column = idColumns[field]
  // Ids are ASCII, but the lower case of I is another letter in Turkish; external ids are compared as a whole.
  return isFoldedTest(test) ? foldedTest(sql`lower(${column} collate "C")`, test) : exactTest(column, test)
}

const emailTest = (scope: PredicateScope, test: TextTest): Sql => {
  if (!isFoldedTest(test)) return exactTest(sql`c.email`, test)
  return scope.emailFieldId === undefined
    ? FALSE
    : related(
        scope,
        sql`contact_attributes`,
        sql`r.field_id = ${scope.emailFieldId}::bigint and ${foldedTest(sql`r.text_key`, test)}`,
      )
}

/** Searches text in the name and the username, and digits, however they are formatted, in the phone too. */
const queryTest = (query: string): Sql => {
  const text = fold(query)
  const digits = /^[\d\s+().\-/]+$/.test(query) ? query.replace(/\D/g, '') : ''
  // `|| ''` keeps short patterns off the trigram index, which would be read whole.
  const column =
    hasTrigram(text) && (digits === '' || hasTrigram(digits)) ? sql`c.search` : sql`(c.search || '')`
  const contains = (part: string) => sql`${column} like ${containsPattern(part)}`
  // Newlines separate name, phone and username; a newline in the query must not match it.
  const textTest = text.includes('\n')
    ? sql`(${contains(text)} and c.name_key like ${containsPattern(text)})`
    : contains(text)
  if (digits === '' || digits === text) return textTest
  // Digits of a formatted number are meant for phones: "2-1" is not in the name "Agent 21".
  return sql`(${textTest} or (${contains(digits)} and c.phone like ${containsPattern(digits)}))`
}

type PhonePrefixes = { any: readonly string[]; none: readonly string[] }

type LabelNode = Extract<ContactFilter, { kind: 'tags' | 'groups' }>

const labelTest = (scope: PredicateScope, node: LabelNode): Sql => {
  const [table, column] =
    node.kind === 'tags' ? [sql`contact_tags`, sql`r.tag_id`] : [sql`contact_groups`, sql`r.group_id`]
  const labelIds = scope.labels.get(node)
  if (node.quantifier === 'every')
    return labelIds
      ? quantifiedRows(scope, 'none', table, sql`${column} <> all(${toIdArray(labelIds)})`)
      : TRUE
  return quantifiedRows(
    scope,
    node.quantifier,
    table,
    labelIds ? sql`${column} = any(${toIdArray(labelIds)})` : TRUE,
  )
}

/** The conditions on a tag or group itself, `l`. */
export const labelConditions = (where: readonly LabelCondition[]): Sql =>
  allOf(
    where.map(({ field, test }) => {
      if (field === 'id') return idTest(sql`l.id`, test)
      const key = sql`l.name_key`
      return isFoldedTest(test) ? foldedTest(key, test) : nameTest(sql`l.name`, key, test)
    }),
  )

type CustomFieldRef = { id: string; type: CustomFieldType }

/**
 * Returns false when one of the conditions can never be met by a field of this type, else those conditions
 * that the type alone does not decide.
 */
export const valueConditions = (
  { type }: CustomFieldRef,
  where: readonly ValueCondition[],
): readonly ValueCondition[] | false => {
  const undecided: ValueCondition[] = []
  for (const condition of where) {
    const isHeld = condition.as === valueKinds[type]
    // A stored value is never null; a value of a kind that the type does not hold always is.
    if (condition.test.op === 'isNull') {
      if (condition.test.value === isHeld) return false
    } else if (isHeld) undecided.push(condition)
    else return false
  }
  return undecided
}

/** True where the contact has a value of the field that meets every condition. */
const valueTest = (scope: PredicateScope, field: CustomFieldRef, where: readonly ValueCondition[]): Sql => {
  const conditions = valueConditions(field, where)
  if (conditions === false) return FALSE
  // The id comes from the database, and a constant lets the planner use its statistics.
  const key = sql.lit(field.id)
  if (conditions.length === 0) return sql`f.attrs ? ${key}`
  const ofField = sql`r.field_id = ${field.id}::bigint`
  if (field.type === 'multiselect') {
    // Each option is a row; `n` is its position, and `attrs` holds the text as it was written.
    const tests = conditions.map((condition) => textValueTest(condition, sql`(v.attrs->${key}->>r.n::int)`))
    return conditions.every((c) => c.as === 'string' && isFoldedTest(c.test))
      ? related(scope, sql`contact_attributes`, allOf([ofField, ...tests]))
      : sql`exists (select 1 from contact_attributes r join contact_facts v using (workspace_id, contact_id)
          where r.workspace_id = ${scope.workspaceId} and r.contact_id = c.id
            and ${allOf([ofField, ...tests])})`
  }
  const folded = conditions.filter((c) => c.as === 'string' && isFoldedTest(c.test))
  const storedTests = conditions
    .filter((c) => !folded.includes(c))
    .map((condition) => storedTest(sql`(f.attrs->>${key})`, condition))
  return allOf([
    ...storedTests,
    ...(folded.length > 0
      ? [
          related(
            scope,
            sql`contact_attributes`,
            allOf([ofField, ...folded.map((c) => textValueTest(c, FALSE))]),
          ),
        ]
      : []),
  ])
}

/** A condition on text in a row `r` of `contact_attributes`; `raw` is the text as it was written. */
const textValueTest = ({ test }: ValueCondition, raw: Sql): Sql =>
  isFoldedTest(test as TextTest)
    ? foldedTest(sql`r.text_key`, test as FoldedTextTest)
    : exactTest(raw, test as ExactTextTest)

/** A condition on a stored value. Days and instants are stored as text that sorts as they do. */
const storedTest = (value: Sql, condition: ValueCondition): Sql => {
  switch (condition.as) {
    case 'string':
      return exactTest(value, condition.test as ExactTextTest)
    case 'number':
      return numberTest(sql`${value}::numeric`, condition.test)
    case 'boolean':
      return flagTest(sql`${value}::boolean`, condition.test)
    case 'date':
      return orderTest(sql`${value} collate "C"`, sql``, condition.test)
  }
}
