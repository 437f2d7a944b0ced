import { filterLimits } from '../../../catalog/filters.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import { type FieldError, Problem } from '../../kernel/problem.ts'
import { explainFilter } from './explain.ts'
import { warnAboutLabels } from './labels.ts'
import { parseNode } from './parse-node.ts'
import { expandSavedFilters, loadSavedFilters } from './saved.ts'
import { requireValidPatterns } from './regex-check.ts'
import {
  createParseState,
  type FilterContext,
  type FilterPath,
  toRequestPath,
  type SavedFilterReference,
  createFilterProblem,
  type ResolvedDate,
  type ParseState,
  type FilterWarning,
} from './parse-state.ts'

export type { FilterContext } from './parse-state.ts'

export type ParsedFilter = {
  /** The filter that storage runs, saved filters expanded. */
  filter: ContactFilter
  /** The filter as it was sent, with absolute dates, which is stored and shown. */
  absolute: Record<string, unknown>
  resolvedDates: ResolvedDate[]
  warnings: FilterWarning[]
  /** Operators and depth of the filter as it is written, without its saved filters. */
  conditions: number
  depth: number
  explanation: string
}

type ParseFilterOptions = {
  /** The path of the filter in the request; `['filter']` when absent. */
  path?: FilterPath
  /** The time that relative dates count from; business time when absent. */
  now?: string
  /** The id of the saved filter that this is to become. */
  ownId?: string
}

/**
 * Checks a contact filter and resolves its dates, custom fields and saved filters. Throws 400
 * `invalid_input`, 403 `forbidden` (`phone_hidden`, `field_hidden`), 404 `saved_filter_not_found`, 503
 * `advanced_filter_disabled`; catalog/reasons.ts has all reasons.
 */
export const parseFilter = async (
  ctx: FilterContext,
  given: Record<string, unknown>,
  options: ParseFilterOptions = {},
): Promise<ParsedFilter> => {
  requireFiltersEnabled(ctx)
  const { path = ['filter'] } = options
  const text = JSON.stringify(given)
  const bytes = Buffer.byteLength(text)
  if (bytes > filterLimits.bytes)
    throw createFilterProblem(
      path,
      'filter_too_large',
      `has ${bytes} bytes as JSON`,
      `Send at most ${filterLimits.bytes} bytes.`,
    )
  const fields = NEEDS_FIELDS.test(text) ? await listFields(ctx.tx, ctx.actor.workspace.id) : []
  const state = createParseState(ctx, fields, options.now ?? ctx.now)
  const parsed = parseNode(state, given, { path, level: 0 })
  if (state.errors.length > 0) throw createInvalidFilterProblem(state.errors)
  const absolute = parsed.absolute as Record<string, unknown>
  const saved = await loadSavedFilters(ctx, state.references, fields, options.ownId)
  const filter = expandSavedFilters(saved, parsed.filter, state, path)
  await requireValidPatterns(ctx, listPatterns([state, ...[...saved.values()].map((saved) => saved.state)]))
  await warnAboutLabels(state)
  return {
    filter,
    absolute,
    resolvedDates: state.resolvedDates,
    warnings: state.warnings,
    conditions: state.conditions,
    depth: state.depth,
    explanation: explainFilter(absolute, { zone: state.zone, fields, saved }),
  }
}

/** Keys whose parsing depends on custom fields. */
const NEEDS_FIELDS = /"(?:attributes|email|savedFilter)"/

/**
 * Parses the condition of a search or a count: the filter and the saved filter, which must both match;
 * undefined when neither is given.
 */
export const parseConditions = async (
  ctx: FilterContext,
  input: { filter?: Record<string, unknown> | undefined; saved_filter_id?: string | number | undefined },
  now?: string,
): Promise<{
  filter: ContactFilter | undefined
  resolvedDates: ResolvedDate[]
  warnings: FilterWarning[]
}> => {
  const parsed = input.filter && (await parseFilter(ctx, input.filter, now === undefined ? {} : { now }))
  const saved =
    input.saved_filter_id === undefined
      ? undefined
      : await parseSavedFilter(ctx, String(input.saved_filter_id))
  const both = [parsed?.filter, saved].filter((filter) => filter !== undefined)
  return {
    filter: both.length > 1 ? { kind: 'and', of: both } : both[0],
    resolvedDates: parsed?.resolvedDates ?? [],
    warnings: parsed?.warnings ?? [],
  }
}

/** The conditions of a saved filter, others that it refers to expanded. Throws as `parseFilter`. */
export const parseSavedFilter = async (ctx: FilterContext, id: string): Promise<ContactFilter> => {
  requireFiltersEnabled(ctx)
  const reference: SavedFilterReference = {
    id,
    path: ['saved_filter_id'],
    level: 0,
    placeholder: { kind: 'and', of: [] },
  }
  const saved = await loadSavedFilters(ctx, [reference], await listFields(ctx.tx, ctx.actor.workspace.id))
  const filter = expandSavedFilters(
    saved,
    reference.placeholder,
    { references: [reference], conditions: 0, depth: 0 },
    reference.path,
  )
  await requireValidPatterns(ctx, listPatterns([...saved.values()].map((saved) => saved.state)))
  return filter
}

const requireFiltersEnabled = (ctx: FilterContext): void => {
  if (!ctx.services.config.filters.enabled)
    throw new Problem('service_unconfigured', 'Contact filters are disabled on this server.', {
      reason: 'advanced_filter_disabled',
    })
}

const listPatterns = (states: readonly ParseState[]) =>
  states.flatMap((state) =>
    state.patterns.map(({ path, pattern }) => ({
      path: toRequestPath(state, path),
      pattern,
      isSaved: state.within !== undefined,
    })),
  )

const createInvalidFilterProblem = (errors: FieldError[]): Problem => {
  const [first] = errors
  return new Problem(
    'invalid_input',
    errors.length === 1
      ? `${first!.pointer!.slice(2)} ${first!.detail}.`
      : `${errors.length} parts of the filter are invalid.`,
    { errors },
  )
}
