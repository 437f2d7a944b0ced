import { sql } from 'kysely'
import { type Attrs, searchText } from './contacts.ts'
import { anyShard } from './counters.ts'
import type { Db } from './database.ts'
import { withoutIndexes } from './indexes.ts'
import { fold } from './text.ts'

export type NewConversation = {
  channel_id: string | null; state: string; assigned_staff_id: string | null; assigned_team_id: string | null; created_at: string; last_activity_at: string
}
export type NewDemoContact = {
  phone: string; name: string | null; email: string | null; starred: boolean; dnd: boolean
  created_at: string; updated_at: string; last_activity_at: string | null
  attrs: Attrs; tagIds: readonly string[]; groupIds: readonly string[]; conversations: readonly NewConversation[]
}

/**
 * Writes many contacts with all that hangs on them, and their counts, in one statement. A contact whose phone is taken is left out. Answers how
 * many were written. Ids are drawn first, so that the parts can be told apart without asking back.
 */
export const insertDemoContacts = async (db: Db, workspaceId: string, contacts: readonly NewDemoContact[]): Promise<number> => {
  const talks = contacts.flatMap((c, i) => c.conversations.map((v) => ({ n: String(i + 1), ...v })))
  const { rows } = await sql<{ created: string }>`
    with u as materialized (
      select nextval(pg_get_serial_sequence('contacts', 'id')) as id, x.*
      from unnest(
        ${contacts.map((c) => c.phone)}::text[], ${contacts.map((c) => c.name)}::text[], ${contacts.map((c) => c.email)}::text[],
        ${contacts.map((c) => String(c.starred))}::boolean[], ${contacts.map((c) => String(c.dnd))}::boolean[],
        ${contacts.map((c) => fold(c.name ?? ''))}::text[], ${contacts.map((c) => searchText(c.name, c.phone))}::text[],
        ${contacts.map((c) => c.created_at)}::text[], ${contacts.map((c) => c.updated_at)}::text[], ${contacts.map((c) => c.last_activity_at)}::text[],
        ${contacts.map((c) => JSON.stringify(c.attrs))}::text[], ${contacts.map((c) => `{${c.tagIds.join(',')}}`)}::text[], ${contacts.map((c) => `{${c.groupIds.join(',')}}`)}::text[]
      ) with ordinality as x (phone, name, email, starred, dnd, name_key, search, created_at, updated_at, last_activity_at, attrs, tag_ids, group_ids, n)
    ), c as (
      insert into contacts (workspace_id, id, phone, name, email, starred, dnd, name_key, search, created_at, updated_at, last_activity_at)
      select ${workspaceId}::bigint, id, phone, name, email, starred, dnd, name_key, search, created_at::timestamptz, updated_at::timestamptz, last_activity_at::timestamptz
      from u order by n
      on conflict (workspace_id, phone) do nothing returning id
    ), f as (
      insert into contact_facts (workspace_id, contact_id, attrs) select ${workspaceId}::bigint, id, attrs::jsonb from u join c using (id)
    ), t as (
      insert into contact_tags (workspace_id, tag_id, contact_id) select ${workspaceId}::bigint, tag, id from u join c using (id), unnest(tag_ids::bigint[]) as tag returning tag_id
    ), g as (
      insert into contact_groups (workspace_id, group_id, contact_id) select ${workspaceId}::bigint, grp, id from u join c using (id), unnest(group_ids::bigint[]) as grp returning group_id
    ), v as (
      insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, assigned_team_id, created_at, last_activity_at)
      select ${workspaceId}::bigint, u.id, w.channel_id, w.state, w.staff_id, w.team_id, w.created_at::timestamptz, w.last_activity_at::timestamptz
      from unnest(
        ${talks.map((v) => v.n)}::bigint[], ${talks.map((v) => v.channel_id)}::bigint[], ${talks.map((v) => v.state)}::text[],
        ${talks.map((v) => v.assigned_staff_id)}::bigint[], ${talks.map((v) => v.assigned_team_id)}::bigint[],
        ${talks.map((v) => v.created_at)}::text[], ${talks.map((v) => v.last_activity_at)}::text[]
      ) as w (n, channel_id, state, staff_id, team_id, created_at, last_activity_at)
      join u using (n) join c on c.id = u.id
    ), k as (
      insert into counters (workspace_id, subject, shard, n)
      select ${workspaceId}::bigint, subject, ${anyShard()}::smallint, count(*)
      from (select 'contacts' as subject from c union all select 'tag:' || tag_id from t union all select 'group:' || group_id from g) as s
      group by subject order by subject
      on conflict (workspace_id, subject, shard) do update set n = counters.n + excluded.n
    )
    select count(*) as created from c`.execute(db)
  return Number(rows[0]!.created)
}

const filled = ['contacts', 'contact_facts', 'contact_tags', 'contact_groups', 'conversations']

/** True when so many contacts are to come that building the indexes anew costs less than keeping them up. */
export const areMany = async (db: Db, contacts: number): Promise<boolean> =>
  contacts >= 20_000 && (await sql`select 1 from contacts offset ${Math.floor(contacts / 10)}::bigint limit 1`.execute(db)).rows.length === 0

/** Runs `work` in a transaction that has the contacts to itself, and builds their indexes at its end. */
export const fillAlone = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> => db.transaction().execute((tx) => withoutIndexes(tx, filled, () => work(tx)))

/** Fresh statistics and visibility map after many rows: the plans for the next minute depend on them. */
export const analyzeDemo = async (db: Db): Promise<void> => {
  for (const table of [...filled, 'counters']) await sql`vacuum analyze ${sql.raw(table)}`.execute(db)
}
