import { sql } from 'kysely'
import { type Attrs, type ContactRow, searchText } from './contacts.ts'
import { countInsert } from './counters.ts'
import type { Db } from './database.ts'
import type { Finale } from './deferred-write.ts'
import { fold } from './text.ts'
import { type FieldTypes, type ValueChange, valueParts } from './values.ts'

export type BareContact = { phone: string; name: string | null; email: string | null }

/**
 * Creates contacts, with ids in the order given, but for those whose phone is taken. Answers the id of each
 * that was created, by phone.
 */
export const insertContacts = async (
  tx: Db,
  workspaceId: string,
  contacts: readonly BareContact[],
  now: string,
): Promise<Map<string, string>> => {
  // In the order of their phones, so that two writers of the same ones never wait for each other in a circle.
  const { rows } = await sql<{ id: string; phone: string }>`
    with u as materialized (
      select nextval(pg_get_serial_sequence('contacts', 'id')) as id, x.*
      from unnest(${contacts.map((c) => c.phone)}::text[], ${contacts.map((c) => c.name)}::text[], ${contacts.map((c) => c.email)}::text[],
        ${contacts.map((c) => fold(c.name ?? ''))}::text[], ${contacts.map((c) => searchText(c.name, c.phone))}::text[]) as x (phone, name, email, name_key, search)
    )
    insert into contacts (workspace_id, id, phone, name, email, name_key, search, created_at, updated_at)
    select ${workspaceId}::bigint, id, phone, name, email, name_key, search, ${now}::timestamptz, ${now}::timestamptz from u order by phone collate "C"
    on conflict (workspace_id, phone) do nothing returning id, phone`.execute(tx)
  return new Map(rows.map(({ id, phone }) => [phone, id]))
}

/** Those of these phones that contacts have. */
export const takenPhones = async (
  tx: Db,
  workspaceId: string,
  phones: readonly string[],
): Promise<string[]> =>
  (
    await sql<{
      phone: string
    }>`select phone from contacts where workspace_id = ${workspaceId} and phone = any(${phones}::text[])`.execute(
      tx,
    )
  ).rows.map((row) => row.phone)

/** The ids of the contacts with these phones, locked in their order. */
export const lockContactsByPhone = async (
  tx: Db,
  workspaceId: string,
  phones: readonly string[],
): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select id from contacts where workspace_id = ${workspaceId} and phone = any(${phones}::text[]) order by contacts.id for no key update`.execute(
    tx,
  )
  return rows.map((row) => row.id)
}

export type KnownContact = Pick<
  ContactRow,
  'id' | 'name' | 'email' | 'dnd' | 'starred' | 'created_at' | 'updated_at' | 'attrs'
> & { phone: string; tag_ids: string[]; group_ids: string[] }

/**
 * What an import may change of locked contacts. A statement of its own: the one that waits for a lock sees
 * values and tags as they were before.
 */
export const readKnownContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<KnownContact[]> =>
  (
    await sql<KnownContact>`
    select c.id, c.phone, c.name, c.email, c.dnd, c.starred, c.created_at, c.updated_at, coalesce(f.attrs, '{}') as attrs,
      array(select l.tag_id from contact_tags l where l.workspace_id = c.workspace_id and l.contact_id = c.id) as tag_ids,
      array(select l.group_id from contact_groups l where l.workspace_id = c.workspace_id and l.contact_id = c.id) as group_ids
    from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[])`.execute(tx)
  ).rows

export type ImportedContact = BareContact & {
  id: string
  attrs: Attrs
  /** Created by this import. */
  fresh: boolean
  /** Types of the fields whose value differs. */
  changed: FieldTypes
  newTags: readonly string[]
  newGroups: readonly string[]
}

/** What writes the rest of an import, as the last work of a change: all but the new contacts' own columns. */
export const importFinale = (
  workspaceId: string,
  contacts: readonly ImportedContact[],
  now: string,
): Finale => {
  const old = contacts.filter((c) => !c.fresh)
  const tags = contacts.flatMap((c) => c.newTags.map((tag) => [tag, c.id] as const))
  const groups = contacts.flatMap((c) => c.newGroups.map((group) => [group, c.id] as const))
  const counts = new Map([['contacts', contacts.length - old.length]])
  for (const subject of [...tags.map(([tag]) => `tag:${tag}`), ...groups.map(([group]) => `group:${group}`)])
    counts.set(subject, (counts.get(subject) ?? 0) + 1)
  const values = contacts
    .filter((c) => c.changed.size > 0)
    .map(({ id, attrs, changed, fresh }): ValueChange => ({ contactId: id, attrs, changed, fresh }))
  return {
    parts: sql`
    c as (
      update contacts c set name = u.name, email = u.email, name_key = u.name_key, search = u.search, updated_at = ${now}::timestamptz
      from unnest(${old.map((c) => c.id)}::bigint[], ${old.map((c) => c.name)}::text[], ${old.map((c) => c.email)}::text[],
        ${old.map((c) => fold(c.name ?? ''))}::text[], ${old.map((c) => searchText(c.name, c.phone))}::text[]) as u (id, name, email, name_key, search)
      where c.workspace_id = ${workspaceId} and c.id = u.id
    ), ${valueParts(workspaceId, values)}, t as (
      insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}::bigint, l, c from unnest(${tags.map(([tag]) => tag)}::bigint[], ${tags.map(([, id]) => id)}::bigint[]) as u (l, c) order by l, c
    ), g as (
      insert into contact_groups (workspace_id, group_id, contact_id)
      select ${workspaceId}::bigint, l, c from unnest(${groups.map(([group]) => group)}::bigint[], ${groups.map(([, id]) => id)}::bigint[]) as u (l, c) order by l, c
    ), n as (${countInsert(
      workspaceId,
      [...counts].filter(([, n]) => n > 0),
    )})`,
  }
}
