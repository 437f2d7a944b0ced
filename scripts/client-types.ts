import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from 'json-schema-to-typescript'
import { AskedAnswer } from '../catalog/approvals.ts'
import { errors } from '../catalog/errors.ts'
import { catalog, currentVersion, getOutputSchema, type Operation, takesVersion } from '../catalog/index.ts'
import { type JsonSchema, mapSchemas, toJsonSchema } from '../catalog/json-schema.ts'
import { passesSoon } from '../catalog/passing-reasons.ts'
import { reasons } from '../catalog/reasons.ts'
import { createEventSchemas, listDescribedEvents } from '../server/events/schemas.ts'
import { createFilterSchemas } from '../server/filters/schema.ts'

// Generates the parts of @wcrm/client that follow from the catalog: its types, and a method for each operation.

const FOLDER = join(import.meta.dirname, '../client')
const operations: readonly Operation[] = catalog

const toPascalCase = (name: string): string =>
  name
    .split('_')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('')

const toCamelCase = (words: string): string =>
  words.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Each alternative of an input is a type of its own, so that a call without any of them does not compile. */
const splitAlternatives = ({ alternatives = [] }: Operation, input: JsonSchema): JsonSchema => {
  if (alternatives.length === 0) return input
  const properties = input.properties as Record<string, JsonSchema>
  const listOwn = ({ needs, takes = [] }: (typeof alternatives)[number]) => [...needs, ...takes]
  const { description, ...rest } = input
  return {
    ...(description === undefined ? {} : { description }),
    anyOf: alternatives.map((alternative) => {
      const own = listOwn(alternative)
      const others = alternatives.flatMap(listOwn).filter((name) => !own.includes(name))
      return {
        ...rest,
        properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !others.includes(name))),
        required: [...((rest.required ?? []) as string[]), ...alternative.needs],
      }
    }),
  }
}

/** A reference alone: with something beside it, it would become a type of its own. */
const withoutBeside = (schema: JsonSchema): JsonSchema =>
  typeof schema.$ref === 'string' ? { $ref: schema.$ref } : mapSchemas(schema, withoutBeside)

const createDefinitions = (): Record<string, JsonSchema> => {
  const asked = toJsonSchema(AskedAnswer)
  const definitions: Record<string, JsonSchema> = { ...asked.definitions }
  for (const op of operations) {
    const input = toJsonSchema(op.input.strict())
    const output = toJsonSchema(getOutputSchema(op))
    Object.assign(definitions, input.definitions, output.definitions, {
      [`${toPascalCase(op.name)}Input`]: splitAlternatives(op, input.schema),
      [`${toPascalCase(op.name)}Output`]: output.schema,
    })
  }
  return {
    ...definitions,
    ...createFilterSchemas(),
    ...createEventSchemas(),
    WebhookEvent: {
      description: 'The body of a webhook in the format `envelope`; `type` and `version` say which.',
      anyOf: listDescribedEvents().map(({ webhook }) => ({ $ref: `#/$defs/${webhook}` })),
    },
    ErrorCode: { description: 'Codes of errors of the service.', enum: Object.keys(errors) },
    Reason: { description: 'What a code means in a case.', enum: Object.keys(reasons) },
  }
}

const BANNER = '// Generated from the catalog by scripts/client-types.ts (npm run generate).'

/** Returns the types of all inputs and outputs. */
export const renderTypes = async (): Promise<string> => {
  const definitions = createDefinitions()
  const root: JsonSchema = {
    title: 'All',
    type: 'object',
    properties: Object.fromEntries(
      Object.keys(definitions).map((name) => [name, { $ref: `#/$defs/${name}` }]),
    ),
    additionalProperties: false,
    $defs: Object.fromEntries(
      Object.entries(definitions).map(([name, schema]) => [name, { ...withoutBeside(schema), title: name }]),
    ),
  }
  const text = await compile(root as never, 'All', {
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    bannerComment: BANNER,
    format: false,
  })
  return text.replace(/export interface All \{[^]*?\n\}\n/, '')
}

/** A group of methods, `null` for those of the client itself, with the operations of its methods. */
const groupMethods = (): Map<string | null, [method: string, op: Operation][]> => {
  const groups = new Map<string | null, [string, Operation][]>()
  for (const op of operations) {
    const [first, second] = op.cli.split(' ').map(toCamelCase) as [string, string | undefined]
    const group = second === undefined ? null : first
    groups.set(group, [...(groups.get(group) ?? []), [second ?? first, op]])
  }
  return groups
}

const isOptional = ({ input, alternatives }: Operation): boolean =>
  alternatives === undefined && input.safeParse({}).success

const isList = ({ output }: Operation): boolean => 'data' in output.shape && 'next_cursor' in output.shape

const toSignature = (op: Operation): string => {
  const name = toPascalCase(op.name)
  const versioned = takesVersion(op) ? ' & Versioned' : ''
  const options = op.confirm
    ? `options: Confirmed<'${op.confirm}'>${versioned}`
    : `options?: ${op.dryRun ? 'ChangeOptions' : 'CallOptions'}${versioned}`
  const answer = isList(op) ? `Listing<types.${name}Output>` : `Promise<types.${name}Output>`
  return `(input${isOptional(op) && !op.confirm ? '?' : ''}: types.${name}Input, ${options}) => ${answer}`
}

const toDocument = ({ name, summary, description }: Operation): string =>
  `/** ${[`${summary}.`, description, `Operation \`${name}\`.`].filter(Boolean).join(' ').replaceAll('*/', '*')} */`

const toFlags = (op: Operation): string =>
  `['${op.name}', ${op.dryRun ? "'change'" : isList(op) ? "'list'" : "'read'"}]`

/** Returns the methods: their types, and the operation of each. */
export const renderOperations = (): string => {
  const groups = [...groupMethods()]
  const each = (render: (op: Operation, method: string) => string, open: string, close: string): string[] =>
    groups.flatMap(([group, methods]) => {
      const lines = methods.map(([method, op]) => render(op, method))
      return group === null ? lines : [`${group}: ${open}`, ...lines, close]
    })
  return [
    BANNER,
    "import type { CallOptions } from './transport.ts'",
    "import type { ChangeOptions, Confirmed, Versioned } from './options.ts'",
    "import type { Listing } from './pages.ts'",
    "import type * as types from './types.ts'",
    '',
    '/** A method for each operation, in groups as on the command line. */',
    'export type Operations = {',
    ...each((op, method) => `${toDocument(op)}\nreadonly ${method}: ${toSignature(op)}`, '{', '}').map(
      (line) => (/^\w+: \{$/.test(line) ? `readonly ${line}` : line),
    ),
    '}',
    '',
    '/** The version of the API that these are operations of. */',
    `export const API_VERSION = '${currentVersion}'`,
    '',
    "type Kind = 'read' | 'list' | 'change'",
    'export type Entry = readonly [operation: string, kind: Kind]',
    '',
    'export const table: Readonly<Record<string, Entry | Readonly<Record<string, Entry>>>> = {',
    ...each((op, method) => `${method}: ${toFlags(op)},`, '{', '},'),
    '}',
    '',
  ].join('\n')
}

/** Returns what decides on retries, in a file of its own, which the command line loads without the rest. */
export const renderPassingReasons = (): string => {
  const names = JSON.stringify(Object.keys(reasons).filter(passesSoon))
  return [
    BANNER,
    '',
    '/** Reasons of a 409 after which the same call may succeed within seconds. */',
    `export const passingReasons: ReadonlySet<string> = new Set(${names})`,
    '',
  ].join('\n')
}

if (import.meta.main) {
  const files = {
    'types.ts': await renderTypes(),
    'operations.ts': renderOperations(),
    'passing-reasons.ts': renderPassingReasons(),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(FOLDER, name), text)
  spawnSync('npx', ['oxfmt', ...Object.keys(files).map((name) => join(FOLDER, name))], { stdio: 'inherit' })
}
