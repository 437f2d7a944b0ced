import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type FaultKind = 'messages' | 'templates' | 'links' | 'media'
/**
 * `code` refuses, at once or (`async`) by a status afterwards; `drop_answer` loses the answer after the
 * work was done.
 */
export type FaultEffect = { code?: number; async?: boolean; drop_answer?: boolean; latency_ms?: number }
export type Fault = { id: string; on: FaultKind; to: string | null; remaining: number | null } & FaultEffect

type Row = {
  id: string
  kind: FaultKind
  recipient: string | null
  effect: FaultEffect
  remaining: number | null
}

export const addFault = async (
  db: Db,
  kind: FaultKind,
  to: string | null,
  effect: FaultEffect,
  times: number | null,
): Promise<string> =>
  (
    await sql<{ id: string }>`
    insert into sandbox_faults (kind, recipient, effect, remaining) values (${kind}, ${to}, ${JSON.stringify(effect)}::jsonb, ${times}) returning id`.execute(
      db,
    )
  ).rows[0]!.id

export const listFaults = async (db: Db): Promise<Fault[]> =>
  (
    await sql<Row>`select id, kind, recipient, effect, remaining from sandbox_faults order by id`.execute(db)
  ).rows.map(({ id, kind, recipient, effect, remaining }) => ({
    id,
    on: kind,
    to: recipient,
    remaining,
    ...effect,
  }))

export const clearFaults = async (db: Db): Promise<void> => {
  await sql`delete from sandbox_faults`.execute(db)
}

/**
 * The oldest fault that is ordered for this, used up by one; a fault for a recipient meets that recipient
 * alone.
 */
export const takeFault = async (
  db: Db,
  kind: FaultKind,
  to: readonly string[],
): Promise<FaultEffect | undefined> => {
  const { rows } = await sql<Row>`
    update sandbox_faults set remaining = remaining - 1 where id = (
      select id from sandbox_faults where kind = ${kind} and (recipient is null or recipient = any(${to}::text[])) and (remaining is null or remaining > 0)
      order by id limit 1 for update)
    returning id, kind, recipient, effect, remaining`.execute(db)
  const fault = rows[0]
  if (fault?.remaining === 0)
    await sql`delete from sandbox_faults where id = ${fault.id}::bigint and remaining <= 0`.execute(db)
  return fault?.effect
}
