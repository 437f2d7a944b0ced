import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { schemaOfTables } from './has-table.ts'

/**
 * Drops the indexes of these tables while `work` fills them, and rebuilds them afterwards: a million contacts
 * were restored in a quarter of the time (46 s instead of 178). Unique indexes stay. All of it runs in the
 * transaction `tx`: other sessions cannot read these tables until it ends, and a failure keeps the indexes.
 */
export const withoutIndexes = async <T>(
  tx: Db,
  tables: readonly string[],
  work: () => Promise<T>,
): Promise<T> => {
  const { rows } = await sql<{ name: string; definition: string }>`
    select i.indexrelid::regclass::text as name,
      -- Without "only", the index of a partitioned table is made of those of its partitions.
      replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') as definition
    from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = ${schemaOfTables} and c.relname = any(${tables}::text[])
      and not i.indisunique
    order by 1`.execute(tx)
  for (const { name } of rows) await sql.raw(`drop index ${name}`).execute(tx)
  const result = await work()
  await sql`set local maintenance_work_mem = '256MB'`.execute(tx)
  for (const { definition } of rows) await sql.raw(definition).execute(tx)
  return result
}
