import { sql } from 'kysely'
import type { Db } from '../../../storage/database.ts'

export type SandboxMedia = {
  id: string
  number_id: string
  mime_type: string
  sha256: string
  file_size: number
  expires_at: string
}

export const insertSandboxMedia = async (
  db: Db,
  media: Omit<SandboxMedia, 'file_size'>,
  bytes: Uint8Array,
): Promise<void> => {
  await db
    .insertInto('sandbox_media')
    .values({ ...media, bytes: Buffer.from(bytes) })
    .execute()
}

/** Undefined when the file does not exist or has expired. */
export const findSandboxMedia = (db: Db, id: string, now: string): Promise<SandboxMedia | undefined> =>
  db
    .selectFrom('sandbox_media')
    .select(['id', 'number_id', 'mime_type', 'sha256', 'expires_at'])
    .select(sql<number>`length(bytes)`.as('file_size'))
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .executeTakeFirst()

export const loadSandboxMediaBytes = (
  db: Db,
  id: string,
): Promise<{ mime_type: string; bytes: Uint8Array } | undefined> =>
  db.selectFrom('sandbox_media').select(['mime_type', 'bytes']).where('id', '=', id).executeTakeFirst()

/** False when it does not exist. */
export const deleteSandboxMedia = async (db: Db, id: string): Promise<boolean> => {
  const rows = await db.deleteFrom('sandbox_media').where('id', '=', id).returning('id').execute()
  return rows.length > 0
}

export const deleteExpiredSandboxMedia = async (db: Db, now: string): Promise<void> => {
  await db.deleteFrom('sandbox_media').where('expires_at', '<=', now).execute()
}

/** A resumable upload; `received`: the count of bytes so far. */
export type SandboxUpload = {
  id: string
  file_type: string
  file_length: number
  received: number
  handle: string | null
}

const columns = sql`
  id, file_type, file_length::float8 as file_length, length(bytes) as received, handle`

export const insertUpload = async (
  db: Db,
  upload: { id: string; file_name: string | null; file_type: string; file_length: number },
): Promise<void> => {
  await db.insertInto('sandbox_uploads').values(upload).execute()
}

export const findUpload = async (db: Db, id: string): Promise<SandboxUpload | undefined> =>
  (await sql<SandboxUpload>`select ${columns} from sandbox_uploads where id = ${id}`.execute(db)).rows[0]

/** Undefined when the upload is not at `offset`, or would exceed its length. */
export const appendUpload = async (
  db: Db,
  id: string,
  offset: number,
  bytes: Uint8Array,
  handle: string,
): Promise<SandboxUpload | undefined> => {
  const { byteLength } = bytes
  const { rows } = await sql<SandboxUpload>`
    update sandbox_uploads set bytes = bytes || ${Buffer.from(bytes)}::bytea,
      handle = case when length(bytes) + ${byteLength}::int = file_length
        then coalesce(handle, ${handle}::text) end
    where id = ${id} and length(bytes) = ${offset} and length(bytes) + ${byteLength}::int <= file_length
    returning ${columns}`.execute(db)
  return rows[0]
}

/** Returns the types of complete uploads by their handles. */
export const findUploadTypes = async (db: Db, handles: readonly string[]): Promise<Map<string, string>> => {
  const rows = await db
    .selectFrom('sandbox_uploads')
    .select(['handle', 'file_type'])
    .where(sql<boolean>`handle = any(${handles}::text[])`)
    .execute()
  return new Map(rows.map(({ handle, file_type: type }) => [handle!, type]))
}

/** Inserts complete uploads of unknown bytes; those whose handle exists are skipped. */
export const insertKnownUploads = async (
  db: Db,
  uploads: readonly { handle: string; file_type: string }[],
): Promise<void> => {
  if (uploads.length === 0) return
  await db
    .insertInto('sandbox_uploads')
    .values(
      uploads.map((upload) => ({
        id: `upload:${upload.handle}`,
        file_name: null,
        file_length: 0,
        ...upload,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
