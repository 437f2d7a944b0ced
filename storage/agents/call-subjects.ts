import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** What a call of an agent acts on, by the ids that it names: each list in one statement. */

export type SubjectContact = {
  id: string
  phone: string | null
  chatapp_user_id: string | null
  web_visitor_id: string | null
}

/** Returns those of these contacts that exist. */
export const listSubjectContacts = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<SubjectContact[]> =>
  (
    await sql<SubjectContact>`
      select id, phone, chatapp_user_id, web_visitor_id from contacts
      where workspace_id = ${workspaceId} and id = any(${ids.map(toStorableId)}::bigint[])`.execute(db)
  ).rows

/** `id`: of the contact. */
export type SubjectConversation = Omit<SubjectContact, 'id'> & {
  conversation_id: string
  channel_id: string | null
  id: string | null
}

/** Returns those of these conversations that exist, with their contacts. */
export const listSubjectConversations = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<SubjectConversation[]> =>
  (
    await sql<SubjectConversation>`
      select v.id as conversation_id, v.channel_id, v.contact_id as id, c.phone, c.chatapp_user_id, c.web_visitor_id
      from conversations v left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
      where v.workspace_id = ${workspaceId} and v.id = any(${ids.map(toStorableId)}::bigint[])`.execute(db)
  ).rows

export type Declining = { id: string; dnd: boolean; withdrawn: string[] | null }

/**
 * Returns what contacts have declined, in order: each with do-not-disturb and the purposes and channels, with their
 * times, of which it withdrew the consent. Contacts that declined nothing are left out.
 */
export const listOptOuts = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<Declining[]> =>
  (
    await sql<Declining>`
      select c.id, c.dnd, w.withdrawn
      from contacts c left join lateral (
        select array_agg(x.purpose || ' ' || x.channel || ' ' || extract(epoch from x.at)
          order by x.purpose, x.channel) as withdrawn
        from consents x
        where x.workspace_id = c.workspace_id and x.contact_id = c.id and x.state = 'withdrawn') as w on true
      where c.workspace_id = ${workspaceId} and c.id = any(${ids.map(toStorableId)}::bigint[])
        and (c.dnd or w.withdrawn is not null)
      order by c.id`.execute(db)
  ).rows
