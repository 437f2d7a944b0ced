import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold, hasTrigram } from '../values/text.ts'
import { OPTION_FIELD_TYPES } from '../contacts/values.ts'
import type { ContactFilter, IdTest, TextField, TextTest, TimeTest, ValueCondition } from './filter.ts'
import {
  type CandidateQuery,
  candidateRank,
  contactCandidates,
  freeTextCandidates,
  leastUnread,
  relatedCandidates,
  unionCandidates,
} from './candidate-query.ts'
import { INDEXED_LENGTH } from './distinct-values.ts'
import {
  extractRegexLiterals,
  foldRegex,
  listRareCharacters,
  prefixPattern,
  rareCharacters,
} from './patterns.ts'
import {
  allOf,
  anyOf,
  foldedTest,
  idTest,
  isFoldedTest,
  numberTest,
  type Sql,
  timeTest,
} from './comparisons.ts'
import {
  type Condition,
  prefixTest,
  toPredicate,
  type PredicateScope,
  trigramPatterns,
  timeColumns,
  valueConditions,
} from './predicates.ts'
import { broadcastTest, consentTest, conversationTest, exchangeTest } from './related-tests.ts'

/**
 * Returns the candidate queries of a condition, the most selective first; none when every contact must be
 * tested.
 */
export const candidateQueries = (scope: PredicateScope, node: Condition): CandidateQuery[] => {
  switch (node.kind) {
    case 'and':
      return node.of
        .flatMap((child) => candidateQueries(scope, child))
        .map((query) => ({ ...query, exact: false }))
        .toSorted((a, b) => a.rank - b.rank)
    case 'or':
      return unionCandidates(node.of.map((child) => candidateQueries(scope, child)[0]))
    case 'not':
      return []
    case 'query':
      return hasTrigram(fold(node.text))
        ? [contactCandidates(scope, candidateRank.text, toPredicate(scope, node))]
        : /\d/.test(node.text)
          ? []
          : rareCandidates(scope, node.text)
    case 'id':
      return isPositive(node.test)
        ? [contactCandidates(scope, candidateRank.id, idTest(sql`c.id`, node.test))]
        : []
    case 'time':
      return isRange(node.test)
        ? [contactCandidates(scope, candidateRank.time, timeTest(timeColumns[node.field], node.test))]
        : []
    case 'flag':
      return node.test.op !== 'isNull' && (node.test.op === 'eq') === node.test.value
        ? [contactCandidates(scope, candidateRank.range, toPredicate(scope, node))]
        : []
    case 'text':
      return textCandidates(scope, node.field, node.test)
    case 'attributes':
      return node.quantifier === 'some' ? valueCandidates(scope, node.field, node.where) : []
    case 'tags':
    case 'groups':
      return labelCandidates(scope, node)
    case 'conversations': {
      if (node.quantifier !== 'some') return []
      const indexed = node.where.some(({ field }) => field === 'state' || field === 'awaitingReply')
      const least = leastUnread(node.where)
      return [
        {
          ...relatedCandidates(
            scope,
            indexed ? candidateRank.state : candidateRank.scan,
            sql`conversations`,
            [
              sql`r.contact_id is not null`,
              ...(least === undefined ? [] : [sql`r.unread_count >= ${sql.lit(least)}`]),
              ...node.where.map(conversationTest),
            ],
          ),
          listed: least !== undefined,
        },
      ]
    }
    case 'exchanges':
      return exchangeCandidates(scope, node)
    case 'phonePrefix':
      return prefixCandidates(scope, node)
    case 'consents': {
      if (node.quantifier !== 'some') return []
      const of = new Set(node.where.map(({ field }) => field))
      const rank = of.has('purpose') && of.has('state') ? candidateRank.range : candidateRank.scan
      return [relatedCandidates(scope, rank, sql`consents`, node.where.map(consentTest))]
    }
    case 'broadcasts':
      return broadcastCandidates(scope, node)
  }
}

/**
 * Contacts of conversations with such times. A contact may have several: each is listed once, which its number must
 * not outweigh, since a sample knows it.
 */
const exchangeCandidates = (
  scope: PredicateScope,
  { quantifier, where }: Extract<ContactFilter, { kind: 'exchanges' }>,
): CandidateQuery[] => {
  const indexed = where.some(
    (condition) =>
      condition.field === 'neverAnswered' ||
      (condition.field !== 'channelId' && isRange(condition.test as TimeTest)),
  )
  if (quantifier !== 'some' || !indexed) return []
  const tests = where.map(exchangeTest)
  const { ids } = relatedCandidates(scope, candidateRank.time, sql`contact_exchanges`, [
    sql`r.contact_id is not null`,
    ...tests,
  ])
  return [
    {
      rank: candidateRank.time,
      branches: 1,
      ids: sql`select distinct contact_id from (${ids}) as r`,
      exact: true,
      listed: where.every(({ field }) => field !== 'neverAnswered'),
    },
  ]
}

const broadcastCandidates = (
  scope: PredicateScope,
  node: Extract<ContactFilter, { kind: 'broadcasts' }>,
): CandidateQuery[] => {
  if (node.quantifier !== 'some') return []
  const indexed = node.where.some(({ field, test }) => field === 'id' && isPositive(test as IdTest))
  return [
    {
      ...relatedCandidates(
        scope,
        indexed ? candidateRank.range : candidateRank.scan,
        sql`broadcast_recipients`,
        node.where.map(broadcastTest),
      ),
      ...(node.where.some(({ field, test }) => field === 'id' && test.op === 'eq')
        ? { sorted: true, exact: true }
        : {}),
      // Who a broadcast went to stays known.
      deleted: true,
    },
  ]
}

const isPositive = (test: IdTest | TextTest): boolean => test.op === 'eq' || test.op === 'in'
const isRange = (test: TimeTest): boolean => test.op !== 'ne' && test.op !== 'isNull'
const valuesOf = (test: { value: string } | { values: readonly string[] }): readonly string[] =>
  'values' in test ? test.values : [test.value]

const textCandidates = (scope: PredicateScope, field: TextField, test: TextTest): CandidateQuery[] => {
  if (field === 'email')
    return scope.emailFieldId === undefined
      ? []
      : storedTextCandidates(scope, { id: scope.emailFieldId, type: 'email' }, test)
  if (isPositive(test))
    return [contactCandidates(scope, candidateRank.exact, toPredicate(scope, { kind: 'text', field, test }))]
  const derived = field === 'name' ? derivedNameCandidates(scope, test) : []
  if (derived.length > 0) return derived
  const prefix =
    (test.op === 'startsWith' && (field === 'name' || field === 'phoneNumber')) ||
    (field === 'name' && test.op === 'regex' && extractRegexLiterals(test.value).prefix !== undefined)
  return prefix || trigramPatterns(field, test).length > 0
    ? [contactCandidates(scope, candidateRank.text, toPredicate(scope, { kind: 'text', field, test }))]
    : []
}

/** Prefixes that are searched for one by one in the index that lists are sorted by. */
const MAX_PREFIXES = 80

const prefixCandidates = (
  scope: PredicateScope,
  node: Extract<ContactFilter, { kind: 'phonePrefix' }>,
): CandidateQuery[] => {
  if (node.any.length > MAX_PREFIXES) return []
  const phone = sql`coalesce(c.phone, '') collate "C"`
  const ranges = node.any.map((prefix) => {
    const next = prefix.slice(0, -1) + nextCharacter(prefix.at(-1)!)
    return sql`(${phone} >= ${prefix} and ${phone} < ${next})`
  })
  const test = node.none.length === 0 ? anyOf(ranges) : allOf([anyOf(ranges), prefixTest(node)])
  return [{ ...contactCandidates(scope, candidateRank.text, test), derived: true }]
}

/** Contacts with all the rare characters of a text in their name or phone. */
const rareCandidates = (scope: PredicateScope, text: string): CandidateQuery[] => {
  const chars = listRareCharacters(text)
  return chars.length === 0
    ? []
    : [
        {
          ...contactCandidates(
            scope,
            candidateRank.text,
            sql`${sql.raw(rareCharacters('c.search'))} @> ${chars}::text[]`,
          ),
          derived: true,
          exact: false,
        },
      ]
}

/** Candidates for names that the planner would not find, or only by reading many contacts. */
const derivedNameCandidates = (scope: PredicateScope, test: TextTest): CandidateQuery[] => {
  if (test.op === 'regex') {
    const { runs, prefix } = extractRegexLiterals(test.value)
    const folded = foldRegex(test.value)
    // Where all that begin alike are tested, their index and their rows are read together.
    if (prefix !== undefined && folded?.source === `^${prefix}.*`) return []
    const first = folded?.first?.toSorted()
    const beginning =
      prefix === undefined
        ? first && sql`c.name_key >= ${first[0]} and c.name_key < ${nextCharacter(first.at(-1)!)}`
        : sql`c.name_key like ${prefixPattern(prefix)}`
    // The index of names suffices for the first of these tests.
    const folding =
      folded && beginning
        ? sql`(${beginning} and c.name_key ~ ${folded.source})`
        : folded?.hasTrigram && runs.length === 0
          ? sql`c.search ~ ${folded.inLine}`
          : undefined
    return folding
      ? [{ ...contactCandidates(scope, candidateRank.text, folding), derived: true, exact: false }]
      : []
  }
  // The index of names has all that begin alike.
  return (test.op === 'contains' || test.op === 'endsWith') && !hasTrigram(fold(test.value))
    ? rareCandidates(scope, test.value)
    : []
}

const nextCharacter = (char: string): string => String.fromCharCode(char.charCodeAt(0) + 1)

type CustomFieldRef = { id: string; type: CustomFieldType }

/** Conditions on a row `r` with one of these values. */
const isValue = (prefixes: readonly string[]): Sql[] => [
  sql`left(r.text_key, ${sql.lit(INDEXED_LENGTH)}) = any(${prefixes}::text[])`,
  sql`r.text_key is not null`,
]

/** Text is indexed folded and by its prefix, so candidates may differ in case or after the prefix. */
const storedTextCandidates = (
  scope: PredicateScope,
  field: CustomFieldRef,
  test: TextTest,
): CandidateQuery[] => {
  const candidates = (rank: number, tests: readonly Sql[]): CandidateQuery[] => [
    relatedCandidates(scope, rank, sql`contact_attributes`, [
      sql`r.field_id = ${field.id}::bigint`,
      ...tests,
    ]),
  ]
  const freeText = (tests: readonly Sql[]): CandidateQuery[] => [freeTextCandidates(scope, field.id, tests)]
  if (test.op === 'eq' || test.op === 'in') {
    return candidates(
      candidateRank.value,
      isValue(valuesOf(test).map((text) => [...fold(text)].slice(0, INDEXED_LENGTH).join(''))),
    )
  }
  const matching = scope.values.get(test)
  if (matching) {
    const exact =
      isFoldedTest(test) &&
      field.type !== 'multiselect' &&
      matching.every((key) => [...key].length < INDEXED_LENGTH)
    return candidates(candidateRank.value, isValue(matching)).map((query) => ({ ...query, exact }))
  }
  // The trigram index holds only free text, no options.
  const isFreeText = !OPTION_FIELD_TYPES.includes(field.type)
  if (test.op === 'regex') {
    const { runs } = extractRegexLiterals(test.value)
    return isFreeText && runs.length > 0
      ? freeText(runs.map((run) => sql`r.text_key like ${containsPattern(run)}`))
      : []
  }
  if (!isFoldedTest(test) || test.op === 'notContains') return []
  const exact = field.type !== 'multiselect'
  // Most addresses share the part after the @, for which the index would cost more than it narrows.
  const [, local] = (field.type === 'email' && /^([^@]*[a-z0-9]{3}[^@]*@)[^@]+$/.exec(fold(test.value))) || []
  if (local !== undefined) return freeText([foldedTest(sql`r.text_key`, { op: 'contains', value: local })])
  return hasTrigram(fold(test.value)) && isFreeText
    ? freeText([foldedTest(sql`r.text_key`, test)]).map((query) => ({
        ...query,
        exact,
      }))
    : // For patterns of one or two characters the whole trigram index would be read.
      candidates(candidateRank.scan, [foldedTest(sql`(r.text_key || '')`, test), sql`r.text_key is not null`])
}

const valueCandidates = (
  scope: PredicateScope,
  field: CustomFieldRef,
  where: readonly ValueCondition[],
): CandidateQuery[] => {
  const conditions = valueConditions(field, where)
  if (conditions === false)
    return [{ rank: candidateRank.id, branches: 1, ids: sql`select 0::bigint as contact_id where false` }]
  const isOnly = conditions.length === 1
  const candidates = (rank: number, test: Sql): CandidateQuery =>
    relatedCandidates(scope, rank, sql`contact_attributes`, [sql`r.field_id = ${field.id}::bigint`, test])
  return conditions
    .flatMap((condition): CandidateQuery[] => {
      switch (condition.as) {
        case 'string':
          return storedTextCandidates(scope, field, condition.test).map((query) => ({
            ...query,
            exact: query.exact === true && isOnly,
          }))
        case 'number':
          return condition.test.op === 'ne' || condition.test.op === 'notIn'
            ? []
            : [
                candidates(
                  condition.test.op === 'eq' || condition.test.op === 'in'
                    ? candidateRank.value
                    : candidateRank.range,
                  numberTest(sql`r.number_value`, condition.test),
                ),
              ].map((query) => ({ ...query, exact: isOnly }))
        case 'boolean':
          return condition.test.op === 'isNull'
            ? []
            : [
                candidates(
                  candidateRank.state,
                  sql`r.bool_value = ${(condition.test.op === 'eq') === condition.test.value}`,
                ),
              ]
        // A day is indexed as its midnight in UTC.
        case 'date':
          return isRange(condition.test)
            ? [candidates(candidateRank.range, timeTest(sql`r.time_value`, condition.test))]
            : []
      }
    })
    .toSorted((a, b) => a.rank - b.rank)
}

const labelCandidates = (
  scope: PredicateScope,
  node: Extract<ContactFilter, { kind: 'tags' | 'groups' }>,
): CandidateQuery[] => {
  if (node.quantifier !== 'some') return []
  const [table, column] =
    node.kind === 'tags' ? [sql`contact_tags`, sql`r.tag_id`] : [sql`contact_groups`, sql`r.group_id`]
  const labelIds = scope.labels.get(node)
  return labelIds
    ? [
        {
          ...relatedCandidates(scope, candidateRank.label, table, [
            labelIds.length === 1
              ? sql`${column} = ${toStorableId(labelIds[0]!)}::bigint`
              : sql`${column} = any(${labelIds.map(toStorableId)}::bigint[])`,
          ]),
          sorted: labelIds.length === 1,
        },
      ]
    : []
}
