import { sql } from 'kysely'
import type { Db } from '../database.ts'

const columns =
  sql.raw(`workspace_id, conversation_id, contact_id, channel_id, first_inbound_at, last_inbound_at,
  last_outbound_at, last_answer_at`)

/**
 * Notes when customers wrote in conversations, and were answered (docs/decisions/0066), from the messages of a database
 * whose triggers were off.
 */
export const fillExchanges = async (tx: Db): Promise<void> => {
  await sql`
    insert into contact_exchanges (${columns})
    select ${columns} from computed_exchanges on conflict do nothing`.execute(tx)
}
