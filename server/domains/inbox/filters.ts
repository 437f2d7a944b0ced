import type { Context, InputOf } from '../../handler.ts'
import { MAX_CONVERSATION_TOTAL } from '../../../catalog/conversations/filters.ts'
import { countConversations } from '../../../storage/conversations/lists.ts'
import type { ConversationFilter } from '../../../storage/conversations/order.ts'
import type { Actor } from '../../kernel/context.ts'
import { invalidField } from '../../kernel/problem.ts'
import { parseFilterDate } from '../filters/dates.ts'
import { resolveLabelIds } from '../labels/labels.ts'
import { canSeeChannel, listVisibleChannels } from '../../visibility/policy.ts'

/** What the lists of conversations have in common: their filters and their totals. */

type FilterInput = Omit<
  InputOf<'inbox_search_conversations'>,
  'sort' | 'count' | 'limit' | 'cursor' | 'query'
> &
  Pick<InputOf<'inbox_queue'>, 'contact_tag'>

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

/** Throws 400 `unknown_tag` for a name that no tag has, and `invalid_date`. `path`: of the filter in the input. */
export const toConversationFilter = async (
  ctx: Context,
  input: FilterInput,
  path: readonly string[] = [],
): Promise<ConversationFilter> => {
  const resolveDate = (
    name: 'last_message_before' | 'last_customer_message_before' | 'waiting_longer_than',
  ): string | undefined => {
    const text = input[name]
    if (text === undefined) return undefined
    const date = parseFilterDate(text, ctx.now, ctx.actor.workspace.timezone)
    if (!('detail' in date)) return date.instant
    const [field, ...rest] = [...path, name]
    throw invalidField(field!, 'invalid_date', date.detail, { path: rest, fix: date.fix })
  }
  return {
    state: input.state,
    assigned: input.assigned,
    assignedStaffId: toStaffId(ctx.actor, input.assigned_staff_id),
    teamId: input.team_id,
    channels: selectChannels(ctx.actor, input.channel_id),
    contactId: input.contact_id,
    tagId: await resolveTag(ctx, 'tag', input.tag),
    adId: input.ad,
    contactTagId: await resolveTag(ctx, 'contact_tag', input.contact_tag),
    sla: input.sla_status === undefined ? undefined : { status: input.sla_status, now: ctx.now },
    replyStatus: input.reply_status,
    delivery: input.delivery,
    lastMessageBefore: resolveDate('last_message_before'),
    lastInboundBefore: resolveDate('last_customer_message_before'),
    waitingBefore: resolveDate('waiting_longer_than'),
    inShortSteps: ctx.services.config.filters.stepMs !== undefined,
  }
}

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
