import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * Builds an index while others write, for a migration without a transaction. In one, which only an empty database has
 * for it, it is built as any other. `on` is what follows `on` of the statement: a table, columns in parentheses, a
 * condition. An attempt that was cut off leaves an invalid index, which `if not exists` would take for the whole one:
 * it is dropped first. `kind`: `unique` where it refuses doubles.
 */
export const createIndexConcurrently = async (
  db: Db,
  name: string,
  on: string,
  kind: 'unique' | '' = '',
): Promise<void> => {
  const { rows } = await sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${name}::text)`.execute(db)
  if (rows[0]?.valid === false) await sql.raw(`drop index concurrently ${name}`).execute(db)
  if (rows[0]?.valid === true) return
  const words = ['create', kind, 'index', db.isTransaction ? '' : 'concurrently', name, 'on', on]
  await sql.raw(words.filter(Boolean).join(' ')).execute(db)
}
