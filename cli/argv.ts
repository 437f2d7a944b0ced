import type { CommandSpec, Field } from './manifest.ts'

/** Returns the text of a flag with this value; undefined when only `--input` can express it. */
const formatFlagValue = (field: Field, value: unknown): string | undefined => {
  if (value === null) return field.nullable ? 'null' : undefined
  switch (field.type) {
    case 'base64':
      return typeof value === 'string' && !/^[@-]/.test(value) ? value : undefined
    case 'string':
      return typeof value === 'string' && !(field.nullable && value === 'null')
        ? formatText(field, value)
        : undefined
    case 'integer':
      return Number.isSafeInteger(value) ? String(value) : undefined
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : undefined
    case 'list':
      return Array.isArray(value) &&
        (!field.names || value.every((item) => isId(field.names!.pattern, String(item))))
        ? formatListValue(value)
        : undefined
    case 'object':
      return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : undefined
    case 'any':
      return JSON.stringify(value)
  }
}

/** Returns the text of a flag with this string; undefined where the command line would read it as something else. */
const formatText = ({ text, time, names }: Field, value: string): string | undefined => {
  if (text) return value === '-' ? undefined : value.startsWith('@') ? `@${value}` : value
  if (time && !/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}\S*(?:Z|[+-]\d{2}:\d{2}))?$/.test(value)) return undefined
  return names && !isId(names.pattern, value) ? undefined : value
}

/** Returns the words of one flag with this value; in `--input` where no flag can express it. */
export const toFlag = (field: Field, value: unknown): string[] => {
  const text = formatFlagValue(field, value)
  if (text === undefined) return ['--input', JSON.stringify({ [field.name]: value })]
  return text.startsWith('-') ? [`${field.flag}=${text}`] : [field.flag, text]
}

const isId = (pattern: string, value: string): boolean => new RegExp(pattern).test(value)

const formatListValue = (items: readonly unknown[]): string =>
  items.length > 0 &&
  items.every((item) => typeof item === 'string' && /^[^\s,@[{-][^,\n]*$/.test(item) && item.trim() === item)
    ? items.join(',')
    : JSON.stringify(items)

/**
 * Returns the words after `wcrm` that make this call: path fields as positional arguments, the others as
 * flags, and in `--input` what no flag can express (a value of the wrong type, an unknown field).
 */
export const toArgv = (spec: CommandSpec, input: Readonly<Record<string, unknown>>): string[] => {
  const words = spec.verb ? [spec.group, spec.verb] : [spec.group]
  const inputOnly: Record<string, unknown> = {}
  // One missing or unusual path field moves all of them to --input: the positions of the others would shift.
  const usesPositionals = spec.args.every(
    (name) =>
      typeof input[name] === 'string' &&
      /^[^-]/.test(input[name]) &&
      formatFlagValue(
        spec.fields.find((f) => f.name === name)!,
        input[name],
      ) === input[name],
  )
  if (usesPositionals) words.push(...spec.args.map((name) => String(input[name])))
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined || (usesPositionals && spec.args.includes(name))) continue
    const field = spec.args.includes(name) ? undefined : spec.fields.find((f) => f.name === name)
    const text = field && formatFlagValue(field, value)
    if (name === 'dry_run' && value === true && spec.writes) words.push('--dry-run')
    else if (!field || text === undefined) inputOnly[name] = value
    else if (field.type === 'boolean')
      words.push(
        text === 'null'
          ? `${field.flag}=null`
          : text === 'true'
            ? field.flag
            : field.flag.replace('--', '--no-'),
      )
    else words.push(...toFlag(field, value))
  }
  return Object.keys(inputOnly).length > 0 ? [...words, '--input', JSON.stringify(inputOnly)] : words
}

/** Quotes a word for a POSIX shell where that is necessary. */
export const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
