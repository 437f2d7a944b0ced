import { sql } from 'kysely'
import type { Db, MediaState } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { insertRun, type Run } from '../work/runs.ts'

/** The file of a message. `channel_id`: of its conversation. */
export type MediaRow = {
  message_id: string
  channel_id: string | null
  state: MediaState
  content_type: string | null
  file_name: string | null
  size: string | null
  url: string | null
  key: string | null
  error: string | null
}

/** The file of a message; `state` is null when it has none, the whole undefined when there is no message. */
export const findMedia = (
  tx: Db,
  workspaceId: string,
  messageId: string,
): Promise<(Omit<MediaRow, 'state'> & { state: MediaState | null }) | undefined> =>
  tx
    .selectFrom('messages as m')
    .innerJoin('conversations as v', (join) =>
      join.onRef('v.workspace_id', '=', 'm.workspace_id').onRef('v.id', '=', 'm.conversation_id'),
    )
    .leftJoin('media as d', (join) =>
      join.onRef('d.workspace_id', '=', 'm.workspace_id').onRef('d.message_id', '=', 'm.id'),
    )
    .select(['m.id as message_id', 'v.channel_id'])
    .select(['d.state', 'd.content_type', 'd.file_name', 'd.size', 'd.url', 'd.key', 'd.error'])
    .where('m.workspace_id', '=', workspaceId)
    .where('m.id', '=', toStorableId(messageId))
    .executeTakeFirst()

const KIND = 'media'
/** What a server needs for files that only the provider has. Those of bridged channels are at a URL. */
export const PROVIDER = 'provider'

/** Lets a file be downloaded. `queue`: the channel of its message. */
export const insertDownload = async (
  tx: Db,
  {
    workspaceId,
    messageId,
    queue,
    isAtProvider,
  }: { workspaceId: string; messageId: string; queue: string | null; isAtProvider: boolean },
): Promise<void> => {
  const run = { workspace_id: workspaceId, kind: KIND, subject: messageId, queue: queue ?? '' }
  await insertRun(tx, { ...run, needs_version: isAtProvider ? PROVIDER : null })
}

export type WaitingMedia = {
  workspace_id: string
  message_id: string
  type: string
  content_type: string | null
  sha256: string | null
  /** The id at the provider; null for a file of a bridged channel, which is at `url`. */
  provider_media_id: string | null
  url: string | null
  /** Of the channel of the message, at the provider. */
  phone_number_id: string | null
}

/** A download takes less, also where its process goes on alone. */
const DOWNLOAD_SECONDS = 180

/**
 * When the file of a message that is being erased may be removed: at once, or when a download that may be running has
 * ended, whose process may have died after it wrote the file.
 */
export const removableAt = sql`
  case when key is null or state not in ('waiting', 'lost') then null
    when exists (select from runs r where r.workspace_id = media.workspace_id and r.kind = ${sql.lit(KIND)}
      and r.subject = media.message_id::text and r.lease is not null)
      then now() + ${sql.lit(DOWNLOAD_SECONDS)} * interval '1 second'
    else removable_at end`

/**
 * Returns the file of a run; undefined when it waits no more. Its key in the store is recorded before anything is
 * written under it, so that no file is there that nobody knows.
 */
export const beginDownload = async (
  db: Db,
  { workspace_id, subject }: Run,
): Promise<WaitingMedia | undefined> =>
  (
    await sql<WaitingMedia>`
    update media d set key = d.workspace_id || '/' || d.message_id
    from messages m
    where d.workspace_id = ${workspace_id} and d.message_id = ${subject}::bigint and d.state = 'waiting'
      and m.workspace_id = d.workspace_id and m.id = d.message_id
    returning d.workspace_id, d.message_id, m.type, d.content_type, d.sha256, d.provider_media_id, d.url,
      (select c.provider_phone_number_id from channels c
        where c.workspace_id = m.workspace_id and c.id = m.channel_id) as phone_number_id`.execute(db)
  ).rows[0]

/** The file of a message, as long as it waits for its download. */
const updateWaitingMedia = (db: Db, workspaceId: string, messageId: string) =>
  db
    .updateTable('media')
    .where('workspace_id', '=', workspaceId)
    .where('message_id', '=', messageId)
    .where('state', '=', 'waiting')

export type KeptMedia = { content_type: string | null; size: number; sha256: string }

/** Returns false when the file no longer waits, since another server kept it or its message was deleted. */
export const markMediaKept = async (
  db: Db,
  workspaceId: string,
  messageId: string,
  kept: KeptMedia,
): Promise<boolean> => {
  const { numUpdatedRows } = await updateWaitingMedia(db, workspaceId, messageId)
    .set({ state: 'kept', ...kept, url: null, error: null })
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** A file that may be in the store although its message is gone. */
export const isLostInStore = sql<boolean>`state = 'lost' and key is not null`
const isErasable = sql<boolean>`${isLostInStore} and (removable_at is null or removable_at <= now())`

/** Says that a download has ended whose message was deleted meanwhile: its file may be removed at once. */
export const markMediaErasable = async (db: Db, workspaceId: string, messageId: string): Promise<void> => {
  await db
    .updateTable('media')
    .set({ key: sql<string>`workspace_id || '/' || message_id`, removable_at: null })
    .where('workspace_id', '=', workspaceId)
    .where('message_id', '=', messageId)
    .where('state', '=', 'lost')
    .execute()
}

export type ErasableFile = { workspace_id: string; message_id: string; key: string }

const isAfter = (file: Pick<ErasableFile, 'workspace_id' | 'message_id'> | undefined) =>
  sql<boolean>`(workspace_id, message_id) >
    (${file?.workspace_id ?? '0'}::bigint, ${file?.message_id ?? '0'}::bigint)`

/** Lists files in the store whose messages were deleted, of all workspaces, after this one. */
export const listErasableMedia = (
  db: Db,
  after: ErasableFile | undefined,
  limit: number,
): Promise<ErasableFile[]> =>
  db
    .selectFrom('media')
    .select(['workspace_id', 'message_id', 'key'])
    .where(isErasable)
    .where(isAfter(after))
    .orderBy('workspace_id')
    .orderBy('message_id')
    .limit(limit)
    .$narrowType<{ key: string }>()
    .execute()

export type KeptFile = {
  workspace_id: string
  message_id: string
  key: string
  size: string | null
  /** In hex. */
  sha256: string | null
}

/** Lists files that are in the store, of all workspaces, after this one. */
export const listKeptMedia = (db: Db, after: KeptFile | undefined, limit: number): Promise<KeptFile[]> =>
  db
    .selectFrom('media')
    .select(['workspace_id', 'message_id', 'key', 'size', 'sha256'])
    .where('state', '=', 'kept')
    .where('key', 'is not', null)
    .where(isAfter(after))
    .orderBy('workspace_id')
    .orderBy('message_id')
    .limit(limit)
    .$narrowType<{ key: string }>()
    .execute()

/** Whether the file of a message is still to be in the store. */
export const isMediaKept = async (
  db: Db,
  { workspace_id: workspaceId, message_id: messageId }: Pick<KeptFile, 'workspace_id' | 'message_id'>,
): Promise<boolean> =>
  (await db
    .selectFrom('media')
    .select('state')
    .where('workspace_id', '=', workspaceId)
    .where('message_id', '=', messageId)
    .where('state', '=', 'kept')
    .executeTakeFirst()) !== undefined

/** Records that the file of a deleted message is no longer in the store. */
export const forgetMediaKey = async (db: Db, workspaceId: string, messageId: string): Promise<void> => {
  await db
    .updateTable('media')
    .set({ key: null })
    .where('workspace_id', '=', workspaceId)
    .where('message_id', '=', messageId)
    .where(isErasable)
    .execute()
}

/** `error`: the reason, for staff. */
export const markMediaFailed = async (
  db: Db,
  workspaceId: string,
  messageId: string,
  state: 'lost' | 'too_large',
  error: string,
): Promise<void> => {
  await updateWaitingMedia(db, workspaceId, messageId).set({ state, error }).execute()
}

/** Seconds until the next file may be removed that a download may still write; undefined when there is none. */
export const findSecondsUntilErasable = async (db: Db): Promise<number | undefined> => {
  const row = await db
    .selectFrom('media')
    .select(sql<number | null>`extract(epoch from min(removable_at) - now())::float8`.as('seconds'))
    .where(isLostInStore)
    .where('removable_at', 'is not', null)
    .executeTakeFirst()
  return row?.seconds ?? undefined
}
