import { type RawBuilder, sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { storable } from '../ids.ts'
import { fold, hasTrigram } from '../text.ts'
import {
  type BroadcastCondition,
  type ConversationCondition,
  type ExactTextTest,
  type Filter,
  type FlagTest,
  type FoldedTextTest,
  type IdTest,
  type LabelCondition,
  type NumberTest,
  type TextField,
  type TextTest,
  type TimeField,
  type TimeTest,
  type ValueCondition,
  valueKinds,
  type WordTest,
} from './filter.ts'
import { beginning, containing, ending, literalsOf } from './patterns.ts'

export type Sql = RawBuilder<unknown>

/** What a search may ask beyond the grammar: text in the name or the phone (`query`). */
export type Condition = Filter | { kind: 'query'; text: string }

/**
 * How related records are asked. `row`: for each contact by itself, in a form that the planner leaves
 * alone; right where few contacts are looked at.
 * `set`: in a form that the planner may join or hash, with `from` and `to` for contacts with ids in
 * between; right where many are. (As `in`, what does not fit in memory to be hashed is read whole for each
 * contact: minutes.)
 */
export type Form = { as: 'row' } | { as: 'set'; from?: string; to?: string }

export type Scope = {
  workspaceId: string
  /** The custom field that `email` is kept in. */
  emailFieldId: string | undefined
  /** Ids of the tags or groups that meet the conditions of a node. */
  labels: ReadonlyMap<Filter, readonly string[]>
  form: Form
}

const yes = sql`true`
const no = sql`false`
const all = (parts: readonly Sql[]): Sql =>
  parts.length === 0 ? yes : parts.length === 1 ? parts[0]! : sql`(${sql.join(parts, sql` and `)})`
const any = (parts: readonly Sql[]): Sql =>
  parts.length === 0 ? no : parts.length === 1 ? parts[0]! : sql`(${sql.join(parts, sql` or `)})`
const texts = (values: readonly string[]): Sql => sql`${values}::text[]`
const ids = (values: readonly string[]): Sql => sql`${values.map(storable)}::bigint[]`

/**
 * The test of one contact, `c`, with its values, `f` (`contact_facts`, null when there are none). Null
 * counts as false; `is not true` keeps it so under a `not`.
 */
export const predicate = (scope: Scope, node: Condition): Sql => {
  switch (node.kind) {
    case 'and':
      return all(node.of.map((child) => predicate(scope, child)))
    case 'or':
      return any(node.of.map((child) => predicate(scope, child)))
    case 'not':
      return sql`(${predicate(scope, node.of)}) is not true`
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
      return quantifiedRows(scope, node.quantifier, sql`conversations`, all(node.where.map(conversationTest)))
    case 'broadcasts':
      return quantifiedRows(
        scope,
        node.quantifier,
        sql`broadcast_recipients`,
        all(node.where.map(broadcastTest)),
      )
  }
}

/** `some`, or `none`, of what the test is about. */
const quantified = (quantifier: 'some' | 'none', test: Sql): Sql =>
  quantifier === 'some' ? test : sql`(${test}) is not true`

/** The same of related rows: `not exists` can be joined as `exists` can. */
const quantifiedRows = (scope: Scope, quantifier: 'some' | 'none', table: Sql, test: Sql): Sql =>
  quantifier === 'none' && scope.form.as === 'set'
    ? sql`not ${related(scope, table, test)}`
    : quantified(quantifier, related(scope, table, test))

/** True where the contact has a row `r` of this table that meets the test. */
const related = ({ workspaceId, form }: Scope, table: Sql, test: Sql): Sql => {
  if (form.as === 'row')
    return sql`(select true from ${table} r where r.workspace_id = ${workspaceId} and r.contact_id = c.id and ${test} limit 1)`
  // Bounded here too, so that a hash of them holds no others.
  const range =
    form.from === undefined
      ? sql``
      : sql`and r.contact_id >= ${form.from}::bigint and r.contact_id < ${form.to}::bigint`
  return sql`exists (select 1 from ${table} r where r.workspace_id = ${workspaceId} and r.contact_id = c.id ${range} and ${test})`
}

export const timeColumns: Record<TimeField, Sql> = {
  createdAt: sql`c.created_at`,
  updatedAt: sql`c.updated_at`,
  lastActivityAt: sql`c.last_activity_at`,
}

const comparisons = { eq: sql`=`, ne: sql`<>`, gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` } as const

const orderTest = (column: Sql, cast: Sql, test: NumberTest): Sql => {
  switch (test.op) {
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
    case 'between':
      return sql`${column} between ${test.from}${cast} and ${test.to}${cast}`
    case 'in':
      return any(test.values.map((value) => sql`${column} = ${value}${cast}`))
    case 'notIn':
      return sql`(${column} is not null and ${all(test.values.map((value) => sql`${column} <> ${value}${cast}`))})`
    default:
      return sql`${column} ${comparisons[test.op]} ${test.value}${cast}`
  }
}

export const timeTest = (column: Sql, test: TimeTest): Sql => orderTest(column, sql`::timestamptz`, test)
export const numberTest = (column: Sql, test: NumberTest): Sql => orderTest(column, sql`::numeric`, test)

const flagTest = (column: Sql, test: FlagTest): Sql => {
  if (test.op === 'isNull') return test.value ? sql`${column} is null` : sql`${column} is not null`
  // Written bare, so that the partial indexes on them serve.
  return (test.op === 'eq') === test.value ? column : sql`not ${column}`
}

export const idTest = (column: Sql, test: IdTest): Sql => {
  switch (test.op) {
    case 'eq':
      return sql`${column} = ${storable(test.value)}::bigint`
    case 'ne':
      return sql`${column} <> ${storable(test.value)}::bigint`
    case 'in':
      return sql`${column} = any(${ids(test.values)})`
    case 'notIn':
      return sql`${column} <> all(${ids(test.values)})`
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
  }
}

/** Operators that look at the text as it is. */
const exactTest = (column: Sql, test: ExactTextTest | WordTest): Sql => {
  switch (test.op) {
    case 'eq':
      return sql`${column} = ${test.value}`
    case 'ne':
      return sql`${column} <> ${test.value}`
    case 'in':
      return sql`${column} = any(${texts(test.values)})`
    case 'notIn':
      return sql`${column} <> all(${texts(test.values)})`
    case 'regex':
      return sql`${column} ~ ${test.value}`
    case 'isNull':
      return test.value ? sql`${column} is null` : sql`${column} is not null`
  }
}

const FOLDED: readonly string[] = [
  'contains',
  'notContains',
  'startsWith',
  'endsWith',
] satisfies FoldedTextTest['op'][]
export const isFolded = (test: TextTest): test is FoldedTextTest => FOLDED.includes(test.op)

const likePattern = ({ op, value }: FoldedTextTest): string =>
  (op === 'startsWith' ? beginning : op === 'endsWith' ? ending : containing)(fold(value))

/** Operators that ignore case, on a column of folded text. */
export const foldedTest = (column: Sql, test: FoldedTextTest): Sql =>
  sql`${column} ${test.op === 'notContains' ? sql`not like` : sql`like`} ${likePattern(test)}`

/** What the trigram index on `search` must hold for the test to be met; nothing when it cannot help. */
export const searchHints = (field: TextField, test: TextTest): string[] => {
  if (field !== 'name' && field !== 'phoneNumber') return []
  if (test.op === 'regex') return literalsOf(test.value).runs.map(containing)
  if (!isFolded(test) || test.op === 'notContains') return []
  const text = fold(test.value)
  return hasTrigram(text) ? [containing(text)] : []
}

const columnTest = (field: Exclude<TextField, 'email'>, test: TextTest): Sql => {
  const hints = searchHints(field, test).map((pattern) => sql`c.search like ${pattern}`)
  if (field === 'name') {
    if (isFolded(test)) return all([...hints, sql`c.name is not null`, foldedTest(sql`c.name_key`, test)])
    if (test.op === 'eq') return sql`(c.name_key = ${fold(test.value)} and c.name = ${test.value})`
    if (test.op === 'in')
      return sql`(c.name_key = any(${texts(test.values.map(fold))}) and c.name = any(${texts(test.values)}))`
    const head = test.op === 'regex' ? literalsOf(test.value).head : undefined
    return all([
      ...hints,
      ...(head === undefined ? [] : [sql`c.name_key like ${beginning(head)}`]),
      exactTest(sql`c.name`, test),
    ])
  }
  if (field === 'phoneNumber')
    return all([...hints, isFolded(test) ? foldedTest(sql`c.phone`, test) : exactTest(sql`c.phone`, test)])
  const column = field === 'chatappUserId' ? sql`c.chatapp_user_id` : sql`c.web_visitor_id`
  // Ids are ASCII, which every locale lowers alike.
  return isFolded(test) ? foldedTest(sql`lower(${column})`, test) : exactTest(column, test)
}

const emailTest = (scope: Scope, test: TextTest): Sql => {
  if (!isFolded(test)) return exactTest(sql`c.email`, test)
  return scope.emailFieldId === undefined
    ? no
    : related(
        scope,
        sql`contact_attributes`,
        sql`r.field_id = ${scope.emailFieldId}::bigint and ${foldedTest(sql`r.text_key`, test)}`,
      )
}

/** Letters are looked for in the name; digits, however they are written, in the phone too. */
const queryTest = (query: string): Sql => {
  const text = fold(query)
  const digits = /^[\d\s+().\-/]+$/.test(query) ? query.replace(/\D/g, '') : ''
  // `|| ''` keeps short patterns off the trigram index, which they would read whole.
  const column =
    hasTrigram(text) && (digits === '' || hasTrigram(digits)) ? sql`c.search` : sql`(c.search || '')`
  const found = (part: string) => sql`${column} like ${containing(part)}`
  // A newline stands between name and phone; one in the query must not bridge them.
  const inText = text.includes('\n')
    ? sql`(${found(text)} and c.name_key like ${containing(text)})`
    : found(text)
  if (digits === '' || digits === text) return inText
  // Digits of a formatted number are meant for phones: "2-1" is not in the name "Agent 21".
  return sql`(${inText} or (${found(digits)} and c.phone like ${containing(digits)}))`
}

type LabelNode = Extract<Filter, { kind: 'tags' | 'groups' }>

const labelTest = (scope: Scope, node: LabelNode): Sql => {
  const [table, column] =
    node.kind === 'tags' ? [sql`contact_tags`, sql`r.tag_id`] : [sql`contact_groups`, sql`r.group_id`]
  const wanted = scope.labels.get(node)
  if (node.quantifier === 'every')
    return wanted ? quantifiedRows(scope, 'none', table, sql`${column} <> all(${ids(wanted)})`) : yes
  return quantifiedRows(scope, node.quantifier, table, wanted ? sql`${column} = any(${ids(wanted)})` : yes)
}

/** The conditions on a tag or group itself, `l`. */
export const labelConditions = (where: readonly LabelCondition[]): Sql =>
  all(
    where.map(({ field, test }) => {
      if (field === 'id') return idTest(sql`l.id`, test)
      return isFolded(test) ? foldedTest(sql`l.name_key`, test) : exactTest(sql`l.name`, test)
    }),
  )

type Field = { id: string; type: CustomFieldType }

/**
 * What of these conditions the type of the field settles by itself: false when one can never be met, else
 * those that must be looked at.
 */
export const valueConditions = (
  { type }: Field,
  where: readonly ValueCondition[],
): readonly ValueCondition[] | false => {
  const left: ValueCondition[] = []
  for (const condition of where) {
    const held = condition.as === valueKinds[type]
    // A value that is there is never null; what the type does not hold always is.
    if (condition.test.op === 'isNull') {
      if (condition.test.value === held) return false
    } else if (held) left.push(condition)
    else return false
  }
  return left
}

/** True where the contact has a value of the field that meets every condition. */
const valueTest = (scope: Scope, field: Field, where: readonly ValueCondition[]): Sql => {
  const conditions = valueConditions(field, where)
  if (conditions === false) return no
  // The id is of our making, and a constant lets the planner see what it does.
  const key = sql.lit(field.id)
  if (conditions.length === 0) return sql`f.attrs ? ${key}`
  const ofField = sql`r.field_id = ${field.id}::bigint`
  if (field.type === 'multiselect') {
    // Each option is a row; the row tells where it stands, the values how it is written.
    const tests = conditions.map((condition) => textValueTest(condition, sql`(v.attrs->${key}->>r.n::int)`))
    return conditions.every((c) => c.as === 'string' && isFolded(c.test))
      ? related(scope, sql`contact_attributes`, all([ofField, ...tests]))
      : sql`exists (select 1 from contact_attributes r join contact_facts v using (workspace_id, contact_id)
          where r.workspace_id = ${scope.workspaceId} and r.contact_id = c.id and ${all([ofField, ...tests])})`
  }
  const folded = conditions.filter((c) => c.as === 'string' && isFolded(c.test))
  const rest = conditions
    .filter((c) => !folded.includes(c))
    .map((condition) => storedTest(sql`(f.attrs->>${key})`, condition))
  return all([
    ...rest,
    ...(folded.length > 0
      ? [related(scope, sql`contact_attributes`, all([ofField, ...folded.map((c) => textValueTest(c, no))]))]
      : []),
  ])
}

/** A condition on text in a row `r` of `contact_attributes`, whose text as it was written is `raw`. */
const textValueTest = ({ test }: ValueCondition, raw: Sql): Sql =>
  isFolded(test as TextTest)
    ? foldedTest(sql`r.text_key`, test as FoldedTextTest)
    : exactTest(raw, test as ExactTextTest)

/** A condition on a value as it is kept. Days and instants are kept as text that sorts as they do. */
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

export const conversationTest = (condition: ConversationCondition): Sql => {
  switch (condition.field) {
    case 'state':
      return exactTest(sql`r.state`, condition.test)
    case 'channelId':
      return idTest(sql`r.channel_id`, condition.test)
    case 'assignedStaffId':
      return idTest(sql`r.assigned_staff_id`, condition.test)
    case 'assignedTeamId':
      return idTest(sql`r.assigned_team_id`, condition.test)
    case 'createdAt':
      return timeTest(sql`r.created_at`, condition.test)
    case 'lastActivityAt':
      return timeTest(sql`r.last_activity_at`, condition.test)
    case 'unreadCount':
      return numberTest(sql`r.unread_count`, condition.test)
  }
}

export const broadcastTest = (condition: BroadcastCondition): Sql => {
  if (condition.field === 'id') return idTest(sql`r.broadcast_id`, condition.test)
  if (condition.field === 'sentAt') return timeTest(sql`r.sent_at`, condition.test)
  const { test } = condition
  const words = 'values' in test ? test.values : [test.value]
  const states = words.filter((word) => word !== 'responded' && word !== 'not_responded')
  const holds = any([
    ...(states.length > 0
      ? [states.length === 1 ? sql`r.status = ${states[0]}` : sql`r.status = any(${texts(states)})`]
      : []),
    ...(words.includes('responded') ? [sql`r.responded`] : []),
    ...(words.includes('not_responded') ? [sql`not r.responded`] : []),
  ])
  return test.op === 'eq' || test.op === 'in' ? holds : sql`not ${holds}`
}
