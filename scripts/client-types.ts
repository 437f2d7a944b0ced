import { spawnSync } from 'node:child_process'
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { AskedAnswer } from '../catalog/approvals.ts'
import { errors } from '../catalog/errors.ts'
import { catalog, currentVersion, getOutputSchema, type Operation, takesVersion } from '../catalog/index.ts'
import { type JsonSchema, toJsonSchema } from '../catalog/json-schema.ts'
import { passesSoon } from '../catalog/passing-reasons.ts'
import { reasons } from '../catalog/reasons.ts'
import { createEventSchemas, listDescribedEvents } from '../server/domains/events/schemas.ts'
import { createFilterSchemas } from '../server/domains/filters/schema.ts'
import {
  type Definitions,
  isObject,
  type ObjectSchema,
  pickFields,
  printDefinitions,
  toPascalCase,
} from './declarations.ts'

// Generates the parts of @wcrm/client that follow from the catalog: its types, and a method for each operation.

const FOLDER = join(import.meta.dirname, '../client')
const CATALOG = join(import.meta.dirname, '../catalog')

const toCamelCase = (words: string): string =>
  words.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** What the alternatives of an input share, and one type for each: a call without any of them does not compile. */
const splitAlternatives = (
  { alternatives = [] }: Operation,
  input: JsonSchema,
): JsonSchema & { allOf?: JsonSchema[] } => {
  if (alternatives.length === 0) return input
  const listOwn = ({ needs, takes = [] }: (typeof alternatives)[number]): string[] => [...needs, ...takes]
  const own = alternatives.flatMap(listOwn)
  const shared = pickFields(input as ObjectSchema, (name) => !own.includes(name))
  const each = alternatives.map((one) => ({
    ...pickFields(input as ObjectSchema, (name) => listOwn(one).includes(name)),
    required: one.needs,
  }))
  return { description: input.description, allOf: [{ anyOf: each }, ...(isObject(shared) ? [shared] : [])] }
}

const isShape = (value: unknown): value is z.ZodRawShape =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every((each) => each instanceof z.ZodType)

/** What a constant of the catalog stands for in types: a record, fields that several have, alternatives of an input. */
const toKnown = (name: string, value: unknown): Definitions => {
  const called = toPascalCase(name)
  if (value instanceof z.ZodObject || value instanceof z.ZodEnum)
    return { [called]: toJsonSchema(value).schema }
  if (isShape(value)) return { [`${called}Fields`]: toJsonSchema(z.object(value)).schema }
  const op = catalog.find(({ alternatives }) => alternatives !== undefined && alternatives === value)
  return op ? { [called]: splitAlternatives(op, toJsonSchema(op.input).schema).allOf![0]! } : {}
}

const listKnown = async (): Promise<Definitions> => {
  const files = globSync('**/*.ts', { cwd: CATALOG }).toSorted()
  const modules = await Promise.all(files.map((file) => import(join(CATALOG, file)) as Promise<object>))
  const constants = modules.flatMap((module) => Object.entries(module))
  return Object.assign({}, ...constants.map(([name, value]) => toKnown(name, value)))
}

const createDefinitions = (): Definitions => {
  const asked = toJsonSchema(AskedAnswer)
  const definitions: Record<string, JsonSchema> = { ...asked.definitions }
  for (const op of catalog) {
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
export const renderTypes = async (): Promise<string> =>
  [BANNER, '', ...printDefinitions(createDefinitions(), await listKnown()), ''].join('\n')

/** A group of methods, `null` for those of the client itself, with the operations of its methods. */
const groupMethods = (): Map<string | null, [method: string, op: Operation][]> => {
  const groups = new Map<string | null, [string, Operation][]>()
  for (const op of catalog) {
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
