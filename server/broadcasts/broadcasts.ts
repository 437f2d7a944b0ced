import {
  type BroadcastCounts,
  type BroadcastRow,
  countBroadcasts,
  type MessageStatus,
  pageOfBroadcasts,
  pageOfRecipients,
  readBroadcast,
  type RecipientRow,
} from '../../storage/broadcasts.ts'
import { maskPhone } from '../contacts/phone.ts'
import { type Actor, type Context, phonesHidden } from '../core/context.ts'
import { mayUse } from '../inbox/access.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { notFound } from '../core/problem.ts'

const recipientsIn = ({ pending, sent, delivered, read, failed }: BroadcastCounts): number =>
  pending + sent + delivered + read + failed

const show = (row: BroadcastRow) => {
  const {
    id,
    name,
    status,
    template_name,
    channel_id,
    scheduled_at,
    started_at,
    sent,
    delivered,
    read,
    failed,
    responded,
    opted_out,
  } = row
  return {
    id,
    name,
    status,
    template_name,
    channel_id,
    scheduled_at,
    started_at,
    totals: {
      recipients: recipientsIn(row),
      sent: sent + delivered + read,
      delivered: delivered + read,
      read,
      failed,
      responded,
      opted_out,
    },
  }
}

export const listBroadcasts: Handler<
  InputOf<'messaging_list_broadcasts'>,
  OutputOf<'messaging_list_broadcasts'>
> = (ctx, { status, search, ...page }) => {
  const { workspace, staff } = ctx.actor
  const filter = { channelIds: staff.channelIds, status, search }
  return pageOf(
    ctx.cursors,
    page,
    (after, limit) =>
      pageOfBroadcasts(ctx.tx, workspace.id, filter, after && { beginsAt: after[0]!, id: after[1]! }, limit),
    () => countBroadcasts(ctx.tx, workspace.id, filter),
    (row) => [row.begins_at, row.id],
    show,
  )
}

/** A broadcast on a channel that the actor may use. Throws 404. */
const reach = async (ctx: Context, id: string): Promise<BroadcastRow> => {
  const row = await readBroadcast(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !mayUse(ctx.actor, row.channel_id)) throw notFound('broadcast', id)
  return row
}

export const getBroadcast: Handler<
  InputOf<'messaging_get_broadcast'>,
  OutputOf<'messaging_get_broadcast'>
> = async (ctx, { broadcast_id: id }) => show(await reach(ctx, id))

const showRecipient = (
  actor: Actor,
  {
    contact_id: id,
    known,
    name,
    phone,
    status,
    responded,
    opted_out,
    sent_at,
    delivered_at,
    read_at,
    failed_at,
    responded_at,
  }: RecipientRow,
) => ({
  contact: known
    ? { id, name, phone: phone !== null && phonesHidden(actor) ? maskPhone(phone) : phone }
    : null,
  message_status: status,
  responded,
  opted_out,
  sent_at,
  delivered_at,
  read_at,
  failed_at,
  responded_at,
})

const countOf = (counts: BroadcastCounts, status: MessageStatus | undefined): number => {
  if (status === undefined) return recipientsIn(counts)
  return status === 'not_responded' ? recipientsIn(counts) - counts.responded : counts[status]
}

export const listBroadcastRecipients: Handler<
  InputOf<'messaging_list_broadcast_recipients'>,
  OutputOf<'messaging_list_broadcast_recipients'>
> = async (ctx, input) => {
  const { broadcast_id: id, message_status: status } = input
  const broadcast = await reach(ctx, id)
  return await pageOf(
    ctx.cursors,
    input,
    (after, limit) =>
      pageOfRecipients(ctx.tx, ctx.actor.workspace.id, broadcast.id, status, after && after[0]!, limit),
    async () => countOf(broadcast, status),
    (row) => [row.contact_id],
    (row) => showRecipient(ctx.actor, row),
  )
}
