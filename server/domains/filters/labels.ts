import { findLabels, type LabelKind } from '../../../storage/labels/labels.ts'
import { fold } from '../../../storage/values/text.ts'
import type { ParsedTest } from './operands.ts'
import { addWarning, type FilterPath, type NamedLabels, type ParseState } from './parse-state.ts'

/** Collects the tags and groups that the tests of one condition name. */
export const collectLabels = (
  state: ParseState,
  kind: LabelKind,
  field: string,
  tests: readonly ParsedTest[],
  path: FilterPath,
): void => {
  for (const { op, test } of tests) {
    if (!['eq', 'ne', 'in', 'notIn'].includes(op)) continue
    const values = 'values' in test ? test.values : [String((test as { value: string }).value)]
    state.labels.push({ kind, field: field as NamedLabels['field'], values, path: [...path, op] })
  }
}

const MAX_WARNINGS_PER_TEST = 5

/**
 * Warns about tags and groups that do not exist, or whose names differ in case: whole names are compared with
 * case.
 */
export const warnAboutLabels = async (state: ParseState): Promise<void> => {
  for (const kind of ['tag', 'group'] as const) {
    const named = state.labels.filter((label) => label.kind === kind)
    if (named.length === 0) continue
    const valuesOf = (field: string) =>
      named.filter((label) => label.field === field).flatMap((label) => label.values)
    const found = await findLabels(
      state.ctx.tx,
      state.ctx.actor.workspace.id,
      kind,
      valuesOf('id'),
      valuesOf('name').map(fold),
    )
    const existing = { id: new Set(found.map(({ id }) => id)), name: new Set(found.map(({ name }) => name)) }
    const namesByKey = new Map(found.map(({ name, name_key: key }) => [key, name]))
    for (const { field, values, path } of named) {
      for (const value of values
        .filter((given) => !existing[field].has(given))
        .slice(0, MAX_WARNINGS_PER_TEST)) {
        const name = field === 'name' ? namesByKey.get(fold(value)) : undefined
        const none = `There is no ${kind} with the ${field} ${JSON.stringify(value)}.`
        addWarning(
          state,
          path,
          name === undefined
            ? none
            : `The ${kind} is written ${JSON.stringify(name)}, and case matters here.`,
        )
      }
    }
  }
}
