import type { Handler } from '../../handler.ts'
import { parseFilter } from './parse-filter.ts'

export const checkFilter: Handler<'crm_check_filter'> = async (ctx, input) => {
  const parsed = await parseFilter(ctx, input.filter)
  return {
    valid: true,
    filter: parsed.absolute,
    resolved_dates: parsed.resolvedDates,
    warnings: parsed.warnings,
    conditions: parsed.conditions,
    depth: parsed.depth,
    explanation: parsed.explanation,
  }
}
