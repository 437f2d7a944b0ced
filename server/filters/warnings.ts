import type { FieldRow } from '../../storage/custom-fields.ts'
import type { Leaf } from './grammar.ts'
import type { ReadTest } from './operands.ts'
import { isObject, type Path, type Walk, warn } from './walk.ts'

/** The operators of one field. `absentToo`: an `or` around it asks for the absence of the field as well. */
export type Tests = {
  field: string; leaf: Leaf; path: Path; tests: readonly ReadTest[]; absentToo: boolean
  relation?: string; quantifier?: string; attribute?: FieldRow | undefined
}
/** The conditions on one related record. */
export type RecordTests = { relation: string; quantifier: string; path: Path; conditions: readonly { field: string; tests: readonly ReadTest[] }[]; attribute: FieldRow | undefined }

export const warnOfNot = (walk: Walk, raw: unknown, path: Path): void => {
  if (isObject(raw) && Object.keys(raw).length === 0) warn(walk, path, 'Nobody meets this: an empty filter means everyone, and not turns it round.')
}

export const warnOfTests = (_walk: Walk, _tests: Tests): void => {}
export const warnOfRecord = (_walk: Walk, _record: RecordTests): void => {}
