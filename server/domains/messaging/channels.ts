import type { Context } from '../../handler.ts'
import {
  findLatestChannelId,
  listUsableChannels,
  readDefaultChannel,
  readSendingChannel,
  type Recipient,
  type SendingChannel,
} from '../../../storage/messages/sends.ts'
import { ownChannelTypes } from '../../../catalog/channels.ts'
import type { Db } from '../../../storage/database.ts'
import type { Actor } from '../../kernel/context.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { reasonTexts } from '../health/rules.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/** Whether replies on this channel are delivered to a URL of its own, and not by the messaging provider. */
export const isOwnChannel = ({ type }: Pick<SendingChannel, 'type'>): boolean =>
  (ownChannelTypes as readonly string[]).includes(type)

/** What says whether replies are taken on a channel. */
export type ChannelFacts = {
  channel_type: string
  channel_status: string
  channel_has_url: boolean
  channel_has_number: boolean
}
type ChannelFault = 'channel_not_supported' | 'channel_not_connected'

/** Returns why no reply is taken on a channel, whatever its window: none applies to a bridged one. */
export const findReplyFault = (facts: ChannelFacts): ChannelFault | undefined => {
  const isOwn = isOwnChannel({ type: facts.channel_type })
  if (isOwn ? !facts.channel_has_url : facts.channel_type !== 'chatapp') return 'channel_not_supported'
  const isConnected = facts.channel_status === 'connected' && (isOwn || facts.channel_has_number)
  return isConnected ? undefined : 'channel_not_connected'
}

/** What a send needs to know of a channel. */
type Sender = Pick<SendingChannel, 'id' | 'type' | 'status' | 'provider_phone_number_id' | 'health_reason'> &
  Partial<Pick<SendingChannel, 'url'>>

export const toChannelFacts = ({
  type,
  status,
  url,
  provider_phone_number_id: number,
}: Sender): ChannelFacts => ({
  channel_type: type,
  channel_status: status,
  channel_has_url: typeof url === 'string',
  channel_has_number: number !== null,
})

const notSupported = ({ id, type }: Sender, why: string): Problem =>
  new Problem('conflict', `Channel ${id} is of type ${type}${why}`, {
    reason: 'channel_not_supported',
    channel_id: id,
  })
const ONLY_CHATAPP = '; messages can be sent on channels of type chatapp.'

/** Says why no reply is taken on the channel, and what to do. */
export const toChannelProblem = (channel: Sender, fault: ChannelFault): Problem => {
  const { id, status } = channel
  if (fault === 'channel_not_supported')
    return notSupported(
      channel,
      isOwnChannel(channel)
        ? ' and has no URL that replies could be delivered to. Give it one on the ' +
            `server: wcrm admin channels update ${id} --url URL.`
        : ONLY_CHATAPP,
    )
  const why = status === 'connected' ? 'has no number at the messaging provider' : `is ${status}`
  const cause = status === 'connected' ? undefined : (channel.health_reason ?? undefined)
  const explained = cause === undefined ? why : `${why}: ${reasonTexts[cause] ?? cause}`
  return new Problem('conflict', `Channel ${id} ${explained}. Connect it, or choose another channel.`, {
    reason: fault,
    channel_id: id,
    ...(cause === undefined ? {} : { channel_health: cause }),
  })
}

/**
 * Returns the channel when messages can be sent on it now. Throws 409 `channel_not_supported` or
 * `channel_not_connected` otherwise. Only `chatapp` channels are connected to the messaging provider.
 */
export const requireUsableChannel = <C extends Sender>(channel: C): C => {
  if (isOwnChannel(channel))
    throw notSupported(
      channel,
      '; templates and short links are for channels of type chatapp. Use messaging_send_reply on this one.',
    )
  const fault = findReplyFault(toChannelFacts(channel))
  if (fault) throw toChannelProblem(channel, fault)
  return channel
}

const listCandidates = async (db: Db, actor: Actor): Promise<SendingChannel[]> =>
  (await listUsableChannels(db, actor.workspace.id)).filter((channel) => canSeeChannel(actor, channel.id))

/**
 * Returns the channel on which something is sent to a contact where none is named: that of its latest conversation
 * on a channel which the caller may use, else the default channel; undefined when there is none.
 */
export const findSendingChannel = async (
  db: Db,
  actor: Actor,
  contactId: string | undefined,
): Promise<SendingChannel | undefined> => {
  const workspaceId = actor.workspace.id
  const candidates = await listCandidates(db, actor)
  const ids = candidates.map((channel) => channel.id)
  const latestId =
    contactId === undefined ? undefined : await findLatestChannelId(db, workspaceId, contactId, ids)
  const latest = candidates.find((channel) => channel.id === latestId)
  if (latest) return latest
  const fallback = await readDefaultChannel(db, workspaceId)
  return fallback && canSeeChannel(actor, fallback.id) ? fallback : undefined
}

/**
 * Chooses the channel that a template is sent on: the requested one, else that of the contact's latest
 * conversation, else the default channel. Throws 404 or 400 when there is none.
 */
export const chooseChannel = async (
  ctx: Context,
  requestedId: string | undefined,
  contactId: string | undefined,
): Promise<SendingChannel> => {
  const { tx, actor } = ctx
  const workspaceId = actor.workspace.id
  if (requestedId !== undefined) {
    const channel = canSeeChannel(actor, requestedId)
      ? await readSendingChannel(tx, workspaceId, requestedId)
      : undefined
    if (!channel) throw notFound('channel', requestedId)
    return requireUsableChannel(channel)
  }
  const channel = await findSendingChannel(tx, actor, contactId)
  if (channel) return requireUsableChannel(channel)
  throw invalidField('channel_id', 'required', 'is required: there is no default channel that you may use', {
    reason: 'channel_required',
    fix: 'Send the id of a connected channel of type chatapp.',
    allowed: (await listCandidates(tx, actor)).map(({ id }) => id),
  })
}

/** Returns the contact when a message can reach it. Throws 409 `contact_unreachable` otherwise. */
export const requireReachable = (recipient: Recipient): Recipient => {
  if (recipient.phone !== null || recipient.chatapp_user_id !== null) return recipient
  throw contactUnreachable()
}

/** `bridged`: the id of a bridged channel. */
export const contactUnreachable = (bridged?: string): Problem =>
  new Problem(
    'conflict',
    bridged === undefined
      ? 'The contact has neither a phone number nor a messaging-app id, so nothing can be sent to it.'
      : `The contact never wrote on channel ${bridged}, so its bridge does not know whom to deliver to.`,
    { reason: 'contact_unreachable' },
  )
