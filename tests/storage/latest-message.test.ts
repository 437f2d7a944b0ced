import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Db } from '../../storage/database.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'

const isPossible = databases.includes('postgresql')
  ? {}
  : { skip: 'another session cannot analyze an embedded database meanwhile' }

const insertMessages = async (db: Db, count: number): Promise<void> => {
  await sql`
    insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at)
    select 1, 1, 'outbound', 'TEXT', 'failed', 'Message ' || n, now() - n * interval '1 minute'
    from generate_series(1, ${count}::int) as n`.execute(db)
}

const countRowsRead = async (db: Db): Promise<number> => {
  const { rows } = await sql<{ read: number }>`
    select idx_tup_fetch::int as read from pg_stat_xact_user_tables where relname = 'messages'`.execute(db)
  return rows[0]!.read
}

describe('The latest message of a conversation', isPossible, () => {
  it('is found by few reads while the statistics know no message', async () => {
    const { location, remove } = await createDatabase('postgresql')
    try {
      await withStorage(location, (first) =>
        withStorage(location, (second) =>
          first.db.transaction().execute(async (tx) => {
            await sql`
              insert into conversations (workspace_id, id, state, created_at, updated_at)
              overriding system value values (1, 1, 'open', now(), now())`.execute(tx)
            await insertMessages(tx, 50_000)
            // Sees the pages of what is not committed, but no row in them.
            await sql`analyze messages`.execute(second.db)
            const before = await countRowsRead(tx)
            await insertMessages(tx, 100)
            const read = (await countRowsRead(tx)) - before
            assert.ok(read <= 1000, `${read} rows for 100 messages`)
          }),
        ),
      )
    } finally {
      await remove()
    }
  })
})
