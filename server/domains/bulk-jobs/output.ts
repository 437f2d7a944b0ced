import type { OutputOf, Context } from '../../handler.ts'
import type { RecordFailure, UndoneRecord } from '../../kernel/context.ts'

type ContactsOutput = OutputOf<'crm_tag_contacts'>

/** What a change of many records answers; `Sample`: what a dry run shows of one. */
export type BulkOutput<Sample> = Omit<ContactsOutput, 'samples'> & { samples?: Sample[] | undefined }

export type ContactSample = NonNullable<ContactsOutput['samples']>[number]

/** How many failures an answer lists; a job lists all. */
const MAX_FAILURES = 50

/** Tells a job what was changed of a record, so that it can be taken back; nothing elsewhere. */
export const recordUndone = ({ pending }: Pick<Context, 'pending'>, undone: UndoneRecord): void => {
  ;(pending.undo ??= []).push(undone)
}

/** Returns what a change of records answers. Everything is done in one transaction, so nothing is left over. */
export const toBulkOutput = (
  { pending }: Pick<Context, 'pending'>,
  requested: readonly string[],
  failures: readonly RecordFailure[],
): BulkOutput<never> => {
  pending.failures = failures
  return {
    requested: requested.length,
    succeeded: requested.length - failures.length,
    failed: failures.length,
    failures: failures.slice(0, MAX_FAILURES),
    stopped_early: false,
    matched: requested.length - failures.filter(({ code }) => code === 'not_found').length,
  }
}

/** Returns the failures of those contacts that do not exist. `found`: those that do. */
export const listMissing = (requested: readonly string[], found: readonly string[]): RecordFailure[] => {
  const existing = new Set(found)
  return requested
    .filter((id) => !existing.has(id))
    .map((id) => ({ id, code: 'not_found', message: `No contact with the id ${id}.` }))
}
