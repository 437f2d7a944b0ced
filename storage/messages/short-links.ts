import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { errorCode } from '../client/error-codes.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'

/** A link that the provider created. */
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
  l.id, l.channel_id, l.code, l.url, l.message, l.qr_format, l.qr_key, l.created_at, l.updated_at,
  h.name as channel_name, h.identifier as channel_identifier`

/** Links that the provider has not created yet are not visible. */
const createdLinks = sql`
  short_links l left join channels h on h.workspace_id = l.workspace_id and h.id = l.channel_id
  where l.url is not null`

export const loadShortLink = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ShortLinkRow | undefined> =>
  (
    await sql<ShortLinkRow>`
    select ${columns} from ${createdLinks} and l.workspace_id = ${workspaceId}
      and l.id = ${toStorableId(id)}::bigint`.execute(tx)
  ).rows[0]

/** `channelIds`: only links of these channels; null for all. */
export type ShortLinkFilter = { channelIds: readonly string[] | null; search?: string | undefined }

const inChannels = (channelIds: readonly string[]) =>
  sql`and l.channel_id = any(${channelIds.map(toStorableId)}::bigint[])`

const contains = (search: string) => {
  const pattern = containsPattern(fold(search))
  return sql`and (l.search like ${pattern} or lower(l.code collate "C") like ${pattern})`
}

const matches = (workspaceId: string, { channelIds, search }: ShortLinkFilter) => sql`
  l.workspace_id = ${workspaceId} ${channelIds === null ? sql`` : inChannels(channelIds)}
  ${search === undefined ? sql`` : contains(search)}`

const isAfter = ({ createdAt, id }: { createdAt: string; id: string }) =>
  sql`and (l.created_at, l.id) < (${createdAt}::timestamptz, ${id}::bigint)`

/** Lists a page of links, newest first. */
export const listShortLinkRows = async (
  tx: Db,
  workspaceId: string,
  filter: ShortLinkFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<ShortLinkRow[]> =>
  (
    await sql<ShortLinkRow>`
    select ${columns} from ${createdLinks} and ${matches(workspaceId, filter)}
      ${after === null ? sql`` : isAfter(after)}
    order by l.created_at desc, l.id desc limit ${limit}`.execute(tx)
  ).rows

export const countShortLinks = async (
  tx: Db,
  workspaceId: string,
  filter: ShortLinkFilter,
): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
      select count(*) as n from short_links l
      where l.url is not null and ${matches(workspaceId, filter)}`.execute(tx)
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

/** Lists the numbers of a workspace, by id. */
export const listChannelNumbers = async (tx: Db, workspaceId: string): Promise<ChannelNumberRow[]> =>
  tx
    .selectFrom('channels')
    .select([
      'id',
      'name',
      'identifier',
      'type',
      'status',
      'is_default',
      'account_id',
      'provider_phone_number_id',
    ])
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'chatapp')
    .orderBy('id')
    .execute()

/**
 * Locks a message of a number until the transaction ends: of two calls that create the same link
 * concurrently, the second finds the first one's.
 */
export const lockLinkMessage = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  message: string,
): Promise<void> => {
  const lockName = `short_link ${workspaceId} ${channelId} ${message}`
  await sql`select pg_advisory_xact_lock(hashtextextended(${lockName}, 0))`.execute(tx)
}

/** Finds the newest link of a number with exactly this message, created or pending. */
export const findLinkByMessage = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  message: string,
): Promise<{ id: string; made: boolean } | undefined> =>
  (
    await sql<{ id: string; made: boolean }>`
    select id, url is not null as made from short_links
    where workspace_id = ${workspaceId} and channel_id = ${channelId}::bigint
      and md5(message) = md5(${message}::text) and message = ${message}
    order by (url is not null) desc, created_at desc, id desc limit 1`.execute(tx)
  ).rows[0]

export type NewShortLink = {
  channel_id: string
  message: string
  qr_format: 'PNG' | 'SVG' | null
  created_by: string
}

/** Inserts a link that the provider is now called to create; returns its id. */
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
      called_at: sql<string>`clock_timestamp()`,
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

/** `called_at`: when the provider was last called; null when no call can be in flight. `age`: seconds since then. */
export type PendingLink = { code: string | null; called_at: string | null; age: number | null }

/** Returns the state of a pending link; undefined when it was deleted. */
export const findPendingLink = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<PendingLink | undefined> =>
  tx
    .selectFrom('short_links')
    .select(['code', 'called_at'])
    .select(sql<number | null>`extract(epoch from clock_timestamp() - called_at)::float8`.as('age'))
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirst()

/**
 * Stores that the provider is called now, or that no call can be in flight. By the clock that all servers share: by one
 * that is ahead, the call of another server would seem to be over. False when another call changed it from `previous`.
 */
export const updateLinkCalledAt = async (
  tx: Db,
  workspaceId: string,
  id: string,
  previous: string | null,
  state: 'called' | 'not in flight',
): Promise<boolean> =>
  (
    await tx
      .updateTable('short_links')
      .set({ called_at: state === 'called' ? sql<string>`clock_timestamp()` : null })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .where('url', 'is', null)
      .where('called_at', 'is not distinct from', previous)
      .returning('id')
      .execute()
  ).length > 0

/** Returns those of the codes that belong to links of a number. */
export const listTakenCodes = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  codes: readonly string[],
): Promise<Set<string>> =>
  new Set(
    (
      await tx
        .selectFrom('short_links')
        .select('code')
        .where('workspace_id', '=', workspaceId)
        .where('channel_id', '=', channelId)
        .where(sql<boolean>`code = any(${codes}::text[])`)
        .$narrowType<{ code: string }>()
        .execute()
    ).map(({ code }) => code),
  )

/**
 * Claims a code of the provider for this link; false when another link has it, or this one has another. `db`
 * is not a transaction: a unique violation would abort it.
 */
export const claimLinkCode = async (
  db: Db,
  workspaceId: string,
  id: string,
  code: string,
): Promise<boolean> => {
  try {
    const rows = await db
      .updateTable('short_links')
      .set({ code })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .where((where) => where.or([where('code', 'is', null), where('code', '=', code)]))
      .returning('id')
      .execute()
    return rows.length > 0
  } catch (error) {
    if ((error as { code?: string }).code === errorCode.uniqueViolation) return false
    throw error
  }
}

export type CreatedLink = { code: string; url: string; qr: Uint8Array | null; qr_key: string | null }

/** Stores what the provider created; `created_at` stays the time of the request. */
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

/** Deletes a link that the provider did not create. */
export const deletePendingLink = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await tx
    .deleteFrom('short_links')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('url', 'is', null)
    .execute()
}

/** False when it does not exist. */
export const deleteShortLinkRow = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await tx
      .deleteFrom('short_links')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning('id')
      .execute()
  ).length > 0

/** Finds an image by its unguessable key, in any workspace: the key alone grants access. */
export const findQrImage = async (
  db: Db,
  key: string,
): Promise<{ qr_format: 'PNG' | 'SVG'; qr: Uint8Array } | undefined> =>
  db
    .selectFrom('short_links')
    .select(['qr_format', 'qr'])
    .where('qr_key', '=', key)
    .where('qr', 'is not', null)
    .$narrowType<{ qr_format: 'PNG' | 'SVG'; qr: Uint8Array }>()
    .executeTakeFirst()

/** Finds the newest link of a code, in any workspace: the code alone grants access. */
export const findLinkByCode = async (
  db: Db,
  code: string,
): Promise<
  | Pick<ShortLinkRow, 'code' | 'url' | 'message' | 'channel_id' | 'channel_name' | 'channel_identifier'>
  | undefined
> =>
  (
    await sql<ShortLinkRow>`
    select ${columns} from ${createdLinks} and l.code = ${code}
    order by l.created_at desc, l.id desc limit 1`.execute(db)
  ).rows[0]
