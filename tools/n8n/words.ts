/** Texts as the rules of n8n want them. */

const SMALL = /^(?:a|an|and|as|at|by|for|from|if|in|nor|of|on|or|the|to|via|with)$/
const UPPER: Readonly<Record<string, string>> = {
  id: 'ID',
  ids: 'IDs',
  url: 'URL',
  json: 'JSON',
  sla: 'SLA',
  qr: 'QR',
}

/** `assigned_staff_id`: `Assigned Staff ID`. */
export const toTitle = (name: string): string =>
  name
    .split(/[\s_-]+/)
    .map((word, n) =>
      n > 0 && SMALL.test(word) ? word : (UPPER[word] ?? word.slice(0, 1).toUpperCase() + word.slice(1)),
    )
    .join(' ')

/** Plain text: no marks of code, initials in capitals, and a period at the end of several sentences alone. */
export const toDescription = (text: string): string => {
  const plain = (text.startsWith('`') ? `The value ${text}` : text)
    .replaceAll('`', '')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(
      /\b(id|url|json)(s?)\b(?!_)/gi,
      (_, word: string, plural: string) => word.toUpperCase() + plural,
    )
    .trim()
  const sentences = plain.replace(/\.$/, '')
  const whole = /[.!?] \S/.test(sentences) ? `${sentences}.` : sentences
  return whole.slice(0, 1).toUpperCase() + whole.slice(1)
}

/** The beginning of a summary, as a sentence without punctuation. */
export const toAction = (summary: string): string => {
  const words = summary
    .split(/[,;:(.]/)[0]!
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .trim()
    .toLowerCase()
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

/** A boolean says whether. */
export const toQuestion = (text: string): string => {
  const plain = toDescription(text)
  const rest = plain.startsWith('True: ') ? plain.slice('True: '.length) : plain
  return `Whether ${rest.slice(0, 1).toLowerCase()}${rest.slice(1)}`
}

/** An expression of the generated code, where `toSource` would write a text. */
export const code = (text: string): { code: string } => ({ code: text })

/** Writes a value in the notation of TypeScript, names without quotes. */
export const toSource = (value: unknown, indent = ''): string => {
  const inner = `${indent}\t`
  if (Array.isArray(value)) {
    const items = value.map((item) => `${inner}${toSource(item, inner)},\n`)
    return items.length === 0 ? '[]' : `[\n${items.join('')}${indent}]`
  }
  if (typeof value !== 'object' || value === null) return toText(value)
  if ('code' in value) return String(value.code)
  const entries = Object.entries(value).map(
    ([key, item]) => `${inner}${/^[A-Za-z_]\w*$/.test(key) ? key : toText(key)}: ${toSource(item, inner)},\n`,
  )
  return entries.length === 0 ? '{}' : `{\n${entries.join('')}${indent}}`
}

const toText = (value: unknown): string =>
  typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'").replaceAll('\\"', '"')}'`
    : JSON.stringify(value)
