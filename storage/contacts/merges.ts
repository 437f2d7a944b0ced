import { sql } from 'kysely'
import { contactsTables } from '../tables/contacts.ts'
import { lineKey } from './lines.ts'
import { describeConsents, restoreConsents } from './merge-consents.ts'
import type { Attrs, Metadata } from './values.ts'
import { addToCounters } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import type { Sql } from '../filters/comparisons.ts'
import { toStorableId } from '../values/ids.ts'

/*
 * Merges of contacts: which contact a merged one became, and for some days what undoes it. Rows are kept as JSON of all
 * their columns, so that what comes back is what there was.
 */

/**
 * Records a merge of two locked contacts before it is done: their own rows, and what belongs to each. What a later
 * change of the contact that stays is told from is recorded afterwards, by `recordMergeResult`.
 */
export const recordMerge = async (
  tx: Db,
  workspaceId: string,
  { fromId, intoId }: { fromId: string; intoId: string },
  now: string,
): Promise<void> => {
  const both = sql`(${fromId}::bigint, ${intoId}::bigint)`
  const labels = (name: 'tag' | 'group') => {
    const [table, id] = [sql.table(`contact_${name}s`), sql.ref(`x.${name}_id`)]
    return sql`(select coalesce(jsonb_agg(jsonb_build_object('id', ${id}, 'is_new', not exists (
        select 1 from ${table} y where y.workspace_id = x.workspace_id and y.contact_id = ${intoId}
          and ${sql.ref(`y.${name}_id`)} = ${id}))), '[]')
      from ${table} x where x.workspace_id = ${workspaceId} and x.contact_id = ${fromId})`
  }
  await sql`
    insert into contact_merges (workspace_id, contact_id, into_id, merged_at, before)
    values (${workspaceId}, ${fromId}, ${intoId}, ${now}, jsonb_build_object(
      'contacts', (select jsonb_object_agg(c.id::text, to_jsonb(c)) from contacts c
        where c.workspace_id = ${workspaceId} and c.id in ${both}),
      'facts', (select coalesce(jsonb_object_agg(f.contact_id::text, to_jsonb(f)), '{}') from contact_facts f
        where f.workspace_id = ${workspaceId} and f.contact_id in ${both}),
      'attributes', (select coalesce(jsonb_agg(to_jsonb(a)), '[]') from contact_attributes a
        where a.workspace_id = ${workspaceId} and a.contact_id = ${fromId}),
      'conversations', (select coalesce(jsonb_agg(jsonb_build_object('id', v.id, 'contact_id', v.contact_id,
          'channel_id', v.channel_id, 'last_inbound_at', v.last_inbound_at, 'free_entry_at', v.free_entry_at,
          'window_corrected_at', v.window_corrected_at, 'window_expires_at', v.window_expires_at)), '[]')
        from conversations v where v.workspace_id = ${workspaceId} and v.contact_id in ${both}),
      'customers', (select coalesce(jsonb_agg(to_jsonb(h)), '[]') from channel_customers h
        where h.workspace_id = ${workspaceId} and h.contact_id = ${fromId}),
      'former_ids', (select coalesce(jsonb_agg(p.id_key), '[]') from contact_former_ids p
        where p.workspace_id = ${workspaceId} and p.contact_id = ${fromId}),
      'broadcasts', (select coalesce(jsonb_agg(r.broadcast_id), '[]') from broadcast_recipients r
        where r.workspace_id = ${workspaceId} and r.contact_id = ${fromId}
          and not exists (select 1 from broadcast_recipients o where o.workspace_id = r.workspace_id
            and o.broadcast_id = r.broadcast_id and o.contact_id = ${intoId})),
      'consents', ${describeConsents(workspaceId, fromId, intoId)},
      'tags', ${labels('tag')},
      'groups', ${labels('group')}))`.execute(tx)
}

/** Records the contact that stays as a merge left it. */
export const recordMergeResult = async (tx: Db, workspaceId: string, fromId: string): Promise<void> => {
  await sql`
    update contact_merges m set after = jsonb_build_object(
      'contact', (select to_jsonb(c) from contacts c where c.workspace_id = m.workspace_id and c.id = m.into_id),
      'facts', (select to_jsonb(f) from contact_facts f
        where f.workspace_id = m.workspace_id and f.contact_id = m.into_id))
    where m.workspace_id = ${workspaceId} and m.contact_id = ${fromId}`.execute(tx)
}

/** Merges that lead from one contact to the next; more would be a loop. */
const MAX_STEPS = 100

/** Returns the contact that this one became, by merge after merge; undefined when it was not merged. */
export const findMergedInto = async (db: Db, workspaceId: string, id: string): Promise<string | undefined> =>
  (
    await sql<{ into_id: string }>`
    with recursive steps as (
      select into_id, 1 as n from contact_merges
      where workspace_id = ${workspaceId} and contact_id = ${toStorableId(id)}
      union all
      select m.into_id, s.n + 1 from contact_merges m join steps s on m.contact_id = s.into_id
      where m.workspace_id = ${workspaceId} and s.n < ${MAX_STEPS}
    )
    select into_id from steps order by n desc limit 1`.execute(db)
  ).rows[0]?.into_id

/** A merge. `is_undoable`: what undoes it is still there. */
export type ContactMerge = { into_id: string; merged_at: string; is_undoable: boolean }

export const findMerge = async (tx: Db, workspaceId: string, id: string): Promise<ContactMerge | undefined> =>
  await tx
    .selectFrom('contact_merges')
    .select([
      'into_id',
      'merged_at',
      sql<boolean>`before is not null and after is not null`.as('is_undoable'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('contact_id', '=', toStorableId(id))
    .executeTakeFirst()

/** Custom values and metadata of a contact. */
export type Facts = { attrs: Attrs; metadata: Metadata | null }

/** Before and after a merge, and now. `before` and `now` are null without a row. */
export type MergedFacts = { before: Facts | null; after: Facts | null; now: Facts | null }

/** Returns the values of the contact that a merge kept, as they were before it, right after it, and as they are. */
export const readMergedFacts = async (tx: Db, workspaceId: string, id: string): Promise<MergedFacts> =>
  (
    await sql<MergedFacts>`
    select m.before -> 'facts' -> m.into_id::text as before, m.after -> 'facts' as after, to_jsonb(f) as now
    from contact_merges m
    left join contact_facts f on f.workspace_id = m.workspace_id and f.contact_id = m.into_id
    where m.workspace_id = ${workspaceId} and m.contact_id = ${id}`.execute(tx)
  ).rows[0]!

/** What a contact has of its own beside values; those of one line are restored together. */
const RESTORED = [
  ['name', 'name_key'],
  ['phone', 'phone_key', 'provider_phone', 'phone_told_at'],
  ['chatapp_user_id', 'user_id_told_at'],
  ['username', 'username_told_at'],
  ['web_visitor_id'],
  ['email'],
  ['external_id'],
  ['dnd'],
  ['starred'],
] as const

/** The contact that stays, after an undo, and the names of the columns that it changed. */
export type RestoredContact = {
  id: string
  name: string | null
  phone: string | null
  external_id: string | null
  dnd: boolean
  starred: boolean
  created_at: string
  changed: string[]
}

/** Whether another contact (`o`) has the phone line or external id that the one which stays (`c`) had (`b`). */
const isTaken: Readonly<Partial<Record<string, Sql>>> = {
  phone: sql`exists (select from contacts o where o.workspace_id = c.workspace_id and o.id <> c.id
    and coalesce(o.phone_key, o.phone) = coalesce(b.phone_key, b.phone))`,
  external_id: sql`exists (select from contacts o where o.workspace_id = c.workspace_id and o.id <> c.id
    and o.external_id = b.external_id)`,
}

/**
 * Gives the locked contact that stays its own columns back, but for those that changed since the merge. A phone or an
 * external id that another contact has got since stays with that one.
 */
export const restoreKeptContact = async (
  tx: Db,
  workspaceId: string,
  fromId: string,
  now: string,
): Promise<RestoredContact> => {
  const isSame = (columns: readonly string[]) =>
    sql.join(
      columns.map((name) => sql`${sql.ref(`c.${name}`)} is not distinct from ${sql.ref(`a.${name}`)}`),
      sql` and `,
    )
  const restored = new Map(
    RESTORED.flatMap((columns) =>
      columns.map((name) => {
        const [own, was] = [sql.ref(`c.${name}`), sql.ref(`b.${name}`)]
        const taken = isTaken[columns[0]]
        const given = taken ? sql`case when not ${taken} then ${was} end` : was
        return [name, sql`case when ${isSame(columns)} then ${given} else ${own} end`] as const
      }),
    ),
  )
  const sets = [...restored].map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
  const changed = RESTORED.map(
    (columns) =>
      sql`case when ${isSame(columns)} and ${sql.ref(`a.${columns[0]}`)} is distinct from ${sql.ref(`b.${columns[0]}`)}
        then ${sql.lit(columns[0])} end`,
  )
  return (
    await sql<RestoredContact>`
    with m as (
      select into_id, after -> 'contact' as after, before -> 'contacts' -> into_id::text as before from contact_merges
      where workspace_id = ${workspaceId} and contact_id = ${fromId}
    ),
    differing as (
      select c.id, array_remove(array[${sql.join(changed)}], null) as changed
      from m, contacts c, jsonb_populate_record(null::contacts, m.after) a,
        jsonb_populate_record(null::contacts, m.before) b
      where c.workspace_id = ${workspaceId} and c.id = m.into_id
    )
    update contacts c set ${sql.join(sets)}, updated_at = ${now},
      search = concat(${restored.get('name_key')}, chr(10), ${restored.get('phone')},
        chr(10) || '@' || lower(${restored.get('username')}))
    from m, differing d, jsonb_populate_record(null::contacts, m.after) a,
      jsonb_populate_record(null::contacts, m.before) b
    where c.workspace_id = ${workspaceId} and c.id = m.into_id
    returning c.id, c.name, c.phone, c.external_id, c.dnd, c.starred, c.created_at, d.changed`.execute(tx)
  ).rows[0]!
}

/** Returns the contact that has the phone line or the external id of a merged one now. */
export const findIdentityHolder = async (
  tx: Db,
  workspaceId: string,
  fromId: string,
): Promise<string | undefined> =>
  (
    await sql<{ id: string }>`
    with was as (
      select o.external_id, coalesce(o.phone_key, o.phone) as line
      from contact_merges m, jsonb_populate_record(null::contacts, m.before -> 'contacts' -> ${fromId}::text) o
      where m.workspace_id = ${workspaceId} and m.contact_id = ${fromId}
    )
    select id from contacts
    where workspace_id = ${workspaceId}
      and (${lineKey} = (select line from was) or external_id = (select external_id from was)) limit 1`.execute(
      tx,
    )
  ).rows[0]?.id

/** Deletes the row of values of a contact that has none. */
export const deleteEmptyFacts = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await tx
    .deleteFrom('contact_facts')
    .where('workspace_id', '=', workspaceId)
    .where('contact_id', '=', id)
    .where(sql<boolean>`attrs = '{}' and coalesce(metadata, '{}') = '{}'`)
    .execute()
}

/** The columns of the table that are in the rows of a merge: those that a later version added have their defaults. */
const columnsOf = (table: 'contacts' | 'contact_facts' | 'contact_attributes') =>
  sql.join(Object.keys(contactsTables[table]).map((name) => sql.ref(name)))

/** The ids of labels that an undo took from the contact that stays, and gave back to the other. */
export type RestoredLabels = {
  removed: { tagIds: string[]; groupIds: string[] }
  added: { tagIds: string[]; groupIds: string[] }
}

/**
 * Brings a merged contact back with all that belonged to it, but for what has been deleted since, and forgets the
 * merge. Returns the labels that moved.
 */
export const restoreMergedContact = async (
  tx: Db,
  workspaceId: string,
  fromId: string,
): Promise<RestoredLabels> => {
  const merge = sql`(select into_id, before from contact_merges
    where workspace_id = ${workspaceId} and contact_id = ${fromId})`
  await sql`
    insert into contacts (${columnsOf('contacts')}) overriding system value
    select ${columnsOf('contacts')}
    from ${merge} m, jsonb_populate_record(null::contacts, m.before -> 'contacts' -> ${fromId}::text)`.execute(
    tx,
  )
  await sql`
    insert into contact_facts (${columnsOf('contact_facts')})
    select ${columnsOf('contact_facts')}
    from ${merge} m, jsonb_populate_record(null::contact_facts, m.before -> 'facts' -> ${fromId}::text) f
    where f.contact_id is not null`.execute(tx)
  await sql`
    insert into contact_attributes (${columnsOf('contact_attributes')})
    select ${columnsOf('contact_attributes')}
    from ${merge} m, jsonb_populate_recordset(null::contact_attributes, m.before -> 'attributes') a
    where exists (select 1 from custom_fields d
      where d.workspace_id = a.workspace_id and d.id = a.field_id and d.deleted_at is null)`.execute(tx)
  await restoreConversations(tx, workspaceId, fromId)
  await sql`
    with m as ${merge},
    h as (update channel_customers h set contact_id = ${fromId}
      from m, jsonb_populate_recordset(null::channel_customers, m.before -> 'customers') was
      where h.workspace_id = ${workspaceId} and h.contact_id = m.into_id
        and h.channel_id = was.channel_id and h.customer_id = was.customer_id),
    p as (update contact_former_ids p set contact_id = ${fromId}
      from m, jsonb_array_elements_text(coalesce(m.before -> 'former_ids', '[]')) was
      where p.workspace_id = ${workspaceId} and p.contact_id = m.into_id and p.id_key = was)
    update broadcast_recipients r set contact_id = ${fromId}
    from m, jsonb_array_elements_text(m.before -> 'broadcasts') b
    where r.workspace_id = ${workspaceId} and r.contact_id = m.into_id and r.broadcast_id = b::bigint`.execute(
    tx,
  )
  await restoreConsents(tx, workspaceId, fromId)
  const tags = await restoreLabels(tx, workspaceId, fromId, 'tag')
  const groups = await restoreLabels(tx, workspaceId, fromId, 'group')
  await addToCounters(tx, workspaceId, new Map([['contacts', 1], ...tags.counts, ...groups.counts]))
  await sql`delete from contact_merges where workspace_id = ${workspaceId} and contact_id = ${fromId}`.execute(
    tx,
  )
  return {
    removed: { tagIds: tags.removed, groupIds: groups.removed },
    added: { tagIds: tags.added, groupIds: groups.added },
  }
}

/**
 * Conversations go back, and so does a reply window that the merge widened, unless it has changed since. The last
 * activity of both contacts is that of the conversations which they have then.
 */
const restoreConversations = async (tx: Db, workspaceId: string, fromId: string): Promise<void> => {
  const window = ['last_inbound_at', 'free_entry_at', 'window_corrected_at', 'window_expires_at'] as const
  const shared = window.map(
    (name) => sql`max(${sql.ref(name)}) over (partition by channel_id) as ${sql.ref(`max_${name}`)}`,
  )
  const sets = window.map((name) => {
    const [own, was, max] = [sql.ref(`v.${name}`), sql.ref(`w.${name}`), sql.ref(`w.max_${name}`)]
    return sql`${sql.ref(name)} = case when ${own} is not distinct from ${max} then ${was} else ${own} end`
  })
  await sql`
    with m as (select into_id, before from contact_merges
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    w as (select was.*, ${sql.join(shared)}
      from m, jsonb_to_recordset(m.before -> 'conversations') was (id bigint, contact_id bigint, channel_id bigint,
        last_inbound_at timestamptz, free_entry_at timestamptz, window_corrected_at timestamptz,
        window_expires_at timestamptz))
    update conversations v set contact_id = w.contact_id, ${sql.join(sets)}
    from m, w where v.workspace_id = ${workspaceId} and v.id = w.id and v.contact_id = m.into_id`.execute(tx)
  await sql`
    update contacts c set last_activity_at = (select max(v.last_activity_at) from conversations v
      where v.workspace_id = c.workspace_id and v.contact_id = c.id)
    from contact_merges m
    where m.workspace_id = ${workspaceId} and m.contact_id = ${fromId} and c.workspace_id = m.workspace_id
      and c.id in (m.contact_id, m.into_id)`.execute(tx)
}

const restoreLabels = async (
  tx: Db,
  workspaceId: string,
  fromId: string,
  name: 'tag' | 'group',
): Promise<{ removed: string[]; added: string[]; counts: [string, number][] }> => {
  const [table, of] = [sql.table(`contact_${name}s`), sql.table(`${name}s`)]
  const id = sql.ref(`${name}_id`)
  const { rows } = await sql<{ kind: 'removed' | 'added'; id: string }>`
    with m as (select into_id, before from contact_merges
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    was as (select one.id, one.is_new from m, jsonb_to_recordset(m.before -> ${`${name}s`}::text)
      one (id bigint, is_new boolean)),
    removed as (delete from ${table} x using m, was
      where x.workspace_id = ${workspaceId} and x.contact_id = m.into_id and ${sql.ref(`x.${name}_id`)} = was.id
        and was.is_new returning was.id),
    existing as (select l.id from ${of} l where l.workspace_id = ${workspaceId} and l.id in (select id from was)
      order by l.id for key share),
    added as (insert into ${table} (workspace_id, ${id}, contact_id)
      select ${workspaceId}::bigint, id, ${fromId}::bigint from existing order by id returning ${id} as id)
    select 'removed' as kind, id from removed union all select 'added', id from added`.execute(tx)
  const counts = new Map<string, number>()
  for (const row of rows) {
    const subject = `${name}:${row.id}`
    counts.set(subject, (counts.get(subject) ?? 0) + (row.kind === 'added' ? 1 : -1))
  }
  const list = (kind: 'removed' | 'added') => rows.flatMap((row) => (row.kind === kind ? row.id : []))
  return { removed: list('removed'), added: list('added'), counts: [...counts] }
}

/** Forgets what undoes merges of before a time, `limit` at most; where they led to stays. Returns the count. */
export const expireMergesBefore = async (db: Db, before: string, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    update contact_merges m set before = null, after = null
    from (select workspace_id, contact_id from contact_merges
      where merged_at < ${before} and before is not null order by merged_at limit ${limit} for update skip locked) old
    where m.workspace_id = old.workspace_id and m.contact_id = old.contact_id`.execute(db)
  return Number(numAffectedRows ?? 0)
}
