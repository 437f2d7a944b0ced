import { sql } from 'kysely'
import type { Db } from '../../../storage/database.ts'

/**
 * The calls that a fault is for. `account`: about accounts and numbers themselves. `all`: every call, as with a
 * revoked token; `restricted`: messages, while the account is restricted.
 */
export type FaultKind = 'messages' | 'templates' | 'links' | 'media' | 'account' | 'all' | 'restricted'
/**
 * What a fault does. `code`: an error code, returned at once or (`async`) with a later status.
 * `drop_answer`: the response is lost after the work was done.
 */
export type FaultEffect = { code?: number; async?: boolean; drop_answer?: boolean; latency_ms?: number }
/**
 * `to`: phone digits or a user id; null for every recipient. `accounts`: null for all. `remaining`: null for
 * no limit.
 */
export type SandboxFault = {
  id: string
  on: FaultKind
  to: string | null
  accounts: string[] | null
  remaining: number | null
} & FaultEffect

type FaultRow = {
  id: string
  kind: FaultKind
  recipient: string | null
  account_ids: string[] | null
  effect: FaultEffect
  remaining: number | null
}

/** Returns the id. */
export const insertFault = async (
  db: Db,
  { on, to, accounts, remaining }: Pick<SandboxFault, 'on' | 'to' | 'accounts' | 'remaining'>,
  effect: FaultEffect,
): Promise<string> => {
  const { id } = await db
    .insertInto('sandbox_faults')
    .values({
      kind: on,
      recipient: to,
      account_ids: accounts,
      effect: sql<unknown>`${JSON.stringify(effect)}::jsonb`,
      remaining,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

export const listFaults = async (db: Db): Promise<SandboxFault[]> => {
  const rows = await db
    .selectFrom('sandbox_faults')
    .select(['id', 'kind', 'recipient', 'account_ids', 'effect', 'remaining'])
    .orderBy('id')
    .$castTo<FaultRow>()
    .execute()
  return rows.map(({ id, kind, recipient, account_ids, effect, remaining }) => ({
    id,
    on: kind,
    to: recipient,
    accounts: account_ids,
    remaining,
    ...effect,
  }))
}

/** Deletes the faults of these accounts; without any, all faults. */
export const deleteFaults = async (db: Db, accounts: readonly string[] | null): Promise<void> => {
  await sql`
    delete from sandbox_faults
    where ${accounts}::text[] is null or account_ids && ${accounts}::text[]`.execute(db)
}

const kindsOf = (kind: FaultKind): FaultKind[] =>
  kind === 'messages' ? [kind, 'all', 'restricted'] : [kind, 'all']

/** Deletes what was ordered for these accounts as a whole. */
export const deleteAccountFaults = async (db: Db, accounts: readonly string[]): Promise<void> => {
  await sql`
    delete from sandbox_faults where kind in ('all', 'restricted')
      and account_ids && ${accounts}::text[]`.execute(db)
}

/**
 * Uses the oldest fault that applies to this call once, and returns its effect. A fault for a recipient
 * applies to that recipient only, and one for accounts to calls on these and on their numbers, templates and
 * files. `objectId`: of what the call is on.
 */
export const consumeFault = async (
  db: Db,
  kind: FaultKind,
  to: readonly string[],
  objectId: string,
): Promise<FaultEffect | undefined> => {
  const { rows } = await sql<FaultRow>`
    update sandbox_faults set remaining = remaining - 1 where id = (
      select id from sandbox_faults
      where kind = any(${kindsOf(kind)}::text[]) and (recipient is null or recipient = any(${to}::text[]))
        and (account_ids is null or ${objectId} = any(account_ids) or account_ids && array(
          select account_id from sandbox_numbers where id = ${objectId}
          union all select account_id from sandbox_templates where id = ${objectId}
          union all select n.account_id from sandbox_media m join sandbox_numbers n on n.id = m.number_id
            where m.id = ${objectId}))
        and (remaining is null or remaining > 0)
      order by id limit 1 for update)
    returning id, kind, recipient, account_ids, effect, remaining`.execute(db)
  const fault = rows[0]
  if (fault?.remaining === 0)
    await db.deleteFrom('sandbox_faults').where('id', '=', fault.id).where('remaining', '<=', 0).execute()
  return fault?.effect
}
