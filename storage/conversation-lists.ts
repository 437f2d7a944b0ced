import { type RawBuilder, sql } from 'kysely'
import type { Db, MediaState, MessageDirection, MessageStatus, ReplyStatus } from './database.ts'
import { CUSTOM_PLAN, QUICK } from './driver.ts'
import { toPredicate } from './filters/predicates.ts'
import { toStorableId } from './ids.ts'
import { loadNames, resolveNames, type NamedRef, namesVersionColumn } from './names-cache.ts'
import { fold, hasTrigram } from './text.ts'

/**
 * A conversation with what is shown of it; null columns where the contact, the channel or the last message
 * is gone. `tags` and `groups` by name.
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

/** More text than a last message shows, so that it shows where it cuts. */
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

/** Gives rows the names of their tags and groups. */
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

/** One conversation; undefined when there is none. */
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

/** The channel of a conversation, null when that is gone; undefined when there is no such conversation. */
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

/** What a list asks for. `channels`: only of these; undefined: of all, and those without one. */
export type ConversationFilter = {
  query?: string | undefined
  state?: 'open' | 'closed' | undefined
  assigned?: boolean | undefined
  replyStatus?: ReplyStatus | undefined
  channels?: readonly string[] | undefined
}
/** Where a conversation stands in the list: newest activity first. */
export type ConversationPosition = { activityAt: string; id: string }
type ListRequest = ConversationFilter & {
  workspaceId: string
  after: ConversationPosition | null
  limit: number
}

/** The numbers of `conversations.facet` (migration 0003) that a list asks for; undefined: all. */
const listFacets = ({ state, assigned, replyStatus }: ConversationFilter): number[] | undefined => {
  if (state === undefined && assigned === undefined && replyStatus === undefined) return undefined
  const states = state === undefined ? [0, 1] : [state === 'open' ? 0 : 1]
  const holders = assigned === undefined ? [0, 2] : [assigned ? 2 : 0]
  const waits = replyStatus === undefined ? [0, 4, 8] : [replyStatus === 'incoming_no_reply' ? 4 : 8]
  return states.flatMap((s) => holders.flatMap((h) => waits.map((w) => s + h + w)))
}
const ALL_FACETS = listFacets({ state: 'open' })!.concat(listFacets({ state: 'closed' })!)

/**
 * One row more than fits tells of a next page. In a few steps, since the number stands in the text and
 * every text stays prepared.
 */
const fetchCount = (limit: number): number => ([10, 25, 50].find((step) => limit <= step) ?? 100) + 1

const afterCondition = ({ after }: ListRequest) =>
  after === null
    ? sql``
    : sql`and (v.activity_at, v.id) < (${after.activityAt}::timestamptz, ${after.id}::bigint)`
const newestFirst = sql.raw('order by v.activity_at desc, v.id desc')

/**
 * The first conversations of the list, whatever `query` asks: ids, times and contacts. Each combination of
 * channel and facet is a range of an index in the order of the list; as many are read of each as are asked
 * for, then merged.
 */
const selectHead = (asked: ListRequest, most: number): RawBuilder<unknown> => {
  const facets = listFacets(asked)
  const range = (from: RawBuilder<unknown>, where: RawBuilder<unknown>) => sql`
    select v.* from ${from} cross join lateral (
      select v.id, v.activity_at, v.contact_id from conversations v
        where v.workspace_id = ${asked.workspaceId} and ${where} ${afterCondition(asked)} ${newestFirst}
          limit ${sql.lit(most)}) as v
    ${newestFirst} limit ${sql.lit(most)}`
  if (asked.channels) {
    // As one list of pairs: two lists, or a shorter one, are planned anew each time, which takes longer
    // than the page.
    const pairs = asked.channels.flatMap((channel) =>
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
    where v.workspace_id = ${asked.workspaceId} ${afterCondition(asked)} ${newestFirst}
      limit ${sql.lit(most)}`
}

/** A page of conversations, newest activity first, with one row more where there is a next page. */
export const listConversationPage = async (
  tx: Db,
  workspaceId: string,
  wanted: ConversationFilter,
  after: ConversationPosition | null,
  limit: number,
): Promise<ConversationRow[]> => {
  const asked: ListRequest = { ...wanted, workspaceId, after, limit }
  if (asked.channels?.length === 0) return []
  const plain = asked.query === undefined
  const found = plain
    ? selectHead(asked, fetchCount(limit))
    : sql`select u.id from unnest(${await findMatchingIds(tx, asked)}::bigint[]) as u (id)`
  const { rows } = await sql<ConversationQueryRow>`${sql.raw(QUICK)}
    select ${columns(workspaceId)} from (${found}) as page
      join conversations v on v.workspace_id = ${workspaceId}
        and v.id = page.id ${joins} ${newestFirst}`.execute(tx)
  return await withNames(tx, workspaceId, rows)
}

/**
 * Where one way of finding what `query` asks for gives place to the next; numbers of rows. An object, so
 * that tests can bring each way about with few.
 */
export const conversationSearchStrategy = {
  /**
   * Conversations at the head of the list that tell how common a match is, and the matches among them that
   * do.
   */
  look: 500,
  telling: 3,
  /** More contacts than this are not looked up one by one. */
  few: 3000,
  /** Conversations that are tested one by one. */
  walk: 20_000,
}

/** Ids of a page; undefined where this way did not lead to the end of it. */
type SearchStep = () => Promise<string[] | undefined>

/**
 * What is common is soon met along the list. What is rare is looked up by the contacts' trigram index, or,
 * where that knows nothing of so short a text, by reading all contacts after a long walk was in vain.
 */
const findMatchingIds = async (tx: Db, asked: ListRequest): Promise<string[]> => {
  const page = fetchCount(asked.limit)
  const along =
    (rows: number): SearchStep =>
    async () => {
      const { ids, whole } = await scanHead(tx, asked, rows)
      return whole || ids.length === page ? ids : undefined
    }
  const among: SearchStep = async () => {
    const contacts = await findCandidateContacts(tx, asked)
    return contacts && (await findByContacts(tx, asked, contacts))
  }
  const looked = await scanHead(tx, asked, conversationSearchStrategy.look)
  if (looked.whole || looked.ids.length === page) return looked.ids
  // Twice as far as a page should lie.
  const guess =
    looked.ids.length >= conversationSearchStrategy.telling
      ? (2 * conversationSearchStrategy.look * page) / looked.ids.length
      : Infinity
  const ways = hasTrigram(fold(asked.query!))
    ? [among, along(conversationSearchStrategy.walk)]
    : [along(conversationSearchStrategy.walk), among]
  for (const way of guess < conversationSearchStrategy.walk ? [along(guess), ...ways] : ways) {
    const ids = await way()
    if (ids) return ids
  }
  const ids = countRanges(asked) > 1 ? await scanWholeList(tx, asked, conversationSearchStrategy.walk) : []
  return ids.length === page ? ids : await findAllMatches(tx, asked)
}

const queryTest = ({ workspaceId, query }: ListRequest) =>
  toPredicate(
    { workspaceId, labels: new Map(), emailFieldId: undefined, form: { as: 'row' } },
    { kind: 'query', text: query! },
  )

/** Of how many ranges of an index the list is merged. */
const countRanges = (asked: ListRequest): number =>
  (asked.channels?.length ?? 1) * (listFacets(asked)?.length ?? (asked.channels ? ALL_FACETS.length : 1))

/**
 * Tests the first conversations of the list one by one, reading so many rows at most. `whole`: there are no
 * more.
 */
const scanHead = async (
  tx: Db,
  asked: ListRequest,
  rows: number,
): Promise<{ ids: string[]; whole: boolean }> => {
  const most = Math.max(fetchCount(asked.limit), Math.floor(rows / countRanges(asked)))
  const { ids, seen } = await selectMatchingIds(tx, asked, selectHead(asked, most))
  return { ids, whole: seen !== null && Number(seen) < most }
}

/** The same along the list of all conversations: of many ranges each is read a little way only. */
const scanWholeList = async (tx: Db, asked: ListRequest, rows: number): Promise<string[]> =>
  (
    await selectMatchingIds(
      tx,
      asked,
      sql`
  select v.id, v.activity_at, v.contact_id from (
    select * from conversations v
      where v.workspace_id = ${asked.workspaceId} ${afterCondition(asked)} ${newestFirst}
        limit ${sql.lit(rows)}) as v
  where true ${filterConditions(asked)} ${newestFirst}`,
    )
  ).ids

/** The ids of a page among these conversations; `seen`: how many these are, where they do not fill it. */
const selectMatchingIds = async (
  tx: Db,
  asked: ListRequest,
  conversations: RawBuilder<unknown>,
): Promise<{ ids: string[]; seen: string | null }> => {
  const page = sql.lit(fetchCount(asked.limit))
  // The look-up of each contact is kept apart by its limit: joined, the planner reads all contacts. Read in
  // order, the walk ends with the page.
  const { rows } = await sql<{ ids: string[]; seen: string | null }>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select v.id from (${conversations}) as v
      cross join lateral (select c.search, c.name_key, c.phone from contacts c
        where c.workspace_id = ${asked.workspaceId} and c.id = v.contact_id limit 1) as c
      where ${queryTest(asked)} ${newestFirst} limit ${page})
    select array(select id from page) as ids, case when (select count(*) from page) < ${page}
      then (select count(*) from (${conversations}) as v) end as seen`.execute(tx)
  return rows[0]!
}

/** The ids of all contacts that the query finds, where they are few. */
const findCandidateContacts = async (tx: Db, asked: ListRequest): Promise<string[] | undefined> => {
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    select c.id from contacts c where c.workspace_id = ${asked.workspaceId} and ${queryTest(asked)}
      limit ${sql.lit(conversationSearchStrategy.few + 1)}`.execute(tx)
  return rows.length > conversationSearchStrategy.few ? undefined : rows.map((row) => row.id)
}

const filterConditions = (asked: ListRequest) => {
  const facets = listFacets(asked)
  return sql`
    ${facets ? sql`and v.facet = any(${facets}::smallint[])` : sql``} ${asked.channels ? sql`and v.channel_id = any(${asked.channels.map(toStorableId)}::bigint[])` : sql``} ${afterCondition(asked)}`
}

const findByContacts = async (tx: Db, asked: ListRequest, contacts: readonly string[]): Promise<string[]> => {
  const page = sql.lit(fetchCount(asked.limit))
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    select v.id from unnest(${contacts}::bigint[]) as u (id) cross join lateral (
      select v.id, v.activity_at from conversations v where v.workspace_id = ${asked.workspaceId}
        and v.contact_id = u.id ${filterConditions(asked)} ${newestFirst} limit ${page}) as v
    ${newestFirst} limit ${page}`.execute(tx)
  return rows.map((row) => row.id)
}

/**
 * The contacts first: led by the order, the planner was seen to look up the contact of each of a million
 * conversations.
 */
const findAllMatches = async (tx: Db, asked: ListRequest): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`${sql.raw(CUSTOM_PLAN)}
    with found as materialized (select c.id from contacts c where c.workspace_id = ${asked.workspaceId}
      and ${queryTest(asked)})
    select v.id from found join conversations v on v.workspace_id = ${asked.workspaceId}
      and v.contact_id = found.id
    where true ${filterConditions(asked)} ${newestFirst}
      limit ${sql.lit(fetchCount(asked.limit))}`.execute(tx)
  return rows.map((row) => row.id)
}
