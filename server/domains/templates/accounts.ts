import type { Context } from '../../handler.ts'
import { type AccountChannel, listAccountChannels } from '../../../storage/templates/templates.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/** A business account at the provider, which owns templates. */
export type BusinessAccount = { id: string; name: string | null }

type AccountChoice = { business_account_id?: string | undefined; channel_id?: string | undefined }

const isChatappChannel = ({ type }: AccountChannel): boolean => type === 'chatapp'

const isConnected = (channel: AccountChannel): channel is AccountChannel & { account_id: string } =>
  isChatappChannel(channel) && channel.status === 'connected' && channel.account_id !== null

const uniqueAccounts = (channels: readonly AccountChannel[]): BusinessAccount[] => [
  ...new Map(
    channels
      .filter(isConnected)
      .map((channel) => [channel.account_id, { id: channel.account_id, name: channel.account_name }]),
  ).values(),
]

/** Lists the channels that the staff member may use. */
const listVisibleChannels = async (ctx: Pick<Context, 'tx' | 'actor'>): Promise<AccountChannel[]> =>
  (await listAccountChannels(ctx.tx, ctx.actor.workspace.id)).filter((channel) =>
    canSeeChannel(ctx.actor, channel.id),
  )

/** Lists accounts with a connected channel that the staff member may use; the default channel's first. */
export const listConnectedAccounts = async (ctx: Pick<Context, 'tx' | 'actor'>): Promise<BusinessAccount[]> =>
  uniqueAccounts(await listVisibleChannels(ctx))

/** Finds the account of a template; a template without one belongs to the only account, if there is one. */
export const findAccount = (
  accounts: readonly BusinessAccount[],
  accountId: string | null,
): BusinessAccount | undefined =>
  accountId === null
    ? accounts.length === 1
      ? accounts[0]
      : undefined
    : accounts.find(({ id }) => id === accountId)

export const notConnectedProblem = (detail: string): Problem =>
  new Problem('conflict', detail, { reason: 'channel_not_connected' })

/**
 * Chooses the account that a template is submitted to: the requested one, that of the channel, or the only
 * one. Empty strings count as absent. Throws 400, 404 or 409 when no account can be chosen.
 */
export const chooseAccount = async (ctx: Context, choice: AccountChoice): Promise<BusinessAccount> => {
  const [accountId, channelId] = [choice.business_account_id || undefined, choice.channel_id || undefined]
  const channels = await listVisibleChannels(ctx)
  const accounts = uniqueAccounts(channels)
  const ofChannel = channelId === undefined ? undefined : accountOfChannel(channels, accounts, channelId)
  if (accountId === undefined) return ofChannel ?? requireSingleAccount(accounts)
  if (!channels.some((channel) => isChatappChannel(channel) && channel.account_id === accountId))
    throw notFound('business account', accountId)
  const account = accounts.find(({ id }) => id === accountId)
  if (!account)
    throw notConnectedProblem(
      `No channel of the business account ${accountId} is connected. Connect one, or choose another account.`,
    )
  if (ofChannel && ofChannel.id !== account.id)
    throw invalidField(
      'channel_id',
      'ambiguous',
      `belongs to the business account ${ofChannel.id}, not to ${account.id}`,
      { fix: 'Send only one of business_account_id and channel_id.' },
    )
  return account
}

const accountOfChannel = (
  channels: readonly AccountChannel[],
  accounts: readonly BusinessAccount[],
  channelId: string,
): BusinessAccount => {
  const channel = channels.find(({ id }) => id === channelId)
  if (!channel) throw notFound('channel', channelId)
  if (!isChatappChannel(channel))
    throw new Problem(
      'conflict',
      `Channel ${channel.id} is of type ${channel.type}; channels of type chatapp have templates.`,
      { reason: 'channel_not_supported', channel_id: channel.id },
    )
  if (!isConnected(channel)) {
    const state = channel.status === 'connected' ? 'has no business account' : `is ${channel.status}`
    throw notConnectedProblem(`Channel ${channel.id} ${state}. Connect it, or choose another.`)
  }
  return accounts.find(({ id }) => id === channel.account_id)!
}

const requireSingleAccount = (accounts: readonly BusinessAccount[]): BusinessAccount => {
  const [first, ...more] = accounts
  if (!first)
    throw notConnectedProblem(
      'No channel of type chatapp with a business account is connected. Connect one first.',
    )
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
