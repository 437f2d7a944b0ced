import { type AccountChannel, accountChannels } from '../../storage/templates.ts'
import type { Context } from '../core/context.ts'
import { mayUse } from '../inbox/access.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'

/** An account at the provider, which holds templates. */
export type Account = { id: string; name: string | null }

type Choice = { business_account_id?: string | undefined; channel_id?: string | undefined }

const isLine = ({ type }: AccountChannel): boolean => type === 'chatapp'

const isConnected = (channel: AccountChannel): channel is AccountChannel & { account_id: string } =>
  isLine(channel) && channel.status === 'connected' && channel.account_id !== null

const accountsOf = (channels: readonly AccountChannel[]): Account[] => [
  ...new Map(
    channels
      .filter(isConnected)
      .map((channel) => [channel.account_id, { id: channel.account_id, name: channel.account_name }]),
  ).values(),
]

/** The channels that the staff member may use. */
const usable = async (ctx: Context): Promise<AccountChannel[]> =>
  (await accountChannels(ctx.tx, ctx.actor.workspace.id)).filter((channel) => mayUse(ctx.actor, channel.id))

/** Accounts with a connected channel that the staff member may use; that of the default channel first. */
export const connectedAccounts = async (ctx: Context): Promise<Account[]> => accountsOf(await usable(ctx))

/**
 * The account that a template of this account is reached by; a template of none belongs to the only one
 * there is.
 */
export const accountOf = (accounts: readonly Account[], accountId: string | null): Account | undefined =>
  accountId === null
    ? accounts.length === 1
      ? accounts[0]
      : undefined
    : accounts.find(({ id }) => id === accountId)

export const notConnected = (detail: string): Problem =>
  new Problem('conflict', detail, { reason: 'channel_not_connected' })

/**
 * The account that a template is submitted to: the one asked for, that of the channel, or the only one.
 * Empty choices are none.
 */
export const chooseAccount = async (ctx: Context, choice: Choice): Promise<Account> => {
  const [accountId, channelId] = [choice.business_account_id || undefined, choice.channel_id || undefined]
  const channels = await usable(ctx)
  const accounts = accountsOf(channels)
  const asked = channelId === undefined ? undefined : ofChannel(channels, accounts, channelId)
  if (accountId === undefined) return asked ?? only(accounts)
  if (!channels.some((channel) => isLine(channel) && channel.account_id === accountId))
    throw notFound('business account', accountId)
  const account = accounts.find(({ id }) => id === accountId)
  if (!account)
    throw notConnected(
      `No channel of the business account ${accountId} is connected. Connect one, or choose another account.`,
    )
  if (asked && asked.id !== account.id)
    throw invalidField(
      'channel_id',
      'ambiguous',
      `belongs to the business account ${asked.id}, not to ${account.id}`,
      { fix: 'Send one of business_account_id and channel_id.' },
    )
  return account
}

const ofChannel = (
  channels: readonly AccountChannel[],
  accounts: readonly Account[],
  channelId: string,
): Account => {
  const channel = channels.find(({ id }) => id === channelId)
  if (!channel) throw notFound('channel', channelId)
  if (!isLine(channel))
    throw new Problem(
      'conflict',
      `Channel ${channel.id} is of type ${channel.type}; channels of type chatapp have templates.`,
      { reason: 'channel_not_supported', channel_id: channel.id },
    )
  if (!isConnected(channel))
    throw notConnected(
      `Channel ${channel.id} ${channel.status === 'connected' ? 'has no business account' : `is ${channel.status}`}. Connect it, or choose another.`,
    )
  return accounts.find(({ id }) => id === channel.account_id)!
}

const only = (accounts: readonly Account[]): Account => {
  const [first, ...more] = accounts
  if (!first)
    throw notConnected('No channel of type chatapp with a business account is connected. Connect one first.')
  if (more.length === 0) return first
  const names = accounts.map(({ id, name }) => (name === null ? id : `${id} (${name})`)).join(', ')
  throw invalidField(
    'business_account_id',
    'ambiguous',
    `is required: the workspace has ${accounts.length} business accounts`,
    {
      reason: 'account_ambiguous',
      fix: `Send one of ${names}; or channel_id.`,
      allowed: accounts.map(({ id }) => id),
    },
  )
}
