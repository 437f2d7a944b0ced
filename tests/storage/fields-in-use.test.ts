import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { listFieldsInUse } from '../../storage/contacts/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

const CONTACTS = 5000
const WORKSPACE = '1'

/** Fields 1 to 5: numbers, flags, times, texts, and one that had values. Every contact has the first four. */
const fill = async (db: Db): Promise<void> => {
  await sql`
    insert into custom_fields (workspace_id, id, key, label, type, visibility, used, created_at)
    overriding system value
    select ${WORKSPACE}::bigint, n, 'field_' || n, 'Field', 'text', 'visible_to_all', true, now()
    from generate_series(1, 5) as n`.execute(db)
  await sql`
    insert into contact_attributes (workspace_id, contact_id, field_id, number_value, bool_value, time_value, text_key)
    select ${WORKSPACE}::bigint, c, n, case n when 1 then c end, case n when 2 then true end,
      case n when 3 then now() end, case n when 4 then 'text ' || c end
    from generate_series(1, ${CONTACTS}::int) as c, generate_series(1, 4) as n`.execute(db)
  await sql.raw('analyze contact_attributes, custom_fields').execute(db)
}

/** Returns how many values were read since this transaction began, and not found by an index. */
const countScanned = async (tx: Db): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
        select seq_tup_read as n from pg_stat_xact_user_tables where relname = 'contact_attributes'`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

for (const database of databases) {
  describe(`Fields that are in use (${database})`, () => {
    it('are found by indexes, also where many contacts have values of other kinds', async () => {
      await onMigratedDatabase(database, async (db) => {
        await fill(db)
        await db.transaction().execute(async (tx) => {
          assert.deepEqual([...(await listFieldsInUse(tx, WORKSPACE))].toSorted(), ['1', '2', '3', '4'])
          assert.equal(await countScanned(tx), 0)
        })
      })
    })
  })
}
