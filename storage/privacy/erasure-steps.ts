import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import type { ErasureCounts } from './erasures.ts'
import { MAX_BIGINT } from '../values/ids.ts'
import { removableAt } from '../messages/media.ts'
import type { ErasureSubject } from '../tables/erasures.ts'

/** Erases rows that the contact's ids, conversations or phones lead to. */

const count = async (tx: Db, statement: RawBuilder<unknown>): Promise<number> =>
  Number((await statement.execute(tx)).numAffectedRows ?? 0)

/**
 * Transactions of this database that have read contacts or written anything, and have not ended, but for this one. By
 * their locks: the oldest transaction of a snapshot may be another database's.
 */
export const listRunningTransactions = async (tx: Db): Promise<string[]> =>
  (
    await sql<{ transaction: string }>`
    select distinct virtualtransaction as transaction from pg_locks
    where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
      and (relation = 'contacts'::regclass or mode = 'RowExclusiveLock')
      and granted and pid <> pg_backend_pid()`.execute(tx)
  ).rows.map(({ transaction }) => transaction)

/** The last message that was erased, of the conversation at `index`, newest first. */
export type MessagePosition = { index: number; createdAt: string; id: string }

/**
 * Erases what the next messages of a conversation, or by these members of groups, say, with their reactions and
 * files; files in the store are removed later (`listErasableMedia`). Rows stay for figures. Returns the last message,
 * undefined at the end.
 */
export const eraseMessages = async (
  tx: Db,
  workspaceId: string,
  of: { conversationId: string } | { authorIds: readonly string[] },
  { after, limit, now }: { after: Omit<MessagePosition, 'index'> | undefined; limit: number; now: string },
): Promise<{ counts: ErasureCounts; last: Omit<MessagePosition, 'index'> | undefined }> => {
  const rest = after
    ? sql`and (created_at, id) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`
    : sql``
  const { rows: own } = await sql<{ id: string; created_at: string }>`
    select id, created_at from messages
    where workspace_id = ${workspaceId} and ${
      'conversationId' in of
        ? sql`conversation_id = ${of.conversationId}::bigint`
        : sql`content ? 'author' and content #>> '{author,contact_id}' = any(${of.authorIds}::text[])`
    } ${rest}
    order by created_at desc, id desc limit ${limit}`.execute(tx)
  const isOwn = sql`workspace_id = ${workspaceId} and message_id = any(${own.map(({ id }) => id)}::bigint[])`
  // Those that were erased before are not counted again.
  const { rows } = await sql<{ messages: number; media: number; reactions: number; search: number }>`
    with erased as (
      update messages set text = null, content = null, provider_id = null, reference = null, external_id = null,
        error = null, deleted_at = coalesce(deleted_at, ${now}::timestamptz)
      where workspace_id = ${workspaceId} and id = any(${own.map(({ id }) => id)}::bigint[])
        and (deleted_at is null or num_nonnulls(text, content, provider_id, reference, external_id, error) > 0)
      returning 1
    ), reactions as (
      delete from message_reactions where ${isOwn} returning 1
    ), media as (
      update media set state = 'lost', error = null, content_type = null, file_name = null, size = null,
        sha256 = null, url = null, provider_media_id = null, removable_at = ${removableAt}
      where ${isOwn} and (state <> 'lost'
        or num_nonnulls(error, content_type, file_name, size, sha256, url, provider_media_id) > 0) returning 1
    )
    select (select count(*)::int from erased) as messages, (select count(*)::int from media) as media,
      (select count(*)::int from reactions) as reactions,
      (select count(*)::int from message_search where ${isOwn} and keys <> '{}') as search`.execute(tx)
  const { messages, media, reactions, search } = rows[0]!
  const last = own.at(-1)
  return {
    counts: {
      messages: { cleared: messages },
      message_search: { cleared: search },
      message_reactions: { deleted: reactions },
      media: { cleared: media },
    },
    last: last && own.length === limit ? { createdAt: last.created_at, id: last.id } : undefined,
  }
}

/** Whether the store has files of these conversations still. */
export const hasFilesOf = async (
  tx: Db,
  workspaceId: string,
  conversationIds: readonly string[],
): Promise<boolean> =>
  (
    await sql`
    select from media d join messages m on m.workspace_id = d.workspace_id and m.id = d.message_id
    where d.workspace_id = ${workspaceId} and d.state = 'lost' and d.key is not null
      and m.conversation_id = any(${conversationIds}::bigint[]) limit 1`.execute(tx)
  ).rows.length > 0

/** What was written about the conversations themselves, and replies that wait for their bridge. */
export const eraseConversationTexts = async (
  tx: Db,
  workspaceId: string,
  { conversationIds }: Pick<ErasureSubject, 'conversationIds'>,
): Promise<ErasureCounts> => {
  const isOwn = sql`workspace_id = ${workspaceId} and conversation_id = any(${conversationIds}::bigint[])`
  return {
    conversation_episodes: {
      cleared: await count(
        tx,
        sql`update conversation_episodes set title = null, close_reason = null
        where ${isOwn} and (title is not null or close_reason is not null)`,
      ),
    },
    conversation_tags: { deleted: await count(tx, sql`delete from conversation_tags where ${isOwn}`) },
    channel_deliveries: { deleted: await count(tx, sql`delete from channel_deliveries where ${isOwn}`) },
  }
}

/** Which contacts keys have seen, and which phones staff have named. */
export const eraseBudgets = async (
  tx: Db,
  workspaceId: string,
  { contactIds, phones }: Pick<ErasureSubject, 'contactIds' | 'phones'>,
): Promise<ErasureCounts> => ({
  contact_views: {
    deleted: await count(
      tx,
      sql`delete from contact_views
      where workspace_id = ${workspaceId} and subject = any(${contactIds}::bigint[])`,
    ),
  },
  contact_reads: {
    cleared: await count(
      tx,
      sql`update contact_reads
        set contacts = array(select c from unnest(contacts) as c where c <> all(${contactIds}::bigint[]))
      where workspace_id = ${workspaceId} and contacts && ${contactIds}::bigint[]`,
    ),
  },
  phone_budgets: {
    cleared: await count(
      tx,
      sql`update phone_budgets set phones = array(select p from unnest(phones) as p where p <> all(${phones}::text[]))
      where workspace_id = ${workspaceId} and phones && ${phones}::text[]`,
    ),
  },
})

/** Whether an update `p` of the provider is about the person: of the workspace's numbers and accounts. */
export const isUpdateOf = (
  workspaceId: string,
  { phones, texts, lastUpdateId }: Pick<ErasureSubject, 'phones' | 'texts' | 'lastUpdateId'>,
) => sql<boolean>`p.id <= ${lastUpdateId}::bigint
  and p.subject in (select provider_phone_number_id from channels where workspace_id = ${workspaceId}
    union all select account_id from channels where workspace_id = ${workspaceId})
  and (p.payload::text like any(${toQuoted([...phones, ...texts])}::text[])
    or (p.kind = 'preference' and p.dedupe like any(${phones.map((phone) => `%:${phone}:%`)}::text[])))`

/**
 * Erases what the provider sent of the person, until the erasure. Updates that were applied have no payload any more;
 * they stay for some days, so that a repeat brings nobody back, but for those whose key is the phone.
 */
export const eraseProviderUpdates = async (
  tx: Db,
  workspaceId: string,
  subject: Pick<ErasureSubject, 'phones' | 'texts' | 'lastUpdateId'>,
): Promise<ErasureCounts> => ({
  provider_updates: {
    deleted: await count(tx, sql`delete from provider_updates p where ${isUpdateOf(workspaceId, subject)}`),
  },
})

/** Patterns of phones and ids of the provider as JSON has them; other identifiers could be words of its own. */
const toQuoted = (texts: readonly string[]): string[] =>
  texts
    .filter((text) => /\d{7}/.test(text))
    .map((text) => `%${JSON.stringify(text).replace(/[\\%_]/g, '\\$&')}%`)

/**
 * Erases the person at the emulated provider, on the numbers of the workspace: what was there at the erasure. Who
 * writes while it runs is a stranger, whose message is delivered.
 */
export const eraseSandboxPerson = async (
  tx: Db,
  workspaceId: string,
  { phones, texts, conversationIds, ...last }: ErasureSubject,
): Promise<ErasureCounts> => {
  const { lastSandboxUpdateId = MAX_BIGINT, lastSandboxSeq = MAX_BIGINT } = last
  const numbers = sql`(select provider_phone_number_id from channels where workspace_id = ${workspaceId})`
  const accounts = sql`(select account_id from channels where workspace_id = ${workspaceId})`
  const isPerson = sql`b.number_id in ${numbers}
    and (b.wa_id = any(${phones}::text[]) or b.user_id = any(${[...texts, ...phones]}::text[]))`
  const isMessage = sql`${isPerson} and b.seq <= ${lastSandboxSeq}::bigint`
  const patterns = toQuoted([...phones, ...texts])
  return {
    sandbox_media: {
      deleted: await count(
        tx,
        sql`delete from sandbox_media f where number_id in ${numbers}
          and (f.id in (select d.provider_media_id from media d
              join messages m on m.workspace_id = d.workspace_id and m.id = d.message_id
              where d.workspace_id = ${workspaceId} and m.conversation_id = any(${conversationIds}::bigint[]))
            or exists (select from sandbox_messages b
              where ${isMessage} and strpos(b.body::text, '"' || f.id || '"') > 0))`,
      ),
    },
    sandbox_messages: { deleted: await count(tx, sql`delete from sandbox_messages b where ${isMessage}`) },
    sandbox_customers: {
      deleted: await count(
        tx,
        sql`delete from sandbox_customers b where ${isPerson} and not exists (select from sandbox_messages m
          where m.number_id = b.number_id and m.user_id = b.user_id and m.seq > ${lastSandboxSeq}::bigint)`,
      ),
    },
    sandbox_faults: {
      deleted: await count(
        tx,
        sql`delete from sandbox_faults where recipient = any(${[...phones, ...texts]}::text[])
          and (account_ids is null or account_ids && array${accounts}::text[])`,
      ),
    },
    sandbox_updates: {
      deleted: await count(
        tx,
        sql`delete from sandbox_updates
        where account_id in ${accounts} and id <= ${lastSandboxUpdateId}::bigint
          and value::text like any(${patterns}::text[])`,
      ),
    },
  }
}
