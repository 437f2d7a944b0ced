import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type SandboxMedia = {
  id: string
  number_id: string
  mime_type: string
  sha256: string
  file_size: number
  expires_at: string
}

export const insertMedia = async (
  db: Db,
  media: Omit<SandboxMedia, 'file_size'>,
  bytes: Uint8Array,
): Promise<void> => {
  await sql`
    insert into sandbox_media (id, number_id, mime_type, sha256, bytes, expires_at)
    values (${media.id}, ${media.number_id}, ${media.mime_type}, ${media.sha256}, ${Buffer.from(bytes)}, ${media.expires_at}::timestamptz)`.execute(
    db,
  )
}

/** Undefined also for what has expired. */
export const findMedia = async (db: Db, id: string, now: string): Promise<SandboxMedia | undefined> =>
  (
    await sql<SandboxMedia>`
    select id, number_id, mime_type, sha256, length(bytes) as file_size, expires_at from sandbox_media where id = ${id} and expires_at > ${now}::timestamptz`.execute(
      db,
    )
  ).rows[0]

export const mediaBytes = async (
  db: Db,
  id: string,
): Promise<{ mime_type: string; bytes: Uint8Array } | undefined> =>
  (
    await sql<{
      mime_type: string
      bytes: Uint8Array
    }>`select mime_type, bytes from sandbox_media where id = ${id}`.execute(db)
  ).rows[0]

export const deleteMedia = async (db: Db, id: string): Promise<boolean> =>
  (await sql`delete from sandbox_media where id = ${id} returning 1`.execute(db)).rows.length > 0

export const dropExpiredMedia = async (db: Db, now: string): Promise<void> => {
  await sql`delete from sandbox_media where expires_at <= ${now}::timestamptz`.execute(db)
}

/** `received`: how many bytes have come. */
export type Upload = {
  id: string
  file_type: string
  file_length: number
  received: number
  handle: string | null
}

const columns = sql`id, file_type, file_length::float8 as file_length, length(bytes) as received, handle`

export const insertUpload = async (
  db: Db,
  upload: { id: string; file_name: string | null; file_type: string; file_length: number },
): Promise<void> => {
  await sql`insert into sandbox_uploads (id, file_name, file_type, file_length) values (${upload.id}, ${upload.file_name}, ${upload.file_type}, ${upload.file_length})`.execute(
    db,
  )
}

export const findUpload = async (db: Db, id: string): Promise<Upload | undefined> =>
  (await sql<Upload>`select ${columns} from sandbox_uploads where id = ${id}`.execute(db)).rows[0]

/** Undefined when the upload does not stand at `offset`, or would grow beyond its length. */
export const appendUpload = async (
  db: Db,
  id: string,
  offset: number,
  bytes: Uint8Array,
  handle: string,
): Promise<Upload | undefined> =>
  (
    await sql<Upload>`
    update sandbox_uploads set bytes = bytes || ${Buffer.from(bytes)}::bytea,
      handle = case when length(bytes) + ${bytes.byteLength}::int = file_length then coalesce(handle, ${handle}::text) end
    where id = ${id} and length(bytes) = ${offset} and length(bytes) + ${bytes.byteLength}::int <= file_length returning ${columns}`.execute(
      db,
    )
  ).rows[0]
