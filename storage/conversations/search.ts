import { type RawBuilder, sql } from 'kysely'
import {
  countRanges,
  fetchCount,
  filterConditions,
  headColumns,
  type ListRequest,
  orderOf,
  orderOfHead,
  rangeCondition,
  selectHead,
} from './order.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import { toPredicate } from '../filters/predicates.ts'
import { fold, hasTrigram } from '../values/text.ts'

/** Finds conversations by the name or phone of the contact. docs/decisions/0010 says why in these steps. */

/**
 * Thresholds of the search for `query`, in rows. An object, so that tests can reach every search step with
 * few rows.
 */
export const conversationSearchStrategy = {
  /** Conversations at the head of the list from which the frequency of matches is estimated. */
  headRows: 500,
  /** Matches at the head from which the frequency can be estimated. */
  minHeadMatches: 3,
  /** Maximum number of contacts whose conversations are looked up one by one. */
  maxContacts: 3000,
  /** Maximum number of conversations that are tested one by one. */
  maxScannedRows: 20_000,
}

/** Returns the ids of a page; undefined when this step did not complete it. */
type SearchStep = () => Promise<string[] | undefined>

/**
 * Finds a page of matches. A scan in list order soon finds common matches. Rare ones are found by the trigram
 * index of contacts, or, when the text is too short for it, by reading all contacts after a long scan found
 * too few.
 */
export const findMatchingIds = async (tx: Db, request: ListRequest): Promise<string[]> => {
  const page = fetchCount(request.limit)
  const scan =
    (rows: number): SearchStep =>
    async () => {
      const { ids, whole } = await scanHead(tx, request, rows)
      return whole || ids.length === page ? ids : undefined
    }
  const findByCandidates: SearchStep = async () => {
    const contacts = await findCandidateContacts(tx, request)
    return contacts && (await findByContacts(tx, request, contacts))
  }
  const { headRows, minHeadMatches, maxScannedRows } = conversationSearchStrategy
  const head = await scanHead(tx, request, headRows)
  if (head.whole || head.ids.length === page) return head.ids
  // Twice the number of rows that should contain a page.
  const estimatedRows = head.ids.length >= minHeadMatches ? (2 * headRows * page) / head.ids.length : Infinity
  // Few contacts are read in less time than many conversations with the contact of each.
  const steps =
    request.inShortSteps || hasTrigram(fold(request.query!))
      ? [findByCandidates, scan(maxScannedRows)]
      : [scan(maxScannedRows), findByCandidates]
  for (const step of estimatedRows < maxScannedRows ? [scan(estimatedRows), ...steps] : steps) {
    const ids = await step()
    if (ids) return ids
  }
  const ids = countRanges(request) > 1 ? await scanWholeList(tx, request, maxScannedRows) : []
  return ids.length === page ? ids : await findAllMatches(tx, request)
}

const queryTest = ({ workspaceId, query }: ListRequest) =>
  toPredicate(
    {
      workspaceId,
      labels: new Map(),
      values: new Map(),
      emailFieldId: undefined,
      form: { as: 'row' },
    },
    { kind: 'query', text: query! },
  )

/** Tests the first conversations of the list one by one, at most `rows`. `whole`: the list has no more. */
const scanHead = async (
  tx: Db,
  request: ListRequest,
  rows: number,
): Promise<{ ids: string[]; whole: boolean }> => {
  const maxRows = Math.max(fetchCount(request.limit), Math.floor(rows / countRanges(request)))
  const { ids, seen } = await selectMatchingIds(tx, request, selectHead(request, maxRows))
  return { ids, whole: seen !== null && Number(seen) < maxRows }
}

/**
 * Does the same in the list of all conversations: of many merged ranges, each would be read only a little.
 */
const scanWholeList = async (tx: Db, request: ListRequest, rows: number): Promise<string[]> =>
  (
    await selectMatchingIds(
      tx,
      request,
      sql`
  select v.id, v.activity_at as at, v.contact_id from (
    select * from conversations v
      where v.workspace_id = ${request.workspaceId} ${rangeCondition(request)} ${orderOf(request)}
        limit ${sql.lit(rows)}) as v
  where true ${filterConditions(request)} ${orderOf(request)}`,
    )
  ).ids

/** Returns the ids of a page among these conversations; `seen`: their number, when they do not fill it. */
const selectMatchingIds = async (
  tx: Db,
  request: ListRequest,
  conversations: RawBuilder<unknown>,
): Promise<{ ids: string[]; seen: string | null }> => {
  const page = sql.lit(fetchCount(request.limit))
  // `limit 1` keeps the look-up of each contact separate: with a plain join, the planner reads all contacts.
  // In this order, the scan ends as soon as the page is full.
  const { rows } = await sql<{ ids: string[]; seen: string | null }>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select v.id from (${conversations}) as v
      cross join lateral (select c.search, c.name_key, c.phone from contacts c
        where c.workspace_id = ${request.workspaceId} and c.id = v.contact_id limit 1) as c
      where ${queryTest(request)} ${orderOfHead(request)} limit ${page})
    select array(select id from page) as ids, case when (select count(*) from page) < ${page}
      then (select count(*) from (${conversations}) as v) end as seen`.execute(tx)
  return rows[0]!
}

/** Returns the ids of all contacts that match the query; undefined when there are too many. */
const findCandidateContacts = async (tx: Db, request: ListRequest): Promise<string[] | undefined> => {
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    select c.id from contacts c where c.workspace_id = ${request.workspaceId} and ${queryTest(request)}
      limit ${sql.lit(conversationSearchStrategy.maxContacts + 1)}`.execute(tx)
  return rows.length > conversationSearchStrategy.maxContacts ? undefined : rows.map((row) => row.id)
}

const findByContacts = async (
  tx: Db,
  request: ListRequest,
  contacts: readonly string[],
): Promise<string[]> => {
  const page = sql.lit(fetchCount(request.limit))
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    select v.id from unnest(${contacts}::bigint[]) as u (id) cross join lateral (
      select ${headColumns(request)} from conversations v where v.workspace_id = ${request.workspaceId}
        and v.contact_id = u.id ${filterConditions(request)} ${orderOf(request)} limit ${page}) as v
    ${orderOfHead(request)} limit ${page}`.execute(tx)
  return rows.map((row) => row.id)
}

/**
 * Finds the contacts first. When the query starts with the list order, the planner was seen to look up the
 * contact of each of a million conversations.
 */
const findAllMatches = async (tx: Db, request: ListRequest): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    with found as materialized (select c.id from contacts c where c.workspace_id = ${request.workspaceId}
      and ${queryTest(request)})
    select v.id from found join conversations v on v.workspace_id = ${request.workspaceId}
      and v.contact_id = found.id
    where true ${filterConditions(request)} ${orderOf(request)}
      limit ${sql.lit(fetchCount(request.limit))}`.execute(tx)
  return rows.map((row) => row.id)
}
