import type { OutputOf } from '../../handler.ts'
import type { Problem } from '../../kernel/problem.ts'

type Output = OutputOf<'crm_import_contacts'>
export type RowResult = Output['results'][number]
export type RowFailure = Output['failures'][number]

/** Errors of one row in the answer. */
const MAX_ROW_ERRORS = 5
const MAX_TEXT_LENGTH = 300
/** Values in all `allowed` lists of the answer together: each row may repeat the same long list. */
const MAX_ALLOWED_VALUES = 2000

const shorten = (text: string): string =>
  text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH).toWellFormed()}…`

/** Returns the failure of a row, with pointers into the whole request. */
export const toFailure = (row: number, { code, message, extras }: Problem): RowFailure => ({
  row,
  code,
  message: shorten(message),
  errors: (extras.errors ?? [])
    .slice(0, MAX_ROW_ERRORS)
    .map(({ pointer = '#', code: errorCode, detail, fix, allowed }) => ({
      pointer: shorten(`#/rows/${row}${pointer.slice(1)}`),
      code: errorCode,
      detail: shorten(detail),
      ...(fix ? { fix: shorten(fix) } : {}),
      ...(allowed ? { allowed: [...allowed] } : {}),
    })),
})

/** Returns the answer: what became of each row, and the failures with as many allowed values as it may have. */
export const toOutput = (
  requested: number,
  done: readonly RowResult[],
  failures: readonly RowFailure[],
): Output => {
  let remaining = MAX_ALLOWED_VALUES
  const shown = failures
    .toSorted((a, b) => a.row - b.row)
    .map((failure) => ({
      ...failure,
      errors: failure.errors.map(({ allowed = [], ...error }) =>
        allowed.length > 0 && (remaining -= allowed.length) >= 0 ? { ...error, allowed } : error,
      ),
    }))
  const results = [
    ...done,
    ...failures.map(({ row }): RowResult => ({ row, action: 'failed', id: null })),
  ].toSorted((a, b) => a.row - b.row)
  const count = (action: RowResult['action']) => results.filter((result) => result.action === action).length
  return {
    requested,
    succeeded: done.length,
    failed: failures.length,
    created: count('created'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    results,
    failures: shown,
  }
}
