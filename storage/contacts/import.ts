import { sql } from 'kysely'
import { lineKey, type StoredLine, toPhoneKey } from './lines.ts'
import { contactColumnsUpdate } from './updates.ts'
import { searchText } from './contacts.ts'
import { counterUpsert } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import type { DeferredWrite } from '../client/deferred-write.ts'
import { fold } from '../values/text.ts'
import { type FieldTypes, type Metadata, type ValueChange, valueWriteParts, type Attrs } from './values.ts'

export type BasicContact = StoredLine & {
  name: string | null
  email: string | null
  external_id: string | null
}

/**
 * Inserts contacts, with ids in the given order, except those whose line is taken. Returns the ids of the
 * created ones by the keys of their lines.
 */
export const insertContacts = async (
  tx: Db,
  workspaceId: string,
  contacts: readonly BasicContact[],
  now: string,
): Promise<Map<string, string>> => {
  // Inserted in the order of their lines, so that two writers of the same contacts cannot deadlock.
  const { rows } = await sql<{ id: string; key: string }>`
    with u as materialized (
      select nextval(pg_get_serial_sequence('contacts', 'id')) as id, x.*
      from unnest(${contacts.map((c) => c.phone)}::text[], ${contacts.map(toPhoneKey)}::text[],
        ${contacts.map((c) => c.name)}::text[],
        ${contacts.map((c) => c.email)}::text[], ${contacts.map((c) => c.external_id)}::text[],
        ${contacts.map((c) => fold(c.name ?? ''))}::text[],
        ${contacts.map((c) => searchText(c.name, c.phone))}::text[])
          as x (phone, phone_key, name, email, external_id, name_key, search)
    )
    insert into contacts (workspace_id, id, phone, phone_key, name, email, external_id, name_key, search,
      created_at, updated_at)
    select ${workspaceId}::bigint, id, phone, phone_key, name, email, external_id, name_key, search,
      ${now}::timestamptz, ${now}::timestamptz
    from u order by ${lineKey} collate "C"
    on conflict (workspace_id, (coalesce(phone_key, phone))) do nothing
    returning id, ${lineKey} as key`.execute(tx)
  return new Map(rows.map(({ id, key }) => [key, id]))
}

/** Returns those of these lines, by their keys, that contacts have. */
export const findTakenPhones = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
): Promise<string[]> => {
  const { rows } = await sql<{ key: string }>`
    select ${lineKey} as key from contacts
    where workspace_id = ${workspaceId} and ${lineKey} = any(${keys}::text[])`.execute(tx)
  return rows.map((row) => row.key)
}

/** Locks the contacts with these lines, by their keys, in the order of their ids. Returns the ids. */
export const lockContactsByPhone = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select id from contacts where workspace_id = ${workspaceId} and ${lineKey} = any(${keys}::text[])
    order by contacts.id for no key update`.execute(tx)
  return rows.map((row) => row.id)
}

export type ImportedContact = BasicContact & {
  id: string
  dnd: boolean
  starred: boolean
  attrs: Attrs
  /** Created by this import. */
  isNew: boolean
  /** The columns of its own with which it was created. */
  inserted: BasicContact | undefined
  /** Types of the fields whose value differs. */
  changed: FieldTypes
  /** All of it, where it differs. */
  newMetadata: Metadata | undefined
  newTags: readonly string[]
  newGroups: readonly string[]
}

/** Whether the columns of a contact's own differ from those that are stored: a row that gave them may have failed. */
const hasOtherColumns = ({ inserted, name, email, external_id, dnd, starred }: ImportedContact): boolean =>
  dnd ||
  starred ||
  inserted?.name !== name ||
  inserted.email !== email ||
  inserted.external_id !== external_id

/** Builds the deferred write of an import: everything except what the new contacts were inserted with. */
export const buildImportWrite = (
  workspaceId: string,
  contacts: readonly ImportedContact[],
  now: string,
): DeferredWrite => {
  const stale = contacts.filter((c) => !c.isNew || hasOtherColumns(c))
  const tags = contacts.flatMap((c) => c.newTags.map((tag) => [tag, c.id] as const))
  const groups = contacts.flatMap((c) => c.newGroups.map((group) => [group, c.id] as const))
  const counts = new Map([['contacts', contacts.filter((c) => c.isNew).length]])
  for (const subject of [...tags.map(([tag]) => `tag:${tag}`), ...groups.map(([group]) => `group:${group}`)])
    counts.set(subject, (counts.get(subject) ?? 0) + 1)
  const values = contacts
    .filter((c) => c.changed.size > 0 || c.newMetadata)
    .map(({ id, attrs, changed, isNew, newMetadata: metadata }): ValueChange => ({
      contactId: id,
      attrs,
      changed,
      isNew,
      metadata,
    }))
  const positiveCounts = [...counts].filter(([, n]) => n > 0)
  return {
    parts: sql`
    c as (${contactColumnsUpdate(workspaceId, stale, now)}
    ), ${valueWriteParts(workspaceId, values)}, t as (
      insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}::bigint, l, c
      from unnest(${tags.map(([tag]) => tag)}::bigint[], ${tags.map(([, id]) => id)}::bigint[]) as u (l, c)
      order by l, c
    ), g as (
      insert into contact_groups (workspace_id, group_id, contact_id)
      select ${workspaceId}::bigint, l, c
      from unnest(${groups.map(([group]) => group)}::bigint[], ${groups.map(([, id]) => id)}::bigint[])
        as u (l, c)
      order by l, c
    ), n as (${counterUpsert(workspaceId, positiveCounts)})`,
  }
}
