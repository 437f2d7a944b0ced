import { createHmac, timingSafeEqual } from 'node:crypto'
import { isObject } from '../../../catalog/values.ts'
import {
  listAccountsOfNumbers,
  listAccountsWithSecret,
  listSealedAccounts,
} from '../../../storage/channels/provider-accounts.ts'
import type { NewProviderUpdate } from '../../../storage/channels/provider-updates.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { unsealAccount } from '../../provider/account-secrets.ts'
import { asObjects, asText } from './json.ts'

/**
 * Who signed a body: the app of the server's own credentials, or that of an account with its own. It may
 * report what concerns accounts with this same secret, and nothing of others: whoever knows one app secret can sign
 * anything with it.
 */
export type Signer = { readonly secret: string; readonly isOwn: boolean }

type SignerConfig = { readonly appSecret: string; readonly sandbox: boolean }

export const signatureProblem = (): Problem =>
  new Problem('forbidden', 'X-Hub-Signature-256 does not match the body.')

const isSignedWith = (bytes: Buffer, signature: Buffer, secret: string): boolean =>
  timingSafeEqual(signature, createHmac('sha256', secret).update(bytes).digest())

/** The app secrets of these accounts, where they have their own; empty where it cannot be opened. */
const loadOwnSecrets = async (app: App, accountIds: readonly string[]): Promise<Map<string, string>> => {
  const secrets = new Map<string, string>()
  if (accountIds.length === 0) return secrets
  for (const row of await listSealedAccounts(app.db, accountIds)) {
    if (row.app_secret === null) continue
    // A secret that cannot be opened verifies nothing; the server's own does not take its place.
    secrets.set(row.account_id, unsealAccount(app.accountSealer, row)?.appSecret ?? '')
  }
  return secrets
}

/**
 * Returns who signed the body. Two secrets are tried at most, however many accounts there are: the server's
 * own, then that of the account of the first entry. Throws 403 when neither did.
 */
export const findSigner = async (
  app: App,
  bytes: Buffer,
  signature: Buffer,
  { appSecret, sandbox }: SignerConfig,
): Promise<Signer> => {
  if (isSignedWith(bytes, signature, appSecret)) return { secret: appSecret, isOwn: false }
  const accountId = sandbox ? null : readFirstAccount(bytes)
  const secret = accountId === null ? undefined : (await loadOwnSecrets(app, [accountId])).get(accountId)
  if (secret === undefined || secret === '' || !isSignedWith(bytes, signature, secret))
    throw signatureProblem()
  return { secret, isOwn: true }
}

/** Of a body that is not verified yet: it only says which secret to verify it with. */
const readFirstAccount = (bytes: Buffer): string | null => {
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(body) ? asText(asObjects(body['entry'])[0]?.['id']) : null
  } catch {
    return null
  }
}

/** What an update is about: a business number, or an account. */
type Subject = { number: string | undefined; account: string | null }

const readSubject = ({ subject, payload }: NewProviderUpdate): Subject => {
  const { number, account } = payload as { number?: string; account?: string | null }
  // Errors of a number, which nothing is done with, have it as their subject alone.
  return { number: number ?? (account === undefined ? (subject ?? '') : undefined), account: account ?? null }
}

/**
 * Returns the updates that their signer may report: those of accounts with the secret that it signed with. A
 * number belongs to the account of its channel, whatever the body says. Throws 403 when the signer may report
 * none of them; others are left out and logged.
 */
export const selectOfSigner = async (
  app: App,
  updates: readonly NewProviderUpdate[],
  signer: Signer,
  sandbox: boolean,
): Promise<readonly NewProviderUpdate[]> => {
  if (sandbox || updates.length === 0) return updates
  const subjects = updates.map((update) => ({ update, ...readSubject(update) }))
  const accountOfNumber = await listAccountsOfNumbers(app.db, [
    ...new Set(subjects.flatMap(({ number }) => number ?? [])),
  ])
  const accountOf = ({ number, account }: Subject): string | null =>
    number === undefined ? account : (accountOfNumber.get(number) ?? null)
  const secrets = await loadOwnSecrets(app, [
    ...new Set(subjects.flatMap((subject) => accountOf(subject) ?? [])),
  ])
  const isAllowed = (subject: Subject): boolean => {
    const accountId = accountOf(subject)
    const own = accountId === null ? undefined : secrets.get(accountId)
    return own === undefined ? !signer.isOwn : own === signer.secret
  }
  const [allowed, refused] = [subjects.filter(isAllowed), subjects.filter((subject) => !isAllowed(subject))]
  if (refused.length === 0) return updates
  app.log.warn(
    { updates: refused.length, accounts: [...new Set(refused.map(accountOf))].slice(0, 10) },
    'Refused updates that were not signed with the app secret of their account',
  )
  // A number that is no channel here is not forged: an account may have more numbers than there are channels.
  const isForged = refused.some(({ number }) => number === undefined || accountOfNumber.has(number))
  if (allowed.length === 0 && isForged) throw signatureProblem()
  return allowed.map(({ update }) => update)
}

/** The verify tokens of accounts with their own. */
export const listOwnVerifyTokens = async (app: App, { sandbox }: { sandbox: boolean }): Promise<string[]> =>
  sandbox
    ? []
    : (await listAccountsWithSecret(app.db, 'verify_token')).flatMap(
        (row) => unsealAccount(app.accountSealer, row)?.verifyToken ?? [],
      )
