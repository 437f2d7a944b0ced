import { type Kysely, sql } from 'kysely'

// The trigger runs for each message that is written. Where the statistics still know no rows, sorting all messages of
// the workspace looks as cheap as the first entry of messages_history, and the session keeps that plan.
const statements = [`alter function renew_delivery_failed() set enable_sort = off`]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
