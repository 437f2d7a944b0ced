import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { lineKey } from './lines.ts'
import type { Attrs } from './values.ts'

/** A contact that is the same customer as another one. `of_id`: the other, which the service finds. */
export type ContactDouble = { id: string; phone: string | null; of_id: string | null }

/**
 * Lists contacts whose phone is an old spelling of a line that another contact has, by id: no phone finds them.
 * Others with such a phone have a key. `oldForms`: a regular expression. Reads all contacts of
 * the workspace after `after`: for administration.
 */
export const listContactsWithoutLine = async (
  db: Db,
  workspaceId: string,
  oldForms: string,
  after: string,
  limit: number,
): Promise<{ id: string; phone: string }[]> =>
  (
    await sql<{ id: string; phone: string }>`
    select id, phone from contacts
    where workspace_id = ${workspaceId} and id > ${after}::bigint and phone_key is null
      and phone ~ ${oldForms}
    order by id limit ${limit}`.execute(db)
  ).rows

/** Lists contacts with the user id of an older contact, by id. The older one gets the customer's messages. */
export const listUserIdDoubles = async (
  db: Db,
  workspaceId: string,
  after: string,
  limit: number,
): Promise<ContactDouble[]> =>
  (
    await sql<ContactDouble>`
    select id, phone, of_id from (
      select c.id, c.phone, (select min(o.id) from contacts o where o.workspace_id = c.workspace_id
        and o.chatapp_user_id = c.chatapp_user_id) as of_id
      from contacts c
      where c.workspace_id = ${workspaceId} and c.id > ${after}::bigint and c.chatapp_user_id is not null
    ) as c where of_id < id order by id limit ${limit}`.execute(db)
  ).rows

/** Where values are that one person would have: ids at the provider, names, or a custom field. */
export type SharedSource = { kind: 'user_id' | 'name' } | { kind: 'phone' | 'email'; fieldId: string }

/** A value of contacts, and how many have it among those that were read, which are `upto` with it. */
export type SharedKey = { key: string; n: number; upto: number; is_last: boolean }

const toSource = (workspaceId: string, source: SharedSource) => {
  if (source.kind === 'user_id')
    return {
      key: sql`chatapp_user_id`,
      id: sql`id`,
      rows: sql`contacts where workspace_id = ${workspaceId} and chatapp_user_id is not null`,
    }
  if (source.kind === 'phone' || source.kind === 'email')
    return {
      key: sql`left(text_key, 200)`,
      id: sql`contact_id`,
      rows: sql`contact_attributes where workspace_id = ${workspaceId} and field_id = ${source.fieldId}
        and text_key is not null`,
    }
  return {
    key: sql`name_key`,
    id: sql`id`,
    rows: sql`contacts where workspace_id = ${workspaceId} and name_key > ''`,
  }
}

/**
 * Reads the next `rows` values of a source in the order of its index. Returns those that several contacts have, at most
 * `limit`, and the last one that was read; all of them where `limit` is null.
 */
export const listSharedKeys = async (
  tx: Db,
  workspaceId: string,
  source: SharedSource,
  from: { key: string; inclusive: boolean },
  { rows: maxRows, limit }: { rows: number; limit: number | null },
): Promise<SharedKey[]> => {
  const { key, rows } = toSource(workspaceId, source)
  const { rows: found } = await sql<SharedKey>`
    select key, n, upto, is_last from (
      select key, count(*)::int as n, (sum(count(*)) over by_key)::int as upto,
        lead(key) over by_key is null as is_last
      from (
        select ${key} as key from ${rows} and ${key} ${from.inclusive ? sql`>=` : sql`>`} ${from.key}
        order by ${key} limit ${sql.lit(maxRows)}) as span
      group by key window by_key as (order by key)) as g
    ${limit === null ? sql`` : sql`where n > 1 or is_last`}
    order by key ${limit === null ? sql`` : sql`limit ${sql.lit(limit)}`}`.execute(tx)
  return found
}

/** Returns the contacts that have each of these values; of one that more than `max` have, only some of them. */
export const listHolders = async (
  tx: Db,
  workspaceId: string,
  source: SharedSource,
  keys: readonly string[],
  max: number,
): Promise<Map<string, string[]>> => {
  const { key, id, rows } = toSource(workspaceId, source)
  const { rows: found } = await sql<{ key: string; ids: string[] }>`
    select key, array(select ${id}::text from ${rows} and ${key} = k.key limit ${sql.lit(max + 1)}) as ids
    from unnest(${keys}::text[]) as k (key)`.execute(tx)
  return new Map(found.map((row) => [row.key, row.ids]))
}

/** Returns the contacts of these lines, by their keys. Each is looked up: a join would read all contacts. */
export const listLineOwners = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
): Promise<Map<string, string>> => {
  const { rows } = await sql<{ key: string; id: string }>`
    select k.key, c.id from unnest(${keys}::text[]) as k (key)
    cross join lateral (
      select id from contacts where workspace_id = ${workspaceId} and ${lineKey} = k.key limit 1) as c`.execute(
    tx,
  )
  return new Map(rows.map(({ key, id }) => [key, id]))
}

/** What two contacts are compared by. `channel_ids`: those that they wrote or were written to on. */
export type ComparedContact = {
  id: string
  name: string | null
  name_key: string
  phone: string | null
  line_key: string | null
  chatapp_user_id: string | null
  created_at: string
  attrs: Attrs
  channel_ids: string[]
}

/** Returns these contacts by id. `channels`: only these of their channels; null: all. */
export const loadComparedContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  channels: readonly string[] | null,
): Promise<Map<string, ComparedContact>> => {
  const { rows } = await sql<ComparedContact>`
    select c.id, c.name, c.name_key, c.phone, ${lineKey} as line_key, c.chatapp_user_id, c.created_at,
      coalesce(f.attrs, '{}') as attrs,
      array(select distinct v.channel_id::text from conversations v
        where v.workspace_id = c.workspace_id and v.contact_id = c.id and v.channel_id is not null
          ${channels === null ? sql`` : sql`and v.channel_id = any(${channels}::bigint[])`}) as channel_ids
    from contacts c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    where c.workspace_id = ${workspaceId} and c.id = any(${ids}::bigint[])`.execute(tx)
  return new Map(rows.map((row) => [row.id, row]))
}
