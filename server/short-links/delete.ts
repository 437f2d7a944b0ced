import { deleteShortLinkRow, listNumbers, type ShortLinkRow } from '../../storage/short-links.ts'
import type { Context } from '../core/context.ts'
import { inThreeParts } from '../messaging/send.ts'
import type { How, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { lookUp, outcomeUnknown } from '../provider/port.ts'
import { reachLink } from './read.ts'
import { eventLink } from './view.ts'

type Intent = { workspaceId: string; link: ShortLinkRow; phoneNumberId: string }

const prepare = async (
  ctx: Context,
  { short_link_id: id }: InputOf<'messaging_delete_short_link'>,
): Promise<Intent> => {
  const workspaceId = ctx.actor.workspace.id
  const link = await reachLink(ctx, id)
  const number = (await listNumbers(ctx.tx, workspaceId)).find((one) => one.id === link.channel_id)
  if (!number || number.provider_phone_number_id === null) {
    throw new Problem(
      'conflict',
      `Channel ${link.channel_id} has no number at the messaging provider, so its link cannot be deleted there.`,
      { reason: 'channel_not_connected', channel_id: link.channel_id },
    )
  }
  return { workspaceId, link, phoneNumberId: number.provider_phone_number_id }
}

/** Refusals that may mean that there is no such link. */
const UNKNOWN_LINK = new Set<unknown>(['provider_not_found', 'provider_refused'])

/** What is gone already, by an earlier call or by other hands, is deleted too. */
const call = async (
  { link: { code }, phoneNumberId }: Intent,
  { provider, signal, again }: How,
): Promise<true> => {
  try {
    await provider.deleteLink({ phoneNumberId }, code, signal)
  } catch (error) {
    if (!(error instanceof Problem) || outcomeUnknown(error) || !UNKNOWN_LINK.has(error.extras.reason))
      throw error
    const asked = provider.findLink({ phoneNumberId }, code, signal)
    if ((await (again ? lookUp(asked) : asked)) !== undefined) throw error
  }
  return true
}

const settle = async (
  ctx: Context,
  { workspaceId, link }: Intent,
): Promise<OutputOf<'messaging_delete_short_link'>> => {
  if (await deleteShortLinkRow(ctx.tx, workspaceId, link.id))
    ctx.emit('short_link.deleted/1', eventLink(link))
  return { id: link.id, deleted: true }
}

export const deleteShortLink = inThreeParts<
  InputOf<'messaging_delete_short_link'>,
  OutputOf<'messaging_delete_short_link'>,
  Intent,
  true
>({
  prepare,
  call,
  settle,
  rehearse: () => true,
})
