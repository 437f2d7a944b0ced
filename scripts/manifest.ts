import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { aliasesOf } from '../cli/aliases.ts'
import { quoteWord, toArgv } from '../cli/argv.ts'
import type { CommandSpec, Field, FieldType, Manifest, OutputField } from '../cli/manifest.ts'
import type { NameLookup } from '../catalog/operation.ts'
import { toInlinedJsonSchema } from '../catalog/json-schema.ts'
import { catalog, getInputSchema, type Operation, getOutputSchema, listRoutes } from '../catalog/index.ts'

import { extendCommand } from './extended-commands.ts'
import { jsonHelp, type ShapeSchema } from './json-shape.ts'

// Generates cli/manifest.json: the catalog as the command line needs it, so that `wcrm --help` does not load
// zod.

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
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  maxItems?: number
  default?: unknown
  description?: string
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): Schema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Schema

/** Resolves a reference into `$defs`; a description next to the reference overrides. */
const resolveReference = (schema: Schema, root: Schema): Schema => {
  if (!schema.$ref) return schema
  const target = schema.$ref === '#' ? root : (root.$defs?.[schema.$ref.split('/').at(-1)!] ?? {})
  return {
    ...resolveReference(target, root),
    ...(schema.description ? { description: schema.description } : {}),
  }
}

/** Returns the schemas of all values that a schema accepts, with unions flattened. */
const flattenUnion = (schema: Schema, root: Schema): Schema[] => {
  const known = resolveReference(schema, root)
  const union = known.anyOf ?? known.oneOf
  if (union) return union.flatMap((s) => flattenUnion(s, root))
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
  const all = flattenUnion(schema, root)
  const nonNull = all.filter((s) => jsonType(s) !== 'null')
  const nullable = nonNull.length < all.length ? { nullable: true as const } : {}
  const types = [...new Set(nonNull.map(jsonType))]
  const choices = nonNull
    .flatMap((s) => s.enum ?? (s.const === undefined ? [] : [s.const]))
    .filter((v) => typeof v === 'string' && v !== '') as string[]
  if (nonNull.length === 1 && nonNull[0]!.contentEncoding === 'base64') return { type: 'base64', ...nullable }
  const type =
    types.length === 1 ? types[0]! : types.every((t) => t === 'string' || t === 'integer') ? 'string' : 'any'
  if (type === 'array')
    return {
      type: 'list',
      items: fieldType(nonNull.find((s) => s.items)?.items ?? {}, root).type,
      ...nullable,
    }
  const isClosed = choices.length > 0 && nonNull.every((s) => s.enum || s.const !== undefined)
  return { type: type as FieldType, ...nullable, ...(isClosed && type === 'string' ? { enum: choices } : {}) }
}

/** Longer texts than names: they may come from a file. */
const LONG_TEXT = 300

/** What the text of a list's item, or of a field, must look like; undefined where that is not the pattern of an id. */
const idPattern = (schema: Schema, root: Schema): string | undefined =>
  flattenUnion(schema, root)
    .flatMap((s) => (s.items ? flattenUnion(s.items, root) : [s]))
    .find((s) => s.pattern?.includes('[1-9]\\d{0,18}'))?.pattern

/** What the command line does for a field beyond parsing its text, as its schema says. */
const fieldHelp = (name: string, schema: Schema, root: Schema): Partial<Field> => {
  const all = flattenUnion(schema, root)
  const pattern = idPattern(schema, root)
  const [list] = catalog.filter((op) => op.names && name in op.names.fields)
  const { fields, ...lookup } = list?.names ?? { fields: {} as Record<string, string> }
  const maxItems = all.find((s) => s.items)?.maxItems
  const isText =
    !/(?:^|_)(?:cursor|url)$/.test(name) &&
    all.some((s) => jsonType(s) === 'string' && !s.pattern && !s.format && (s.maxLength ?? 0) >= LONG_TEXT)
  return {
    ...(all.some((s) => s.format === 'date-time') ? { time: 'time' as const } : {}),
    ...(all.some((s) => s.pattern === '^\\d{4}-\\d{2}-\\d{2}$') ? { time: 'day' as const } : {}),
    ...(isText ? { text: true as const } : {}),
    ...(pattern && maxItems ? { ids: maxItems } : {}),
    ...(list
      ? {
          names: {
            operation: list.name,
            command: list.cli,
            flag: `--${fields[name]}`,
            // Where no pattern says what an id is, the server takes names.
            pattern: pattern ?? '^',
            ...(lookup as Omit<NameLookup, 'fields'>),
          },
        }
      : {}),
  }
}

const findDescription = (schema: Schema, root: Schema): string =>
  schema.description ?? flattenUnion(schema, root).find((s) => s.description)?.description ?? ''

const createFields = (op: Operation): Field[] => {
  const inlined = toInlinedJsonSchema(getInputSchema(op))['properties'] as Record<string, ShapeSchema>
  const root = jsonSchema(getInputSchema(op), 'input')
  return Object.entries(root.properties ?? {})
    .filter(([name]) => name !== 'dry_run')
    .map(([name, schema]) => {
      const whole = resolveReference(schema, root)
      const fallback = whole.default
      const type = fieldType(schema, root)
      return {
        name,
        flag: `--${name.replaceAll('_', '-')}`,
        ...type,
        ...(root.required?.includes(name) ? { required: true as const } : {}),
        ...(fallback === undefined ? {} : { default: fallback }),
        ...fieldHelp(name, schema, root),
        ...jsonHelp(op, name, type, inlined[name]!),
        about: findDescription(schema, root),
      }
    })
}

const outputFields = (properties: Record<string, Schema>, root: Schema): OutputField[] =>
  Object.entries(properties).map(([name, schema]) => {
    const types = [...new Set(flattenUnion(schema, root).map(jsonType))].filter((t) => t !== 'null')
    return {
      name,
      type:
        types.length === 1
          ? types[0]!
          : types.every((t) => t !== 'object' && t !== 'array')
            ? 'string'
            : 'any',
      about: findDescription(schema, root),
    }
  })

/** Returns the path of the id: that of the record itself, else that of the first record in it. */
const findIdPath = (properties: Record<string, Schema>, root: Schema): string | undefined =>
  'id' in properties
    ? 'id'
    : Object.keys(properties)
        .map((name) => `${name}.id`)
        .find((path) =>
          flattenUnion(properties[path.slice(0, -3)]!, root).some(
            (s) => s.properties && 'id' in s.properties,
          ),
        )

/** True for what a table cell can show: scalars, lists of scalars, and objects with a name. */
const fitsTableCell = (schema: Schema, root: Schema): boolean =>
  flattenUnion(schema, root).every((s) => {
    const type = jsonType(s)
    if (type === 'array') return fitsTableCell(s.items ?? {}, root)
    return type === 'object' ? s.properties?.['name'] !== undefined : type !== 'any'
  })

const createOutput = (op: Operation): CommandSpec['output'] => {
  const root = jsonSchema(getOutputSchema(op), 'output')
  const properties = resolveReference(root, root).properties ?? {}
  const data = properties['data'] && resolveReference(properties['data'], root)
  if (data?.type !== 'array') {
    const id = op.dryRun || 'id' in properties ? findIdPath(properties, root) : undefined
    return { fields: outputFields(properties, root), envelope: [], columns: [], ...(id ? { id } : {}) }
  }
  const row = resolveReference(data.items ?? {}, root).properties ?? {}
  const { data: _data, ...envelope } = properties
  const id = findIdPath(row, root)
  return {
    list: true,
    ...('next_cursor' in properties && 'cursor' in op.input.shape ? { paged: true as const } : {}),
    fields: outputFields(row, root),
    envelope: outputFields(envelope, root),
    columns: Object.keys(row).filter((name) => fitsTableCell(row[name]!, root)),
    ...(op.view ? { view: op.view } : {}),
    ...(id ? { id } : {}),
  }
}

/** Flags of every command. */
const RESERVED =
  'input json confirm idempotency_key all server help version wide columns utc retry ndjson csv header jq quiet'.split(
    ' ',
  )

/** Leaves out the flag that takes a name where a field has that flag. */
const withFreeFlag = (field: Field, fields: readonly Field[]): Field => {
  const { names } = field
  if (!names || !fields.some((f) => f.flag === names.flag)) return field
  const { flag: _flag, ...others } = names
  return { ...field, names: others }
}

const createCommand = (op: Operation): CommandSpec => {
  const [group, verb = ''] = op.cli.split(' ') as [string, string?]
  const fields = createFields(op)
  // Only lists have the option of all pages.
  const isFree = (name: string) => name === 'all' && !('next_cursor' in op.output.shape)
  const reserved = fields.filter(({ name }) => RESERVED.includes(name) && !isFree(name))
  if (reserved.length > 0)
    throw new Error(`${op.name}: the field name ${reserved[0]!.name} is reserved by the command line`)
  const isFirstNeed = (name: string) => op.alternatives?.some(({ needs }) => needs[0] === name)
  const batch = op.dryRun ? fields.find((f) => f.ids && (f.required || isFirstNeed(f.name))) : undefined
  const spec: CommandSpec = {
    operation: op.name,
    group,
    verb,
    summary: op.summary,
    words: op.words,
    ...(op.description ? { about: op.description } : {}),
    ...(op.stability === 'beta' ? { beta: true as const } : {}),
    scope: op.scope,
    ...(op.dryRun ? { writes: true as const } : {}),
    ...(op.confirm ? { confirm: op.confirm } : {}),
    ...(batch ? { batch: batch.name } : {}),
    ...(op.compose ? { compose: op.compose } : {}),
    args: listRoutes(op)[0]?.pathFields ?? [],
    fields: fields.map((field) => withFreeFlag(field, fields)),
    output: createOutput(op),
    examples: [],
  }
  const examples = op.examples.map(({ title, input }) => ({
    title,
    command: [
      'wcrm',
      ...toArgv(spec, input as Record<string, unknown>),
      ...(op.confirm ? ['--confirm', op.confirm] : []),
    ]
      .map(quoteWord)
      .join(' '),
  }))
  return { ...spec, examples }
}

const withAliases = (spec: CommandSpec, all: readonly CommandSpec[]): CommandSpec => {
  const verbs = all.filter(({ group }) => group === spec.group).map(({ verb }) => verb)
  const aliases = aliasesOf(spec.verb, verbs)
  return aliases.length > 0 ? { ...spec, aliases } : spec
}

/** Renders the manifest as it should be committed. */
export const renderManifest = (): string => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const all = catalog.flatMap((op) => extendCommand(createCommand(op)))
  const manifest: Manifest = { version, commands: all.map((spec) => withAliases(spec, all)) }
  const commands = manifest.commands.map((command) => JSON.stringify(command)).join(',\n')
  return `{"version":${JSON.stringify(version)},"commands":[\n${commands}\n]}\n`
}

if (import.meta.main) writeFileSync(new URL('../cli/manifest.json', import.meta.url), renderManifest())
