import { sql } from 'kysely'
import type { Db, TableRow } from '../../../storage/database.ts'

export type SandboxMessage = Omit<TableRow<'sandbox_messages'>, 'seq'>
export type SandboxMessageStatus = SandboxMessage['status']

/** All but `seq`. */
const columns = [
  'id',
  'number_id',
  'account_id',
  'inbound',
  'user_id',
  'wa_id',
  'reference',
  'category',
  'body',
  'status',
  'created_at',
] as const

const MAX_SENT_MESSAGES = 10_000

export const insertSandboxMessage = async (tx: Db, message: SandboxMessage): Promise<void> => {
  await tx
    .insertInto('sandbox_messages')
    .values({ ...message, body: sql`${JSON.stringify(message.body)}::json` })
    .execute()
}

export const findSandboxMessage = (db: Db, id: string): Promise<SandboxMessage | undefined> =>
  db.selectFrom('sandbox_messages').select(columns).where('id', '=', id).executeTakeFirst()

/** Returns at most 100 sent messages with this reference, oldest first. */
export const findSandboxMessagesByReference = (
  db: Db,
  numberId: string,
  reference: string,
): Promise<{ id: string }[]> =>
  db
    .selectFrom('sandbox_messages')
    .select('id')
    .where('number_id', '=', numberId)
    .where('reference', '=', reference)
    .where('inbound', '=', false)
    .orderBy('seq')
    .limit(100)
    .execute()

/** Lists messages to this customer that may have buttons, newest first; at most 50, without those that failed. */
export const listMessagesWithButtons = (
  db: Db,
  numberId: string,
  userId: string,
): Promise<SandboxMessage[]> =>
  db
    .selectFrom('sandbox_messages')
    .select(columns)
    .where('number_id', '=', numberId)
    .where('user_id', '=', userId)
    .where('inbound', '=', false)
    .where('status', '<>', 'failed')
    .where(sql<boolean>`body->>'type' in ('interactive', 'template')`)
    .orderBy('seq', 'desc')
    .limit(50)
    .execute()

export const setSandboxMessageStatus = async (
  tx: Db,
  id: string,
  status: SandboxMessageStatus,
): Promise<void> => {
  await tx.updateTable('sandbox_messages').set({ status }).where('id', '=', id).execute()
}

/** Lists what businesses sent, oldest first. `to`: phone digits or a user id. */
export const listSentMessages = (
  db: Db,
  by: { numberId?: string | undefined; accountId?: string | undefined; to?: string | undefined },
): Promise<SandboxMessage[]> => {
  const { numberId, accountId, to } = by
  let query = db.selectFrom('sandbox_messages').select(columns).where('inbound', '=', false)
  if (numberId !== undefined) query = query.where('number_id', '=', numberId)
  if (accountId !== undefined) query = query.where('account_id', '=', accountId)
  if (to !== undefined)
    query = query.where((where) => where.or([where('wa_id', '=', to), where('user_id', '=', to)]))
  return query.orderBy('seq').limit(MAX_SENT_MESSAGES).execute()
}
