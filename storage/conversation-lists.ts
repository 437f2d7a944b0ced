import { type RawBuilder, sql } from 'kysely'
import type { Db, MediaState, MessageDirection, MessageStatus, ReplyStatus } from './database.ts'
import { CUSTOM_PLAN, QUICK } from './driver.ts'
import { toPredicate } from './filters/predicates.ts'
import { toStorableId } from './ids.ts'
import { loadNames, resolveNames, type NamedRef, namesVersionColumn } from './names-cache.ts'
import { fold, hasTrigram } from './text.ts'

/**
 * A conversation with its contact, channel and last message; their columns are null when they do not exist.
 * `tags` and `groups` by name.
 */
export type ConversationRow = {
  id: string
  state: 'open' | 'closed'
  channel_id: string | null
  channel_type: string | null
  channel_name: string | null
  contact_id: string | null
  contact_name: string | null
  contact_phone: string | null
  contact_dnd: boolean | null
  contact_starred: boolean | null
  assigned_staff_id: string | null
  assigned_staff_name: string | null
  assigned_team_id: string | null
  assigned_at: string | null
  unread_count: number
  reply_status: ReplyStatus | null
  reminder_at: string | null
  bot_active: boolean
  last_inbound_at: string | null
  free_entry_at: string | null
  window_corrected_at: string | null
  window_expires_at: string | null
  sla_policy_name: string | null
  first_response_due_at: string | null
  next_response_due_at: string | null
  resolution_due_at: string | null
  sla_breached: boolean
  created_at: string
  updated_at: string
  activity_at: string
  message_id: string | null
  message_direction: MessageDirection
  message_type: string
  message_status: MessageStatus
  message_text: string | null
  message_staff_id: string | null
  message_staff_name: string | null
  message_reply_to_id: string | null
  message_error: string | null
  message_created_at: string
  message_media_state: MediaState | null
  tags: NamedRef[]
  groups: NamedRef[]
}
type ConversationQueryRow = Omit<ConversationRow, 'tags' | 'groups'> & {
  tag_ids: string[]
  group_ids: string[]
  names_version: string | null
}

/** More text than a last message shows, so that the cut is visible. */
const LAST_TEXT_LENGTH = 600

const columns = (workspaceId: string) => sql`
  v.id, v.state, v.channel_id, h.type as channel_type, h.name as channel_name,
  c.id as contact_id, c.name as contact_name, c.phone as contact_phone, c.dnd as contact_dnd,
    c.starred as contact_starred,
  v.assigned_staff_id, s.name as assigned_staff_name, v.assigned_team_id, v.assigned_at, v.unread_count,
    v.reply_status, v.reminder_at, v.bot_active,
  v.last_inbound_at, v.free_entry_at, v.window_corrected_at, v.window_expires_at,
  p.name as sla_policy_name, v.first_response_due_at, v.next_response_due_at, v.resolution_due_at,
    v.sla_breached, v.created_at, v.updated_at, v.activity_at,
  m.id as message_id, m.direction as message_direction, m.type as message_type, m.status as message_status,
    left(m.text, ${sql.lit(LAST_TEXT_LENGTH)}) as message_text,
  m.staff_id as message_staff_id, ms.name as message_staff_name, m.reply_to_id as message_reply_to_id,
    m.error as message_error, m.created_at as message_created_at, d.state as message_media_state,
  array(select l.tag_id from conversation_tags l where l.workspace_id = v.workspace_id
    and l.conversation_id = v.id) as tag_ids,
  array(select l.group_id from contact_groups l where l.workspace_id = v.workspace_id
    and l.contact_id = v.contact_id) as group_ids,
  ${namesVersionColumn(workspaceId)}`

const joins = sql.raw(`
  left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
  left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
  left join staff s on s.workspace_id = v.workspace_id and s.id = v.assigned_staff_id
  left join sla_policies p on p.workspace_id = v.workspace_id and p.id = v.sla_policy_id
  left join messages m on m.workspace_id = v.workspace_id and m.id = v.last_message_id
  left join staff ms on ms.workspace_id = v.workspace_id and ms.id = m.staff_id
  left join media d on d.workspace_id = v.workspace_id and d.message_id = m.id`)

/** Adds the names of their tags and groups to rows. */
const withNames = async (
  tx: Db,
  workspaceId: string,
  rows: readonly ConversationQueryRow[],
): Promise<ConversationRow[]> => {
  if (rows.length === 0) return []
  const known = await loadNames(tx, workspaceId, rows[0]!.names_version)
  const tags = await resolveNames(
    tx,
    workspaceId,
    known,
    'tag',
    rows.map((row) => row.tag_ids),
  )
  const groups = await resolveNames(
    tx,
    workspaceId,
    known,
    'group',
    rows.map((row) => row.group_ids),
  )
  return rows.map((row, i) => ({ ...row, tags: tags[i]!, groups: groups[i]! }))
}

/** Returns a conversation; undefined when there is none. */
export const readConversation = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ConversationRow | undefined> => {
  const { rows } = await sql<ConversationQueryRow>`${sql.raw(QUICK)}
    select ${columns(workspaceId)} from conversations v ${joins} where v.workspace_id = ${workspaceId}
      and v.id = ${toStorableId(id)}`.execute(tx)
  return (await withNames(tx, workspaceId, rows))[0]
}

/** Returns the channel id of a conversation, null when it is gone; undefined without conversation. */
export const findConversationChannel = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<string | null | undefined> =>
  (
    await sql<{ channel_id: string | null }>`${sql.raw(QUICK)}
    select channel_id from conversations where workspace_id = ${workspaceId}
      and id = ${toStorableId(id)}`.execute(tx)
  ).rows[0]?.channel_id

/** `channels`: only conversations of these; undefined: of all channels, and those without one. */
export type ConversationFilter = {
  query?: string | undefined
  state?: 'open' | 'closed' | undefined
  assigned?: boolean | undefined
  replyStatus?: ReplyStatus | undefined
  channels?: readonly string[] | undefined
  /** Statements should be short, because others wait for them. */
  inShortSteps?: boolean
}
/** The position of a conversation in the list: newest activity first. */
export type ConversationPosition = { activityAt: string; id: string }
type ListRequest = ConversationFilter & {
  workspaceId: string
  after: ConversationPosition | null
  limit: number
}

/** Returns the values of `conversations.facet` (migration 0003) that match; undefined: all. */
const listFacets = ({ state, assigned, replyStatus }: ConversationFilter): number[] | undefined => {
  if (state === undefined && assigned === undefined && replyStatus === undefined) return undefined
  const states = state === undefined ? [0, 1] : [state === 'open' ? 0 : 1]
  const holders = assigned === undefined ? [0, 2] : [assigned ? 2 : 0]
  const waits = replyStatus === undefined ? [0, 4, 8] : [replyStatus === 'incoming_no_reply' ? 4 : 8]
  return states.flatMap((s) => holders.flatMap((h) => waits.map((w) => s + h + w)))
}
const ALL_FACETS = listFacets({ state: 'open' })!.concat(listFacets({ state: 'closed' })!)

/**
 * Returns the number of rows to fetch: at least one more than the limit, to detect a next page. It is one of
 * a few numbers, since it is a literal in the SQL and every SQL text is a prepared statement of its own.
 */
const fetchCount = (limit: number): number => ([10, 25, 50].find((step) => limit <= step) ?? 100) + 1

const afterCondition = ({ after }: ListRequest) =>
  after === null
    ? sql``
    : sql`and (v.activity_at, v.id) < (${after.activityAt}::timestamptz, ${after.id}::bigint)`
const newestFirst = sql.raw('order by v.activity_at desc, v.id desc')

/**
 * Selects the first conversations of the list without regard to `query`: ids, times and contacts. Each pair
 * of channel and facet is a range of an index in list order; up to `maxRows` are read of each, then merged.
 */
const selectHead = (request: ListRequest, maxRows: number): RawBuilder<unknown> => {
  const facets = listFacets(request)
  const range = (from: RawBuilder<unknown>, where: RawBuilder<unknown>) => sql`
    select v.* from ${from} cross join lateral (
      select v.id, v.activity_at, v.contact_id from conversations v
        where v.workspace_id = ${request.workspaceId} and ${where} ${afterCondition(request)} ${newestFirst}
          limit ${sql.lit(maxRows)}) as v
    ${newestFirst} limit ${sql.lit(maxRows)}`
  if (request.channels) {
    // As one list of pairs: two lists, or a shorter one, are planned anew each time, which takes longer
    // than the page.
    const pairs = request.channels.flatMap((channel) =>
      (facets ?? ALL_FACETS).map((facet) => ({ channel: toStorableId(channel), facet })),
    )
    return range(
      sql`unnest(${pairs.map((p) => p.channel)}::bigint[], ${pairs.map((p) => p.facet)}::smallint[]) as f
        (channel_id, facet)`,
      sql`v.channel_id = f.channel_id and v.facet = f.facet`,
    )
  }
  if (facets) return range(sql`unnest(${facets}::smallint[]) as f (facet)`, sql`v.facet = f.facet`)
  return sql`select v.id, v.activity_at, v.contact_id from conversations v
    where v.workspace_id = ${request.workspaceId} ${afterCondition(request)} ${newestFirst}
      limit ${sql.lit(maxRows)}`
}

/** Lists a page of conversations, newest activity first, with one row more where there is a next page. */
export const listConversationPage = async (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  after: ConversationPosition | null,
  limit: number,
): Promise<ConversationRow[]> => {
  const request: ListRequest = { ...filter, workspaceId, after, limit }
  if (request.channels?.length === 0) return []
  const plain = request.query === undefined
  const found = plain
    ? selectHead(request, fetchCount(limit))
    : sql`select u.id from unnest(${await findMatchingIds(tx, request)}::bigint[]) as u (id)`
  const { rows } = await sql<ConversationQueryRow>`${sql.raw(QUICK)}
    select ${columns(workspaceId)} from (${found}) as page
      join conversations v on v.workspace_id = ${workspaceId}
        and v.id = page.id ${joins} ${newestFirst}`.execute(tx)
  return await withNames(tx, workspaceId, rows)
}

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
const findMatchingIds = async (tx: Db, request: ListRequest): Promise<string[]> => {
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
    { workspaceId, labels: new Map(), emailFieldId: undefined, form: { as: 'row' } },
    { kind: 'query', text: query! },
  )

/** Returns the number of index ranges that the list is merged from. */
const countRanges = (request: ListRequest): number =>
  (request.channels?.length ?? 1) *
  (listFacets(request)?.length ?? (request.channels ? ALL_FACETS.length : 1))

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
  select v.id, v.activity_at, v.contact_id from (
    select * from conversations v
      where v.workspace_id = ${request.workspaceId} ${afterCondition(request)} ${newestFirst}
        limit ${sql.lit(rows)}) as v
  where true ${filterConditions(request)} ${newestFirst}`,
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
      where ${queryTest(request)} ${newestFirst} limit ${page})
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

const filterConditions = (request: ListRequest) => {
  const facets = listFacets(request)
  return sql`
    ${facets ? sql`and v.facet = any(${facets}::smallint[])` : sql``}
    ${request.channels ? sql`and v.channel_id = any(${request.channels.map(toStorableId)}::bigint[])` : sql``}
    ${afterCondition(request)}`
}

const findByContacts = async (
  tx: Db,
  request: ListRequest,
  contacts: readonly string[],
): Promise<string[]> => {
  const page = sql.lit(fetchCount(request.limit))
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    select v.id from unnest(${contacts}::bigint[]) as u (id) cross join lateral (
      select v.id, v.activity_at from conversations v where v.workspace_id = ${request.workspaceId}
        and v.contact_id = u.id ${filterConditions(request)} ${newestFirst} limit ${page}) as v
    ${newestFirst} limit ${page}`.execute(tx)
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
    where true ${filterConditions(request)} ${newestFirst}
      limit ${sql.lit(fetchCount(request.limit))}`.execute(tx)
  return rows.map((row) => row.id)
}
