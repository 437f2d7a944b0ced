import { sql } from 'kysely'
import type { Db } from './database.ts'

/** When customers wrote in conversations, and were answered (docs/decisions/0066). Triggers keep the table. */

const columns =
  sql.raw(`workspace_id, conversation_id, contact_id, channel_id, first_inbound_at, last_inbound_at,
  last_outbound_at, last_answer_at`)

/** Whether the table has all conversations, also those that a version without it wrote. */
export const areExchangesFilled = async (db: Db): Promise<boolean> =>
  (
    await sql<{ filled: boolean }>`
    select filled_from = 0 as filled from contact_exchange_progress`.execute(db)
  ).rows[0]!.filled

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)

/**
 * Reads the messages of the next conversations, newest first, into the table. Returns the count of ids, 0 at the end.
 * Nothing is locked but the progress: who writes a message meanwhile leaves a row that stays.
 */
export const fillExchanges = async (db: Db, batch: number): Promise<number> =>
  await db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ filled_from: string; newest: string | null }>`
      select p.filled_from, (select max(u.id) from workspaces w cross join lateral (select v.id from conversations v
        where v.workspace_id = w.id and v.id <= p.filled_from order by v.id desc limit 1) as u) as newest
      from contact_exchange_progress p where p.filled_from > 0 for update of p`.execute(tx)
    const row = rows[0]
    if (!row) return 0
    const to = BigInt(row.newest ?? 0)
    const above = to - least(BigInt(batch), to)
    await sql`
      insert into contact_exchanges (${columns})
      select ${columns} from workspaces w cross join lateral (
        select * from computed_exchanges r where r.workspace_id = w.id
          and r.conversation_id > ${String(above)}::bigint and r.conversation_id <= ${String(to)}::bigint) as r
      on conflict do nothing`.execute(tx)
    await sql`update contact_exchange_progress set filled_from = ${String(above)}::bigint`.execute(tx)
    return Number(BigInt(row.filled_from) - above)
  })

/** Reads all messages of a database whose triggers were off. */
export const fillExchangesOfAll = async (tx: Db): Promise<void> => {
  await sql`
    insert into contact_exchanges (${columns})
    select ${columns} from computed_exchanges on conflict do nothing`.execute(tx)
}
