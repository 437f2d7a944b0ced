import type { Context, InputOf } from '../../handler.ts'
import { findOperation } from '../../../catalog/index.ts'
import type { BatchCall } from '../../../storage/work/bulk-jobs.ts'

/** The field of an input that names records by their ids. */
type IdField = 'contact_ids' | 'conversation_ids'

/** The part of an input that names records. */
export type Target = Pick<InputOf<'crm_tag_contacts'>, 'filter' | 'all'> & {
  readonly [field in IdField]?: readonly (string | number)[] | undefined
}

/** Records that a job changes in one transaction: the embedded database has one session, for which others wait. */
export const getBatchSize = ({ embedded }: { readonly embedded: boolean }): number => (embedded ? 100 : 500)

/** Records of a kind: how those that a filter matches are found, and what a dry run shows of some. */
export type RecordKind<Input extends Target, Sample> = {
  readonly idField: IdField
  readonly plural: string
  /** Returns the ids of all matches, in order, as texts of arrays of `getBatchSize` ids. */
  readonly listMatches: (ctx: Context, input: Input) => Promise<string[]>
  readonly listSamples: (ctx: Context, ids: readonly string[]) => Promise<Sample[]>
}

/** Returns the field that names the records of an operation. */
export const getIdField = (operation: string): IdField =>
  'conversation_ids' in (findOperation(operation)?.input.shape ?? {}) ? 'conversation_ids' : 'contact_ids'

/** Returns the ids of the records that a call of a job names. */
export const listCallIds = ({ input }: BatchCall): string[] =>
  ((input['conversation_ids'] ?? input['contact_ids']) as (string | number)[]).map(String)
