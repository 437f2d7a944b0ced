import type { AnswerTarget } from './answer.ts'
import { isCliError } from './error.ts'
import { isDrawn } from './io.ts'
import type { CommandSpec } from './manifest.ts'

/** Fields that rows have only with `detail: full`, of the lists whose default is another one. */
export const FULL_FIELDS: Readonly<Record<string, readonly string[]>> = {
  crm_search_contacts: ['email', 'tags', 'groups', 'metadata'],
}

/** The fields that the output names, in a flag or a header, or by their place in a line. */
const namedFields = ({ io, spec, format }: AnswerTarget): readonly string[] => {
  const { picks, rows, view, templateFields, json, jq, quiet } = format
  const isLines = rows === undefined && !json && !jq && !quiet && !isDrawn(io)
  if (picks) return picks
  if (templateFields) return templateFields
  if (view.columns) return view.columns.map((path) => path.split('.')[0]!)
  return rows === 'csv' || rows === 'tsv' || view.wide || isLines ? spec.output.columns : []
}

/** Asks for the rows in full where the output names a field that they lack otherwise: it would look empty. */
export const withNamedDetail = (
  target: AnswerTarget,
  input: Readonly<Record<string, unknown>>,
): Record<string, unknown> => {
  const { spec } = target
  const full = FULL_FIELDS[spec.operation]
  if (full === undefined) return { ...input }
  const isNamed = namedFields(target).some((name) => full.includes(name))
  return isNamed && input['detail'] === undefined && spec.verb !== 'export'
    ? { ...input, detail: 'full' }
    : { ...input }
}

/**
 * Returns the input with the other detail, where the cursor that was given was refused and no `--detail` was given: the
 * page before may have been printed in another form, and a cursor belongs to the detail that its page had. Undefined
 * otherwise, also where the cursor of a later page was refused: what is printed already must not be printed again.
 */
export const withOtherDetail = (
  spec: CommandSpec,
  { given, input }: Record<'given' | 'input', Readonly<Record<string, unknown>>>,
  error: unknown,
): Record<string, unknown> | undefined => {
  if (!isCliError(error) || error.problem['reason'] !== 'cursor_invalid') return undefined
  if (FULL_FIELDS[spec.operation] === undefined) return undefined
  if (given['cursor'] === undefined || given['detail'] !== undefined) return undefined
  const { detail, ...rest } = input
  return detail === undefined ? { ...rest, detail: 'full' } : rest
}
