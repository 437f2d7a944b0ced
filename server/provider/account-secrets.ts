import type { SealedAccount } from '../../storage/channels/provider-accounts.ts'
import type { Sealer } from '../sealer.ts'

/** What an account at the provider is called with, and what verifies its webhooks. */
export type AccountSecrets = {
  token: string
  appSecret: string | null
  verifyToken: string | null
  appId: string | null
}

const secretColumns = ['token', 'app_secret', 'verify_token'] as const
type SecretColumn = (typeof secretColumns)[number]
type AccountId = { workspace_id: string; account_id: string }

/** Binds a sealed value to its account and its purpose: it opens for no other. */
const toBinding = ({ workspace_id: workspaceId, account_id: id }: AccountId, what: SecretColumn): string =>
  `${workspaceId} ${id} ${what}`

export const sealAccountSecret = (
  sealer: Sealer,
  account: AccountId,
  what: SecretColumn,
  secret: string,
): string => sealer.seal(secret, toBinding(account, what))

/** Returns one secret; null without it, undefined when none of our secrets opens it. */
const unseal = (sealer: Sealer, row: SealedAccount, what: SecretColumn): string | null | undefined => {
  const sealed = row[what]
  return sealed === null ? null : sealer.open(sealed, toBinding(row, what))
}

/** Returns the secrets of an account; undefined when they were sealed with a secret that we do not have. */
export const unsealAccount = (sealer: Sealer, row: SealedAccount): AccountSecrets | undefined => {
  const [token, appSecret, verifyToken] = secretColumns.map((what) => unseal(sealer, row, what))
  if (typeof token !== 'string' || appSecret === undefined || verifyToken === undefined) return undefined
  return { token, appSecret, verifyToken, appId: row.app_id }
}

/** Returns the row with its secrets sealed again by the current secret; undefined when one does not open. */
export const resealAccount = (sealer: Sealer, row: SealedAccount): SealedAccount | undefined => {
  const resealed: SealedAccount = { ...row }
  for (const what of secretColumns) {
    const text = unseal(sealer, row, what)
    if (text === undefined) return undefined
    if (text !== null) resealed[what] = sealer.seal(text, toBinding(row, what))
  }
  return resealed
}
