import { sql } from 'kysely'
import { addToCounters, anyShard } from './counters.ts'
import type { Db } from './database.ts'
import { QUICK } from './driver.ts'
import type { Finale } from './deferred-write.ts'
import { storable } from './ids.ts'
import { knownOf, namesOf, type Ref, type ShownField, versionColumn } from './names-cache.ts'
import { fold } from './text.ts'
import { type FieldTypes, insertValues, rowsOfAttrs, writeValues } from './values.ts'

/**
 * Values by custom field id, as they are stored: text, number, boolean, ISO date or time, decimal text, or
 * an array of option values.
 */
export type StoredValue = string | number | boolean | string[]
export type Attrs = Record<string, StoredValue>

export type ConversationRow = {
  id: string
  channel_id: string | null
  state: string
  assigned_staff_id: string | null
  assigned_team_id: string | null
  created_at: string
  last_activity_at: string | null
}
export type ContactRow = {
  id: string
  name: string | null
  phone: string | null
  chatapp_user_id: string | null
  dnd: boolean
  starred: boolean
  email: string | null
  web_visitor_id: string | null
  created_at: string
  updated_at: string
  last_activity_at: string | null
  attrs: Attrs
  conversations?: ConversationRow[] | null
  tags?: Ref[]
  groups?: Ref[]
}

/**
 * The conversations that are shown with a contact: all, those of some channels, or none, which leaves
 * `conversations` undefined.
 */
export type Timeline = 'all' | 'none' | readonly string[]

const timelineColumn = (timeline: Timeline) =>
  timeline === 'none'
    ? sql``
    : sql`,
  (select json_agg(json_build_object('id', v.id::text, 'channel_id', v.channel_id::text, 'state', v.state, 'assigned_staff_id', v.assigned_staff_id::text,
      'assigned_team_id', v.assigned_team_id::text, 'created_at', v.created_at, 'last_activity_at', v.last_activity_at))
    from (select * from conversations v where v.workspace_id = c.workspace_id and v.contact_id = c.id ${timeline === 'all' ? sql`` : sql`and v.channel_id = any(${timeline}::bigint[])`}
      order by v.activity_at desc, v.id desc limit 10) as v) as conversations`

/** Short of what the columns of a list need; tags and groups only where they are shown. */
export const contactColumns = (timeline: Timeline) => sql`
  c.id, c.name, c.phone, c.chatapp_user_id, c.dnd, c.starred, c.email, c.web_visitor_id, c.created_at, c.updated_at, c.last_activity_at,
  coalesce(f.attrs, '{}') as attrs ${timelineColumn(timeline)}`

export const refColumns = sql`
  array(select l.tag_id from contact_tags l where l.workspace_id = c.workspace_id and l.contact_id = c.id) as tag_ids,
  array(select l.group_id from contact_groups l where l.workspace_id = c.workspace_id and l.contact_id = c.id) as group_ids`

type ReadRow = ContactRow & { tag_ids?: string[]; group_ids?: string[]; names_version: string | null }

/** Completes rows with the names of their tags and groups, and answers the fields of their values. */
export const complete = async (tx: Db, workspaceId: string, rows: ReadRow[]): Promise<ShownField[]> => {
  if (rows.length === 0) return []
  const known = await knownOf(tx, workspaceId, rows[0]!.names_version)
  if (rows[0]!.tag_ids) {
    const tags = await namesOf(
      tx,
      workspaceId,
      known,
      'tag',
      rows.map((row) => row.tag_ids!),
    )
    const groups = await namesOf(
      tx,
      workspaceId,
      known,
      'group',
      rows.map((row) => row.group_ids!),
    )
    rows.forEach((row, i) => Object.assign(row, { tags: tags[i], groups: groups[i] }))
  }
  return known.fields
}

export type ReadContact = { contact: ContactRow; fields: ShownField[] }

/** One contact in full and the fields of its values. */
export const readContact = async (
  tx: Db,
  workspaceId: string,
  id: string,
  timeline: Timeline = 'all',
): Promise<ReadContact | undefined> => {
  const { rows } = await sql<ReadRow>`${sql.raw(QUICK)}
    select ${contactColumns(timeline)}, ${refColumns}, ${versionColumn(workspaceId)}
    from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    where c.workspace_id = ${workspaceId} and c.id = ${storable(id)}`.execute(tx)
  const fields = await complete(tx, workspaceId, rows)
  return rows[0] && { contact: rows[0], fields }
}

/** The id of the contact with this phone, locked against other changes. */
export const lockContactByPhone = async (
  tx: Db,
  workspaceId: string,
  phone: string,
): Promise<string | undefined> =>
  (
    await sql<{
      id: string
    }>`select id from contacts where workspace_id = ${workspaceId} and phone = ${phone} for update`.execute(
      tx,
    )
  ).rows[0]?.id

/** Locks a contact against other changes; false when there is none. */
export const lockContact = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await sql`select 1 from contacts where workspace_id = ${workspaceId} and id = ${storable(id)} for update`.execute(
      tx,
    )
  ).rows.length > 0

/** What `query` is looked for in: the folded name, a newline, the phone. */
export const searchText = (name: string | null, phone: string | null): string =>
  `${fold(name ?? '')}\n${phone ?? ''}`

/** `types`: of the fields that `attrs` has values of. */
export type NewContact = {
  phone: string
  name: string | null
  email: string | null
  attrs: Attrs
  types: FieldTypes
  tagIds: readonly string[]
  groupIds: readonly string[]
}

/** Ids for contacts to come. The sequence never gives one twice, whatever becomes of the transaction. */
export const takeContactIds = async (tx: Db, most: number): Promise<string[]> => {
  const { rows } = await sql<{
    id: string
  }>`select nextval(pg_get_serial_sequence('contacts', 'id')) as id from generate_series(1, ${most}::int)`.execute(
    tx,
  )
  return rows.map((row) => row.id)
}

/**
 * What creates a contact with its values, tags, groups and counts, as the last work of a change; it fails
 * when the phone is taken.
 */
export const contactInsert = (workspaceId: string, id: string, contact: NewContact, now: string): Finale => {
  const { tagIds, groupIds } = contact
  const hasValues = Object.keys(contact.attrs).length > 0
  const subjects = [
    'contacts',
    ...tagIds.map((tag) => `tag:${tag}`),
    ...groupIds.map((group) => `group:${group}`),
  ].sort()
  return {
    mustWrite: 'c',
    parts: sql`
    c as (
      insert into contacts (workspace_id, id, phone, name, email, name_key, search, created_at, updated_at)
      values (${workspaceId}, ${id}, ${contact.phone}, ${contact.name}, ${contact.email}, ${fold(contact.name ?? '')}, ${searchText(contact.name, contact.phone)}, ${now}, ${now})
      on conflict (workspace_id, phone) do nothing returning id
    ), n as (
      insert into counters (workspace_id, subject, shard, n)
      select ${workspaceId}, s, ${anyShard()}, 1 from c, unnest(${subjects}::text[]) as s order by s
      on conflict (workspace_id, subject, shard) do update set n = counters.n + 1
    )${
      hasValues
        ? sql`, f as (insert into contact_facts (workspace_id, contact_id, attrs) select ${workspaceId}, id, ${JSON.stringify(contact.attrs)}::jsonb from c),
    a as (${insertValues(workspaceId, 'c', rowsOfAttrs(contact.types, contact.attrs))})`
        : sql``
    }
    ${tagIds.length > 0 ? sql`, t as (insert into contact_tags (workspace_id, tag_id, contact_id) select ${workspaceId}, tag, id from c, unnest(${tagIds}::bigint[]) as tag)` : sql``}
    ${groupIds.length > 0 ? sql`, g as (insert into contact_groups (workspace_id, group_id, contact_id) select ${workspaceId}, grp, id from c, unnest(${groupIds}::bigint[]) as grp)` : sql``}`,
  }
}

/** A new contact as it will be read. */
export const newContactRow = (
  id: string,
  contact: NewContact,
  tags: readonly Ref[],
  groups: readonly Ref[],
  now: string,
): ContactRow => ({
  id,
  phone: contact.phone,
  name: contact.name,
  email: contact.email,
  attrs: contact.attrs,
  chatapp_user_id: null,
  web_visitor_id: null,
  dnd: false,
  starred: false,
  created_at: now,
  updated_at: now,
  last_activity_at: null,
  conversations: null,
  tags: byName(tags),
  groups: byName(groups),
})

/** In the order in which the database sorts their names: by the bytes of the folded name. */
const byName = (refs: readonly Ref[]): Ref[] =>
  refs
    .map(({ id, name }) => ({ id, name, key: Buffer.from(fold(name)).toString('latin1') }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ id, name }) => ({ id, name }))

/** `values`: all values as they will be, and the types of the fields whose value differs. */
export type ContactChanges = {
  name?: string | null
  email?: string | null
  dnd?: boolean
  starred?: boolean
  values?: { attrs: Attrs; changed: FieldTypes }
}

/** Writes the changed columns and values of a locked contact. */
export const updateContactRow = async (
  tx: Db,
  workspaceId: string,
  contact: Pick<ContactRow, 'id' | 'phone'>,
  changes: ContactChanges,
  now: string,
): Promise<void> => {
  const { values, name, ...columns } = changes
  await tx
    .updateTable('contacts')
    .set({
      ...columns,
      ...(name === undefined
        ? {}
        : { name, name_key: fold(name ?? ''), search: searchText(name, contact.phone) }),
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', contact.id)
    .execute()
  if (values) await writeValues(tx, workspaceId, contact.id, values.attrs, values.changed)
}

export const touchContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  now: string,
): Promise<void> => {
  await sql`update contacts set updated_at = ${now} where workspace_id = ${workspaceId} and id = any(${ids}::bigint[])`.execute(
    tx,
  )
}

/**
 * Deletes a locked contact with all that hangs on it. Conversations stay, without a contact, and its rows
 * among recipients, so that totals hold.
 */
export const deleteContactRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  const { rows } = await sql<{ subject: string }>`
    with c as (delete from contacts where workspace_id = ${workspaceId} and id = ${id}),
    f as (delete from contact_facts where workspace_id = ${workspaceId} and contact_id = ${id}),
    a as (delete from contact_attributes where workspace_id = ${workspaceId} and contact_id = ${id}),
    v as (update conversations set contact_id = null where workspace_id = ${workspaceId} and contact_id = ${id}),
    t as (delete from contact_tags where workspace_id = ${workspaceId} and contact_id = ${id} returning tag_id),
    g as (delete from contact_groups where workspace_id = ${workspaceId} and contact_id = ${id} returning group_id)
    select 'tag:' || tag_id as subject from t union all select 'group:' || group_id from g`.execute(tx)
  await addToCounters(
    tx,
    workspaceId,
    new Map([['contacts', -1], ...rows.map((row) => [row.subject, -1] as [string, number])]),
  )
}

/** One writer at a time may add contacts where the plan limits them; the count is then exact. */
export const lockContactLimit = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`contact_limit ${workspaceId}`}, 0))`.execute(tx)
}
