import type { Context, Handler } from '../../handler.ts'
import { type MatchCount, countMatches as countRows } from '../../../storage/filters/count.ts'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import { parseConditions } from '../filters/parse-filter.ts'

/**
 * Returns how many contacts match a checked filter, or how many there are without one: exact, or an
 * estimate when counting takes longer than `countTimeBoxMs`.
 */
export const countMatching = (ctx: Context, filter: ContactFilter | undefined): Promise<MatchCount> =>
  countRows(
    ctx.heavy,
    ctx.actor.workspace.id,
    filter ? [filter] : [],
    ctx.services.config.filters.countTimeBoxMs,
    ctx.services.config.filters.stepMs,
  )

export const countContacts: Handler<'crm_count_contacts'> = async (ctx, input) => {
  const { filter, resolvedDates, warnings } = await parseConditions(ctx, input)
  return { ...(await countMatching(ctx, filter)), resolved_dates: resolvedDates, warnings }
}
