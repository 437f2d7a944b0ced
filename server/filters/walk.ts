import type { FieldRow } from '../../storage/custom-fields.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import type { Context } from '../core/context.ts'
import { nearest } from '../nearest.ts'
import { type FieldError, pointerOf, Problem } from '../core/problem.ts'
import { synonyms } from './grammar.ts'
import type { NamedLabels } from './labels.ts'

/** Where something stands in a request: the steps of a JSON Pointer. */
export type Path = readonly (string | number)[]
export type ResolvedDate = { path: string; input: string; value: string }
export type Warning = { path: string; message: string }
/**
 * A saved filter that a filter names. `level`: how many combinators it stands in; `standIn`: the node that
 * it takes the place of.
 */
export type Reference = { id: string; path: Path; level: number; standIn: Filter }

/** What is gathered on the way through one filter. */
export type Walk = {
  readonly ctx: Context
  readonly now: string
  readonly zone: string
  readonly fields: readonly FieldRow[]
  /** Set on the way through a saved filter: its name, and where the request names it. */
  readonly within: { name: string; path: Path } | undefined
  readonly errors: FieldError[]
  readonly warnings: Warning[]
  readonly resolvedDates: ResolvedDate[]
  readonly patterns: { path: Path; pattern: string }[]
  readonly references: Reference[]
  readonly labels: NamedLabels[]
  conditions: number
  depth: number
}

export const newWalk = (
  ctx: Context,
  fields: readonly FieldRow[],
  now: string,
  within?: Walk['within'],
): Walk => ({
  ctx,
  now,
  zone: ctx.actor.workspace.timezone,
  fields,
  within,
  errors: [],
  warnings: [],
  resolvedDates: [],
  patterns: [],
  references: [],
  labels: [],
  conditions: 0,
  depth: 0,
})

const MOST_ERRORS = 50

/** Notes a fault and goes on, so that one answer names them all. */
export const fault = (walk: Walk, path: Path, error: Omit<FieldError, 'pointer'>): undefined => {
  if (walk.errors.length < MOST_ERRORS) walk.errors.push({ pointer: pointerOf(path), ...error })
}

/** A name that is none of these. */
export const unknownName = (
  walk: Walk,
  path: Path,
  what: string,
  given: string,
  valid: readonly string[],
  code = `unknown_${what}`,
): undefined => {
  const bare = given.replace(/^\$/, '')
  const camel = bare.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const near =
    [bare, camel, synonyms[bare]].find((name) => name !== undefined && valid.includes(name)) ??
    nearest(given, valid)
  const detail = `is not ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what} here`
  fault(walk, path, {
    code,
    detail,
    fix: near ? `Did you mean ${near}?` : `Use one of ${valid.join(', ')}.`,
    allowed: valid,
  })
}

export const warn = (walk: Walk, path: Path, message: string): void => {
  walk.warnings.push({ path: pointerOf(path), message })
}

/** The place to point at: what stands in a saved filter is not in the request, its name is. */
export const placeOf = (walk: Walk, path: Path): Path => walk.within?.path ?? path

/** A refusal by a limit, which has a reason of its own. */
export const overLimit = (walk: Walk, path: Path, reason: string, detail: string, fix: string): Problem =>
  refusal(placeOf(walk, path), reason, detail, fix)

export const refusal = (path: Path, reason: string, detail: string, fix: string): Problem =>
  new Problem('invalid_input', `${path.join('/')} ${detail}.`, {
    reason,
    errors: [{ pointer: pointerOf(path), code: reason, detail, fix }],
  })

/** A condition that would tell what the staff member may not see. */
export const hidden = (
  walk: Walk,
  path: Path,
  reason: 'phone_hidden' | 'field_hidden',
  what: string,
): Problem => {
  const place = placeOf(walk, path)
  const where = walk.within ? `, and the saved filter "${walk.within.name}" compares them` : ''
  return new Problem('forbidden', `${what} are hidden from you${where}.`, {
    reason,
    errors: [
      {
        pointer: pointerOf(place),
        code: reason,
        detail: `would compare ${what.toLowerCase()}, which are hidden from you`,
        fix: walk.within ? 'Leave this saved filter out.' : 'Leave this condition out.',
      },
    ],
  })
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
