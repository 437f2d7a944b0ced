import { filterLimits } from '../../catalog/filters.ts'
import type { FieldRow } from '../../storage/custom-fields.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import { findSavedFilters, type SavedFilterRow } from '../../storage/saved-filters.ts'
import type { Context } from '../core/context.ts'
import { pointerOf, Problem } from '../core/problem.ts'
import { readNode } from './node.ts'
import { newWalk, type Path, type Reference, refusal, type Walk } from './walk.ts'

/** A saved filter that a filter names, itself or through others. */
export type Saved = { name: string; filter: Filter; walk: Walk }

/**
 * With its saved filters in their places a filter may have ten times the conditions of one, and nest eight
 * times as deep: statements must end somewhere.
 */
const MOST_CONDITIONS = 10 * filterLimits.conditions
const MOST_DEPTH = 8 * filterLimits.depth

/**
 * Every saved filter that these references lead to, a query for each level of them. `ownId` is the one that
 * the references are to stand in.
 */
export const findAllSaved = async (
  ctx: Context,
  references: readonly Reference[],
  fields: readonly FieldRow[],
  ownId?: string,
): Promise<Map<string, Saved>> => {
  const found = new Map<string, Saved>()
  for (let level = references; level.length > 0;) {
    const own = level.find(({ id }) => id === ownId)
    if (own) throw cycle(own.path)
    const next = new Map(
      level.filter(({ id }) => !found.has(id)).map((reference) => [reference.id, reference]),
    )
    if (found.size + next.size > MOST_CONDITIONS)
      throw tooMany(level[0]!.path, `more than ${MOST_CONDITIONS}`)
    const rows =
      next.size === 0 ? [] : await findSavedFilters(ctx.tx, ctx.actor.workspace.id, [...next.keys()])
    for (const { id, path } of next.values())
      found.set(
        id,
        readSaved(
          ctx,
          fields,
          rows.find((row) => row.id === id),
          id,
          path,
        ),
      )
    level = [...next.keys()].flatMap((id) => found.get(id)!.walk.references)
  }
  return found
}

const readSaved = (
  ctx: Context,
  fields: readonly FieldRow[],
  row: SavedFilterRow | undefined,
  id: string,
  path: Path,
): Saved => {
  if (!row) {
    throw new Problem('not_found', `No saved filter with the id ${id}.`, {
      reason: 'saved_filter_not_found',
      errors: [
        {
          pointer: pointerOf(path),
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
            pointer: pointerOf(path),
            code: 'wrong_kind',
            detail: 'is a saved filter of conversations',
            fix: 'Use a saved filter of contacts.',
          },
        ],
      },
    )
  }
  const walk = newWalk(ctx, fields, ctx.now, { name: row.name, path })
  const { filter } = readNode(walk, row.filter, [], 0)
  const [first] = walk.errors
  if (first) {
    throw new Problem(
      'invalid_input',
      `The saved filter "${row.name}" no longer fits: ${first.pointer} ${first.detail}.`,
      {
        errors: [
          {
            pointer: pointerOf(path),
            code: 'saved_filter_broken',
            detail: `no longer fits: in it, ${first.pointer} ${first.detail}`,
            fix: 'Correct the saved filter, or leave it out.',
          },
        ],
      },
    )
  }
  return { name: row.name, filter, walk }
}

const cycle = (path: Path): Problem =>
  refusal(
    path,
    'saved_filter_cycle',
    'leads back to itself',
    'Take the saved filter out of those that it names.',
  )
const tooMany = (path: Path, count: number | string): Problem =>
  refusal(
    path,
    'filter_too_many_conditions',
    `has ${count} conditions with its saved filters`,
    `Use fewer saved filters: at most ${MOST_CONDITIONS} conditions all in all.`,
  )

type Size = { conditions: number; depth: number }

/**
 * Puts saved filters in the places of their references. Throws on cycles, and when the whole becomes too
 * large.
 */
export const expand = (
  saved: ReadonlyMap<string, Saved>,
  filter: Filter,
  walk: Pick<Walk, 'references' | 'conditions' | 'depth'>,
  path: Path,
): Filter => {
  if (walk.references.length === 0) return filter
  const sizes = new Map<string, Size | 'open'>()
  const sizeOf = ({
    references,
    conditions,
    depth,
  }: Pick<Walk, 'references' | 'conditions' | 'depth'>): Size => {
    const size = { conditions, depth }
    for (const { id, level, path: named } of references) {
      if (sizes.get(id) === 'open') throw cycle(named)
      if (!sizes.has(id)) {
        sizes.set(id, 'open')
        sizes.set(id, sizeOf(saved.get(id)!.walk))
      }
      const inner = sizes.get(id) as Size
      size.conditions += inner.conditions
      size.depth = Math.max(size.depth, level + inner.depth)
    }
    return size
  }
  const size = sizeOf(walk)
  if (size.conditions > MOST_CONDITIONS) throw tooMany(path, size.conditions)
  if (size.depth > MOST_DEPTH)
    throw refusal(
      path,
      'filter_too_deep',
      `is ${size.depth} deep with its saved filters`,
      `Nest at most ${MOST_DEPTH} deep all in all.`,
    )
  const targets = new Map(
    [walk, ...[...saved.values()].map((one) => one.walk)]
      .flatMap(({ references }) => references)
      .map(({ standIn, id }) => [standIn, saved.get(id)!.filter]),
  )
  const replace = (node: Filter): Filter => {
    const target = targets.get(node)
    if (target) return replace(target)
    if (node.kind === 'and' || node.kind === 'or') return { ...node, of: node.of.map(replace) }
    return node.kind === 'not' ? { ...node, of: replace(node.of) } : node
  }
  return replace(filter)
}
