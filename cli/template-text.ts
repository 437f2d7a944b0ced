import { usageError } from './error.ts'
import { listJsonFields } from './output.ts'
import type { CommandSpec } from './manifest.ts'
import { formatCell, readPath } from './text.ts'

type Row = Readonly<Record<string, unknown>>

/** Renders a record as one line. */
export type TextTemplate = (row: Row) => string

const ESCAPES: Readonly<Record<string, string>> = {
  '\\t': '\t',
  '\\n': '\n',
  '\\\\': '\\',
  '{{': '{',
  '}}': '}',
}

const splitParts = (text: string): string[] => text.match(/\{\{|\}\}|\{[^{}]*\}|\\[tn\\]|[^]/gu) ?? []

/** The fields that a template names, without the paths in them. */
export const listTemplateFields = (text: string): string[] =>
  splitParts(text)
    .filter((part) => /^\{[^{}]*\}$/.test(part))
    .map((part) => part.slice(1, -1).trim().split('.')[0]!)

/**
 * Parses the text of `--template`: `{field}` and `{field.path}` stand for values, `\t` and `\n` for a tab and a new
 * line, `\\`, `{{` and `}}` for themselves. Throws a usage error, before anything is sent, for an unknown field and a
 * brace that is not closed.
 */
export const parseTextTemplate = (spec: CommandSpec, text: string): TextTemplate => {
  const known = listJsonFields(spec)
  const parts = splitParts(text).map((part) => {
    if (part in ESCAPES) return ESCAPES[part]!
    if (part === '{' || part === '}')
      throw usageError(
        `--template has a ${part} without its counterpart.`,
        '--template',
        `A brace itself is written twice: ${part}${part}.`,
      )
    if (!/^\{.*\}$/s.test(part)) return part
    const path = part.slice(1, -1).trim()
    if (!known.includes(path.split('.')[0]!))
      throw usageError(
        `--template has no field "${path}".`,
        '--template',
        `One or more of: ${known.join(', ')}.`,
      )
    return { path }
  })
  return (row) =>
    `${parts.map((part) => (typeof part === 'string' ? part : formatCell(readPath(row, part.path)))).join('')}\n`
}
