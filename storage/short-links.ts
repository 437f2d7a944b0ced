import { sql } from 'kysely'
import type { Db } from './database.ts'
import { toStorableId } from './ids.ts'
import { containsPattern, fold } from './text.ts'

/** A link that the provider made. */
export type ShortLinkRow = {
  id: string
  channel_id: string
  code: string
  url: string
  message: string
  qr_format: 'PNG' | 'SVG' | null
  qr_key: string | null
  created_at: string
  updated_at: string
  channel_name: string | null
  channel_identifier: string | null
}

const columns = sql`
  l.id, l.channel_id, l.code, l.url, l.message, l.qr_format, l.qr_key, l.created_at, l.updated_at, h.name as channel_name, h.identifier as channel_identifier`

/** Links that the provider has not made yet are nobody's to see. */
const made = sql`short_links l left join channels h on h.workspace_id = l.workspace_id and h.id = l.channel_id where l.url is not null`

export const loadShortLink = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ShortLinkRow | undefined> =>
  (
    await sql<ShortLinkRow>`select ${columns} from ${made} and l.workspace_id = ${workspaceId} and l.id = ${toStorableId(id)}::bigint`.execute(
      tx,
    )
  ).rows[0]

/** `channelIds`: only of these; null: of all. */
export type ShortLinkFilter = { channelIds: readonly string[] | null; search?: string | undefined }

const matching = (workspaceId: string, { channelIds, search }: ShortLinkFilter) => sql`
  l.workspace_id = ${workspaceId} ${channelIds === null ? sql`` : sql`and l.channel_id = any(${channelIds.map(toStorableId)}::bigint[])`}
  ${search === undefined ? sql`` : sql`and (l.search like ${containsPattern(fold(search))} or lower(l.code) like ${containsPattern(fold(search))})`}`

/** A page of links, newest first. */
export const listShortLinkRows = async (
  tx: Db,
  workspaceId: string,
  filter: ShortLinkFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<ShortLinkRow[]> =>
  (
    await sql<ShortLinkRow>`
    select ${columns} from ${made} and ${matching(workspaceId, filter)}
      ${after === null ? sql`` : sql`and (l.created_at, l.id) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`}
    order by l.created_at desc, l.id desc limit ${limit}`.execute(tx)
  ).rows

export const countShortLinks = async (
  tx: Db,
  workspaceId: string,
  filter: ShortLinkFilter,
): Promise<number> =>
  Number(
    (
      await sql<{
        n: string
      }>`select count(*) as n from short_links l where l.url is not null and ${matching(workspaceId, filter)}`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

/** A channel of the messaging app. */
export type ChannelNumberRow = {
  id: string
  name: string | null
  identifier: string | null
  type: string
  status: string
  is_default: boolean
  account_id: string | null
  provider_phone_number_id: string | null
}

/** The numbers of a workspace, by id. */
export const listChannelNumbers = async (tx: Db, workspaceId: string): Promise<ChannelNumberRow[]> =>
  (
    await sql<ChannelNumberRow>`
    select id, name, identifier, type, status, is_default, account_id, provider_phone_number_id from channels
    where workspace_id = ${workspaceId} and type = 'chatapp' order by id`.execute(tx)
  ).rows

/**
 * Until the transaction ends, nobody else looks whether a number has a link with this message: of two who
 * make one at once, the later finds the earlier's.
 */
export const lockLinkMessage = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  message: string,
): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`short_link ${workspaceId} ${channelId} ${message}`}, 0))`.execute(
    tx,
  )
}

/** The newest link of a number with exactly this message, be it made or about to be. */
export const findLinkByMessage = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  message: string,
): Promise<{ id: string; made: boolean } | undefined> =>
  (
    await sql<{ id: string; made: boolean }>`
    select id, url is not null as made from short_links
    where workspace_id = ${workspaceId} and channel_id = ${channelId}::bigint and md5(message) = md5(${message}::text) and message = ${message}
    order by (url is not null) desc, created_at desc, id desc limit 1`.execute(tx)
  ).rows[0]

export type NewShortLink = {
  channel_id: string
  message: string
  qr_format: 'PNG' | 'SVG' | null
  created_by: string
  called_at: string
}

/** Writes a link that the provider is about to be asked for; answers its id. */
export const insertPendingLink = async (
  tx: Db,
  workspaceId: string,
  link: NewShortLink,
  now: string,
): Promise<string> => {
  const { id } = await tx
    .insertInto('short_links')
    .values({
      ...link,
      workspace_id: workspaceId,
      search: fold(link.message),
      code: null,
      url: null,
      qr: null,
      qr_key: null,
      created_at: now,
      updated_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** How far a link has come; undefined when it was taken back. */
export const findPendingLink = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<{ code: string | null; called_at: string | null } | undefined> =>
  (
    await sql<{
      code: string | null
      called_at: string | null
    }>`select code, called_at from short_links where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(
      tx,
    )
  ).rows[0]

/**
 * Notes when the provider was last asked, in real time; null: nothing can be on its way. False when another
 * noted it since `was`.
 */
export const updateLinkCalledAt = async (
  tx: Db,
  workspaceId: string,
  id: string,
  was: string | null,
  calledAt: string | null,
): Promise<boolean> =>
  (
    await sql`
    update short_links set called_at = ${calledAt}::timestamptz
    where workspace_id = ${workspaceId} and id = ${id}::bigint and url is null and called_at is not distinct from ${was}::timestamptz returning 1`.execute(
      tx,
    )
  ).rows.length > 0

/** Those of these codes that stand for links of a number. */
export const listTakenCodes = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  codes: readonly string[],
): Promise<Set<string>> =>
  new Set(
    (
      await sql<{ code: string }>`
    select code from short_links where workspace_id = ${workspaceId} and channel_id = ${channelId}::bigint and code = any(${codes}::text[])`.execute(
        tx,
      )
    ).rows.map(({ code }) => code),
  )

/** Makes a code of the provider's this link's own; false when it is another's, or this link has one. */
export const claimLinkCode = async (tx: Db, workspaceId: string, id: string, code: string): Promise<boolean> => {
  try {
    return (
      (
        await sql`
      update short_links set code = ${code} where workspace_id = ${workspaceId} and id = ${id}::bigint and (code is null or code = ${code}) returning 1`.execute(
          tx,
        )
      ).rows.length > 0
    )
  } catch (error) {
    if ((error as { code?: string }).code === '23505') return false
    throw error
  }
}

export type CreatedLink = { code: string; url: string; qr: Uint8Array | null; qr_key: string | null }

/** Writes what the provider made; `created_at` is when it was asked for. */
export const completeLink = async (
  tx: Db,
  workspaceId: string,
  id: string,
  link: CreatedLink,
  now: string,
): Promise<void> => {
  await tx
    .updateTable('short_links')
    .set({ ...link, called_at: null, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Takes back a link that the provider did not make. */
export const deletePendingLink = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`delete from short_links where workspace_id = ${workspaceId} and id = ${id}::bigint and url is null`.execute(
    tx,
  )
}

/** False when it was gone already. */
export const deleteShortLinkRow = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await sql`delete from short_links where workspace_id = ${workspaceId} and id = ${id}::bigint returning 1`.execute(
      tx,
    )
  ).rows.length > 0

/** The image of this name, of whatever workspace: whoever has the name may see it. */
export const findQrImage = async (
  db: Db,
  key: string,
): Promise<{ qr_format: 'PNG' | 'SVG'; qr: Uint8Array } | undefined> =>
  (
    await sql<{
      qr_format: 'PNG' | 'SVG'
      qr: Uint8Array
    }>`select qr_format, qr from short_links where qr_key = ${key} and qr is not null`.execute(db)
  ).rows[0]

/** The link of this code, of whatever workspace: whoever has the code may follow it. */
export const findLinkByCode = async (
  db: Db,
  code: string,
): Promise<
  | Pick<ShortLinkRow, 'code' | 'url' | 'message' | 'channel_id' | 'channel_name' | 'channel_identifier'>
  | undefined
> =>
  (
    await sql<ShortLinkRow>`select ${columns} from ${made} and l.code = ${code} order by l.created_at desc, l.id desc limit 1`.execute(
      db,
    )
  ).rows[0]
