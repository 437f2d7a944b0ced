import { catalog, getInputSchema, getOutputSchema, type Operation } from '../../../catalog/index.ts'
import { type JsonSchema, toInlinedJsonSchema } from '../../../catalog/json-schema.ts'

/** What is at a path of an input or answer. `values`: all that are taken or sent, where they are listed. */
export type Place = { types: readonly string[]; values?: readonly string[]; required: boolean }

const asSchemas = (value: unknown): JsonSchema[] => (Array.isArray(value) ? (value as JsonSchema[]) : [])

const merge = (a: Place | undefined, b: Place): Place =>
  a === undefined
    ? b
    : {
        types: [...new Set([...a.types, ...b.types])],
        ...(a.values && b.values ? { values: [...new Set([...a.values, ...b.values])] } : {}),
        required: a.required && b.required,
      }

const listPlaces = (
  schema: JsonSchema,
  path: string,
  required: boolean,
  places: Map<string, Place>,
): Map<string, Place> => {
  const branches = asSchemas(schema.anyOf ?? schema.oneOf)
  for (const branch of branches) listPlaces(branch, path, required, places)
  if (branches.length === 0) {
    const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
    places.set(
      path,
      merge(places.get(path), {
        types: ([] as string[]).concat((schema.type as string) ?? 'any'),
        ...(values ? { values: (values as unknown[]).map(String) } : {}),
        required,
      }),
    )
  }
  for (const [name, field] of Object.entries((schema.properties as Record<string, JsonSchema>) ?? {}))
    listPlaces(field, `${path}.${name}`, ((schema.required as string[]) ?? []).includes(name), places)
  if (schema.items) listPlaces(schema.items as JsonSchema, `${path}[]`, false, places)
  return places
}

/** What an operation takes and answers, by path. */
const describeShape = (op: Operation): { input: Map<string, Place>; output: Map<string, Place> } => ({
  input: listPlaces(toInlinedJsonSchema(getInputSchema(op)), '', true, new Map()),
  output: listPlaces(toInlinedJsonSchema(getOutputSchema(op)), '', true, new Map()),
})

const toLines = (kind: string, places: Map<string, Place>): string[] =>
  [...places].map(([path, { types, values, required }]) =>
    [
      kind,
      path,
      types.toSorted().join('|'),
      required ? 'required' : 'optional',
      values?.toSorted().join('|') ?? '',
    ]
      .join(' ')
      .trimEnd(),
  )

/** The shapes of operations as text, a line for each place; `>` is an answer. */
const renderShapes = (operations: readonly Operation[]): string =>
  operations
    .flatMap((op) => {
      const { input, output } = describeShape(op)
      return [op.name, ...toLines('<', input), ...toLines('>', output), '']
    })
    .join('\n')

/** Reads what `renderShapes` wrote: the places of each operation, those of its answer with a `>` before the path. */
export const parseShapes = (text: string): Map<string, Map<string, Place>> => {
  const shapes = new Map<string, Map<string, Place>>()
  for (const block of text.split('\n\n').filter((part) => part.trim() !== '')) {
    const [name, ...lines] = block.trim().split('\n')
    const places = lines.map((line): [string, Place] => {
      const [kind, path, types, required, ...values] = line.split(' ')
      const listed = values.join(' ')
      return [
        `${kind}${path}`,
        {
          types: types!.split('|'),
          required: required === 'required',
          ...(listed === '' ? {} : { values: listed.split('|') }),
        },
      ]
    })
    shapes.set(name!, new Map(places))
  }
  return shapes
}

const isWithin = (all: readonly string[] | undefined, some: readonly string[] | undefined): boolean =>
  all === undefined || (some !== undefined && some.every((one) => all.includes(one)))

const compare = (was: Place, is: Place | undefined, isAnswer: boolean): string[] => {
  if (is === undefined) return ['is gone']
  const [wide, narrow] = isAnswer ? [was, is] : [is, was]
  return [
    ...(isWithin(wide.types, narrow.types) || wide.types.includes('any') ? [] : [`is ${is.types.join('|')}`]),
    ...(isWithin(wide.values, narrow.values)
      ? []
      : [`has the values ${is.values?.join('|') ?? 'of any text'}`]),
    ...(narrow.required || !wide.required ? [] : [is.required ? 'is required' : 'may be absent']),
  ]
}

/**
 * Returns what of an operation would break a caller who knows the places `known`: an answer may gain fields but lose
 * none, an input may gain optional ones.
 */
export const listBreaks = (op: Operation, known: Map<string, Place>): string[] => {
  const { input, output } = describeShape(op)
  const breaks: string[] = []
  for (const [kind, now] of [
    ['<', input],
    ['>', output],
  ] as const) {
    for (const [key, was] of known)
      if (key.startsWith(kind))
        breaks.push(
          ...compare(was, now.get(key.slice(1)), kind === '>').map((text) => `${op.name} ${key} ${text}`),
        )
    if (kind === '<')
      for (const [path, place] of now) {
        const isNew = !known.has(`<${path}`) && known.has(`<${path.slice(0, path.lastIndexOf('.'))}`)
        if (isNew && place.required) breaks.push(`${op.name} <${path} is new and required`)
      }
  }
  return breaks
}

// What is kept of the current version before another one takes its place:
// node tests/core/api-versions/shape.ts > tests/core/api-versions/VERSION.txt
if (import.meta.main) process.stdout.write(renderShapes(catalog))
