import { quoteWord } from './argv.ts'
import { type CommandSpec, commandName, type Field } from './manifest.ts'

/** Returns the placeholder for a flag's value in help. */
export const valuePlaceholder = (field: Field): string => {
  if (field.enum && field.enum.join('|').length <= 30) return field.enum.join('|')
  if (field.type === 'list') return field.items === 'object' || field.items === 'any' ? 'json-list' : 'list'
  if (field.type === 'object' || field.type === 'any') return 'json'
  if (field.type === 'base64') return '@file'
  return field.type === 'string' ? 'text' : field.type
}

/** Longer descriptions of fields that take JSON are in `wcrm schema`: of filters, the operators of each field. */
const MAX_ABOUT = 300

export const stripBackticks = (text: string): string => text.replaceAll('`', '')

/** JSON with a space after each colon and comma, so that lines can break there. */
export const spacedJson = (value: unknown): string =>
  JSON.stringify(value, undefined, 1)
    .replaceAll(/([[{])\n\s*|\n\s*([\]}])/g, '$1$2')
    .replaceAll(/\n\s*/g, ' ')

/** What help says of a flag that takes JSON, in lines. */
const describeJson = (spec: CommandSpec, { name, flag, about, json }: Field): string[] => [
  ...(about.includes(json!.shape) ? [] : [`Shape: ${json!.shape}`]),
  ...(json!.example === undefined ? [] : [`Example: ${flag} ${quoteWord(spacedJson(json!.example))}`]),
  `In full: wcrm schema ${commandName(spec)} ${name}`,
]

/** What help says of a flag, in lines. */
export const describeField = (spec: CommandSpec, field: Field): string[] => {
  const about = stripBackticks(field.about)
  const isShown = field.enum !== undefined && valuePlaceholder(field) === field.enum.join('|')
  const text = [
    field.json && about.length > MAX_ABOUT ? `${about.split('. ')[0]}.` : about,
    field.enum && !isShown ? `One of: ${field.enum.join(', ')}.` : '',
    field.required ? '(required)' : '',
    field.default === undefined || /when absent/.test(about)
      ? ''
      : `(default: ${JSON.stringify(field.default)})`,
  ]
  return [text.filter((part) => part !== '').join(' '), ...(field.json ? describeJson(spec, field) : [])]
}

const renderRequirements = (spec: CommandSpec): string =>
  [
    `Scope: ${spec.scope}.`,
    spec.confirm ? `Confirm with: --confirm ${spec.confirm}.` : '',
    spec.beta ? 'Beta: may change.' : '',
  ]
    .filter((s) => s !== '')
    .join(' ')

/** Renders the part of `--help` below the flags. */
export const renderHelpDetails = (spec: CommandSpec): string => {
  const json = spec.fields.some((f) => f.type === 'object' || f.type === 'any' || f.items === 'object')
  const lists = spec.fields.some((f) => f.type === 'list')
  const values = [
    lists ? 'Lists: separated by commas, repeated flags, a JSON array, @file or - (one item per line).' : '',
    spec.batch ? 'Ids from @file or -: any number, as lines or JSON lines with id.' : '',
    spec.fields.some((f) => f.text) ? 'Long texts: @file or -; @@ begins one with @.' : '',
    spec.fields.some((f) => f.names && f.names.pattern !== '^') ? 'A name may stand for an id.' : '',
    spec.fields.some((f) => f.time) ? 'Times: now, +1d, -90m, "tomorrow 9:00", "2026-11-30 9:00".' : '',
    json ? 'JSON: text, @file or -.' : '',
    spec.fields.some((f) => f.nullable) ? 'The word null clears a nullable field.' : '',
  ]
    .filter((s) => s !== '')
    .join(' ')
  const columns =
    spec.output.list && spec.verb !== 'export'
      ? `Piped output is one line per row with tab-separated columns: ${spec.output.columns.join(', ')}.`
      : ''
  const examples = spec.examples.map((e) => `  # ${e.title}\n  $ ${e.command}`).join('\n')
  return [
    '',
    examples ? `Examples:\n${examples}\n` : '',
    values,
    columns,
    spec.aliases ? `Aliases: ${spec.aliases.map((alias) => `wcrm ${spec.group} ${alias}`).join(', ')}.` : '',
    renderRequirements(spec),
    'Exit codes: 0 done, 2 invalid, 3 not found, 4 not permitted, 5 conflict, 6 not confirmed, ' +
      '7 rate limited, 8 unavailable, 9 partly failed, 1 other.',
    `Operation: ${spec.operation} (POST /v1/ops/${spec.operation}). Manual: man ` +
      `wcrm-${commandName(spec).replace(' ', '-')}.`,
  ]
    .filter((s, i) => i === 0 || s !== '')
    .join('\n')
}
