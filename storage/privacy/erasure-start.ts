import { sql } from 'kysely'
import { eraseExports } from '../contacts/exports.ts'
import type { Db } from '../database.ts'
import { matchesSubject, type SubjectPatterns } from './erasure-scans.ts'
import { eraseMembersPart } from '../filters/memberships.ts'
import type { ErasureCounts } from './erasures.ts'
import type { ErasureSubject } from '../tables/erasures.ts'

/** What an erasure does at once, in the transaction of the call. */

/** The contacts that became this one, by merge after merge. */
const mergedIds = (workspaceId: string, id: string) => sql`
  with recursive merged as (
    select contact_id, before from contact_merges where workspace_id = ${workspaceId} and into_id = ${id}
    union
    select m.contact_id, m.before from contact_merges m join merged on m.into_id = merged.contact_id
    where m.workspace_id = ${workspaceId}
  )`

/** Returns what identifies a locked contact, now and before it was merged or got another number. */
export const readContactIdentity = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ErasureSubject> => {
  const { rows } = await sql<ErasureSubject>`
    ${mergedIds(workspaceId, id)}, own as (
      select * from contacts where workspace_id = ${workspaceId} and id = ${id}
      union all
      select o.* from merged cross join lateral jsonb_each(merged.before -> 'contacts') as b
        cross join lateral jsonb_populate_record(null::contacts, b.value) as o
    ), former as (
      select id_key as key from contact_former_ids where workspace_id = ${workspaceId} and contact_id = ${id}
      union select p.key from merged
        cross join lateral jsonb_array_elements_text(coalesce(merged.before -> 'former_ids', '[]')) as p (key)
    ), texts as (
      select unnest(array[email, external_id, chatapp_user_id, web_visitor_id]) as text from own
      union select username from own
      union select customer_id from channel_customers where workspace_id = ${workspaceId} and contact_id = ${id}
      union select key from former
    ), phones as (
      select unnest(array[phone, phone_key, provider_phone]) as phone from own
      union select key from former where key ~ '^[0-9]+$'
    ), names as (
      select distinct name_key from own o where name_key like '%_ _%' and not exists (select from contacts c
        where c.workspace_id = ${workspaceId} and c.name_key = o.name_key and c.id <> all(select id from own))
    )
    select array(select ${id}::text union select contact_id::text from merged) as "contactIds",
      array(select id::text from conversations where workspace_id = ${workspaceId} and contact_id = ${id}
        order by conversations.id) as "conversationIds",
      array(select distinct phone from phones where phone is not null) as phones,
      array(select distinct text from texts where text is not null) as texts,
      array(select name_key from names) as names,
      coalesce((select max(id) from provider_updates), 0)::text as "lastUpdateId",
      coalesce((select max(id) from sandbox_updates), 0)::text as "lastSandboxUpdateId",
      coalesce((select max(b.seq) from channels h
        cross join lateral (select max(seq) as seq from sandbox_messages m
          where m.number_id = h.provider_phone_number_id) as b
        where h.workspace_id = ${workspaceId}), 0)::text as "lastSandboxSeq"`.execute(tx)
  return rows[0]!
}

/** They go with the contact. */
const OWN_TABLES = [
  'contact_facts',
  'contact_attributes',
  'contact_tags',
  'contact_groups',
  'consent_changes',
  'consents',
  'contact_former_ids',
  'channel_customers',
]

/** Counts the rows that go with the contact itself, of which the deletion tells nothing. */
export const countContactRows = async (tx: Db, workspaceId: string, id: string): Promise<ErasureCounts> => {
  const counts = OWN_TABLES.map(
    (name) => sql`
      select ${name}::text as name, count(*)::int as n from ${sql.table(name)}
      where workspace_id = ${workspaceId} and contact_id = ${id}`,
  )
  const { rows } = await sql<{
    name: string
    n: number
  }>`${sql.join(counts, sql` union all `)}`.execute(tx)
  return Object.fromEntries([
    ['contacts', { deleted: 1 }],
    ...rows.map(({ name, n }) => [name, { deleted: n }] as const),
  ])
}

/**
 * Ends what belongs to a locked contact beside its own rows: merges into it, however long ago, its place in broadcasts
 * that have not been sent, titles and tags of its conversations, which stay without it, and files made for it.
 */
export const eraseContactLinks = async (
  tx: Db,
  workspaceId: string,
  { contactIds, conversationIds }: Pick<ErasureSubject, 'contactIds' | 'conversationIds'>,
  now: string,
): Promise<ErasureCounts> => {
  type Counted = ('merges' | 'recipients' | 'conversations' | 'exchanges' | 'tags' | 'replies') | 'members'
  const { rows } = await sql<Record<Counted, number>>`
    with m as (delete from contact_merges
      where workspace_id = ${workspaceId} and contact_id = any(${contactIds}::bigint[]) returning 1),
    b as (update broadcast_recipients set country = null, error = null, values_digest = null,
        status = case when status = 'pending' then 'failed' else status end,
        failed_at = case when status = 'pending' then ${now}::timestamptz else failed_at end
      where workspace_id = ${workspaceId} and contact_id = any(${contactIds}::bigint[])),
    v as (update conversations set title = null, ad = null, contact_id = null
      where workspace_id = ${workspaceId} and id = any(${conversationIds}::bigint[]) returning 1),
    u as (${eraseMembersPart(workspaceId, contactIds)}),
    t as (delete from conversation_tags
      where workspace_id = ${workspaceId} and conversation_id = any(${conversationIds}::bigint[]) returning 1),
    d as (delete from channel_deliveries
      where workspace_id = ${workspaceId} and conversation_id = any(${conversationIds}::bigint[]) returning 1)
    select (select count(*)::int from u) as members, (select count(*)::int from m) as merges,
      (select count(*)::int from v) as conversations,
      (select count(*)::int from contact_exchanges where workspace_id = ${workspaceId}
        and conversation_id = any(${conversationIds}::bigint[]) and contact_id is not null) as exchanges,
      (select count(*)::int from t) as tags, (select count(*)::int from d) as replies,
      (select count(*)::int from broadcast_recipients
        where workspace_id = ${workspaceId} and contact_id = any(${contactIds}::bigint[])) as recipients`.execute(
    tx,
  )
  const row = rows[0]!
  return {
    contact_merges: { deleted: row.merges },
    conversations: { cleared: row.conversations },
    filter_members: { cleared: row.members },
    contact_exchanges: { cleared: row.exchanges },
    conversation_tags: { deleted: row.tags },
    channel_deliveries: { deleted: row.replies },
    broadcast_recipients: { pseudonymised: row.recipients },
    ...(await eraseExports(tx, workspaceId, { contactIds })),
  }
}

/** Counts what a job will find in conversations, by their ids. */
export const countConversationRows = async (
  tx: Db,
  workspaceId: string,
  conversationIds: readonly string[],
): Promise<ErasureCounts> => {
  const { rows } = await sql<{ messages: number; media: number }>`
    with own as (select id from messages
      where workspace_id = ${workspaceId} and conversation_id = any(${conversationIds}::bigint[]))
    select (select count(*)::int from own) as messages,
      (select count(*)::int from media
        where workspace_id = ${workspaceId} and message_id in (select id from own)) as media`.execute(tx)
  return {
    messages: { cleared: rows[0]!.messages },
    media: { cleared: rows[0]!.media },
  }
}

export type OpenApproval = {
  id: string
  operation: string
  staff_id: string
  key_id: string
  channel_ids: string[]
  expires_at: string
}

/** What a call does, as it is kept. */
export type WaitingApproval = { id: string; contact_id: string | null } & Record<
  'input' | 'preview' | 'edited',
  unknown
>

/**
 * Returns the calls of agents that wait for somebody, or for their turn, and may be about the person, locked. Without
 * an erasure that was approved: it may be this one.
 */
export const lockWaitingApprovals = async (
  tx: Db,
  workspaceId: string,
  patterns: SubjectPatterns,
): Promise<WaitingApproval[]> =>
  (
    await sql<WaitingApproval>`
    select id, contact_id, input, preview, edited from approvals
    where workspace_id = ${workspaceId} and status in ('pending', 'approved')
      and not (operation = 'crm_erase_contact' and status = 'approved')
      and (contact_id = any(${patterns.contactIds}::bigint[])
        or ${matchesSubject(sql`concat(input, preview, edited)`, patterns)})
    order by id for update`.execute(tx)
  ).rows

/** Cancels calls of agents. Returns them. */
export const cancelApprovalRows = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  now: string,
): Promise<OpenApproval[]> =>
  (
    await sql<OpenApproval>`
    update approvals set status = 'cancelled', decided_at = coalesce(decided_at, ${now}::timestamptz),
      ended_at = ${now}::timestamptz, secrets = null
    where workspace_id = ${workspaceId} and id = any(${ids}::bigint[])
    returning id, operation, staff_id, key_id, channel_ids, expires_at`.execute(tx)
  ).rows
