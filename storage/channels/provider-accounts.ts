import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'

/** The credentials of an account at the provider, sealed. Absent ones are the server's own. */
export type SealedAccount = Pick<
  TableRow<'provider_accounts'>,
  'workspace_id' | 'account_id' | 'token' | 'app_secret' | 'verify_token' | 'app_id'
>

/** What a call to the provider is made for: the number that it uses, or the account. */
export type CallOwner = { phoneNumberId?: string | null; accountId?: string | null }

/**
 * Whose a call is. `account`: null when the account has no credentials of its own. `has_problem`: a channel that
 * the call concerns is recorded as not being well.
 */
export type CallOwnerRow = {
  workspace_id: string
  account_id: string | null
  account: SealedAccount | null
  has_problem: boolean
}

const accountJson = sql<SealedAccount | null>`case when a.account_id is not null then json_build_object(
  'workspace_id', a.workspace_id::text, 'account_id', a.account_id, 'token', a.token,
  'app_secret', a.app_secret, 'verify_token', a.verify_token, 'app_id', a.app_id) end`

/**
 * Finds the workspace and the account of a number, or of an account, with its credentials; undefined when no
 * channel has it. Called outside of any workspace: the provider's ids name the workspace.
 */
export const findCallOwner = async (
  db: Db,
  { phoneNumberId = null, accountId = null }: CallOwner,
): Promise<CallOwnerRow | undefined> => {
  const { rows } = await sql<CallOwnerRow>`
    select c.workspace_id, c.account_id, ${accountJson} as account,
      bool_or(coalesce(h.status <> 'ok', false)) over () as has_problem
    from channels c
    left join provider_accounts a on a.workspace_id = c.workspace_id and a.account_id = c.account_id
    left join channel_health h on h.workspace_id = c.workspace_id and h.channel_id = c.id
    where ${
      phoneNumberId === null
        ? sql`c.account_id = ${accountId}::text`
        : sql`c.provider_phone_number_id = ${phoneNumberId}`
    }
    limit 1`.execute(db)
  return rows[0]
}

/** Lists the credentials of these accounts, where they have their own. */
export const listSealedAccounts = async (db: Db, accountIds: readonly string[]): Promise<SealedAccount[]> =>
  db
    .selectFrom('provider_accounts')
    .select(['workspace_id', 'account_id', 'token', 'app_secret', 'verify_token', 'app_id'])
    .where('account_id', '=', sql<string>`any(${accountIds}::text[])`)
    .execute()

/** Lists the accounts of business numbers that are channels. */
export const listAccountsOfNumbers = async (
  db: Db,
  numbers: readonly string[],
): Promise<Map<string, string | null>> => {
  if (numbers.length === 0) return new Map()
  const { rows } = await sql<{ number: string; account_id: string | null }>`
    select provider_phone_number_id as number, account_id from channels
    where provider_phone_number_id = any(${numbers}::text[])`.execute(db)
  return new Map(rows.map((row) => [row.number, row.account_id]))
}

/** Lists all accounts with a secret of this kind of their own. */
export const listAccountsWithSecret = async (
  db: Db,
  what: 'app_secret' | 'verify_token',
): Promise<SealedAccount[]> =>
  db
    .selectFrom('provider_accounts')
    .select(['workspace_id', 'account_id', 'token', 'app_secret', 'verify_token', 'app_id'])
    .where(what, 'is not', null)
    .orderBy('account_id')
    .execute()

/** An account as administration shows it: whether it has a secret, and not which. */
export type AccountRow = {
  account_id: string
  name: string | null
  app_id: string | null
  has_token: boolean
  has_app_secret: boolean
  has_verify_token: boolean
  created_at: string
  updated_at: string
}

const shown = [
  'account_id',
  'name',
  'app_id',
  sql<boolean>`true`.as('has_token'),
  sql<boolean>`app_secret is not null`.as('has_app_secret'),
  sql<boolean>`verify_token is not null`.as('has_verify_token'),
  'created_at',
  'updated_at',
] as const

export const listProviderAccounts = (db: Db, workspaceId: string): Promise<AccountRow[]> =>
  db
    .selectFrom('provider_accounts')
    .select(shown)
    .where('workspace_id', '=', workspaceId)
    .orderBy('account_id')
    .execute()

export type AccountFields = Partial<
  Pick<TableRow<'provider_accounts'>, 'name' | 'token' | 'app_secret' | 'verify_token' | 'app_id'>
>

/** Inserts an account; undefined when the workspace has it already. */
export const insertProviderAccount = async (
  tx: Db,
  workspaceId: string,
  accountId: string,
  fields: AccountFields & { token: string },
  now: string,
): Promise<AccountRow | undefined> =>
  tx
    .insertInto('provider_accounts')
    .values({ workspace_id: workspaceId, account_id: accountId, ...fields, created_at: now, updated_at: now })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'account_id']).doNothing())
    .returning(shown)
    .executeTakeFirst()

/** Updates the given fields; undefined when the workspace has no such account. */
export const updateProviderAccount = async (
  tx: Db,
  workspaceId: string,
  accountId: string,
  fields: AccountFields,
  now: string,
): Promise<AccountRow | undefined> =>
  tx
    .updateTable('provider_accounts')
    .set({ ...fields, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('account_id', '=', accountId)
    .returning(shown)
    .executeTakeFirst()

/** Deletes the credentials of an account. Returns whether there were any. */
export const deleteProviderAccount = async (
  tx: Db,
  workspaceId: string,
  accountId: string,
): Promise<boolean> => {
  const { numDeletedRows } = await tx
    .deleteFrom('provider_accounts')
    .where('workspace_id', '=', workspaceId)
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}
