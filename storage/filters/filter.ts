import type { CustomFieldType } from '../../catalog/custom-fields.ts'

/**
 * A validated contact filter, with custom fields resolved to ids, absolute dates and expanded saved filters.
 * Logic is two-valued: a comparison with an absent value is false for every operator but `isNull`.
 */
export type ContactFilter =
  | { kind: 'and' | 'or'; of: readonly ContactFilter[] }
  | { kind: 'not'; of: ContactFilter }
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
  /** The phone begins with one of `any`, and with none of `none`; both are digits. */
  | { kind: 'phonePrefix'; any: readonly string[]; none: readonly string[] }
  | { kind: 'consents'; quantifier: Quantifier; where: readonly ConsentCondition[] }
  | { kind: 'conversations'; quantifier: Quantifier; where: readonly ConversationCondition[] }
  | { kind: 'exchanges'; quantifier: Quantifier; where: readonly ExchangeCondition[] }
  | { kind: 'broadcasts'; quantifier: Quantifier; where: readonly BroadcastCondition[] }

export type TextField = 'name' | 'phoneNumber' | 'email' | 'chatappUserId' | 'webVisitorId' | 'externalId'
export type TimeField = 'createdAt' | 'updatedAt' | 'lastActivityAt'
type FlagField = 'dnd' | 'starred'
type Quantifier = 'some' | 'none'

type IsNull = { op: 'isNull'; value: boolean }

export type TextTest = ExactTextTest | FoldedTextTest
/** Compares the text without folding. */
export type ExactTextTest =
  | { op: 'eq' | 'ne' | 'regex'; value: string }
  | { op: 'in' | 'notIn'; values: readonly string[] }
  | IsNull
/** Ignores case (`fold`), and matches `%` and `_` literally. */
export type FoldedTextTest = { op: 'contains' | 'notContains' | 'startsWith' | 'endsWith'; value: string }
/** One of a fixed set of words. */
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
 * Compares the value of a custom field, each option of a multiselect by itself. A kind of value that the
 * field's type does not hold is absent: `stringValue` of a number field meets nothing but `isNull: true`.
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
  /** It is open, and its last message is the customer's, which nobody answered. */
  | { field: 'awaitingReply' }

/** When messages went to and fro in a conversation (`contact_exchanges`). */
export type ExchangeCondition =
  | { field: 'lastInboundAt' | 'lastOutboundAt'; test: TimeTest }
  | { field: 'channelId'; test: IdTest }
  /**
   * The customer wrote in it, and nobody answered since the first message to any conversation of the contact, or to
   * those on these channels.
   */
  | { field: 'neverAnswered'; channels: readonly string[] | null }

/** What holds now. `channel`: on this type of channel, the later of what was said of it and of all. */
export type ConsentCondition =
  | { field: 'purpose' | 'channel'; test: { op: 'eq'; value: string } }
  | { field: 'state'; test: WordTest }

/**
 * `message_status`: how far the message came, and beside it whether the contact has `responded` or
 * `not_responded`.
 */
export type BroadcastCondition =
  | { field: 'id'; test: IdTest }
  | { field: 'channelId'; test: IdTest }
  | { field: 'message_status'; test: WordTest }
  | { field: 'sentAt'; test: TimeTest }

/** The kind of value that each type of custom field holds. */
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

/** The folded values, or the first 200 characters of longer ones, that may meet a test of a custom field. */
export type MatchingValues = ReadonlyMap<TextTest, readonly string[]>

/** Conditions on more than the contact's own columns. */
export const relatedKinds: ReadonlySet<string> = new Set([
  'attributes',
  'tags',
  'groups',
  'conversations',
  'exchanges',
  'consents',
  'broadcasts',
] satisfies ContactFilter['kind'][])
