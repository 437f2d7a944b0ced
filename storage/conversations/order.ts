import { type RawBuilder, sql } from 'kysely'
import type { ReplyStatus } from '../database.ts'
import { CUSTOM_PLAN, QUICK } from '../client/driver.ts'
import { toStorableId } from '../values/ids.ts'

/*
 * What the lists of conversations filter by, and how their first rows are found without sorting all of them.
 * docs/decisions/0010 says why.
 */

/** A state of service levels, as `toSla` in server/domains/inbox/sla.ts tells it at the time `now`. */
type SlaTest = { status: 'running' | 'breached' | 'met'; now: string }
/**
 * `channels`: only conversations of these; undefined: of all channels, and those without one. `delivery`:
 * `failed`: the latest message to the customer failed; `unknown`: the provider has not
 * answered for a message, which is pending.
 */
export type ConversationFilter = {
  query?: string | undefined
  state?: 'open' | 'closed' | undefined
  assigned?: boolean | undefined
  replyStatus?: ReplyStatus | undefined
  channels?: readonly string[] | undefined
  /** Null: to nobody; with `teamId`, those of the team that no staff member has taken. */
  assignedStaffId?: string | null | undefined
  teamId?: string | undefined
  contactId?: string | undefined
  tagId?: string | undefined
  /** Only from this ad. */
  adId?: string | undefined
  /** Only conversations whose contact has this tag. */
  contactTagId?: string | undefined
  sla?: SlaTest | undefined
  /** Times in ISO 8601 UTC. A conversation without messages counts from its start; who never wrote is not matched. */
  lastMessageBefore?: string | undefined
  lastInboundBefore?: string | undefined
  /** Only customers who wait, since this time or before. */
  waitingBefore?: string | undefined
  delivery?: 'failed' | 'unknown' | undefined
  /** Statements should be short, because others wait for them. */
  inShortSteps?: boolean
}
/** The position of a conversation in a list: its time of activity, or since when the customer waits. */
export type ConversationPosition = { at: string; id: string }
/** `waiting`: only conversations whose customer waits for a reply, or only the others; undefined: all. */
export type ListRequest = ConversationFilter & {
  workspaceId: string
  after: ConversationPosition | null
  limit: number
  order: 'newest_activity' | 'longest_wait'
  waiting?: boolean
}

/** The values of `conversations.facet`: closed 1, assigned 2, customer waits 4, team waits 8. */
const FACETS = [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
const isWaitingFacet = (facet: number): boolean => (facet & 0b101) === 0b100

/** Returns the values of `conversations.facet` that match; undefined: all, and the index of the whole list serves. */
const listFacets = (request: ListRequest): number[] | undefined => {
  const { state, assigned, replyStatus, assignedStaffId, teamId, waiting, waitingBefore } = request
  const isAssigned = typeof assignedStaffId === 'string' || teamId !== undefined
  const isUnassigned = assignedStaffId === null && teamId === undefined
  const matching = FACETS.filter(
    (facet) =>
      (state === undefined || (state === 'closed') === ((facet & 1) !== 0)) &&
      (assigned === undefined || assigned === ((facet & 2) !== 0)) &&
      (!isAssigned || (facet & 2) !== 0) &&
      (!isUnassigned || (facet & 2) === 0) &&
      (replyStatus === undefined || (facet & (replyStatus === 'incoming_no_reply' ? 4 : 8)) !== 0) &&
      (waiting === undefined || waiting === isWaitingFacet(facet)) &&
      (waitingBefore === undefined || isWaitingFacet(facet)),
  )
  const isWhole = matching.length === FACETS.length && request.lastInboundBefore === undefined
  return isWhole ? undefined : matching
}

/** Whether the conditions exclude each other, or the reader sees no channel. */
export const isEmptyList = (request: ListRequest): boolean =>
  request.channels?.length === 0 || listFacets(request)?.length === 0

/**
 * Returns the number of rows to fetch: at least one more than the limit, to detect a next page. It is one of
 * a few numbers, since it is a literal in the SQL and every SQL text is a prepared statement of its own.
 */
export const fetchCount = (limit: number): number => ([10, 25, 50].find((step) => limit <= step) ?? 100) + 1

/** The sort key of conversations `v`. That of waits is an expression of an index. */
const sortKey = ({ order }: ListRequest) =>
  sql.raw(order === 'longest_wait' ? 'coalesce(v.waiting_since, v.activity_at)' : 'v.activity_at')

const inOrder = ({ order }: ListRequest, key: RawBuilder<unknown>) =>
  order === 'longest_wait' ? sql`order by ${key}, v.id` : sql`order by ${key} desc, v.id desc`

/** The order of the list, by the columns of conversations `v`. */
export const orderOf = (request: ListRequest) => inOrder(request, sortKey(request))
/** The order of the list, by the columns `at` and `id` of `v`, which `selectHead` returns. */
export const orderOfHead = (request: ListRequest) => inOrder(request, sql.raw('v.at'))

const beforeCondition = (column: 'activity_at' | 'last_inbound_at', time: string | undefined) =>
  time === undefined ? sql`` : sql`and ${sql.ref(`v.${column}`)} < ${time}::timestamptz`

/** What the indexes in the order of the list test: where it begins, and how old what was said is. */
export const rangeCondition = (request: ListRequest) => sql`
  ${beforeCondition('activity_at', request.lastMessageBefore)}
  ${beforeCondition('last_inbound_at', request.lastInboundBefore)} ${afterCondition(request)}`

const afterCondition = (request: ListRequest) =>
  request.after === null
    ? sql``
    : sql`and (${sortKey(request)}, v.id) ${sql.raw(request.order === 'longest_wait' ? '>' : '<')}
        (${request.after.at}::timestamptz, ${request.after.id}::bigint)`

/** A message for which the provider has not answered yet; one that is queued for a bridge has no call. */
const isUnknown = sql.raw(`m.status = 'pending' and m.content->'call' is not null`)

const deliveryCondition = ({ delivery, workspaceId }: ListRequest) => {
  if (delivery === 'failed') return sql`and v.delivery_failed`
  if (delivery === undefined) return sql``
  return sql`and exists (select 1 from messages m where m.workspace_id = ${workspaceId}
    and m.conversation_id = v.id and ${isUnknown})`
}

const staffCondition = ({ assignedStaffId: id, teamId }: ListRequest) => {
  if (typeof id === 'string') return sql`and v.assigned_staff_id = ${toStorableId(id)}`
  return id === null && teamId !== undefined ? sql`and v.assigned_staff_id is null` : sql``
}

const ownerConditions = (request: ListRequest) => sql`
  ${staffCondition(request)}
  ${request.teamId === undefined ? sql`` : sql`and v.assigned_team_id = ${toStorableId(request.teamId)}`}
  ${request.adId === undefined ? sql`` : sql`and v.ad is not null and v.ad ->> 'ad_id' = ${request.adId}`}
  ${request.contactId === undefined ? sql`` : sql`and v.contact_id = ${toStorableId(request.contactId)}`}`

const tagCondition = ({ tagId, workspaceId }: ListRequest) =>
  tagId === undefined
    ? sql``
    : sql`and exists (select from conversation_tags t where t.workspace_id = ${workspaceId}
        and t.conversation_id = v.id and t.tag_id = ${toStorableId(tagId)})`

const contactTagCondition = ({ contactTagId, workspaceId }: ListRequest) =>
  contactTagId === undefined
    ? sql``
    : sql`and exists (select from contact_tags t where t.workspace_id = ${workspaceId}
        and t.contact_id = v.contact_id and t.tag_id = ${toStorableId(contactTagId)})`

/** The earliest of the clocks that run; null where none does. */
const NEXT_DUE = 'least(v.first_response_due_at, v.next_response_due_at, v.resolution_due_at)'

/**
 * A policy that was deleted counts as none. The comparisons are those of the indexes and statistics of migration
 * 0028.
 */
const slaCondition = ({ sla, workspaceId }: ListRequest) => {
  if (sla === undefined) return sql``
  const nextDue = sql.raw(NEXT_DUE)
  const state = {
    breached: sql`(v.sla_breached or ${nextDue} < ${sla.now}::timestamptz)`,
    running: sql`not v.sla_breached and ${nextDue} >= ${sla.now}::timestamptz`,
    met: sql`not v.sla_breached and ${nextDue} is null`,
  }[sla.status]
  return sql`and ${state} and v.sla_policy_id in (
    select p.id from sla_policies p where p.workspace_id = ${workspaceId})`
}

/** The first condition is that of the index. */
const waitCondition = ({ waiting, waitingBefore: before }: ListRequest) => sql`
  ${waiting || before !== undefined ? sql`and v.state = 'open' and v.reply_status = 'incoming_no_reply'` : sql``}
  ${before === undefined ? sql`` : sql`and coalesce(v.waiting_since, v.activity_at) <= ${before}::timestamptz`}`

const channelCondition = ({ channels }: ListRequest) =>
  channels ? sql`and v.channel_id = any(${channels.map(toStorableId)}::bigint[])` : sql``

/** All conditions of the list on conversations `v`, but for `query`. */
export const filterConditions = (request: ListRequest) => {
  const facets = listFacets(request)
  return sql`
    ${facets ? sql`and v.facet = any(${facets}::smallint[])` : sql``}
    ${channelCondition(request)} ${ownerConditions(request)} ${deliveryCondition(request)}
    ${tagCondition(request)} ${contactTagCondition(request)} ${slaCondition(request)}
    ${waitCondition(request)} ${rangeCondition(request)}`
}

/** Whether the rows of the list are few, or in the order of one index, whatever else it filters by. */
const isOneRange = ({ order, ...rest }: ListRequest): boolean =>
  order === 'longest_wait' ||
  (['contactId', 'delivery', 'adId', 'tagId', 'contactTagId', 'sla', 'waitingBefore'] as const).some(
    (name) => rest[name] !== undefined,
  )

/** A list that is one range leaves it to the planner which of its conditions is the rarest. */
export const planHint = (request: ListRequest): string =>
  request.query === undefined && isOneRange(request) ? CUSTOM_PLAN : QUICK

/** Whether the list is of one staff member or team, of whom indexes have the conversations in its order. */
const isOfOwner = ({ assignedStaffId, teamId }: ListRequest): boolean =>
  typeof assignedStaffId === 'string' || teamId !== undefined

/** Returns the number of index ranges that the list is merged from. */
export const countRanges = (request: ListRequest): number => {
  if (isOneRange(request)) return 1
  const facets = listFacets(request)
  if (isOfOwner(request)) return facets!.length
  return (request.channels?.length ?? 1) * (facets?.length ?? (request.channels ? FACETS.length : 1))
}

export const headColumns = (request: ListRequest) => sql`v.id, ${sortKey(request)} as at, v.contact_id`

/** The list as one range, or few rows. */
const selectOneRange = (request: ListRequest, maxRows: number): RawBuilder<unknown> => {
  const { workspaceId, delivery, contactId } = request
  if (delivery === 'unknown' && contactId === undefined) return selectUnknown(request, maxRows)
  return sql`select ${headColumns(request)} from conversations v
    where v.workspace_id = ${workspaceId} ${filterConditions(request)} ${orderOf(request)}
      limit ${sql.lit(maxRows)}`
}

/**
 * Finds conversations of unknown delivery by their pending messages, which are few. `limit 1` keeps the
 * look-up of each conversation separate: with a plain join, the planner may read all who wait.
 */
const selectUnknown = (request: ListRequest, maxRows: number): RawBuilder<unknown> => sql`
  select v.* from (
    select distinct m.conversation_id as id from messages m
      where m.workspace_id = ${request.workspaceId} and ${isUnknown}) as p
  cross join lateral (
    select ${headColumns(request)} from conversations v
      where v.workspace_id = ${request.workspaceId} and v.id = p.id
        ${filterConditions({ ...request, delivery: undefined })} limit 1) as v
  ${orderOfHead(request)} limit ${sql.lit(maxRows)}`

/**
 * Selects the first conversations of the list without regard to `query`: `id`, the sort key `at` and
 * `contact_id`. Each pair of channel and facet, or of assignee or team and facet, is a range of an index in list
 * order; up to `maxRows` are read of each, then merged.
 */
export const selectHead = (request: ListRequest, maxRows: number): RawBuilder<unknown> => {
  if (isOneRange(request)) return selectOneRange(request, maxRows)
  const facets = listFacets(request)
  const range = (from: RawBuilder<unknown>, where: RawBuilder<unknown>) => sql`
    select v.* from ${from} cross join lateral (
      select ${headColumns(request)} from conversations v
        where v.workspace_id = ${request.workspaceId} and ${where} ${rangeCondition(request)}
          ${orderOf(request)} limit ${sql.lit(maxRows)}) as v
    ${orderOfHead(request)} limit ${sql.lit(maxRows)}`
  if (isOfOwner(request))
    return range(
      sql`unnest(${facets!}::smallint[]) as f (facet)`,
      sql`v.facet = f.facet ${ownerConditions(request)} ${channelCondition(request)}`,
    )
  if (request.channels) {
    // As one list of pairs: two lists, or a shorter one, are planned anew each time, which takes longer
    // than the page.
    const pairs = request.channels.flatMap((channel) =>
      (facets ?? FACETS).map((facet) => ({ channel: toStorableId(channel), facet })),
    )
    return range(
      sql`unnest(${pairs.map((p) => p.channel)}::bigint[], ${pairs.map((p) => p.facet)}::smallint[]) as f
        (channel_id, facet)`,
      sql`v.channel_id = f.channel_id and v.facet = f.facet`,
    )
  }
  if (facets) return range(sql`unnest(${facets}::smallint[]) as f (facet)`, sql`v.facet = f.facet`)
  return sql`select ${headColumns(request)} from conversations v
    where v.workspace_id = ${request.workspaceId} ${rangeCondition(request)} ${orderOf(request)}
      limit ${sql.lit(maxRows)}`
}
