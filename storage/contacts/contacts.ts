import { type RawBuilder, sql } from 'kysely'
import { lineIndex, lineKey } from './lines.ts'
import { addToCounters, randomShard } from '../workspace/counters.ts'
import { lockConversationsOf } from '../conversations/conversations.ts'
import type { Db } from '../database.ts'
import { QUICK } from '../client/driver.ts'
import type { DeferredWrite } from '../client/deferred-write.ts'
import { toStorableId } from '../values/ids.ts'
import { lockTagsOf } from '../labels/merges.ts'
import { prepare } from '../client/prepared.ts'
import {
  loadNames,
  resolveNames,
  type NamedRef,
  type CachedField,
  namesVersionColumn,
} from '../workspace/names-cache.ts'
import { fold } from '../values/text.ts'
import {
  type Attrs,
  type FieldTypes,
  insertValuesSql,
  type Metadata,
  toAttributeRows,
  writeMetadata,
  writeValues,
} from './values.ts'

export type ContactConversationRow = {
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
  username: string | null
  dnd: boolean
  starred: boolean
  email: string | null
  external_id: string | null
  web_visitor_id: string | null
  created_at: string
  updated_at: string
  last_activity_at: string | null
  version: number
  attrs: Attrs
  metadata?: Metadata | null
  conversations?: ContactConversationRow[] | null
  /** Latest activity in the channels of a `TimelineScope` that names some. */
  seen_activity_at?: string | null
  tags?: NamedRef[]
  groups?: NamedRef[]
}

/**
 * The conversations that are shown with a contact: all, those of some channels, or none, which leaves
 * `conversations` undefined.
 */
export type TimelineScope = 'all' | 'none' | readonly string[]
/** The same for SQL, where the channels may be a parameter. */
type TimelineSql = TimelineScope | RawBuilder<unknown>

const timelineColumn = (timeline: TimelineSql) => {
  if (timeline === 'none') return sql``
  const inChannels = timeline === 'all' ? sql`` : sql`and v.channel_id = any(${timeline}::bigint[])`
  const activity =
    timeline === 'all'
      ? sql``
      : sql`, (select max(v.last_activity_at) from conversations v
          where v.workspace_id = c.workspace_id and v.contact_id = c.id ${inChannels}) as seen_activity_at`
  return sql`,
  (select json_agg(json_build_object('id', v.id::text, 'channel_id', v.channel_id::text, 'state', v.state,
      'assigned_staff_id', v.assigned_staff_id::text, 'assigned_team_id', v.assigned_team_id::text,
      'created_at', v.created_at, 'last_activity_at', v.last_activity_at))
    from (select v.id, v.channel_id, v.state, v.assigned_staff_id, v.assigned_team_id, v.created_at,
        v.last_activity_at from conversations v
      where v.workspace_id = c.workspace_id and v.contact_id = c.id ${inChannels}
      order by v.created_at desc, v.id desc limit 10) as v) as conversations${activity}`
}

/** The columns of a contact in lists. Full contacts need `fullColumns` too. */
export const contactColumns = (timeline: TimelineSql) => sql`
  c.id, c.name, c.phone, c.chatapp_user_id, c.username, c.dnd, c.starred, c.email, c.external_id, c.web_visitor_id,
  c.created_at, c.updated_at, c.last_activity_at, c.version, coalesce(f.attrs, '{}') as attrs
  ${timelineColumn(timeline)}`

/** The labels and the metadata of a contact. */
export const fullColumns = sql`
  f.metadata,
  array(select l.tag_id from contact_tags l
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as tag_ids,
  array(select l.group_id from contact_groups l
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as group_ids`

type ContactQueryRow = ContactRow & {
  tag_ids?: string[]
  group_ids?: string[]
  names_version: string | null
}

/** Adds the names of their tags and groups to rows. Returns the custom fields that their values belong to. */
export const attachNames = async (
  tx: Db,
  workspaceId: string,
  rows: ContactQueryRow[],
): Promise<CachedField[]> => {
  if (rows.length === 0) return []
  const names = await loadNames(tx, workspaceId, rows[0]!.names_version)
  if (rows[0]!.tag_ids) {
    const tagIds = rows.map((row) => row.tag_ids!)
    const groupIds = rows.map((row) => row.group_ids!)
    const tags = await resolveNames(tx, workspaceId, names, 'tag', tagIds)
    const groups = await resolveNames(tx, workspaceId, names, 'group', groupIds)
    rows.forEach((row, i) => Object.assign(row, { tags: tags[i], groups: groups[i] }))
  }
  return names.fields
}

export type ContactWithFields = { contact: ContactRow; fields: CachedField[] }

/** What a contact is read by. */
type ContactKey = 'id' | 'external_id'

const prepareSelectContact = (key: ContactKey, toTimeline: (channels: RawBuilder<unknown>) => TimelineSql) =>
  prepare<{ workspaceId: string; value: string; channels: readonly string[] }, ContactQueryRow>(
    ['workspaceId', 'value', 'channels'],
    ({ workspaceId, value, channels }) => sql`${sql.raw(QUICK)}
      select ${contactColumns(toTimeline(channels))}, ${fullColumns}, ${namesVersionColumn(workspaceId)}
      from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
      where c.workspace_id = ${workspaceId} and c.${sql.ref(key)} = ${value}`,
  )

const prepareSelects = (key: ContactKey) => ({
  all: prepareSelectContact(key, () => 'all'),
  none: prepareSelectContact(key, () => 'none'),
  some: prepareSelectContact(key, (channels) => channels),
})

const selectContact = { id: prepareSelects('id'), external_id: prepareSelects('external_id') }

/** Returns a full contact and the custom fields of its values; undefined when there is none. */
export const readContact = (
  tx: Db,
  workspaceId: string,
  id: string,
  timeline: TimelineScope = 'all',
): Promise<ContactWithFields | undefined> =>
  readContactBy(tx, workspaceId, { key: 'id', value: toStorableId(id) }, timeline)

/** The same by the external id. */
export const readContactByExternalId = (
  tx: Db,
  workspaceId: string,
  externalId: string,
  timeline: TimelineScope,
): Promise<ContactWithFields | undefined> =>
  readContactBy(tx, workspaceId, { key: 'external_id', value: externalId }, timeline)

const readContactBy = async (
  tx: Db,
  workspaceId: string,
  { key, value }: { key: ContactKey; value: string },
  timeline: TimelineScope,
): Promise<ContactWithFields | undefined> => {
  const channels = typeof timeline === 'string' ? [] : timeline
  const select = selectContact[key][typeof timeline === 'string' ? timeline : 'some']
  const { rows } = await select(tx, { workspaceId, value, channels })
  const fields = await attachNames(tx, workspaceId, rows)
  return rows[0] && { contact: rows[0], fields }
}

/** Returns the id of the contact with this line, by its key, locked; undefined when there is none. */
export const lockContactByPhone = async (
  tx: Db,
  workspaceId: string,
  key: string,
): Promise<string | undefined> =>
  (
    await tx
      .selectFrom('contacts')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where(lineKey, '=', key)
      .forUpdate()
      .executeTakeFirst()
  )?.id

/** Locks a contact; false when there is none. */
export const lockContact = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (await tx
    .selectFrom('contacts')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .forUpdate()
    .executeTakeFirst()) !== undefined

/** The text that `query` is matched against: the folded name, the phone and the username, each on a line. */
export const searchText = (
  name: string | null,
  phone: string | null,
  username: string | null = null,
): string => `${fold(name ?? '')}\n${phone ?? ''}${username === null ? '' : `\n@${fold(username)}`}`

/** The same for a contact `c` that gets another name. */
export const searchTextOf = (nameKey: RawBuilder<unknown>): RawBuilder<string> =>
  sql`concat(${nameKey}, chr(10), c.phone, chr(10) || '@' || lower(c.username))`

/**
 * `types`: the types of the fields that `attrs` has values of. `phoneKey`: of the phone's line, where it
 * differs from the phone.
 */
export type NewContact = {
  phone: string | null
  phoneKey?: string | null
  name: string | null
  email: string | null
  externalId?: string | null
  metadata?: Metadata | undefined
  dnd?: boolean
  starred?: boolean
  attrs: Attrs
  types: FieldTypes
  tagIds: readonly string[]
  groupIds: readonly string[]
}

/** Reserves ids for new contacts. The sequence never returns one twice, even when the transaction fails. */
export const reserveContactIds = async (tx: Db, count: number): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select nextval(pg_get_serial_sequence('contacts', 'id')) as id
    from generate_series(1, ${count}::int)`.execute(tx)
  return rows.map((row) => row.id)
}

/**
 * Builds the deferred write that creates a contact with its values, tags, groups and counts. It fails when
 * the phone or the external id is taken.
 */
export const buildContactInsert = (
  workspaceId: string,
  id: string,
  contact: NewContact,
  now: string,
): DeferredWrite => {
  const { tagIds, groupIds, phone, phoneKey = null, name, email, externalId = null } = contact
  const { attrs, metadata = null, dnd = false, starred = false } = contact
  const hasFacts = metadata !== null || Object.keys(attrs).length > 0
  const subjects = [
    'contacts',
    ...tagIds.map((tag) => `tag:${tag}`),
    ...groupIds.map((group) => `group:${group}`),
  ].sort()
  const values = sql`, f as (
      insert into contact_facts (workspace_id, contact_id, attrs, metadata)
      select ${workspaceId}, id, ${JSON.stringify(attrs)}::jsonb,
        ${metadata && JSON.stringify(metadata)}::jsonb from c
    ), a as (${insertValuesSql(workspaceId, 'c', toAttributeRows(contact.types, attrs))})`
  const tags = sql`, t as (
      insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}, tag, id from c, unnest(${tagIds}::bigint[]) as tag)`
  const groups = sql`, g as (
      insert into contact_groups (workspace_id, group_id, contact_id)
      select ${workspaceId}, grp, id from c, unnest(${groupIds}::bigint[]) as grp)`
  return {
    expectRow: 'c',
    parts: sql`
    c as (
      insert into contacts (workspace_id, id, phone, phone_key, name, email, external_id, dnd, starred,
        name_key, search, created_at, updated_at)
      values (${workspaceId}, ${id}, ${phone}, ${phoneKey}, ${name}, ${email}, ${externalId}, ${dnd}, ${starred},
        ${fold(name ?? '')}, ${searchText(name, phone)}, ${now}, ${now})
      on conflict ${externalId === null ? lineIndex : sql``} do nothing returning id
    ), n as (
      insert into counters (workspace_id, subject, shard, n)
      select ${workspaceId}, s, ${randomShard()}, 1 from c, unnest(${subjects}::text[]) as s order by s
      on conflict (workspace_id, subject, shard) do update set n = counters.n + 1
    )${hasFacts ? values : sql``}${tagIds.length > 0 ? tags : sql``}${groupIds.length > 0 ? groups : sql``}`,
  }
}

/** Returns a new contact as a read will return it. */
export const toNewContactRow = (
  id: string,
  contact: NewContact,
  tags: readonly NamedRef[],
  groups: readonly NamedRef[],
  now: string,
): ContactRow => ({
  id,
  phone: contact.phone,
  name: contact.name,
  email: contact.email,
  external_id: contact.externalId ?? null,
  attrs: contact.attrs,
  metadata: contact.metadata ?? null,
  chatapp_user_id: null,
  username: null,
  web_visitor_id: null,
  dnd: contact.dnd ?? false,
  starred: contact.starred ?? false,
  created_at: now,
  updated_at: now,
  last_activity_at: null,
  version: 1,
  conversations: null,
  tags: sortByName(tags),
  groups: sortByName(groups),
})

/** Sorts as the database does: by the bytes of the folded name. */
const sortByName = (refs: readonly NamedRef[]): NamedRef[] =>
  refs
    .map(({ id, name }) => ({ id, name, key: Buffer.from(fold(name)).toString('latin1') }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ id, name }) => ({ id, name }))

/** `values`: all values after the change, and the types of the fields whose value differs. */
export type ContactChanges = {
  name?: string | null
  email?: string | null
  external_id?: string | null
  dnd?: boolean
  starred?: boolean
  values?: { attrs: Attrs; changed: FieldTypes }
  metadata?: Metadata
}

/** Writes the changed columns and values of a locked contact. */
export const updateContactRow = async (
  tx: Db,
  workspaceId: string,
  contact: Pick<ContactRow, 'id'>,
  changes: ContactChanges,
  now: string,
): Promise<void> => {
  const { values, metadata, name, ...columns } = changes
  await tx
    .updateTable('contacts as c')
    .set({
      ...columns,
      ...(name === undefined
        ? {}
        : { name, name_key: fold(name ?? ''), search: searchTextOf(sql`${fold(name ?? '')}::text`) }),
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', contact.id)
    .execute()
  if (values) await writeValues(tx, workspaceId, contact.id, values.attrs, values.changed)
  if (metadata) await writeMetadata(tx, workspaceId, contact.id, metadata)
}

/** Sets `updated_at` of contacts. */
export const touchContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  now: string,
): Promise<void> => {
  await tx
    .updateTable('contacts')
    .set({ updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids}::bigint[])`)
    .execute()
}

/**
 * Deletes locked contacts with everything that belongs to them. Their conversations stay, without a contact, and
 * so do their rows among the recipients of broadcasts, so that totals hold.
 */
export const deleteContactRows = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<void> => {
  // A merge of tags could give one of them another tag meanwhile, which would stay.
  await lockTagsOf(tx, workspaceId, ids)
  await lockConversationsOf(tx, workspaceId, ids)
  const own = sql`workspace_id = ${workspaceId} and contact_id = any(${ids}::bigint[])`
  const { rows } = await sql<{ subject: string; n: number }>`
    with c as (delete from contacts where workspace_id = ${workspaceId} and id = any(${ids}::bigint[])),
    f as (delete from contact_facts where ${own}),
    a as (delete from contact_attributes where ${own}),
    v as (update conversations set contact_id = null where ${own}),
    t as (delete from contact_tags where ${own} returning tag_id),
    g as (delete from contact_groups where ${own} returning group_id),
    h as (delete from channel_customers where ${own}),
    p as (delete from contact_former_ids where ${own}),
    m as (delete from contact_merges where workspace_id = ${workspaceId} and into_id = any(${ids}::bigint[])),
    k as (delete from consents where ${own}),
    kh as (delete from consent_changes where ${own})
    select 'tag:' || tag_id as subject, count(*)::integer as n from t group by tag_id
    union all select 'group:' || group_id, count(*)::integer from g group by group_id`.execute(tx)
  const changes = new Map([['contacts', -ids.length]])
  for (const { subject, n } of rows) changes.set(subject, -n)
  await addToCounters(tx, workspaceId, changes)
}
