import type { CustomFieldType } from '../../catalog/custom-fields.ts'

/**
 * A contact filter as storage asks it: checked, its custom fields resolved to ids, its dates absolute, its
 * saved filters put in their places (contract 4). Logic is two-valued: a comparison with an absent value is
 * false, whatever the operator; only `isNull` sees absence.
 */
export type Filter =
  | { kind: 'and' | 'or'; of: readonly Filter[] }
  | { kind: 'not'; of: Filter }
  | { kind: 'text'; field: TextField; test: TextTest }
  | { kind: 'id'; test: IdTest }
  | { kind: 'time'; field: TimeField; test: TimeTest }
  | { kind: 'flag'; field: FlagField; test: FlagTest }
  /**
   * `some` or `none` of the related records meets every condition of `where`; `every`: each one does, also
   * where there are none.
   */
  | { kind: 'tags' | 'groups'; quantifier: Quantifier | 'every'; where: readonly LabelCondition[] }
  | {
      kind: 'attributes'
      quantifier: Quantifier
      field: { id: string; type: CustomFieldType }
      where: readonly ValueCondition[]
    }
  | { kind: 'conversations'; quantifier: Quantifier; where: readonly ConversationCondition[] }
  | { kind: 'broadcasts'; quantifier: Quantifier; where: readonly BroadcastCondition[] }

export type TextField = 'name' | 'phoneNumber' | 'email' | 'chatappUserId' | 'webVisitorId'
export type TimeField = 'createdAt' | 'updatedAt' | 'lastActivityAt'
type FlagField = 'dnd' | 'starred'
type Quantifier = 'some' | 'none'

type IsNull = { op: 'isNull'; value: boolean }

export type TextTest = ExactTextTest | FoldedTextTest
/** Look at the text as it is. */
export type ExactTextTest =
  | { op: 'eq' | 'ne' | 'regex'; value: string }
  | { op: 'in' | 'notIn'; values: readonly string[] }
  | IsNull
/** Ignore case (`fold`), and take `%` and `_` literally. */
export type FoldedTextTest = { op: 'contains' | 'notContains' | 'startsWith' | 'endsWith'; value: string }
/** One of a few words. */
export type WordTest = { op: 'eq' | 'ne'; value: string } | { op: 'in' | 'notIn'; values: readonly string[] }
export type IdTest = WordTest | IsNull
/**
 * ISO 8601 instants in UTC with milliseconds; days as YYYY-MM-DD where a custom field of the type `date` is
 * compared. `between` is inclusive.
 */
export type TimeTest =
  | { op: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; value: string }
  | { op: 'between'; from: string; to: string }
  | IsNull
/** Numbers as decimal text, so that nothing is rounded. */
export type NumberTest = TimeTest | { op: 'in' | 'notIn'; values: readonly string[] }
export type FlagTest = { op: 'eq' | 'ne'; value: boolean } | IsNull

export type LabelCondition = { field: 'id'; test: IdTest } | { field: 'name'; test: TextTest }

/**
 * Compares a custom value, each option of a multiselect by itself. What the field's type does not hold is
 * absent: `stringValue` of a number field meets nothing but `isNull: true`.
 */
export type ValueCondition =
  | { as: 'string'; test: TextTest }
  | { as: 'number'; test: NumberTest }
  | { as: 'boolean'; test: FlagTest }
  | { as: 'date'; test: TimeTest }

export type ConversationCondition =
  | { field: 'state'; test: WordTest }
  | { field: 'channelId' | 'assignedStaffId' | 'assignedTeamId'; test: IdTest }
  | { field: 'createdAt' | 'lastActivityAt'; test: TimeTest }
  | { field: 'unreadCount'; test: NumberTest }

/**
 * `message_status`: how far the message came, and beside it whether the contact has `responded` or
 * `not_responded`.
 */
export type BroadcastCondition =
  | { field: 'id'; test: IdTest }
  | { field: 'message_status'; test: WordTest }
  | { field: 'sentAt'; test: TimeTest }

/** Which kind of value each type of custom field holds. */
export const valueKinds: Record<CustomFieldType, ValueCondition['as']> = {
  text: 'string',
  textarea: 'string',
  email: 'string',
  url: 'string',
  phone: 'string',
  select: 'string',
  radio: 'string',
  multiselect: 'string',
  number: 'number',
  int: 'number',
  float: 'number',
  decimal: 'number',
  checkbox: 'boolean',
  boolean: 'boolean',
  date: 'date',
  datetime: 'date',
}
