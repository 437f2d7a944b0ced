import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type FaultKind = 'messages' | 'templates' | 'links' | 'media'
/**
 * What a fault does. `code`: an error code, returned at once or (`async`) with a later status.
 * `drop_answer`: the response is lost after the work was done.
 */
export type FaultEffect = { code?: number; async?: boolean; drop_answer?: boolean; latency_ms?: number }
/** `to`: phone digits or a user id; null for every recipient. `remaining`: null for no limit. */
export type SandboxFault = {
  id: string
  on: FaultKind
  to: string | null
  remaining: number | null
} & FaultEffect

type FaultRow = {
  id: string
  kind: FaultKind
  recipient: string | null
  effect: FaultEffect
  remaining: number | null
}

/** Returns the id. */
export const insertFault = async (
  db: Db,
  kind: FaultKind,
  to: string | null,
  effect: FaultEffect,
  times: number | null,
): Promise<string> => {
  const { id } = await db
    .insertInto('sandbox_faults')
    .values({
      kind,
      recipient: to,
      effect: sql<unknown>`${JSON.stringify(effect)}::jsonb`,
      remaining: times,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

export const listFaults = async (db: Db): Promise<SandboxFault[]> => {
  const rows = await db
    .selectFrom('sandbox_faults')
    .select(['id', 'kind', 'recipient', 'effect', 'remaining'])
    .orderBy('id')
    .$castTo<FaultRow>()
    .execute()
  return rows.map(({ id, kind, recipient, effect, remaining }) => ({
    id,
    on: kind,
    to: recipient,
    remaining,
    ...effect,
  }))
}

export const deleteFaults = async (db: Db): Promise<void> => {
  await db.deleteFrom('sandbox_faults').execute()
}

/**
 * Uses the oldest fault that applies to this call once, and returns its effect. A fault for a recipient
 * applies to that recipient only.
 */
export const consumeFault = async (
  db: Db,
  kind: FaultKind,
  to: readonly string[],
): Promise<FaultEffect | undefined> => {
  const { rows } = await sql<FaultRow>`
    update sandbox_faults set remaining = remaining - 1 where id = (
      select id from sandbox_faults
      where kind = ${kind} and (recipient is null or recipient = any(${to}::text[]))
        and (remaining is null or remaining > 0)
      order by id limit 1 for update)
    returning id, kind, recipient, effect, remaining`.execute(db)
  const fault = rows[0]
  if (fault?.remaining === 0)
    await db.deleteFrom('sandbox_faults').where('id', '=', fault.id).where('remaining', '<=', 0).execute()
  return fault?.effect
}
