import { filterLimits } from '../../catalog/filters.ts'
import { listFields } from '../../storage/custom-fields.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import { regexFault } from '../../storage/filters/regex.ts'
import type { Context } from '../core/context.ts'
import { type FieldError, Problem } from '../core/problem.ts'
import { explain } from './explain.ts'
import { warnOfLabels } from './labels.ts'
import { readNode } from './node.ts'
import { expand, findAllSaved } from './saved.ts'
import { inFilterTime } from './time.ts'
import {
  newWalk,
  type Path,
  placeOf,
  type Reference,
  refusal,
  type ResolvedDate,
  type Walk,
  type Warning,
} from './walk.ts'

export type ReadFilter = {
  /** What storage is asked, saved filters in their places. */
  filter: Filter
  /** The filter as it was sent, its dates absolute: what is stored and shown. */
  absolute: Record<string, unknown>
  resolvedDates: ResolvedDate[]
  warnings: Warning[]
  /** Operators and depth of the filter as it is written, its saved filters left aside. */
  conditions: number
  depth: number
  explanation: string
}

type Options = {
  /** Where the filter stands in the request; `['filter']` when absent. */
  path?: Path
  /** What relative dates count from; business time when absent. */
  now?: string
  /** The saved filter that this is to become. */
  ownId?: string
}

/**
 * Checks a contact filter and resolves its dates, custom fields and saved filters. Throws 400
 * `invalid_input` (with the reasons of spec "Errors"), 403
 * `forbidden` (`phone_hidden`, `field_hidden`), 404 `saved_filter_not_found`, 503 `advanced_filter_disabled`.
 */
export const readFilter = async (
  ctx: Context,
  given: Record<string, unknown>,
  options: Options = {},
): Promise<ReadFilter> => {
  requireFilters(ctx)
  const { path = ['filter'] } = options
  const text = JSON.stringify(given)
  const bytes = Buffer.byteLength(text)
  if (bytes > filterLimits.bytes)
    throw refusal(
      path,
      'filter_too_large',
      `has ${bytes} bytes as JSON`,
      `Send at most ${filterLimits.bytes} bytes.`,
    )
  const fields = NEEDS_FIELDS.test(text) ? await listFields(ctx.tx, ctx.actor.workspace.id) : []
  const walk = newWalk(ctx, fields, options.now ?? ctx.now)
  const read = readNode(walk, given, path, 0)
  if (walk.errors.length > 0) throw invalid(walk.errors)
  const absolute = read.absolute as Record<string, unknown>
  const saved = await findAllSaved(ctx, walk.references, fields, options.ownId)
  const filter = expand(saved, read.filter, walk, path)
  await requireGoodPatterns(ctx, [walk, ...[...saved.values()].map((one) => one.walk)])
  await warnOfLabels(walk)
  return {
    filter,
    absolute,
    resolvedDates: walk.resolvedDates,
    warnings: walk.warnings,
    conditions: walk.conditions,
    depth: walk.depth,
    explanation: explain(absolute, { zone: walk.zone, fields, saved }),
  }
}

/** Fields whose rules are those of a custom field. */
const NEEDS_FIELDS = /"(?:attributes|email|savedFilter)"/

/**
 * The condition of a search or a count: filter and saved filter, which must both match; undefined when
 * neither is given.
 */
export const readConditions = async (
  ctx: Context,
  input: { filter?: Record<string, unknown> | undefined; saved_filter_id?: string | number | undefined },
  now?: string,
): Promise<{ filter: Filter | undefined; resolvedDates: ResolvedDate[]; warnings: Warning[] }> => {
  const read = input.filter && (await readFilter(ctx, input.filter, now === undefined ? {} : { now }))
  const saved =
    input.saved_filter_id === undefined
      ? undefined
      : await readSavedFilter(ctx, String(input.saved_filter_id))
  const both = [read?.filter, saved].filter((filter) => filter !== undefined)
  return {
    filter: both.length > 1 ? { kind: 'and', of: both } : both[0],
    resolvedDates: read?.resolvedDates ?? [],
    warnings: read?.warnings ?? [],
  }
}

const readSavedFilter = async (ctx: Context, id: string): Promise<Filter> => {
  requireFilters(ctx)
  const reference: Reference = { id, path: ['saved_filter_id'], level: 0, standIn: { kind: 'and', of: [] } }
  const saved = await findAllSaved(ctx, [reference], await listFields(ctx.tx, ctx.actor.workspace.id))
  const filter = expand(
    saved,
    reference.standIn,
    { references: [reference], conditions: 0, depth: 0 },
    reference.path,
  )
  await requireGoodPatterns(
    ctx,
    [...saved.values()].map((one) => one.walk),
  )
  return filter
}

const requireFilters = (ctx: Context): void => {
  if (!ctx.filters.on)
    throw new Problem('service_unconfigured', 'Contact filters are switched off on this server.', {
      reason: 'advanced_filter_disabled',
    })
}

const requireGoodPatterns = async (ctx: Context, walks: readonly Walk[]): Promise<void> => {
  const patterns = walks.flatMap((walk) =>
    walk.patterns.map(({ path, pattern }) => ({ path: placeOf(walk, path), pattern })),
  )
  const bad =
    patterns.length > 0
      ? await inFilterTime(
          regexFault(
            ctx.tx,
            patterns.map(({ pattern }) => pattern),
          ),
        )
      : undefined
  if (!bad) return
  const detail = `is not a regular expression that PostgreSQL takes: ${bad.fault}`
  throw refusal(
    patterns[bad.index]!.path,
    'filter_regex_invalid',
    detail,
    'Correct the expression, or use contains for plain text.',
  )
}

const invalid = (errors: FieldError[]): Problem => {
  const [first] = errors
  return new Problem(
    'invalid_input',
    errors.length === 1
      ? `${first!.pointer!.slice(2)} ${first!.detail}.`
      : `${errors.length} parts of the filter are wrong.`,
    { errors },
  )
}
