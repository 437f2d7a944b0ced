import { sql } from 'kysely'
import type { Attrs } from '../contacts/values.ts'
import type { Db } from '../database.ts'
import type { Sql } from '../filters/comparisons.ts'

/** What decides whether a contact is sent a message, and what its values are. */
export type Candidate = {
  id: string
  name: string | null
  phone: string | null
  external_id: string | null
  chatapp_user_id: string | null
  dnd: boolean
  /** The consent to marketing is withdrawn on this type of channel. */
  withdrawn: boolean
  attrs: Attrs
}

/** Returns those of these contacts that exist, by id. `fieldIds`: of the values that are read. */
export const listCandidates = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  { channelType, fieldIds }: { channelType: string; fieldIds: readonly string[] },
): Promise<Candidate[]> => {
  const attrs = fieldIds.map((id) => sql`${sql.lit(id)}, f.attrs -> ${sql.lit(id)}`)
  const values =
    attrs.length === 0 ? sql`'{}'::jsonb` : sql`jsonb_strip_nulls(jsonb_build_object(${sql.join(attrs)}))`
  const { rows } = await sql<Candidate>`
    select c.id, c.name, c.phone, c.external_id, c.chatapp_user_id, c.dnd,
      coalesce(s.state = 'withdrawn', false) as withdrawn, ${values} as attrs
    from contacts c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    left join lateral (
      select state from consents x where x.workspace_id = c.workspace_id and x.contact_id = c.id
        and x.purpose = 'marketing' and x.channel in ('all', ${channelType})
      order by x.at desc, x.change_id desc limit 1) as s on true
    where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[])
    order by c.id`.execute(db)
  return rows
}

/**
 * Returns how many recipients, at most, the contacts of a workspace take away from others of the same person: those who
 * decline, and those who may join two persons, since their id at the messaging app is not their phone. Each
 * is counted up to `upTo`.
 */
export const countPossibleLosses = async (
  db: Db,
  workspaceId: string,
  { isMarketing, upTo }: { isMarketing: boolean; upTo: number },
): Promise<number> => {
  const contacts = (test: Sql) =>
    sql`select 1 from contacts c where c.workspace_id = ${workspaceId} and ${test} limit ${upTo}`
  const withdrawn = sql`
    select 1 from consents x where x.workspace_id = ${workspaceId} and x.purpose = 'marketing'
      and x.state = 'withdrawn' limit ${upTo}`
  const joining = sql`c.chatapp_user_id is not null and c.phone <> c.chatapp_user_id`
  const { rows } = await sql<{ n: string }>`
    select (select count(*) from (${contacts(joining)}) as j)
      + (select count(*) from (${contacts(sql`c.dnd`)}) as d)
      ${isMarketing ? sql`+ (select count(*) from (${withdrawn}) as w)` : sql``} as n`.execute(db)
  return Number(rows[0]!.n)
}

/** Contacts of one statement of a count. */
const COUNTED_AT_ONCE = 5000

/** Whether more than so many of these contacts have a phone, which is unique, and decline no message. */
export const hasMoreReachable = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  { isMarketing, than }: { isMarketing: boolean; than: number },
): Promise<boolean> => {
  const withdrew = sql`exists (
    select from consents x where x.workspace_id = c.workspace_id and x.contact_id = c.id and x.purpose = 'marketing'
      and x.state = 'withdrawn')`
  let count = 0
  for (let n = 0; n < ids.length && count <= than; n += COUNTED_AT_ONCE) {
    // Nobody who is left can make them too many.
    if (count + ids.length - n <= than) return false
    const some = ids.slice(n, n + COUNTED_AT_ONCE)
    const { rows } = await sql<{ n: string }>`
      select count(*) as n from contacts c
      where c.workspace_id = ${workspaceId} and c.id = any(${some}::bigint[]) and c.phone is not null and not c.dnd
        ${isMarketing ? sql`and not ${withdrew}` : sql``}`.execute(db)
    count += Number(rows[0]!.n)
  }
  return count > than
}
