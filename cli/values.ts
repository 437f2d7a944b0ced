import { parseUniqueJson } from '../catalog/duplicate-names.ts'
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { usageError } from './error.ts'
import { type Io, readStream } from './io.ts'
import type { Field } from './manifest.ts'

/**
 * Returns the contents of `@file` or of standard input (`-`), decoded as UTF-8 or encoded as base64. Other
 * text is returned unchanged.
 */
export type ReadArgument = (text: string, flag: string, as?: 'utf8' | 'base64') => Promise<string>

/** Returns bytes as text. Throws a usage error for text that is not UTF-8: other bytes would be replaced, and saved. */
const decode = (bytes: Buffer, name: string, flag: string, as: 'utf8' | 'base64'): string => {
  if (as === 'utf8' && !isUtf8(bytes))
    throw usageError(`${name} is not UTF-8 text.`, flag, 'Convert it: iconv -f WINDOWS-1252 -t UTF-8.')
  return bytes.toString(as)
}

/** Creates a reader of `@file` and `-`. Only one flag may read standard input: it can be read only once. */
export const createArgumentReader = (io: Io): ReadArgument => {
  let stdinReader: string | undefined
  return async (text, flag, as = 'utf8') => {
    if (text === '-') {
      if (stdinReader)
        throw usageError(
          `Only one flag can read standard input: ${stdinReader} already does.`,
          flag,
          'Give this one as @file.',
        )
      if (io.stdin.isTTY)
        throw usageError(
          `${flag} - reads standard input, but nothing is piped in.`,
          flag,
          'Pipe the value in, or give it as @file.',
        )
      stdinReader = flag
      return decode(await readStream(io.stdin), 'standard input', flag, as)
    }
    if (!text.startsWith('@')) return text
    let bytes: Buffer
    try {
      bytes = readFileSync(text.slice(1))
    } catch (error) {
      throw usageError(
        `Cannot read ${text.slice(1)}: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}.`,
        flag,
        'Check the path after @. A text that begins with @ begins with @@.',
      )
    }
    return decode(bytes, text.slice(1), flag, as)
  }
}

/** Whether the value comes from `@file` or standard input. */
export const isIndirect = (text: string): boolean => text === '-' || text.startsWith('@')

const parseJson = (text: string, flag: string, expected: string): unknown => {
  try {
    return parseUniqueJson(text)
  } catch (error) {
    throw usageError(
      `${flag} is not ${expected}: ${(error as Error).message}.`,
      flag,
      `Give ${expected}, @file, or - for standard input.`,
    )
  }
}

/** Parses a JSON object from text, `@file` or `-`. */
export const parseObjectArgument = async (
  text: string,
  flag: string,
  read: ReadArgument,
): Promise<Record<string, unknown>> => {
  const value = parseJson(await read(text, flag), flag, 'a JSON object')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usageError(`${flag} is not a JSON object.`, flag, 'Give {…}, @file, or - for standard input.')
  return value as Record<string, unknown>
}

const parseNumber = (text: string, flag: string, type: 'integer' | 'number'): number => {
  const form = type === 'integer' ? /^-?\d+$/ : /^-?\d+(\.\d+)?$/
  const value = form.test(text) ? Number(text) : Number.NaN
  const isValid = type === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
  if (!isValid)
    throw usageError(
      `${flag} must be ${type === 'integer' ? 'an integer' : 'a number'}, not "${text}".`,
      flag,
      `For example ${flag} 25.`,
    )
  return value
}

const parseItem = (text: string, field: Field): unknown => {
  if (field.items === 'integer' || field.items === 'number') return parseNumber(text, field.flag, field.items)
  if (field.items === 'boolean') return parseBoolean(text, field)
  return text
}

/** Reads the id in a line: `id` of a JSON object, else the first of its tab-separated columns. */
const parseIdLine = (line: string, number: number, flag: string): string[] => {
  if (!line.startsWith('{'))
    return line
      .split('\t')[0]!
      .split(',')
      .map((id) => id.trim())
      .filter((id) => id !== '')
  const { id } = parseJson(line, `${flag}: line ${number}`, 'a JSON object') as { id?: unknown }
  if (typeof id === 'string' || Number.isSafeInteger(id)) return [String(id)]
  throw usageError(
    `${flag}: line ${number} has no id.`,
    flag,
    'Each line is an id, or a JSON object with "id": wcrm contacts search --all --ndjson prints such lines.',
  )
}

/** Parses ids from a file or a pipe: one in a line, or a JSON object with `id`, as `--ndjson` prints them. */
const parseIdLines = (text: string, flag: string): string[] =>
  text.split('\n').flatMap((line, i) => parseIdLine(line.trim(), i + 1, flag))

/** Reads a long text: as it is, from `@file`, or from standard input; `@@` begins one with `@`. */
const parseText = async (text: string, flag: string, read: ReadArgument): Promise<string> => {
  if (text.startsWith('@@')) return text.slice(1)
  // Editors and `echo` end a file with a line break, which is not part of the text.
  return isIndirect(text) ? (await read(text, flag)).replace(/\r?\n$/, '') : text
}

/**
 * Parses the items of one `--flag value` of a list: a JSON array, JSON lines, or words separated by commas
 * (in files also by line breaks).
 */
const parseListArgument = async (part: string, field: Field, read: ReadArgument): Promise<unknown[]> => {
  const text = (await read(part, field.flag)).trim()
  if (text.startsWith('[')) return parseJson(text, field.flag, 'a JSON array') as unknown[]
  if (field.ids !== undefined && isIndirect(part)) return parseIdLines(text, field.flag)
  const isPlain = field.items !== 'object' && field.items !== 'list' && field.items !== 'any'
  if (isPlain)
    return text
      .split(isIndirect(part) ? /[,\n]/ : ',')
      .map((s) => s.trim())
      .filter((s) => s !== '')
      .map((s) => parseItem(s, field))
  if (text === '') return []
  if (isIndirect(part))
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => parseJson(line, field.flag, 'a JSON array or JSON lines'))
  return [parseJson(text, field.flag, 'a JSON array')]
}

const parseBoolean = (text: string, field: Field): boolean | null => {
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null' && field.nullable) return null
  throw usageError(
    `${field.flag} must be true or false, not "${text}".`,
    field.flag,
    `Use ${field.flag}, ${field.flag}=false or ${field.flag.replace('--', '--no-')}.`,
  )
}

/** Parses the values of a flag. Only a list takes several; for other types the last one wins. */
export const parseFieldValue = async (
  field: Field,
  texts: readonly string[],
  read: ReadArgument,
): Promise<unknown> => {
  const text = texts.at(-1) ?? ''
  if (field.nullable && text === 'null') return null
  switch (field.type) {
    case 'string':
      return field.text ? parseText(text, field.flag, read) : text
    case 'base64':
      return read(text, field.flag, 'base64')
    case 'integer':
    case 'number':
      return parseNumber(text, field.flag, field.type)
    case 'boolean':
      return parseBoolean(text, field)
    case 'object':
      return parseObjectArgument(text, field.flag, read)
    case 'list':
      return (await Promise.all(texts.map((part) => parseListArgument(part, field, read)))).flat()
    case 'any':
      return parseJsonOrText(await read(text, field.flag), field.flag)
  }
}

/** Parses JSON; returns the text itself when it is not JSON. */
const parseJsonOrText = (text: string, flag: string): unknown => {
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  return parseJson(text, flag, 'valid JSON')
}
