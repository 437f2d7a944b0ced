import type { FilterSettings, Services } from '../../app.ts'
import type { Context } from '../../handler.ts'
import type { Reason } from '../../../catalog/reasons.ts'
import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import type { LabelKind } from '../../../storage/labels/labels.ts'
import { findNearestName } from '../../nearest-name.ts'
import { type FieldError, toPointer, Problem } from '../../kernel/problem.ts'
import { synonyms } from './grammar.ts'

/** The position of a value in a request, as the steps of a JSON Pointer. */
export type FilterPath = readonly (string | number)[]
export type ResolvedDate = { path: string; input: string; value: string }
export type FilterWarning = { path: string; message: string }
/**
 * A saved filter that a filter refers to. `level`: the number of combinators around it; `placeholder`: the
 * node that it replaces.
 */
export type SavedFilterReference = { id: string; path: FilterPath; level: number; placeholder: ContactFilter }

/** Tags or groups that a condition names by their ids or whole names. */
export type NamedLabels = {
  kind: LabelKind
  field: 'id' | 'name'
  values: readonly string[]
  path: FilterPath
}

/** What filters are parsed by. */
export type FilterContext = Pick<Context, 'tx' | 'heavy' | 'actor' | 'now'> & {
  readonly services: Pick<Services, 'regexVerdicts'> & {
    readonly config: { readonly filters: FilterSettings }
  }
}

/** What the parser collects from one filter. */
export type ParseState = {
  readonly ctx: FilterContext
  readonly now: string
  readonly zone: string
  readonly fields: readonly FieldRow[]
  /** Set while a saved filter is parsed: its name, and where the request refers to it. */
  readonly within: { name: string; path: FilterPath } | undefined
  readonly errors: FieldError[]
  readonly warnings: FilterWarning[]
  readonly resolvedDates: ResolvedDate[]
  readonly patterns: { path: FilterPath; pattern: string }[]
  readonly references: SavedFilterReference[]
  readonly labels: NamedLabels[]
  conditions: number
  depth: number
}

export const createParseState = (
  ctx: FilterContext,
  fields: readonly FieldRow[],
  now: string,
  within?: ParseState['within'],
): ParseState => ({
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

const MAX_ERRORS = 50

/** Records an error; parsing goes on, so that one response lists them all. */
export const addError = (
  state: ParseState,
  path: FilterPath,
  error: Omit<FieldError, 'pointer'>,
): undefined => {
  if (state.errors.length < MAX_ERRORS) state.errors.push({ pointer: toPointer(path), ...error })
}

/** A name that is not one of the valid ones. `what`: what it should name. */
type UnknownName = { what: string; given: string; valid: readonly string[]; code?: string }

/** Records an error for an unknown name, and suggests a valid one. */
export const addUnknownName = (
  state: ParseState,
  path: FilterPath,
  { what, given, valid, code = `unknown_${what}` }: UnknownName,
): undefined => {
  const bareName = given.replace(/^\$/, '')
  const camel = bareName.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const near =
    [bareName, camel, synonyms[bareName]].find((name) => name !== undefined && valid.includes(name)) ??
    findNearestName(given, valid)
  const detail = `is not ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what} here`
  addError(state, path, {
    code,
    detail,
    fix: near ? `Did you mean ${near}?` : `Use one of ${valid.join(', ')}.`,
    allowed: valid,
  })
}

export const addWarning = (state: ParseState, path: FilterPath, message: string): void => {
  state.warnings.push({ path: toPointer(path), message })
}

/** Returns the path in the request: for a part of a saved filter, the path of the reference to it. */
export const toRequestPath = (state: ParseState, path: FilterPath): FilterPath => state.within?.path ?? path

/** Creates the problem of a limit, which has a reason of its own. */
export const createLimitProblem = (
  state: ParseState,
  path: FilterPath,
  reason: Reason,
  detail: string,
  fix: string,
): Problem => createFilterProblem(toRequestPath(state, path), reason, detail, fix)

export const createFilterProblem = (path: FilterPath, reason: Reason, detail: string, fix: string): Problem =>
  new Problem('invalid_input', `${path.join('/')} ${detail}.`, {
    reason,
    errors: [{ pointer: toPointer(path), code: reason, detail, fix }],
  })

/** Creates the problem of a condition that would reveal what the staff member may not see. */
export const createHiddenFieldProblem = (
  state: ParseState,
  path: FilterPath,
  reason: 'phone_hidden' | 'field_hidden',
  what: string,
): Problem => {
  const requestPath = toRequestPath(state, path)
  const where = state.within ? `, and the saved filter "${state.within.name}" compares them` : ''
  return new Problem('forbidden', `${what} are hidden from you${where}.`, {
    reason,
    errors: [
      {
        pointer: toPointer(requestPath),
        code: reason,
        detail: `would compare ${what.toLowerCase()}, which are hidden from you`,
        fix: state.within ? 'Remove this saved filter.' : 'Remove this condition.',
      },
    ],
  })
}
