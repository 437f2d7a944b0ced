import { readFileSync } from 'node:fs'
import { usage } from './fault.ts'
import { type Io, readAll } from './io.ts'
import type { Field } from './manifest.ts'

/**
 * Gives the text that `@file` or `-` stands for, and any other text as it is; their bytes in `base64` when
 * asked so.
 */
export type ReadText = (text: string, flag: string, as?: 'utf8' | 'base64') => Promise<string>

/** Files and standard input; the latter is read once, so only one flag may take it. */
export const textReader = (io: Io): ReadText => {
  let takenBy: string | undefined
  return async (text, flag, as = 'utf8') => {
    if (text === '-') {
      if (takenBy)
        throw usage(
          `Only one flag can read standard input: ${takenBy} has it already.`,
          flag,
          'Give this one as @file.',
        )
      if (io.stdin.isTTY)
        throw usage(
          `${flag} - reads standard input, but nothing is piped in.`,
          flag,
          'Pipe the value in, or give it as @file.',
        )
      takenBy = flag
      return (await readAll(io.stdin)).toString(as)
    }
    if (!text.startsWith('@')) return text
    try {
      return readFileSync(text.slice(1)).toString(as)
    } catch (error) {
      throw usage(
        `Cannot read ${text.slice(1)}: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}.`,
        flag,
        'Check the path after @.',
      )
    }
  }
}

const isFromElsewhere = (text: string): boolean => text === '-' || text.startsWith('@')

const parseJson = (text: string, flag: string, wanted: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usage(
      `${flag} is not ${wanted}: ${(error as Error).message}.`,
      flag,
      `Give ${wanted}, @file, or - for standard input.`,
    )
  }
}

/** A JSON object from the text, from `@file` or from `-`. */
export const readObject = async (
  text: string,
  flag: string,
  read: ReadText,
): Promise<Record<string, unknown>> => {
  const value = parseJson(await read(text, flag), flag, 'a JSON object')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usage(`${flag} is not a JSON object.`, flag, 'Give {…}, @file, or - for standard input.')
  return value as Record<string, unknown>
}

const numberOf = (text: string, flag: string, type: 'integer' | 'number'): number => {
  const value = /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN
  const fits = type === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
  if (!fits)
    throw usage(
      `${flag} takes ${type === 'integer' ? 'a whole number' : 'a number'}, not "${text}".`,
      flag,
      `For example ${flag} 25.`,
    )
  return value
}

const itemOf = (text: string, field: Field): unknown => {
  if (field.items === 'integer' || field.items === 'number') return numberOf(text, field.flag, field.items)
  if (field.items === 'boolean') return boolean(text, field)
  return text
}

/**
 * The items of one `--flag value` of a list: a JSON array, JSON lines, or words parted by commas (in files:
 * or by lines).
 */
const listPart = async (part: string, field: Field, read: ReadText): Promise<unknown[]> => {
  const text = (await read(part, field.flag)).trim()
  if (text.startsWith('[')) return parseJson(text, field.flag, 'a JSON array') as unknown[]
  const plain = field.items !== 'object' && field.items !== 'list' && field.items !== 'any'
  if (plain)
    return text
      .split(isFromElsewhere(part) ? /[,\n]/ : ',')
      .map((s) => s.trim())
      .filter((s) => s !== '')
      .map((s) => itemOf(s, field))
  if (text === '') return []
  if (isFromElsewhere(part))
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => parseJson(line, field.flag, 'a JSON array or JSON lines'))
  return [parseJson(text, field.flag, 'a JSON array')]
}

const boolean = (text: string, field: Field): boolean | null => {
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null' && field.nullable) return null
  throw usage(
    `${field.flag} is true or false, not "${text}".`,
    field.flag,
    `Say ${field.flag}, ${field.flag}=false or ${field.flag.replace('--', '--no-')}.`,
  )
}

/** The value that a flag's texts stand for; a flag that is not a list has one. */
export const readValue = async (field: Field, texts: readonly string[], read: ReadText): Promise<unknown> => {
  const text = texts.at(-1) ?? ''
  if (field.nullable && text === 'null') return null
  switch (field.type) {
    case 'string':
      return text
    case 'base64':
      return read(text, field.flag, 'base64')
    case 'integer':
    case 'number':
      return numberOf(text, field.flag, field.type)
    case 'boolean':
      return boolean(text, field)
    case 'object':
      return readObject(text, field.flag, read)
    case 'list':
      return (await Promise.all(texts.map((part) => listPart(part, field, read)))).flat()
    case 'any':
      return looseValue(await read(text, field.flag))
  }
}

/** JSON where it is JSON, else the text itself. */
const looseValue = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
