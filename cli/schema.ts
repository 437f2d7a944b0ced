import { Command } from 'commander'
import type { JsonSchema } from '../catalog/json-schema.ts'
import type { Operation } from '../catalog/operation.ts'
import { runOneCommand } from './command-tree.ts'
import { cliError, usageError } from './error.ts'
import { helpWidth, layOutHelp } from './help-layout.ts'
import type { Io } from './io.ts'
import { type CommandSpec, commandName, findCommand, readManifest } from './manifest.ts'
import { requireOperation } from './ops.ts'

type Schemas = Readonly<Record<string, JsonSchema>>

const propertiesOf = (schema: JsonSchema): Schemas => (schema['properties'] ?? {}) as Schemas

const variantsOf = (schema: JsonSchema): JsonSchema[] =>
  (schema['anyOf'] ?? schema['oneOf'] ?? []) as JsonSchema[]

/** The schemas in which a name of a path may be a field: of a list its items, of a union its variants. */
const openSchema = (schema: JsonSchema): JsonSchema[] => {
  const items = schema['items'] as JsonSchema | undefined
  return [schema, ...variantsOf(schema).flatMap(openSchema), ...(items ? openSchema(items) : [])]
}

const fieldNames = (schema: JsonSchema): string[] => [
  ...new Set(openSchema(schema).flatMap((part) => Object.keys(propertiesOf(part)))),
]

/** Finds the field of a path such as `template.buttons.url`. Throws an error with the names that there are. */
const findField = (root: JsonSchema, path: string): JsonSchema => {
  let at = root
  for (const name of path.split('.')) {
    const found = openSchema(at).find((part) => Object.hasOwn(propertiesOf(part), name))
    if (!found)
      throw Object.assign(
        cliError(3, {
          type: 'about:blank',
          title: 'No such field',
          status: 404,
          code: 'not_found',
          detail: `There is no field ${JSON.stringify(name)} in ${JSON.stringify(path)}.`,
        }),
        { hint: `There are: ${fieldNames(at).join(', ') || 'none'}.` },
      )
    at = propertiesOf(found)[name]!
  }
  return at
}

/** The value at a path of an example, or the example itself; undefined where it has none. */
const readExample = (example: unknown, path: string | undefined): unknown => {
  let at = example
  for (const name of path?.split('.') ?? []) {
    if (Array.isArray(at)) at = at[0]
    at = (at as Record<string, unknown> | undefined)?.[name]
  }
  return at
}

const describeLimits = (schema: JsonSchema): string[] => {
  const of = (name: string): unknown => schema[name]
  const range = (min: string, max: string, unit: string): string[] =>
    of(min) !== undefined && of(max) !== undefined
      ? [`${of(min)} to ${of(max)}${unit}`]
      : of(max) !== undefined
        ? [`at most ${of(max)}${unit}`]
        : of(min) !== undefined
          ? [`at least ${of(min)}${unit}`]
          : []
  // Whole numbers without a limit have those of JavaScript, which say nothing.
  const isLimited = Math.abs(Number(of('maximum') ?? 0)) !== Number.MAX_SAFE_INTEGER
  return [
    ...range('minLength', 'maxLength', ' characters'),
    ...range('minItems', 'maxItems', ' items'),
    ...(isLimited ? range('minimum', 'maximum', '') : []),
    ...(of('pattern') === undefined ? [] : [`matches ${of('pattern')}`]),
    ...(of('default') === undefined ? [] : [`default ${JSON.stringify(of('default'))}`]),
  ]
}

const describeType = (schema: JsonSchema): string => {
  if (schema['const'] !== undefined) return JSON.stringify(schema['const'])
  if (schema['enum']) return (schema['enum'] as unknown[]).map((value) => String(value)).join(' | ')
  const variants = variantsOf(schema)
  if (variants.length > 0) return [...new Set(variants.map(describeType))].join(' or ')
  if (schema['type'] === 'array') return `list of ${describeType((schema['items'] ?? {}) as JsonSchema)}`
  return schema['type'] === undefined ? 'any value' : [schema['type']].flat().join(' or ')
}

/** Lines for the fields of a schema, nested ones further right. */
const renderFields = (schema: JsonSchema, indent: string): string[] => {
  const lines = Object.entries(propertiesOf(schema)).flatMap(([name, field]) => {
    const isRequired = ((schema['required'] ?? []) as string[]).includes(name)
    const facts = [describeType(field), ...describeLimits(field), ...(isRequired ? ['required'] : [])]
    const about = String(field['description'] ?? '').replaceAll('`', '')
    return [
      `${indent}${name}: ${facts.join(', ')}`,
      ...(about === '' ? [] : [`${indent}    ${about}`]),
      ...renderFields(field, `${indent}  `),
    ]
  })
  const variants = variantsOf(schema).filter((variant) => fieldNames(variant).length > 0)
  return [
    ...lines,
    ...variants.flatMap((variant, i) => [
      ...(variants.length > 1 ? [`${indent}${i === 0 ? 'either' : 'or'}`] : []),
      ...renderFields(variant, variants.length > 1 ? `${indent}  ` : indent),
    ]),
    ...(schema['items'] ? renderFields(schema['items'] as JsonSchema, indent) : []),
  ]
}

/** What is asked for: of an operation what it takes, or what it answers, or a field of it. */
type Asked = {
  readonly spec: CommandSpec
  readonly op: Operation
  readonly path: string | undefined
  readonly output: boolean
}

const findExample = ({ spec, op, path, output }: Asked): unknown => {
  const given = op.examples
    .map((example) => readExample(output ? example.output : example.input, path))
    .find((value) => value !== undefined)
  return given ?? (output ? undefined : spec.fields.find(({ name }) => name === path)?.json?.example)
}

/** Renders a schema for the terminal, if there is one; its example stays as it is, so that it can be copied. */
const renderSchema = async (asked: Asked, schema: JsonSchema, { stdout }: Io): Promise<string> => {
  const { spec, op, path } = asked
  const example = findExample(asked)
  const facts = [describeType(schema), ...describeLimits(schema)]
  const head =
    path === undefined
      ? [
          `${op.name}   (wcrm ${commandName(spec)})`,
          `${op.summary}.`,
          `Scope: ${op.scope}.${spec.confirm ? ` Needs --confirm ${spec.confirm}.` : ''}`,
        ]
      : [`${op.name} ${path}: ${facts.join(', ')}`, String(schema['description'] ?? '').replaceAll('`', '')]
  const fields = renderFields(schema, '  ')
  const text = [
    ...head.filter((line) => line !== ''),
    ...(fields.length > 0 ? ['', ...fields] : path === undefined ? ['', '  It takes no fields.'] : []),
    ...(example === undefined ? [] : ['', 'Example:']),
    '',
  ].join('\n')
  return (
    (stdout.isTTY ? await layOutHelp(text, helpWidth(stdout)) : text) +
    (example === undefined ? '' : `${JSON.stringify(example, undefined, 2)}\n`)
  )
}

/** The operation of a name, or of the words of its command; the other word is the path of a field. */
const findSpec = async (
  words: readonly string[],
): Promise<{ spec: CommandSpec; path: string | undefined }> => {
  const [first = '', second] = words
  const spec = findCommand(readManifest().commands, first, second)
  if (spec) return { spec, path: words[spec.verb === '' ? 1 : 2] }
  const verbs = readManifest().commands.filter(({ group }) => group === first)
  if (verbs.length === 0) return { spec: await requireOperation(first), path: second }
  const { closest } = await import('fastest-levenshtein')
  const near = closest(
    second ?? '',
    verbs.map(({ verb }) => verb),
  )
  throw Object.assign(usageError(`There is no command "${`${first} ${second ?? ''}`.trim()}".`), {
    hint:
      `${second === undefined ? 'For example' : 'Did you mean'}: wcrm schema ${first} ${near}` +
      `   All of them: wcrm ${first} --help`,
  })
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm schema')
    .description(
      'Show what an operation takes: fields, types, limits and an example; with --json as JSON Schema. A field of ' +
        'a field is named with dots, also through lists.',
    )
    .usage('<operation> [field] [options]')
    .argument('<operation...>', 'such as messaging_create_template, or "templates create", and a field')
    .option('--output', 'what it answers instead')
    .option('--json', 'print the JSON Schema')
    .action(async (words: string[], { json, output }: { json?: boolean; output?: boolean }) => {
      const { spec, path } = await findSpec(words)
      // The catalog loads slowly; the other commands do without it.
      const { findOperation, getInputSchema, getOutputSchema } = await import('../catalog/index.ts')
      const { toInlinedJsonSchema } = await import('../catalog/json-schema.ts')
      const op = findOperation(spec.operation)!
      const root = toInlinedJsonSchema(output ? getOutputSchema(op) : getInputSchema(op))
      const schema = path === undefined ? root : findField(root, path)
      io.stdout.write(
        json
          ? `${JSON.stringify(schema, undefined, 2)}\n`
          : await renderSchema({ spec, op, path, output: output === true }, schema, io),
      )
    })

/** `wcrm schema OPERATION [FIELD]`: what an operation takes. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
