import type { Context, InputOf } from '../../handler.ts'
import { MAX_CONVERSATION_TOTAL } from '../../../catalog/conversations/filters.ts'
import { countConversations } from '../../../storage/conversations/lists.ts'
import type { ConversationFilter } from '../../../storage/conversations/order.ts'
import type { Actor } from '../../kernel/context.ts'
import { resolveLabelIds } from '../labels/labels.ts'
import { canSeeChannel, listVisibleChannels } from '../../visibility/policy.ts'

/** What the lists of conversations have in common: their filters and their totals. */

type FilterInput = Pick<
  InputOf<'inbox_queue'>,
  'assigned_staff_id' | 'team_id' | 'channel_id' | 'tag' | 'contact_tag' | 'sla_status'
> &
  Pick<InputOf<'inbox_search_conversations'>, 'ad'>

/** Returns the channels of a list; undefined: all, and conversations whose channel was deleted. */
export const selectChannels = (
  actor: Actor,
  channelId: string | undefined,
): readonly string[] | undefined => {
  if (channelId === undefined) return listVisibleChannels(actor) ?? undefined
  return canSeeChannel(actor, channelId) ? [channelId] : []
}

const toStaffId = ({ staff }: Actor, id: string | undefined): string | null | undefined =>
  id === 'me' ? staff.id : id === 'none' ? null : id

const resolveTag = async (
  ctx: Context,
  field: string,
  tag: string | undefined,
): Promise<string | undefined> =>
  tag === undefined ? undefined : (await resolveLabelIds(ctx, 'tag', [tag], () => [field]))[0]

/** Throws 400 `unknown_tag` for a name that no tag has. */
export const toConversationFilter = async (
  ctx: Context,
  { assigned_staff_id, team_id, channel_id, tag, contact_tag, sla_status: status, ad }: FilterInput,
): Promise<ConversationFilter> => ({
  assignedStaffId: toStaffId(ctx.actor, assigned_staff_id),
  teamId: team_id,
  channels: selectChannels(ctx.actor, channel_id),
  tagId: await resolveTag(ctx, 'tag', tag),
  adId: ad,
  contactTagId: await resolveTag(ctx, 'contact_tag', contact_tag),
  sla: status === undefined ? undefined : { status, now: ctx.now },
})

/**
 * Returns the total of a list: on the first page when it holds all rows, or else when there is a `filter` to
 * count by. `rows`: those of the page, one more than `limit` where there is a next page.
 */
export const showTotal = async (
  { tx, actor }: Context,
  isLaterPage: boolean,
  rows: readonly unknown[],
  limit: number,
  filter: ConversationFilter | undefined,
  waiting?: true,
): Promise<{ total: number | null; total_is_lower_bound: boolean | null }> => {
  if (isLaterPage) return { total: null, total_is_lower_bound: null }
  if (rows.length <= limit) return { total: rows.length, total_is_lower_bound: false }
  if (filter === undefined) return { total: null, total_is_lower_bound: null }
  const most = MAX_CONVERSATION_TOTAL + 1
  const counted = await countConversations(tx, actor.workspace.id, filter, most, waiting)
  return { total: Math.min(counted, MAX_CONVERSATION_TOTAL), total_is_lower_bound: counted === most }
}
