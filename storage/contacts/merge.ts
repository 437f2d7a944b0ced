import { sql } from 'kysely'
import type { Attrs, FieldTypes, Metadata } from './values.ts'
import { writeMetadata, writeValues } from './values.ts'
import { addToCounters } from '../workspace/counters.ts'
import { lockConversationsOf } from '../conversations/conversations.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { lockGroupsOf, lockTagsOf } from '../labels/merges.ts'
import { type StoredLine, toPhoneKey } from './lines.ts'
import { fold } from '../values/text.ts'
import { searchText } from './contacts.ts'

/** What a merge reads of a contact. */
export type MergeableContact = {
  id: string
  name: string | null
  phone: string | null
  phone_key: string | null
  provider_phone: string | null
  chatapp_user_id: string | null
  username: string | null
  phone_told_at: string | null
  user_id_told_at: string | null
  username_told_at: string | null
  web_visitor_id: string | null
  email: string | null
  external_id: string | null
  dnd: boolean
  starred: boolean
  created_at: string
  last_activity_at: string | null
  attrs: Attrs
  metadata: Metadata | null
}

/** Locks contacts in the order of their ids. Returns the ids of those that exist. */
export const lockContacts = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<string[]> =>
  (
    await tx
      .selectFrom('contacts')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`)
      .orderBy('id')
      .forUpdate()
      .execute()
  ).map(({ id }) => id)

/** Returns two locked contacts; undefined for one that does not exist. */
export const readMergeableContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<MergeableContact[]> =>
  (
    await sql<MergeableContact>`
    select c.id, c.name, c.phone, c.phone_key, c.provider_phone, c.chatapp_user_id, c.username, c.phone_told_at,
      c.user_id_told_at, c.username_told_at, c.web_visitor_id, c.email, c.external_id, c.dnd, c.starred,
      c.created_at, c.last_activity_at, coalesce(f.attrs, '{}') as attrs, f.metadata
    from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[]) order by c.id`.execute(tx)
  ).rows

/** The ids of labels that a merge gave to the contact that stays. */
export type MovedLabels = { tagIds: string[]; groupIds: string[] }

/**
 * Moves everything that belongs to a locked contact to another locked one, and deletes it: conversations with all that
 * is in them, tags, groups, consents (a withdrawal of either holds), names at bridges, former phones, and rows among
 * recipients of broadcasts. Of a broadcast that went to both, the row of the deleted contact stays without a contact,
 * so that totals hold. Returns the labels that are new to the contact that stays.
 */
export const moveContactRecords = async (
  tx: Db,
  workspaceId: string,
  fromId: string,
  toId: string,
): Promise<MovedLabels> => {
  await lockTagsOf(tx, workspaceId, [fromId])
  await lockConversationsOf(tx, workspaceId, [fromId])
  await lockGroupsOf(tx, workspaceId, fromId)
  const { rows } = await sql<{ kind: 'tag' | 'group'; id: string; is_new: boolean }>`
    with c as (delete from contacts where workspace_id = ${workspaceId} and id = ${fromId}),
    f as (delete from contact_facts where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    a as (delete from contact_attributes where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    v as (update conversations set contact_id = ${toId}
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    b as (update channel_customers set contact_id = ${toId}
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    p as (update contact_former_ids set contact_id = ${toId}
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    r as (update broadcast_recipients r set contact_id = ${toId}
      where workspace_id = ${workspaceId} and contact_id = ${fromId}
        and not exists (select 1 from broadcast_recipients o where o.workspace_id = r.workspace_id
          and o.broadcast_id = r.broadcast_id and o.contact_id = ${toId})),
    t as (delete from contact_tags where workspace_id = ${workspaceId} and contact_id = ${fromId}
      returning tag_id),
    nt as (insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}::bigint, tag_id, ${toId}::bigint from t order by tag_id
      on conflict do nothing returning tag_id),
    g as (delete from contact_groups where workspace_id = ${workspaceId} and contact_id = ${fromId}
      returning group_id),
    ng as (insert into contact_groups (workspace_id, group_id, contact_id)
      select ${workspaceId}::bigint, group_id, ${toId}::bigint from g order by group_id
      on conflict do nothing returning group_id),
    kh as (update consent_changes set contact_id = ${toId}
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    k as (delete from consents where workspace_id = ${workspaceId} and contact_id = ${fromId}
      returning purpose, channel, state, at, change_id),
    nk as (insert into consents as c (workspace_id, contact_id, purpose, channel, state, at, change_id)
      select ${workspaceId}::bigint, ${toId}::bigint, purpose, channel, state, at, change_id from k
      on conflict (workspace_id, contact_id, purpose, channel)
        do update set state = excluded.state, at = excluded.at, change_id = excluded.change_id
        where c.state = 'granted' and (excluded.state = 'withdrawn' or c.at < excluded.at))
    select 'tag' as kind, tag_id as id, tag_id in (select tag_id from nt) as is_new from t
    union all
    select 'group', group_id, group_id in (select group_id from ng) from g`.execute(tx)
  const changes = new Map([['contacts', -1]])
  for (const { kind, id, is_new: isNew } of rows) if (!isNew) changes.set(`${kind}:${id}`, -1)
  await addToCounters(tx, workspaceId, changes)
  await shareWindows(tx, workspaceId, toId)
  const listNew = (kind: 'tag' | 'group') =>
    rows.flatMap((row) => (row.kind === kind && row.is_new ? row.id : []))
  return { tagIds: listNew('tag'), groupIds: listNew('group') }
}

/**
 * The provider's reply window is of the customer and the number, so several conversations of one contact on one
 * channel have the same.
 */
const shareWindows = async (tx: Db, workspaceId: string, contactId: string): Promise<void> => {
  await sql`
    with w as (
      select channel_id, max(last_inbound_at) as inbound, max(free_entry_at) as free,
        max(window_corrected_at) as corrected, max(window_expires_at) as expires
      from conversations
      where workspace_id = ${workspaceId} and contact_id = ${contactId} and channel_id is not null
      group by channel_id having count(*) > 1
    )
    update conversations v set last_inbound_at = w.inbound, free_entry_at = w.free,
      window_corrected_at = w.corrected, window_expires_at = w.expires
    from w where v.workspace_id = ${workspaceId} and v.contact_id = ${contactId}
      and v.channel_id = w.channel_id`.execute(tx)
}

/** What a merge writes of the contact that stays. `values`: its custom values, and which of them are new. */
export type MergedContact = Omit<
  MergeableContact,
  'attrs' | 'metadata' | 'phone' | 'phone_key' | 'created_at'
> & {
  line: StoredLine | null
  /** All of it, where it changes. */
  metadata: Metadata | undefined
  values: { attrs: Attrs; changed: FieldTypes }
}

export const updateMergedContact = async (
  tx: Db,
  workspaceId: string,
  { id, line, values, metadata, ...columns }: MergedContact,
  now: string,
): Promise<void> => {
  const phone = line?.phone ?? null
  await tx
    .updateTable('contacts')
    .set({
      ...columns,
      phone,
      phone_key: toPhoneKey(line),
      name_key: fold(columns.name ?? ''),
      search: searchText(columns.name, phone, columns.username),
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
  if (values.changed.size > 0) await writeValues(tx, workspaceId, id, values.attrs, values.changed)
  if (metadata) await writeMetadata(tx, workspaceId, id, metadata)
}
