import { sql } from 'kysely'
import type { StoredLine } from './lines.ts'
import { valueWriteParts } from './values.ts'
import { type ContactChanges, type ContactRow, fullColumns, searchTextOf } from './contacts.ts'
import type { Db } from '../database.ts'
import { fold } from '../values/text.ts'

/** Changes of many contacts in one statement. */

export type ExistingContact = Pick<
  ContactRow,
  | 'id'
  | 'name'
  | 'email'
  | 'external_id'
  | 'dnd'
  | 'starred'
  | 'created_at'
  | 'updated_at'
  | 'attrs'
  | 'metadata'
> &
  StoredLine & { tag_ids: string[]; group_ids: string[] }

/**
 * Returns what a change of many locked contacts may change. A statement of its own: the one that waits for a lock
 * sees values and tags as they were before.
 */
export const readExistingContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<ExistingContact[]> =>
  (
    await sql<ExistingContact>`
    select c.id, c.phone, coalesce(c.phone_key, c.phone) as key,
      c.name, c.email, c.external_id, c.dnd, c.starred, c.created_at, c.updated_at,
      coalesce(f.attrs, '{}') as attrs, ${fullColumns}
    from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[])`.execute(tx)
  ).rows

type Columns = Pick<ExistingContact, 'id' | 'name' | 'email' | 'external_id' | 'dnd' | 'starred'>

/** A statement that writes all columns of locked contacts that a client may set. */
export const contactColumnsUpdate = (workspaceId: string, contacts: readonly Columns[], now: string) => sql`
      update contacts c set name = u.name, email = u.email, external_id = u.external_id,
        dnd = u.dnd::boolean, starred = u.starred::boolean, name_key = u.name_key,
        search = ${searchTextOf(sql`u.name_key`)},
        updated_at = ${now}::timestamptz
      from unnest(${contacts.map((c) => c.id)}::bigint[], ${contacts.map((c) => c.name)}::text[],
        ${contacts.map((c) => c.email)}::text[], ${contacts.map((c) => c.external_id)}::text[],
        ${contacts.map((c) => String(c.dnd))}::text[], ${contacts.map((c) => String(c.starred))}::text[],
        ${contacts.map((c) => fold(c.name ?? ''))}::text[])
          as u (id, name, email, external_id, dnd, starred, name_key)
      where c.workspace_id = ${workspaceId} and c.id = u.id`

export type ContactUpdate = { contact: ExistingContact; changes: Omit<ContactChanges, 'metadata'> }

/** Writes the changed columns and values of locked contacts. */
export const updateContactRows = async (
  tx: Db,
  workspaceId: string,
  updates: readonly ContactUpdate[],
  now: string,
): Promise<void> => {
  if (updates.length === 0) return
  const contacts = updates.map(({ contact, changes: { values: _values, ...columns } }) => ({
    ...contact,
    ...columns,
  }))
  const values = updates.flatMap(({ contact, changes: { values: changed } }) =>
    changed ? [{ contactId: contact.id, ...changed }] : [],
  )
  await sql`
    with c as (${contactColumnsUpdate(workspaceId, contacts, now)}), ${valueWriteParts(workspaceId, values)}
    select 1`.execute(tx)
}
