import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { insertAnnouncedEvents } from '../../storage/events/writes.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

const CONTACTS = 5000
/** More than the executions after which PostgreSQL decides whether it plans anew each time. */
const WRITES = 8

for (const database of databases) {
  describe(`Statements that write events (${database})`, () => {
    it('are planned once, also where they look whether something is to be announced before', async () => {
      await onMigratedDatabase(database, async (db) => {
        await sql`
          insert into conversations (workspace_id, contact_id, state, created_at, updated_at)
          select 1, n, 'open', now(), now() from generate_series(1, ${CONTACTS}::int) as n`.execute(db)
        await sql.raw('analyze conversations, messages').execute(db)
        await db.transaction().execute(async (tx) => {
          for (let n = 1; n <= WRITES; n++)
            for (const data of [
              { contact_ids: [String(n)], tags: [] },
              { conversation: { id: String(n), contact_id: String(n) } },
            ]) {
              const type = 'contact_ids' in data ? 'contact.tagged/1' : 'conversation.closed/1'
              const event = { id: `evt_${type}_${n}`, type, occurred_at: new Date().toISOString(), data }
              await insertAnnouncedEvents(tx, '1', [event])
            }
          const { rows } = await sql<{ generic_plans: string; custom_plans: string }>`
            select generic_plans, custom_plans from pg_prepared_statements
            where statement like '%insert into events (%is_written%' and not statement like '%pg_prepared%'`.execute(
            tx,
          )
          assert.deepEqual(
            rows.map((row) => [Number(row.generic_plans), Number(row.custom_plans)]),
            [
              [WRITES - 5, 5],
              [WRITES - 5, 5],
            ],
          )
        })
      })
    })
  })
}
