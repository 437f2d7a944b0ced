import { findLabels, type LabelKind } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'
import type { ReadTest } from './operands.ts'
import { type Path, type Walk, warn } from './walk.ts'

/** Tags or groups that a condition names by their ids or whole names. */
export type NamedLabels = { kind: LabelKind; field: 'id' | 'name'; values: readonly string[]; path: Path }

/** Notes which tags and groups a condition on one of them names. */
export const noteLabels = (
  walk: Walk,
  kind: LabelKind,
  field: string,
  tests: readonly ReadTest[],
  path: Path,
): void => {
  for (const { op, test } of tests) {
    if (!['eq', 'ne', 'in', 'notIn'].includes(op)) continue
    const values = 'values' in test ? test.values : [String((test as { value: string }).value)]
    walk.labels.push({ kind, field: field as NamedLabels['field'], values, path: [...path, op] })
  }
}

const MOST_NAMED = 5

/**
 * Warns of tags and groups that are not there, or that are written otherwise: whole names are compared as
 * they are written.
 */
export const warnOfLabels = async (walk: Walk): Promise<void> => {
  for (const kind of ['tag', 'group'] as const) {
    const named = walk.labels.filter((label) => label.kind === kind)
    if (named.length === 0) continue
    const valuesOf = (field: string) =>
      named.filter((label) => label.field === field).flatMap((label) => label.values)
    const found = await findLabels(
      walk.ctx.tx,
      walk.ctx.actor.workspace.id,
      kind,
      valuesOf('id'),
      valuesOf('name').map(fold),
    )
    const there = { id: new Set(found.map(({ id }) => id)), name: new Set(found.map(({ name }) => name)) }
    const spelt = new Map(found.map(({ name, name_key: key }) => [key, name]))
    for (const { field, values, path } of named) {
      for (const value of values.filter((one) => !there[field].has(one)).slice(0, MOST_NAMED)) {
        const name = field === 'name' ? spelt.get(fold(value)) : undefined
        const none = `There is no ${kind} with the ${field} ${JSON.stringify(value)}.`
        warn(
          walk,
          path,
          name === undefined ? none : `The ${kind} is written ${JSON.stringify(name)}, and case counts here.`,
        )
      }
    }
  }
}
