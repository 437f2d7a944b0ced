import { isDeepStrictEqual } from 'node:util'
import type { Plan } from '../../catalog/plan.ts'
import { escapeControlCharacters, formatCell, formatRecord } from '../text.ts'
import type { Step } from './file.ts'

type PlannedRecord = Plan['records'][number]
type Json = Readonly<Record<string, unknown>>

/** What a value is compared by: an object by its fields, all else as a whole. */
const formatValue = (value: unknown): string =>
  value === null || value === undefined
    ? '(none)'
    : Array.isArray(value) && value.length === 0
      ? '(none)'
      : formatCell(value)

const formatField = (name: string, before: unknown, after: unknown): string =>
  `    ${escapeControlCharacters(name)}: ${formatValue(before)} → ${formatValue(after)}`

/** Returns a record of a plan, field by field. */
const formatPlanned = ({ kind, id, before, after }: PlannedRecord): string[] => {
  const name = kind.replaceAll('_', ' ')
  if (before === null) return [`  + ${name}`, ...formatRecord(after ?? {}).map((line) => `    ${line}`)]
  if (after === null) return [`  - ${name} ${id}`]
  return [
    `  ~ ${name} ${id}`,
    ...Object.keys(after).map((field) => formatField(field, before[field], after[field])),
  ]
}

/** Returns a step in words: the command, what it was given, and what it would change. */
export const formatStep = (step: Step, index: number): string[] => [
  `${index + 1}. wcrm ${step.command}  (${step.server}${step.workspace ? `, ${formatCell(step.workspace.name)}` : ''})`,
  ...formatRecord(step.input).map((line) => `  ${line}`),
  ...(step.plan.records.length > 0
    ? [
        ...step.plan.records.flatMap(formatPlanned),
        ...(step.plan.more_records > 0 ? [`  and ${step.plan.more_records} more records`] : []),
      ]
    : formatRecord(step.answer).map((line) => `  → ${line}`)),
]

const toName = ({ kind, id }: PlannedRecord): string => `${kind} ${id ?? '(new)'}`

/** Returns in which fields a present plan starts from, or leads to, other values than the one that was made. */
export const formatDifferences = (planned: Plan, present: Plan): string[] => {
  const now = new Map(present.records.map((record) => [toName(record), record]))
  const lines = planned.records.flatMap((record) => {
    const current = now.get(toName(record))
    now.delete(toName(record))
    const fields = [...new Set([record, current].flatMap((one) => Object.keys(one?.before ?? {})))]
    const read = (values: Json | null | undefined, field: string) => values?.[field]
    if (!current) return [`  ${toName(record)}: would no longer change`]
    return fields
      .filter((field) => !isDeepStrictEqual(read(record.before, field), read(current.before, field)))
      .map(
        (field) =>
          `  ${toName(record)} ${field}: was ${formatValue(read(record.before, field))}, ` +
          `is ${formatValue(read(current.before, field))}`,
      )
  })
  const added = [...now.values()].map((record) => `  ${toName(record)}: would change now, too`)
  return [...lines, ...added]
}
