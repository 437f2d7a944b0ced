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

/**
 * Throws 409 unless a reply on the channel is taken now, with the reason `channel_not_supported` or
 * `channel_not_connected`. That is no matter of its window: none applies to a bridged channel.
 */
export const requireReplyChannel = (channel: SendingChannel): void => {
  if (!isOwnChannel(channel)) return void requireUsableChannel(channel)
  const { id, type, status, url } = channel
  if (url === null)
    throw new Problem(
      'conflict',
      `Channel ${id} is of type ${type} and has no URL that replies could be delivered to. Give it one on the ` +
        `server: wcrm admin channels update ${id} --url URL.`,
      { reason: 'channel_not_supported', channel_id: id },
    )
  if (status !== 'connected')
    throw new Problem('conflict', `Channel ${id} is ${status}. Connect it, or choose another channel.`, {
      reason: 'channel_not_connected',
      channel_id: id,
    })
}

/** What a send through the messaging provider needs to know of a channel. */
type ProviderChannel = Pick<
  SendingChannel,
  'id' | 'type' | 'status' | 'provider_phone_number_id' | 'health_reason'
>

/**
 * Returns the channel when messages can be sent on it now. Throws 409 `channel_not_supported` or
 * `channel_not_connected` otherwise. Only `chatapp` channels are connected to the messaging provider.
 */
export const requireUsableChannel = <C extends ProviderChannel>(channel: C): C => {
  if (channel.type !== 'chatapp') {
    throw new Problem(
      'conflict',
      `Channel ${channel.id} is of type ${channel.type}; ` +
        (isOwnChannel(channel)
          ? 'templates and short links are for channels of type chatapp. Use messaging_send_reply on this one.'
          : 'messages can be sent on channels of type chatapp.'),
      { reason: 'channel_not_supported', channel_id: channel.id },
    )
  }
  if (channel.status !== 'connected' || channel.provider_phone_number_id === null) {
    const why =
      channel.status === 'connected' ? 'has no number at the messaging provider' : `is ${channel.status}`
    const cause = channel.status === 'connected' ? undefined : (channel.health_reason ?? undefined)
    const explained = cause === undefined ? why : `${why}: ${reasonTexts[cause] ?? cause}`
    throw new Problem(
      'conflict',
      `Channel ${channel.id} ${explained}. Connect it, or choose another channel.`,
      {
        reason: 'channel_not_connected',
        channel_id: channel.id,
        ...(cause === undefined ? {} : { channel_health: cause }),
      },
    )
  }
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
  throw new Problem(
    'conflict',
    'The contact has neither a phone number nor a messaging-app id, so nothing can be sent to it.',
    { reason: 'contact_unreachable' },
  )
}
