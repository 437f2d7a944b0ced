import type { Context, Handler } from '../../handler.ts'
import {
  type BroadcastCounts,
  type BroadcastRow,
  countBroadcasts,
  type RecipientStatusFilter,
  listBroadcastRows,
  listRecipientRows,
  loadBroadcast,
  type RecipientRow,
} from '../../../storage/broadcasts/broadcasts.ts'
import type { Actor } from '../../kernel/context.ts'
import { createPage } from '../../kernel/paging.ts'
import { notFound } from '../../kernel/problem.ts'
import { showContactName, showPhone, showQuotingText } from '../../visibility/phones.ts'
import { canSeeChannel, hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'

const countRecipients = ({ pending, sent, delivered, read, failed }: BroadcastCounts): number =>
  pending + sent + delivered + read + failed

/** When the next hours begin tells the time zones of the recipients, as their phones do. */
const showWaiting = (actor: Actor, { job_state: state, waiting }: BroadcastRow) => {
  if (state === 'paused' || state === 'failed') return { reason: 'stopped' as const, until: null }
  if (state !== 'running' || !waiting) return null
  return hasHiddenPhones(actor) ? { ...waiting, until: null } : waiting
}

export const showBroadcast = (actor: Actor, row: BroadcastRow) => {
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
    job_id,
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
      recipients: countRecipients(row),
      sent: sent + delivered + read,
      delivered: delivered + read,
      read,
      failed,
      responded,
      opted_out,
    },
    job_id,
    waiting: showWaiting(actor, row),
  }
}

export const listBroadcasts: Handler<'messaging_list_broadcasts'> = (ctx, { status, search, ...page }) => {
  const { workspace } = ctx.actor
  const filter = { channelIds: listVisibleChannels(ctx.actor), status, search }
  return createPage({
    cursors: ctx.cursors,
    input: page,
    load: (after, limit) =>
      listBroadcastRows(ctx.tx, workspace.id, filter, after && { beginsAt: after[0]!, id: after[1]! }, limit),
    count: () => countBroadcasts(ctx.tx, workspace.id, filter),
    toPosition: (row) => [row.begins_at, row.id],
    toItem: (row) => showBroadcast(ctx.actor, row),
  })
}

/** Returns a broadcast on a channel that the actor may use. Throws 404. */
export const requireBroadcast = async (ctx: Context, id: string): Promise<BroadcastRow> => {
  const row = await loadBroadcast(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !canSeeChannel(ctx.actor, row.channel_id)) throw notFound('broadcast', id)
  return row
}

export const getBroadcast: Handler<'messaging_get_broadcast'> = async (ctx, { broadcast_id: id }) =>
  showBroadcast(ctx.actor, await requireBroadcast(ctx, id))

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
    error,
  }: RecipientRow,
) => ({
  contact: known ? { id, name: showContactName(actor, name), phone: showPhone(actor, phone) } : null,
  message_status: status,
  responded,
  opted_out,
  sent_at,
  delivered_at,
  read_at,
  failed_at,
  responded_at,
  error: showQuotingText(actor, error),
})

const countWithStatus = (counts: BroadcastCounts, status: RecipientStatusFilter | undefined): number => {
  if (status === undefined) return countRecipients(counts)
  return status === 'not_responded' ? countRecipients(counts) - counts.responded : counts[status]
}

export const listBroadcastRecipients: Handler<'messaging_list_broadcast_recipients'> = async (ctx, input) => {
  const { broadcast_id: id, message_status: status } = input
  const broadcast = await requireBroadcast(ctx, id)
  return await createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listRecipientRows(ctx.tx, ctx.actor.workspace.id, broadcast.id, status, after && after[0]!, limit),
    count: async () => countWithStatus(broadcast, status),
    toPosition: (row) => [row.contact_id],
    toItem: (row) => showRecipient(ctx.actor, row),
  })
}
