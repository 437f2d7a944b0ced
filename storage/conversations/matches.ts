import { sql } from 'kysely'
import { sumOfBatches, toBatches } from '../contacts/matches.ts'
import { type ConversationFilter, filterConditions, isEmptyList, type ListRequest } from './order.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'

/** The conversations of a filter that many are changed by. */

/** Conversations that a statement reads where others wait for it, on the embedded database. */
const WINDOW = 20_000

const toRequest = (workspaceId: string, filter: ConversationFilter): ListRequest => ({
  ...filter,
  workspaceId,
  after: null,
  limit: 0,
  order: 'newest_activity',
})

/** Ids from texts of arrays of them. */
const unnestIds = (batches: readonly string[]) =>
  sql`select unnest(b::bigint[]) as id from unnest(${batches}::text[]) as b`

/**
 * The ids of all conversations that match, in order, as texts of PostgreSQL arrays of `size` ids. `query` is not read:
 * `contacts` are the batches of contacts of which they must be; undefined: of all.
 */
export const listConversationMatches = async (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  { contacts, size }: { contacts: readonly string[] | undefined; size: number },
): Promise<string[]> => {
  const request = toRequest(workspaceId, filter)
  if (isEmptyList(request) || contacts?.length === 0) return []
  if (filter.inShortSteps) return toBatches(await findInWindows(tx, request, contacts), size)
  const { rows } = await sql<{ ids: string }>`${sql.raw(CUSTOM_PLAN)}
    with ${contactsPart(contacts)} found as (
      select v.id from conversations v
      where v.workspace_id = ${workspaceId} ${filterConditions(request)} ${ofContacts(contacts)}
    )
    select array_agg(id order by id)::text as ids
    from (select id, (row_number() over (order by id) - 1) / ${sql.lit(size)} as no from found) as numbered
    group by no order by no`.execute(tx)
  return rows.map(({ ids }) => ids)
}

const contactsPart = (contacts: readonly string[] | undefined) =>
  contacts === undefined ? sql`` : sql`contacts_found as materialized (${unnestIds(contacts)}),`

const ofContacts = (contacts: readonly string[] | undefined) =>
  contacts === undefined ? sql`` : sql`and v.contact_id in (select id from contacts_found)`

const findInWindows = async (
  tx: Db,
  request: ListRequest,
  contacts: readonly string[] | undefined,
): Promise<string[]> => {
  const found: string[] = []
  for (let after: string | null = '0'; after !== null;) {
    const { rows }: { rows: { ids: string[]; last: string | null }[] } = await sql<{
      ids: string[]
      last: string | null
    }>`
      with ${contactsPart(contacts)} part as materialized (
        select * from conversations c where c.workspace_id = ${request.workspaceId} and c.id > ${after}::bigint
        order by c.id limit ${sql.lit(WINDOW)}
      )
      select array(select v.id::text from part v where true ${filterConditions(request)} ${ofContacts(contacts)}
        order by v.id) as ids, (select max(id) from part) as last`.execute(tx)
    found.push(...rows[0]!.ids)
    after = rows[0]!.last
  }
  return found
}

/** What a dry run shows of a conversation. */
export type ConversationSample = { id: string; contact_name: string | null; channel_name: string | null }

/** Returns those of these conversations that exist, in the order of their ids. */
export const listConversationSamples = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<ConversationSample[]> =>
  (
    await sql<ConversationSample>`
    select v.id, c.name as contact_name, h.name as channel_name from conversations v
    left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
    left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.id = any(${ids}::bigint[]) order by v.id`.execute(tx)
  ).rows

/** Whom conversations are to be assigned to. `channels`: of which a staff member may have them; null: of all. */
export type WantedAssignee = {
  staffId: string | undefined
  teamId: string | undefined
  onlyIfUnassigned: boolean
  channels: readonly string[] | null
}

/** Counts the conversations of these batches that an assignment would change. */
export const countAssignable = async (
  tx: Db,
  workspaceId: string,
  { staffId, teamId, onlyIfUnassigned, channels }: WantedAssignee,
  batches: readonly string[],
): Promise<number> =>
  await countWhere(
    tx,
    workspaceId,
    batches,
    sql`
    ${onlyIfUnassigned ? sql`v.assigned_staff_id is null and v.assigned_team_id is null` : sql`true`}
    and ${
      staffId === undefined
        ? sql`(v.assigned_team_id is distinct from ${teamId}::bigint or v.assigned_staff_id is not null)`
        : sql`v.assigned_staff_id is distinct from ${staffId}::bigint`
    }
    ${channels === null ? sql`` : sql`and v.channel_id = any(${channels}::bigint[])`}`,
  )

/** Counts the conversations of these batches that are open. */
export const countOpen = (tx: Db, workspaceId: string, batches: readonly string[]): Promise<number> =>
  countWhere(tx, workspaceId, batches, sql`v.state = 'open'`)

const countWhere = (
  tx: Db,
  workspaceId: string,
  batches: readonly string[],
  condition: ReturnType<typeof sql>,
): Promise<number> =>
  sumOfBatches(batches, async (some) => {
    const { rows } = await sql<{ n: string }>`
      with matches as materialized (${unnestIds(some)})
      select count(*) as n from matches m
      join conversations v on v.workspace_id = ${workspaceId} and v.id = m.id
      where ${condition}`.execute(tx)
    return Number(rows[0]!.n)
  })
