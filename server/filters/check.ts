import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { readFilter } from './read.ts'

export const checkFilter: Handler<InputOf<'crm_check_filter'>, OutputOf<'crm_check_filter'>> = async (
  ctx,
  input,
) => {
  const read = await readFilter(ctx, input.filter)
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
