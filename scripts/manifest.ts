import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { toArgv } from '../cli/argv.ts'
import type { CommandSpec, Field, FieldType, Manifest, OutputField } from '../cli/manifest.ts'
import { catalog, inputOf, type Operation, outputOf, routesOf } from '../catalog/index.ts'

// Writes cli/manifest.json: the catalog as the command line needs it, so that `wcrm --help` loads no zod.

type Schema = {
  type?: string | string[]
  $ref?: string
  $defs?: Record<string, Schema>
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  contentEncoding?: string
  default?: unknown
  description?: string
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): Schema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Schema

/** Follows a reference into `$defs`; a description beside it stays. */
const resolved = (schema: Schema, root: Schema): Schema => {
  if (!schema.$ref) return schema
  const target = schema.$ref === '#' ? root : (root.$defs?.[schema.$ref.split('/').at(-1)!] ?? {})
  return { ...resolved(target, root), ...(schema.description ? { description: schema.description } : {}) }
}

/** The kinds of value that a schema takes, unions flattened. */
const kinds = (schema: Schema, root: Schema): Schema[] => {
  const known = resolved(schema, root)
  const union = known.anyOf ?? known.oneOf
  if (union) return union.flatMap((s) => kinds(s, root))
  if (Array.isArray(known.type)) return known.type.map((type) => ({ ...known, type }))
  return [known]
}

const jsonType = (schema: Schema): string =>
  typeof schema.type === 'string'
    ? schema.type
    : schema.const !== undefined
      ? typeof schema.const
      : schema.enum
        ? typeof schema.enum[0]
        : schema.properties || schema.allOf
          ? 'object'
          : 'any'

const fieldType = (
  schema: Schema,
  root: Schema,
): { type: FieldType; items?: FieldType; nullable?: true; enum?: string[] } => {
  const all = kinds(schema, root)
  const some = all.filter((s) => jsonType(s) !== 'null')
  const nullable = some.length < all.length ? { nullable: true as const } : {}
  const types = [...new Set(some.map(jsonType))]
  const choices = some
    .flatMap((s) => s.enum ?? (s.const === undefined ? [] : [s.const]))
    .filter((v) => typeof v === 'string' && v !== '') as string[]
  if (some.length === 1 && some[0]!.contentEncoding === 'base64') return { type: 'base64', ...nullable }
  const one =
    types.length === 1 ? types[0]! : types.every((t) => t === 'string' || t === 'integer') ? 'string' : 'any'
  if (one === 'array')
    return { type: 'list', items: fieldType(some.find((s) => s.items)?.items ?? {}, root).type, ...nullable }
  const closed = choices.length > 0 && some.every((s) => s.enum || s.const !== undefined)
  return { type: one as FieldType, ...nullable, ...(closed && one === 'string' ? { enum: choices } : {}) }
}

const firstAbout = (schema: Schema, root: Schema): string =>
  schema.description ?? kinds(schema, root).find((s) => s.description)?.description ?? ''

const fieldsOf = (op: Operation): Field[] => {
  const root = jsonSchema(inputOf(op), 'input')
  return Object.entries(root.properties ?? {})
    .filter(([name]) => name !== 'dry_run')
    .map(([name, schema]) => {
      const whole = resolved(schema, root)
      const fallback = whole.default
      return {
        name,
        flag: `--${name.replaceAll('_', '-')}`,
        ...fieldType(schema, root),
        ...(root.required?.includes(name) ? { required: true as const } : {}),
        ...(fallback === undefined ? {} : { default: fallback }),
        about: firstAbout(schema, root),
      }
    })
}

const outputFields = (properties: Record<string, Schema>, root: Schema): OutputField[] =>
  Object.entries(properties).map(([name, schema]) => {
    const types = [...new Set(kinds(schema, root).map(jsonType))].filter((t) => t !== 'null')
    return {
      name,
      type:
        types.length === 1
          ? types[0]!
          : types.every((t) => t !== 'object' && t !== 'array')
            ? 'string'
            : 'any',
      about: firstAbout(schema, root),
    }
  })

/** What fits in one cell: plain values, lists of plain values, and things that have a name. */
const fitsCell = (schema: Schema, root: Schema): boolean =>
  kinds(schema, root).every((s) => {
    const type = jsonType(s)
    if (type === 'array') return fitsCell(s.items ?? {}, root)
    return type === 'object' ? s.properties?.['name'] !== undefined : type !== 'any'
  })

const outputOfCommand = (op: Operation): CommandSpec['output'] => {
  const root = jsonSchema(outputOf(op), 'output')
  const properties = resolved(root, root).properties ?? {}
  const data = properties['data'] && resolved(properties['data'], root)
  if (data?.type !== 'array') return { fields: outputFields(properties, root), envelope: [], columns: [] }
  const row = resolved(data.items ?? {}, root).properties ?? {}
  const { data: _data, ...envelope } = properties
  return {
    list: true,
    ...('next_cursor' in properties && 'cursor' in op.input.shape ? { paged: true as const } : {}),
    fields: outputFields(row, root),
    envelope: outputFields(envelope, root),
    columns: Object.keys(row).filter((name) => fitsCell(row[name]!, root)),
  }
}

const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

const commandOf = (op: Operation): CommandSpec => {
  const [group, verb = ''] = op.cli.split(' ') as [string, string?]
  const fields = fieldsOf(op)
  const reserved = fields.filter((f) =>
    ['input', 'json', 'confirm', 'idempotency_key', 'all', 'server', 'help', 'version'].includes(f.name),
  )
  if (reserved.length > 0)
    throw new Error(`${op.name}: the command line keeps the name ${reserved[0]!.name} for itself`)
  const spec: CommandSpec = {
    operation: op.name,
    group,
    verb,
    summary: op.summary,
    ...(op.description ? { about: op.description } : {}),
    ...(op.stability === 'beta' ? { beta: true as const } : {}),
    scope: op.scope,
    ...(op.dryRun ? { writes: true as const } : {}),
    ...(op.confirm ? { confirm: op.confirm } : {}),
    args: routesOf(op)[0]?.pathFields ?? [],
    fields,
    output: outputOfCommand(op),
    examples: [],
  }
  const examples = op.examples.map(({ title, input }) => ({
    title,
    command: [
      'wcrm',
      ...toArgv(spec, input as Record<string, unknown>),
      ...(op.confirm ? ['--confirm', op.confirm] : []),
    ]
      .map(quote)
      .join(' '),
  }))
  return { ...spec, examples }
}

const format = { flag: '--format', value: 'csv|ndjson', enum: ['csv', 'ndjson'] }

/** `contacts export` is the search to its end, written for a spreadsheet or a program. */
const exportOf = (search: CommandSpec): CommandSpec => ({
  ...search,
  verb: 'export',
  summary: 'Write all contacts that match, in full, as CSV or as one JSON object a line',
  about:
    'Takes the conditions of `contacts search`. Nothing is written before every page has arrived. Custom fields are CSV columns named `attributes.<key>`; a cell that a ' +
    'spreadsheet would run as a formula is marked with an apostrophe, and tags and groups with a comma in their name are quoted. `contacts import` reads it back.',
  fields: search.fields.filter((f) => !['detail', 'limit', 'cursor'].includes(f.name)),
  own: [
    { ...format, about: 'How rows are written (default: csv).' },
    {
      flag: '--output',
      value: 'file',
      about: 'Write to this file instead of standard output; it appears when it is whole.',
    },
  ],
  examples: [
    {
      title: 'Starred contacts for a spreadsheet',
      command: 'wcrm contacts export --starred --output starred.csv',
    },
  ],
})

/** `contacts import` also takes a file, which it sends in batches. */
const importOf = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  summary: 'Create or update contacts from a file, or up to 500 in one call',
  about:
    `${spec.about} A file is sent 500 rows at a time; a batch that the server has done is never done twice. Its first line names the columns: phone, name, email, tags, groups (names ` +
    'or ids), `attributes.<key>`, or the key or label of a custom field. Tags and groups are parted by `,` or `;`. Empty cells leave things as they are. ' +
    'In a rehearsal each batch is checked by itself: a phone that is in two batches counts in both.',
  fields: spec.fields.map(({ required: _required, ...field }) => field),
  word: {
    name: 'file',
    about:
      'CSV (parted by comma, semicolon or tab) or one JSON object a line, in UTF-8; - reads standard input.',
  },
  own: [
    { ...format, about: 'What the file holds (default: by its name or its first character).' },
    {
      flag: '--map',
      value: 'column=field',
      repeats: true,
      about: 'Where a column goes, as in "City=attributes.city"; may be repeated.',
    },
    { flag: '--ignore', value: 'column', repeats: true, about: 'Leave a column out; may be repeated.' },
    { flag: '--create-groups', about: 'Create the groups that are not there yet.' },
    { flag: '--clear-empty', about: 'Empty cells clear the email address and custom values.' },
    {
      flag: '--failures',
      value: 'file',
      about: 'Write the rows that failed here, as {line, row, code, message, errors}, one a line.',
    },
    { flag: '--resume', about: 'Go on where an import of this file was broken off.' },
  ],
  examples: [
    {
      title: 'Rehearse a file',
      command: 'wcrm contacts import people.csv --map "Town=attributes.city" --dry-run',
    },
    {
      title: 'Mend what failed, and send it again',
      command: 'jq -c .row failed.ndjson | wcrm contacts import -',
    },
    ...spec.examples,
  ],
})

/** `events list` can stay and print what happens. */
const followOf = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  about:
    'Prints a page, oldest first; the next one is after the last id. With --follow it stays, prints each event as it happens on a line of its own, JSON with --json, and goes on where it was when the ' +
    'connection or the server was away; Ctrl-C ends it.',
  own: [{ flag: '--follow', about: 'Stay, and print events as they happen.' }],
  examples: [
    ...spec.examples,
    {
      title: 'Messages as they come',
      command: 'wcrm events list --follow --types message.received --json | jq .data.message.text',
    },
  ],
})

const withFiles = (spec: CommandSpec): CommandSpec[] =>
  spec.operation === 'events_list'
    ? [followOf(spec)]
    : spec.operation === 'crm_search_contacts'
      ? [spec, exportOf(spec)]
      : [spec.operation === 'crm_import_contacts' ? importOf(spec) : spec]

/** The manifest as it should be committed. */
export const manifestText = (): string => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const manifest: Manifest = { version, commands: catalog.flatMap((op) => withFiles(commandOf(op))) }
  return `{"version":${JSON.stringify(version)},"commands":[\n${manifest.commands.map((c) => JSON.stringify(c)).join(',\n')}\n]}\n`
}

if (import.meta.main) writeFileSync(new URL('../cli/manifest.json', import.meta.url), manifestText())
