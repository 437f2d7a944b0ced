import { type JsonSchema, mapSchemas, mapValues } from '../catalog/json-schema.ts'

// Prints definitions in JSON Schema as types of TypeScript that say a thing once: types that are the same are one
// type with a name, and objects with the fields of another refer to it. What has the same text, with its comments, is
// the same.

export type Definitions = Readonly<Record<string, JsonSchema>>
export type ObjectSchema = JsonSchema & { properties: Definitions; required?: readonly string[] }

/** Names of types by their texts, and objects that others may consist of, large ones first. */
type Named = { readonly types: ReadonlyMap<string, string>; readonly parts: readonly Part[] }
type Part = { readonly name: string; readonly fields: ReadonlyMap<string, string> }

const NOTHING: Named = { types: new Map(), parts: [] }

/** Of an object, this many fields are worth a reference to it without the others. */
const MANY = 5

/** Types of one operation or event: no other type consists of them. */
const DERIVED = /(Input|Output|Event|Webhook|Data)$/

export const isObject = (schema: JsonSchema): schema is ObjectSchema =>
  schema.type === 'object' && Object.keys((schema.properties ?? {}) as object).length > 0

export const pickFields = (schema: ObjectSchema, isPicked: (name: string) => boolean): ObjectSchema => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(schema.properties).filter(([name]) => isPicked(name))),
  required: (schema.required ?? []).filter(isPicked),
})

const listSchemas = (value: unknown): readonly JsonSchema[] => (value ?? []) as JsonSchema[]

/** The same type in fewer keywords: unions are `anyOf`, values `enum`, and `null` is a type of its own. */
const simplify = (schema: JsonSchema): JsonSchema => {
  const { description, type, oneOf, ...rest } = mapSchemas(schema, simplify)
  const values = (rest.enum ?? ('const' in rest ? [rest.const] : undefined)) as unknown[] | undefined
  if (values?.includes(null))
    return { description, anyOf: [{ enum: values.filter((value) => value !== null) }, { type: 'null' }] }
  if (values) return { description, enum: values }
  if (Array.isArray(type)) return { description, anyOf: type.map((each) => ({ ...rest, type: each })) }
  return { ...rest, description, type, anyOf: rest.anyOf ?? oneOf }
}

const printComment = ({ description }: JsonSchema): string =>
  description === undefined ? '' : `/** ${String(description).replaceAll('*/', '*')} */\n`

const printValues = (values: readonly unknown[]): string =>
  values.map((value) => JSON.stringify(value)).join(' | ')

const printFields = ({ properties, required = [] }: ObjectSchema, named: Named): Map<string, string> =>
  new Map(
    Object.entries(properties).map(([name, field]) => {
      const mark = required.includes(name) ? '' : '?'
      return [name, `${printComment(field)}${name}${mark}: ${printType(field, named)}\n`]
    }),
  )

/** Refers to the parts that an object has, all or most of their fields, and has the others itself. */
const printObject = (schema: ObjectSchema, named: Named): string => {
  const left = toFields(schema)
  const types: string[] = []
  const isWhole = ({ fields }: Part) => [...fields].every(([field, text]) => left.get(field) === text)
  for (const { name, fields } of [...named.parts.filter(isWhole), ...named.parts]) {
    const names = [...fields.keys()]
    const same = names.filter((field) => left.get(field) === fields.get(field))
    const others = names.filter((field) => !same.includes(field))
    if (others.length > 0 && (same.length < MANY || same.length < 2 * others.length)) continue
    types.push(others.length === 0 ? name : `Omit<${name}, ${printValues(others)}>`)
    for (const field of same) left.delete(field)
  }
  const own = [...printFields(schema, named)].filter(([name]) => left.has(name)).map(([, text]) => text)
  return [...types, ...(own.length > 0 ? [`{\n${own.join('')}}`] : [])].join(' & ')
}

const printUnnamed = (schema: JsonSchema, named: Named): string => {
  const { $ref, type, enum: values, anyOf, allOf, items, additionalProperties: rest } = schema
  const print = (each: unknown): string => printType((each ?? {}) as JsonSchema, named)
  if (typeof $ref === 'string') return $ref.replace('#/$defs/', '')
  if (values) return printValues(values as unknown[])
  if (anyOf) return [...new Set(listSchemas(anyOf).map(print))].join(' | ')
  if (allOf)
    return listSchemas(allOf)
      .map((each) => `(${print(each)})`)
      .join(' & ')
  if (type === 'array') return `(${print(items)})[]`
  if (isObject(schema)) return printObject(schema, named)
  if (type === 'object') return rest ? `{ [key: string]: ${print(rest)} }` : '{}'
  return type === 'integer' ? 'number' : String(type ?? 'unknown')
}

const printType = (schema: JsonSchema, named: Named): string =>
  (named === NOTHING ? undefined : named.types.get(toText(schema))) ?? printUnnamed(schema, named)

/** A type without names, which is the same text for the same type. */
const toText = (schema: JsonSchema): string => printUnnamed(schema, NOTHING)
const toFields = (schema: ObjectSchema): Map<string, string> => printFields(schema, NOTHING)

/** Whether a type gets a name where it occurs again: one of several lines. Beside it, `null` is not part of it. */
const isLong = (schema: JsonSchema): boolean =>
  schema.type !== 'array' &&
  !listSchemas(schema.anyOf).some(({ type }) => type === 'null') &&
  toText(schema).split(/\n\w|\|/).length > 2

/** The name of a definition, and the fields from it to a schema. */
type Place = readonly string[]
type Found = { readonly schema: JsonSchema; readonly places: Place[] }

const toSingular = (word: string): string => word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1')

/** Returns long types by their text, with their places; those inside of one have its first place only. */
const findPlaces = (definitions: Definitions): ReadonlyMap<string, Found> => {
  const found = new Map<string, Found>()
  const visit = (schema: JsonSchema, place: Place): void => {
    if (isLong(schema)) {
      const known = found.get(toText(schema))
      if (known) return void known.places.push(place)
      found.set(toText(schema), { schema, places: [place] })
    }
    for (const each of [...listSchemas(schema.anyOf), ...listSchemas(schema.allOf)]) visit(each, place)
    if (schema.items) visit(schema.items as JsonSchema, [...place.slice(0, -1), toSingular(place.at(-1)!)])
    if (isObject(schema))
      for (const [name, field] of Object.entries(schema.properties)) visit(field, [...place, name])
  }
  for (const [name, schema] of Object.entries(definitions)) visit(schema, [name])
  return found
}

export const toPascalCase = (name: string): string =>
  name
    .split('_')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('')

/** Names for what is at these places: after its field, or after the words that the names of its definitions share. */
const proposeNames = (places: readonly Place[]): string[] => {
  const [definition, ...fields] = (places.find(({ length }) => length > 1) ?? places[0]) as [string]
  const near = places.filter(([name]) => name === definition)
  const common = fields.filter((field, i) => near.every((place) => place[i + 1] === field))
  const last = fields.slice(-1)
  const isLastCommon = near.every((place) => place.at(-1) === last[0])
  const owner = definition.replace(DERIVED, '')
  const toName = (words: readonly string[]) => toPascalCase([owner, ...words].join('_'))
  if (fields.length > 0) return [toName(isLastCommon ? last : common.slice(-1)), toName(last), toName(fields)]
  const splitWords = ([name]: Place): string[] => name!.split(/(?=[A-Z])/)
  const words = splitWords([definition])
  return [words.filter((word) => places.every((place) => splitWords(place).includes(word))).join('')]
}

/** The fields that all types of a union have, if all are objects with names. */
const findUnionFields = (definitions: Definitions): [string, JsonSchema][] =>
  Object.entries(definitions).flatMap(([name, { anyOf }]) => {
    const members = listSchemas(anyOf).map((each) => definitions[toText(each)] ?? {})
    const [first] = members
    if (!first || !members.every(isObject)) return []
    const all = members.map(toFields)
    const isCommon = (field: string) => all.every((fields) => fields.get(field) === all[0]!.get(field))
    return [[`${name}Fields`, pickFields(first as ObjectSchema, isCommon)]]
  })

/** How many types in definitions are this one, or have all its fields. */
const countUses = (schema: JsonSchema, found: ReadonlyMap<string, Found>): number => {
  const fields = isObject(schema) ? [...toFields(schema)] : undefined
  const has = (other: JsonSchema): boolean => {
    if (!fields || !isObject(other)) return toText(other) === toText(schema)
    const all = toFields(other)
    return fields.every(([name, text]) => all.get(name) === text)
  }
  return [...found.values()].reduce((sum, each) => sum + (has(each.schema) ? each.places.length : 0), 0)
}

/** Returns the definitions as types, and types that they share: those in `known`, and others, named after places. */
export const printDefinitions = (schemas: Definitions, known: Definitions): string[] => {
  const definitions = mapValues(schemas, simplify)
  const found = findPlaces(definitions)
  const all = new Map(Object.entries(definitions))
  const types = new Map<string, string>()
  const parts: Part[] = []
  const add = (name: string, schema: JsonSchema): void => {
    all.set(name, schema)
    if (types.has(toText(schema)) || !isLong(schema)) return
    types.set(toText(schema), name)
    if (isObject(schema)) parts.push({ name, fields: toFields(schema) })
  }
  for (const [name, schema] of all) if (!DERIVED.test(name)) add(name, schema)
  for (const [name, schema] of Object.entries(mapValues(known, simplify)))
    if (!types.has(toText(schema)) && countUses(schema, found) > 1) add(name, schema)
  for (const [name, schema] of findUnionFields(definitions)) add(name, schema)
  for (const [text, { schema, places }] of found) {
    if (places.length === 1 || types.has(text)) continue
    const name = proposeNames(places).find((each) => !all.has(each))
    if (name === undefined) throw new Error(`No name is free for what is at ${places.join(' and ')}`)
    all.set(name, schema)
    types.set(text, name)
  }
  // Large ones first, and a part consists of those after it alone: never of one that consists of it.
  parts.sort((a, b) => b.fields.size - a.fields.size)
  return [...all].map(([name, schema]) => {
    const other = types.get(toText(schema)) ?? name
    const named = { types, parts: parts.slice(1 + parts.findIndex((part) => part.name === name)) }
    return `${printComment(schema)}export type ${name} = ${other === name ? printUnnamed(schema, named) : other}`
  })
}
