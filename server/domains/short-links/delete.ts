import type { Context, CallOptions, InputOf, OutputOf } from '../../handler.ts'
import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import {
  deleteShortLinkRow,
  listChannelNumbers,
  type ShortLinkRow,
} from '../../../storage/messages/short-links.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome } from '../../provider/port.ts'
import { requireLink } from './read.ts'
import { toEventLink } from './view.ts'

type DeleteLinkIntent = { workspaceId: string; link: ShortLinkRow; phoneNumberId: string }

const prepare = async (
  ctx: Context,
  { short_link_id: id }: InputOf<'messaging_delete_short_link'>,
): Promise<DeleteLinkIntent> => {
  const workspaceId = ctx.actor.workspace.id
  const link = await requireLink(ctx, id)
  const number = (await listChannelNumbers(ctx.tx, workspaceId)).find(
    ({ id: channelId }) => channelId === link.channel_id,
  )
  if (!number || number.provider_phone_number_id === null) {
    throw new Problem(
      'conflict',
      `Channel ${link.channel_id} has no number at the messaging provider, ` +
        'so its link cannot be deleted there.',
      { reason: 'channel_not_connected', channel_id: link.channel_id },
    )
  }
  return { workspaceId, link, phoneNumberId: number.provider_phone_number_id }
}

/** Reasons of provider errors that may mean that the link does not exist. */
const MISSING_LINK_REASONS = new Set<unknown>(['provider_not_found', 'provider_refused'])

/** A link that does not exist any more counts as deleted. */
const call = async (
  { link: { code }, phoneNumberId }: DeleteLinkIntent,
  { services: { provider }, signal, again }: CallOptions,
): Promise<true> => {
  try {
    await provider.deleteLink({ phoneNumberId }, code, signal)
  } catch (error) {
    if (
      !(error instanceof Problem) ||
      isOutcomeUnknown(error) ||
      !MISSING_LINK_REASONS.has(error.extras.reason)
    )
      throw error
    const lookup = provider.findLink({ phoneNumberId }, code, signal)
    if ((await (again ? lookUpOutcome(lookup) : lookup)) !== undefined) throw error
  }
  return true
}

const findOutcome = async (
  { link: { code }, phoneNumberId }: DeleteLinkIntent,
  { services: { provider }, signal }: CallOptions,
): Promise<true | undefined> =>
  (await lookUpOutcome(provider.findLink({ phoneNumberId }, code, signal))) === undefined ? true : undefined

const complete = async (
  ctx: Context<'short_link.deleted/1'>,
  { workspaceId, link }: DeleteLinkIntent,
): Promise<OutputOf<'messaging_delete_short_link'>> => {
  if (await deleteShortLinkRow(ctx.tx, workspaceId, link.id))
    ctx.emit('short_link.deleted/1', toEventLink(link))
  return { id: link.id, deleted: true }
}

export const deleteShortLink = defineProviderHandler<'messaging_delete_short_link', DeleteLinkIntent, true>({
  prepare,
  call,
  findOutcome,
  mayRepeat: true,
  complete,
  dryRunResult: () => true,
})
