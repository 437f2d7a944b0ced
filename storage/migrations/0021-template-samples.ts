import { type Kysely, sql } from 'kysely'

const statements = [
  // The sandbox looks up the sample of every media header by its handle.
  `create index sandbox_uploads_handle on sandbox_uploads (handle) where handle is not null`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
