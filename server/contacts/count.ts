import { type Count, countContacts as count } from '../../storage/filters/count.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import type { Context } from '../core/context.ts'
import { readConditions } from '../filters/read.ts'
import { inFilterTime } from '../filters/time.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'

/**
 * How many contacts match a checked filter, all when there is none: exact, or an estimate when that would
 * take too long.
 */
export const countMatching = (ctx: Context, filter: Filter | undefined): Promise<Count> =>
  inFilterTime(count(ctx.tx, ctx.actor.workspace.id, filter ? [filter] : [], ctx.filters.countTimeBoxMs))

export const countContacts: Handler<InputOf<'crm_count_contacts'>, OutputOf<'crm_count_contacts'>> = async (
  ctx,
  input,
) => {
  const { filter, resolvedDates, warnings } = await readConditions(ctx, input)
  return { ...(await countMatching(ctx, filter)), resolved_dates: resolvedDates, warnings }
}
