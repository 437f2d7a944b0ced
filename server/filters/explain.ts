import type { FieldRow } from '../../storage/custom-fields.ts'
import type { Saved } from './saved.ts'

export const explain = (_filter: Record<string, unknown>, _names: { zone: string; fields: readonly FieldRow[]; saved: ReadonlyMap<string, Saved> }): string => 'Contacts.'
