import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * What an answer tells of contacts: their ids, and those of conversations and messages of theirs; `questions` are
 * digests of what else it tells, below zero. Each list may be empty.
 */
export type ContactSubjects = {
  contacts: readonly string[]
  conversations: readonly string[]
  messages: readonly string[]
  questions: readonly string[]
}

/** Which family of keys, on which day (its beginning, ISO 8601 UTC), with what budget. */
export type ContactBudget = { workspaceId: string; familyId: string; day: string; limit: number }

const DIVISION_BY_ZERO = '22012'

/**
 * Adds contacts and questions to those of a family's day, unless that makes more than `limit`: then nothing is added,
 * and the statement fails, and a transaction that it is in with it. What was added before is free. One statement: a
 * second call that adds the same at the same time waits for the first at the primary key, and its count for the row
 * of the day, so that it is exact on all servers. Returns the contact of each subject (`c`, `v` or `m` and the id),
 * undefined when the budget does not suffice.
 */
export const takeContactViews = async (
  db: Db,
  { workspaceId, familyId, day, limit }: ContactBudget,
  { contacts, conversations, messages, questions }: ContactSubjects,
): Promise<{ found: Map<string, string> } | undefined> => {
  try {
    const { rows } = await sql<{ found: Record<string, string> | null; ok: number }>`
      with wanted as materialized (
        select 'c' || id as ref, id as subject from unnest(${contacts}::bigint[]) as id
        union all
        select 'v' || id, contact_id from conversations
        where workspace_id = ${workspaceId} and id = any(${conversations}::bigint[]) and contact_id is not null
        union all
        select 'm' || m.id, v.contact_id from messages m
        join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
        where m.workspace_id = ${workspaceId} and m.id = any(${messages}::bigint[]) and v.contact_id is not null
        union all
        select 'q' || id, id from unnest(${questions}::bigint[]) as id
      ), added as (
        insert into contact_views (workspace_id, key_id, day, subject)
        select distinct ${workspaceId}::bigint, ${familyId}::bigint, ${day}::timestamptz, subject from wanted
        order by subject
        on conflict do nothing returning subject
      ), news as materialized (
        select count(*)::int as n from added
      ), counted as (
        insert into contact_budgets as b (workspace_id, key_id, day, used)
        select ${workspaceId}::bigint, ${familyId}::bigint, ${day}::timestamptz, n from news
        where n > 0 and n <= ${limit}::int
        on conflict (workspace_id, key_id, day) do update set used = b.used + excluded.used
        where b.used + excluded.used <= ${limit}::int
        returning used
      )
      select (select json_object_agg(ref, subject::text) from wanted where subject > 0) as found,
        1 / (case when (select n from news) = 0 or exists (select from counted) then 1 else 0 end) as ok`.execute(
      db,
    )
    return { found: new Map(Object.entries(rows[0]!.found ?? {})) }
  } catch (error) {
    if ((error as { code?: string }).code === DIVISION_BY_ZERO) return undefined
    throw error
  }
}

/**
 * Deletes what was seen on days that began more than `hours` ago, found by the budgets, which are few, and what was
 * read in hours that began more than `readHours` ago.
 */
export const deletePastContactViews = async (db: Db, hours: number, readHours: number): Promise<void> => {
  await sql`
    with past as (
      delete from contact_budgets where day < clock_timestamp() - ${hours}::int * interval '1 hour'
      returning workspace_id, key_id, day
    )
    delete from contact_views v using past
    where v.workspace_id = past.workspace_id and v.key_id = past.key_id and v.day = past.day`.execute(db)
  await sql`
    delete from contact_reads where hour < clock_timestamp() - ${readHours}::int * interval '1 hour'`.execute(
    db,
  )
}
