import {
  latestChannelOf,
  listUsableChannels,
  readDefaultChannel,
  readSendingChannel,
  type Recipient,
  type SendingChannel,
} from '../../storage/sends.ts'
import type { Context } from '../core/context.ts'
import { mayUse } from '../inbox/access.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'

/**
 * A channel that messages can go out on now; refuses any other. Only `chatapp` channels have a provider to
 * send by.
 */
export const usable = (channel: SendingChannel): SendingChannel => {
  if (channel.type !== 'chatapp') {
    throw new Problem(
      'conflict',
      `Channel ${channel.id} is of type ${channel.type}; messages can be sent on channels of type chatapp.`,
      { reason: 'channel_not_supported', channel_id: channel.id },
    )
  }
  if (channel.status !== 'connected' || channel.provider_phone_number_id === null) {
    const why =
      channel.status === 'connected' ? 'has no number at the messaging provider' : `is ${channel.status}`
    throw new Problem('conflict', `Channel ${channel.id} ${why}. Connect it, or choose another channel.`, {
      reason: 'channel_not_connected',
      channel_id: channel.id,
    })
  }
  return channel
}

/**
 * The channel that a template goes out on: the one asked for, else that of the contact's latest
 * conversation, else the default one (contract 5).
 */
export const chooseChannel = async (
  ctx: Context,
  asked: string | undefined,
  contactId: string | undefined,
): Promise<SendingChannel> => {
  const { tx, actor } = ctx
  const workspaceId = actor.workspace.id
  if (asked !== undefined) {
    const channel = mayUse(actor, asked) ? await readSendingChannel(tx, workspaceId, asked) : undefined
    if (!channel) throw notFound('channel', asked)
    return usable(channel)
  }
  const open = (await listUsableChannels(tx, workspaceId)).filter((channel) => mayUse(actor, channel.id))
  const latest =
    contactId === undefined
      ? undefined
      : await latestChannelOf(
          tx,
          workspaceId,
          contactId,
          open.map((channel) => channel.id),
        )
  if (latest !== undefined) return open.find((channel) => channel.id === latest)!
  const standard = await readDefaultChannel(tx, workspaceId)
  if (standard && mayUse(actor, standard.id)) return usable(standard)
  throw invalidField('channel_id', 'required', 'is required: there is no default channel that you may use', {
    reason: 'channel_required',
    fix: 'Send the id of a connected channel of type chatapp.',
    allowed: open.map((channel) => channel.id),
  })
}

/** A contact that a message can reach. */
export const reachable = (recipient: Recipient): Recipient => {
  if (recipient.phone !== null || recipient.chatapp_user_id !== null) return recipient
  throw new Problem(
    'conflict',
    'The contact has neither a phone number nor a messaging-app id, so nothing can be sent to it.',
    { reason: 'contact_unreachable' },
  )
}
