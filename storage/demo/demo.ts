import { sql } from 'kysely'
import { searchText } from '../contacts/contacts.ts'
import { randomShard } from '../workspace/counters.ts'
import type { TableRow, Db } from '../database.ts'
import { fillExchanges } from '../contacts/exchanges.ts'
import { insertDemoConversations, type NewDemoConversation } from './conversations.ts'
import { withoutIndexes } from '../migrations/indexes.ts'
import { fold } from '../values/text.ts'
import { type FieldTypes, toAttributeRows, valueColumnNames, type Attrs } from '../contacts/values.ts'

export type NewDemoRecipient = {
  broadcast_id: string
  status: TableRow<'broadcast_recipients'>['status']
  responded: boolean
  opted_out: boolean
  sent_at: string | null
  delivered_at: string | null
  read_at: string | null
  failed_at: string | null
  responded_at: string | null
}
export type NewDemoContact = {
  phone: string
  name: string | null
  email: string | null
  external_id: string | null
  starred: boolean
  dnd: boolean
  created_at: string
  updated_at: string
  last_activity_at: string | null
  attrs: Attrs
  tagIds: readonly string[]
  groupIds: readonly string[]
  conversations: readonly NewDemoConversation[]
  recipients: readonly NewDemoRecipient[]
}

/**
 * Inserts contacts with everything that belongs to them, conversations too. Returns the count of inserted
 * contacts: those whose phone is taken are skipped.
 */
export const insertDemoContacts = async (
  db: Db,
  workspaceId: string,
  types: FieldTypes,
  contacts: readonly NewDemoContact[],
): Promise<number> => {
  if (!db.isTransaction)
    return await db.transaction().execute((tx) => insertDemoContacts(tx, workspaceId, types, contacts))
  const ids = await insertContacts(db, workspaceId, types, contacts)
  await insertDemoConversations(
    db,
    workspaceId,
    contacts.flatMap(({ conversations }, i) =>
      ids.has(i) ? conversations.map((each) => ({ ...each, contact_id: ids.get(i)! })) : [],
    ),
  )
  return ids.size
}

/**
 * Inserts contacts with their values, tags, groups and broadcasts, and the counts, in one statement. Returns
 * the ids of inserted contacts by their index. Ids are drawn first, so that the parts can refer to them.
 * Booleans travel as text: the driver takes an array of booleans for one boolean, and writes each text of a
 * boolean array as false.
 */
const insertContacts = async (
  db: Db,
  workspaceId: string,
  types: FieldTypes,
  contacts: readonly NewDemoContact[],
): Promise<Map<number, string>> => {
  const values = contacts.flatMap((c, i) =>
    toAttributeRows(types, c.attrs).map((row) => ({ nth: String(i + 1), ...row })),
  )
  const recipients = contacts.flatMap((c, i) => c.recipients.map((r) => ({ nth: String(i + 1), ...r })))
  const { rows } = await sql<{ place: string; id: string }>`
    with u as materialized (
      select nextval(pg_get_serial_sequence('contacts', 'id')) as id, x.*
      from unnest(
        ${contacts.map((c) => c.phone)}::text[], ${contacts.map((c) => c.name)}::text[],
        ${contacts.map((c) => c.email)}::text[], ${contacts.map((c) => c.external_id)}::text[],
        ${contacts.map((c) => String(c.starred))}::text[], ${contacts.map((c) => String(c.dnd))}::text[],
        ${contacts.map((c) => fold(c.name ?? ''))}::text[],
        ${contacts.map((c) => searchText(c.name, c.phone))}::text[],
        ${contacts.map((c) => c.created_at)}::text[], ${contacts.map((c) => c.updated_at)}::text[],
        ${contacts.map((c) => c.last_activity_at)}::text[],
        ${contacts.map((c) => JSON.stringify(c.attrs))}::text[],
        ${contacts.map((c) => `{${c.tagIds.join(',')}}`)}::text[],
        ${contacts.map((c) => `{${c.groupIds.join(',')}}`)}::text[]
      ) with ordinality as x (phone, name, email, external_id, starred, dnd, name_key, search, created_at,
        updated_at, last_activity_at, attrs, tag_ids, group_ids, n)
    ), c as (
      insert into contacts (workspace_id, id, phone, name, email, external_id, starred, dnd, name_key,
        search, created_at, updated_at, last_activity_at)
      select ${workspaceId}::bigint, id, phone, name, email, external_id, starred::boolean, dnd::boolean, name_key,
        search, created_at::timestamptz, updated_at::timestamptz, last_activity_at::timestamptz
      from u order by n
      on conflict do nothing returning id
    ), f as (
      insert into contact_facts (workspace_id, contact_id, attrs)
      select ${workspaceId}::bigint, id, attrs::jsonb from u join c using (id)
    ), a as (
      insert into contact_attributes (workspace_id, contact_id, ${valueColumnNames})
      select ${workspaceId}::bigint, u.id, w.field_id, w.n, w.text_key, w.free::boolean, w.number_value,
        w.bool_value::boolean, w.time_value::timestamptz
      from unnest(
        ${values.map((v) => v.nth)}::bigint[], ${values.map((v) => v.field_id)}::bigint[],
        ${values.map((v) => String(v.n))}::smallint[], ${values.map((v) => v.text_key)}::text[],
        ${values.map((v) => String(v.free))}::text[], ${values.map((v) => v.number_value)}::numeric[],
        ${values.map((v) => (v.bool_value === null ? null : String(v.bool_value)))}::text[],
        ${values.map((v) => v.time_value)}::text[]
      ) as w (nth, field_id, n, text_key, free, number_value, bool_value, time_value)
      join u on u.n = w.nth join c on c.id = u.id
    ), t as (
      insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}::bigint, tag, id from u join c using (id), unnest(tag_ids::bigint[]) as tag
      returning tag_id
    ), g as (
      insert into contact_groups (workspace_id, group_id, contact_id)
      select ${workspaceId}::bigint, grp, id from u join c using (id), unnest(group_ids::bigint[]) as grp
      returning group_id
    ), r as (
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded,
        opted_out, sent_at, delivered_at, read_at, failed_at, responded_at)
      select ${workspaceId}::bigint, w.broadcast_id, u.id, w.status, w.responded::boolean,
        w.opted_out::boolean, w.sent_at::timestamptz, w.delivered_at::timestamptz,
        w.read_at::timestamptz, w.failed_at::timestamptz, w.responded_at::timestamptz
      from unnest(
        ${recipients.map((r) => r.nth)}::bigint[], ${recipients.map((r) => r.broadcast_id)}::bigint[],
        ${recipients.map((r) => r.status)}::text[], ${recipients.map((r) => String(r.responded))}::text[],
        ${recipients.map((r) => String(r.opted_out))}::text[],
        ${recipients.map((r) => r.sent_at)}::text[], ${recipients.map((r) => r.delivered_at)}::text[],
        ${recipients.map((r) => r.read_at)}::text[], ${recipients.map((r) => r.failed_at)}::text[],
        ${recipients.map((r) => r.responded_at)}::text[]
      ) as w (nth, broadcast_id, status, responded, opted_out, sent_at, delivered_at, read_at, failed_at,
        responded_at)
      join u on u.n = w.nth join c on c.id = u.id
    ), k as (
      insert into counters (workspace_id, subject, shard, n)
      select ${workspaceId}::bigint, subject, ${randomShard()}::smallint, count(*)
      from (
        select 'contacts' as subject from c union all select 'tag:' || tag_id from t
        union all select 'group:' || group_id from g) as s
      group by subject order by subject
      on conflict (workspace_id, subject, shard) do update set n = counters.n + excluded.n
    )
    select u.n - 1 as place, c.id from c join u using (id)`.execute(db)
  return new Map(rows.map(({ place, id }) => [Number(place), id]))
}

export type BroadcastStatus = TableRow<'broadcasts'>['status']
export type DemoBroadcast = {
  name: string
  status: BroadcastStatus
  template_name: string
  channel_id: string | null
  scheduled_at: string
  started_at: string | null
  created_at: string
}

/** Returns the broadcast of this name; inserts it when there is none. */
export const findOrInsertBroadcast = async (
  db: Db,
  workspaceId: string,
  broadcast: DemoBroadcast,
): Promise<{ id: string; started_at: string | null }> => {
  const nameKey = fold(broadcast.name)
  const existing = await db
    .selectFrom('broadcasts')
    .select(['id', 'started_at'])
    .where('workspace_id', '=', workspaceId)
    .where('name_key', '=', nameKey)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  if (existing) return existing
  return await db
    .insertInto('broadcasts')
    .values({ ...broadcast, workspace_id: workspaceId, name_key: nameKey })
    .returning(['id', 'started_at'])
    .executeTakeFirstOrThrow()
}

const FILLED_TABLES = [
  'contacts',
  'contact_facts',
  'contact_attributes',
  'contact_tags',
  'contact_groups',
  'broadcast_recipients',
  'conversations',
  'conversation_tags',
  'conversation_episodes',
  'reply_waits',
  'messages',
  'message_reactions',
  'media',
]

/** True when so many contacts are inserted that rebuilding the indexes costs less than maintaining them. */
export const shouldRebuildIndexes = async (db: Db, contacts: number): Promise<boolean> =>
  contacts >= 20_000 &&
  (await db
    .selectFrom('contacts')
    .select('id')
    .offset(Math.floor(contacts / 10))
    .limit(1)
    .executeTakeFirst()) === undefined

/** Unique indexes whose order is not that of the contacts: after many inserts they are half empty. */
const SCATTERED_INDEXES = ['contact_tags_pkey', 'contact_groups_pkey', 'broadcast_recipients_pkey']

/** Runs `work` in a transaction that locks the tables of contacts, and rebuilds their indexes at its end. */
export const fillWithoutIndexes = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> =>
  db.transaction().execute(async (tx) => {
    // The rows have what the trigger would find out, which is slow without the indexes.
    await sql`alter table messages disable trigger user`.execute(tx)
    const result = await withoutIndexes(tx, FILLED_TABLES, () => work(tx))
    await fillExchanges(tx)
    for (const index of SCATTERED_INDEXES) await sql.raw(`reindex index ${index}`).execute(tx)
    await sql`alter table messages enable trigger user`.execute(tx)
    return result
  })

/** Updates statistics and visibility maps after many inserts: plans depend on them at once. */
export const analyzeDemo = async (db: Db): Promise<void> => {
  for (const table of [...FILLED_TABLES, 'counters']) await sql`vacuum analyze ${sql.raw(table)}`.execute(db)
}
