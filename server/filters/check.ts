import type { Handler } from '../core/handler.ts'
import { parseFilter } from './parse-filter.ts'

export const checkFilter: Handler<'crm_check_filter'> = async (ctx, input) => {
  const read = await parseFilter(ctx, input.filter)
  return {
    valid: true,
    filter: read.absolute,
    resolved_dates: read.resolvedDates,
    warnings: read.warnings,
    conditions: read.conditions,
    depth: read.depth,
    explanation: read.explanation,
  }
}
