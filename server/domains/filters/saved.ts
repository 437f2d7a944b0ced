import { filterLimits } from '../../../catalog/filters.ts'
import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import { findSavedFilters, type SavedFilterRow } from '../../../storage/filters/saved-filters.ts'
import { toPointer, Problem } from '../../kernel/problem.ts'
import { parseNode } from './parse-node.ts'
import {
  createParseState,
  type FilterContext,
  type FilterPath,
  type SavedFilterReference,
  createFilterProblem,
  type ParseState,
} from './parse-state.ts'

/** A saved filter that a filter refers to, itself or through others. */
export type LoadedSavedFilter = { name: string; filter: ContactFilter; state: ParseState }

/**
 * With its saved filters expanded, a filter may have ten times the conditions of one, and nest eight times as
 * deep, which bounds the size of statements.
 */
const MAX_EXPANDED_CONDITIONS = 10 * filterLimits.conditions
const MAX_EXPANDED_DEPTH = 8 * filterLimits.depth

/**
 * Loads every saved filter that these references lead to, with one query for each level. `ownId`: the saved
 * filter that the references will be part of.
 */
export const loadSavedFilters = async (
  ctx: FilterContext,
  references: readonly SavedFilterReference[],
  fields: readonly FieldRow[],
  ownId?: string,
): Promise<Map<string, LoadedSavedFilter>> => {
  const found = new Map<string, LoadedSavedFilter>()
  for (let level = references; level.length > 0;) {
    const own = level.find(({ id }) => id === ownId)
    if (own) throw createCycleProblem(own.path)
    const next = new Map(
      level.filter(({ id }) => !found.has(id)).map((reference) => [reference.id, reference]),
    )
    if (found.size + next.size > MAX_EXPANDED_CONDITIONS)
      throw createTooManyConditionsProblem(level[0]!.path, `more than ${MAX_EXPANDED_CONDITIONS}`)
    const rows =
      next.size === 0 ? [] : await findSavedFilters(ctx.tx, ctx.actor.workspace.id, [...next.keys()])
    for (const { id, path } of next.values())
      found.set(
        id,
        parseSavedFilterRow(
          ctx,
          fields,
          rows.find((row) => row.id === id),
          id,
          path,
        ),
      )
    level = [...next.keys()].flatMap((id) => found.get(id)!.state.references)
  }
  return found
}

const parseSavedFilterRow = (
  ctx: FilterContext,
  fields: readonly FieldRow[],
  row: SavedFilterRow | undefined,
  id: string,
  path: FilterPath,
): LoadedSavedFilter => {
  if (!row) {
    throw new Problem('not_found', `No saved filter with the id ${id}.`, {
      reason: 'saved_filter_not_found',
      errors: [
        {
          pointer: toPointer(path),
          code: 'saved_filter_not_found',
          detail: 'is not the id of a saved filter',
          fix: 'List the saved filters to find its id.',
        },
      ],
    })
  }
  if (row.kind !== 'contact') {
    throw new Problem(
      'invalid_input',
      `The saved filter "${row.name}" filters conversations, not contacts.`,
      {
        errors: [
          {
            pointer: toPointer(path),
            code: 'wrong_kind',
            detail: 'is a saved filter of conversations',
            fix: 'Use a saved filter of contacts.',
          },
        ],
      },
    )
  }
  const state = createParseState(ctx, fields, ctx.now, { name: row.name, path })
  const { filter } = parseNode(state, row.filter, { path: [], level: 0 })
  const [first] = state.errors
  if (first) {
    throw new Problem(
      'invalid_input',
      `The saved filter "${row.name}" is no longer valid: ${first.pointer} ${first.detail}.`,
      {
        errors: [
          {
            pointer: toPointer(path),
            code: 'saved_filter_broken',
            detail: `no longer fits: in it, ${first.pointer} ${first.detail}`,
            fix: 'Correct the saved filter, or remove it.',
          },
        ],
      },
    )
  }
  return { name: row.name, filter, state }
}

const createCycleProblem = (path: FilterPath): Problem =>
  createFilterProblem(
    path,
    'saved_filter_cycle',
    'leads back to itself',
    'Remove the reference to this saved filter from the filters that it refers to.',
  )
const createTooManyConditionsProblem = (path: FilterPath, count: number | string): Problem =>
  createFilterProblem(
    path,
    'filter_too_many_conditions',
    `has ${count} conditions with its saved filters`,
    `Use fewer saved filters: at most ${MAX_EXPANDED_CONDITIONS} conditions in total.`,
  )

type Size = { conditions: number; depth: number }

/** Replaces references by their saved filters. Throws on cycles, and when the result is too large. */
export const expandSavedFilters = (
  saved: ReadonlyMap<string, LoadedSavedFilter>,
  filter: ContactFilter,
  state: Pick<ParseState, 'references' | 'conditions' | 'depth'>,
  path: FilterPath,
): ContactFilter => {
  if (state.references.length === 0) return filter
  const sizes = new Map<string, Size | 'open'>()
  const sizeOf = ({
    references,
    conditions,
    depth,
  }: Pick<ParseState, 'references' | 'conditions' | 'depth'>): Size => {
    const size = { conditions, depth }
    for (const { id, level, path: named } of references) {
      if (sizes.get(id) === 'open') throw createCycleProblem(named)
      if (!sizes.has(id)) {
        sizes.set(id, 'open')
        sizes.set(id, sizeOf(saved.get(id)!.state))
      }
      const inner = sizes.get(id) as Size
      size.conditions += inner.conditions
      size.depth = Math.max(size.depth, level + inner.depth)
    }
    return size
  }
  const size = sizeOf(state)
  if (size.conditions > MAX_EXPANDED_CONDITIONS) throw createTooManyConditionsProblem(path, size.conditions)
  if (size.depth > MAX_EXPANDED_DEPTH)
    throw createFilterProblem(
      path,
      'filter_too_deep',
      `is ${size.depth} deep with its saved filters`,
      `Nest at most ${MAX_EXPANDED_DEPTH} levels deep in total.`,
    )
  const targets = new Map(
    [state, ...[...saved.values()].map((one) => one.state)]
      .flatMap(({ references }) => references)
      .map(({ placeholder, id }) => [placeholder, saved.get(id)!.filter]),
  )
  const replace = (node: ContactFilter): ContactFilter => {
    const target = targets.get(node)
    if (target) return replace(target)
    if (node.kind === 'and' || node.kind === 'or') return { ...node, of: node.of.map(replace) }
    return node.kind === 'not' ? { ...node, of: replace(node.of) } : node
  }
  return replace(filter)
}
