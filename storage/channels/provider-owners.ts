import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** What a channel has at the provider; absent and null are nothing. */
type ProviderIds = { provider_phone_number_id?: string | null; account_id?: string | null }

/** The channel that a number or an account at the provider belongs to already. */
type ProviderOwner = {
  kind: 'number' | 'account'
  value: string
  workspace_id: string
  /** The channel that has it; null when a workspace has its credentials alone. */
  id: string | null
}

/**
 * Returns the channel that has this number already, which belongs to one channel, or a channel of another
 * workspace that has this account; undefined when both are free. Whoever asks for the same waits until this
 * transaction has ended. `channelId`: the channel that asks, when it exists.
 */
const findProviderOwner = async (
  tx: Db,
  workspaceId: string,
  { provider_phone_number_id: number = null, account_id: account = null }: ProviderIds,
  channelId: string | null,
): Promise<ProviderOwner | undefined> => {
  if (number === null && account === null) return undefined
  for (const name of [`provider account ${account}`, `provider number ${number}`])
    await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
  const { rows } = await sql<ProviderOwner>`
    select 'number' as kind, provider_phone_number_id as value, workspace_id, id from channels
    where provider_phone_number_id = ${number}::text
      and (workspace_id <> ${workspaceId} or id is distinct from ${channelId}::bigint)
    union all
    select 'account', account_id, workspace_id, id from channels
    where account_id = ${account}::text and workspace_id <> ${workspaceId}
    union all
    select 'account', account_id, workspace_id, null from provider_accounts
    where account_id = ${account}::text and workspace_id <> ${workspaceId}
    order by kind desc, workspace_id, id limit 1`.execute(tx)
  return rows[0]
}

/** Thrown instead of giving a number or an account at the provider a second owner. */
export type ProviderOwnerError = Error & { code: 'PROVIDER_OWNER'; owner: ProviderOwner }

/** Throws a `ProviderOwnerError` when another channel has the number, or another workspace the account. */
export const requireNoProviderOwner = async (
  ...args: Parameters<typeof findProviderOwner>
): Promise<void> => {
  const owner = await findProviderOwner(...args)
  if (owner)
    throw Object.assign(
      new Error(
        `The ${owner.kind} ${owner.value} at the provider belongs to ` +
          `${owner.id === null ? '' : `channel ${owner.id} of `}workspace ${owner.workspace_id}.`,
      ),
      { code: 'PROVIDER_OWNER', owner },
    )
}
