import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type MessageStatus = 'accepted' | 'sent' | 'delivered' | 'read' | 'failed' | 'received'
export type SandboxMessage = {
  id: string
  number_id: string
  account_id: string
  inbound: boolean
  user_id: string
  wa_id: string | null
  reference: string | null
  category: string | null
  body: Record<string, unknown>
  status: MessageStatus
  created_at: string
}

export const insertSandboxMessage = async (tx: Db, m: SandboxMessage): Promise<void> => {
  await sql`
    insert into sandbox_messages (id, number_id, account_id, inbound, user_id, wa_id, reference, category, body, status, created_at)
    values (${m.id}, ${m.number_id}, ${m.account_id}, ${m.inbound}, ${m.user_id}, ${m.wa_id}, ${m.reference}, ${m.category}, ${JSON.stringify(m.body)}::json, ${m.status}, ${m.created_at}::timestamptz)`.execute(
    tx,
  )
}

const columns = sql`id, number_id, account_id, inbound, user_id, wa_id, reference, category, body, status, created_at`

export const findSandboxMessage = async (db: Db, id: string): Promise<SandboxMessage | undefined> =>
  (await sql<SandboxMessage>`select ${columns} from sandbox_messages where id = ${id}`.execute(db)).rows[0]

export const findByReference = async (
  db: Db,
  numberId: string,
  reference: string,
): Promise<{ id: string }[]> =>
  (
    await sql<{
      id: string
    }>`select id from sandbox_messages where number_id = ${numberId} and reference = ${reference} and not inbound order by seq limit 100`.execute(
      db,
    )
  ).rows

export const setMessageStatus = async (tx: Db, id: string, status: MessageStatus): Promise<void> => {
  await sql`update sandbox_messages set status = ${status} where id = ${id}`.execute(tx)
}

/** What businesses sent, oldest first, at most 10,000. `to`: phone digits or a user id. */
export const sentMessages = async (
  db: Db,
  by: { numberId?: string | undefined; accountId?: string | undefined; to?: string | undefined },
): Promise<SandboxMessage[]> =>
  (
    await sql<SandboxMessage>`
    select ${columns} from sandbox_messages where not inbound
      ${by.numberId === undefined ? sql`` : sql`and number_id = ${by.numberId}`}
      ${by.accountId === undefined ? sql`` : sql`and account_id = ${by.accountId}`}
      ${by.to === undefined ? sql`` : sql`and (wa_id = ${by.to} or user_id = ${by.to})`}
    order by seq limit 10000`.execute(db)
  ).rows
