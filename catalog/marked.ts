import { z } from 'zod'
import { Approval } from './approvals.ts'
import { eventTypes } from './events.ts'
import { idOf } from './fields.ts'
import { catalog, findOperation } from './index.ts'
import { type JsonSchema, mapSchemas } from './json-schema.ts'
import { type Marks, marks, type SchemaKind, toMarkedJsonSchema } from './marks.ts'
import { getInputSchema, getPlannedSchema, listRoutes, type Operation } from './operation.ts'
import { Plan } from './plan.ts'
import { isObject } from './values.ts'

/*
 * The walker over marked fields (marks.ts). A schema is compiled once for a mark, into a tree of the members that lead
 * to fields with it: of a value it looks at nothing else.
 */

type Json = Record<string, unknown>

export type MarkedTree<M extends keyof Marks = keyof Marks> = {
  readonly mark: Marks[M]
  readonly holds: Marks['holds']
  readonly members: ReadonlyMap<string, MarkedTree<M>>
  /** Of an object, what its schema names. */
  readonly declared: ReadonlySet<string>
  readonly items: MarkedTree<M> | undefined
  /** Of an object, what its schema does not name. */
  readonly others: MarkedTree<M> | undefined
  /** Of the name of a mark. */
  readonly name: M
}

/** Returns a node with what it may be instead. */
const listBranches = (node: unknown): JsonSchema[] =>
  isObject(node)
    ? [
        node,
        ...[node.anyOf, node.oneOf, node.allOf].flatMap((all) =>
          ((all ?? []) as unknown[]).flatMap(listBranches),
        ),
      ]
    : []

/** Compiles a schema for a mark; undefined: it has none. */
export const compileMarked = <M extends keyof Marks>(name: M, schema: z.ZodType): MarkedTree<M> | undefined =>
  compile(name, [toMarkedJsonSchema(schema)])

/** Compiles what a value may be of. */
const compile = <M extends keyof Marks>(name: M, nodes: readonly unknown[]): MarkedTree<M> | undefined => {
  const all = nodes.flatMap(listBranches)
  if (all.length === 0) return undefined
  const list = (keyword: string): unknown[] => all.map((node) => node[keyword])
  const find = <K extends keyof Marks>(keyword: K) =>
    list(keyword).find((value) => value !== undefined) as Marks[K]
  const properties = list('properties').map((value) => (value ?? {}) as JsonSchema)
  const declared = new Set(properties.flatMap(Object.keys))
  const members = new Map<string, MarkedTree<M>>()
  for (const member of declared) {
    const tree = compile(
      name,
      properties.map((one) => one[member]),
    )
    if (tree) members.set(member, tree)
  }
  const [mark, holds] = [find(name), find('holds')]
  const [items, others] = [compile(name, list('items')), compile(name, list('additionalProperties'))]
  const leads = members.size > 0 || [mark, holds, items, others].some((one) => one !== undefined)
  return leads ? { name, mark, holds, members, declared, items, others } : undefined
}

const SubjectIds = z.object({
  contact_id: idOf('contact'),
  conversation_id: idOf('conversation'),
  message_id: idOf('message'),
})

/**
 * What a call tells beside its output: a request for approval, a refusal, what a plan was shown of, and what is to be
 * sent (`prepare` of a handler).
 */
const undeclared = toMarkedJsonSchema(
  z.object({
    approval: Approval,
    extras: SubjectIds.extend({ plan: Plan }),
    planned: z.array(SubjectIds),
    contactId: idOf('contact'),
    conversationId: idOf('conversation'),
  }),
)

/** The operations that read one record by its id, by the kind of the record. */
export const readers: ReadonlyMap<string, Operation> = new Map(
  catalog.flatMap((op) =>
    op.scope === 'mcp:read'
      ? listRoutes(op).flatMap(({ path }) => {
          const kind = /^[^{]*\{(\w+)_id\}$/.exec(path)?.[1]
          return kind === undefined ? [] : [[kind, op as Operation] as const]
        })
      : [],
  ),
)

/** Another version may have written more than the schema says. */
const withUnknown = (schema: JsonSchema): JsonSchema => {
  const node = mapSchemas(schema, withUnknown)
  return node.properties === undefined ? node : { additionalProperties: { phone: 'unknown' }, ...node }
}

/** Returns the schemas of which a value is of one; none where nobody knows it, as of an old row. */
const listSchemas = (kind: SchemaKind, of: string): JsonSchema[] => {
  if (kind === 'event') {
    const type = Object.hasOwn(eventTypes, of) ? eventTypes[of as keyof typeof eventTypes] : undefined
    return type ? [withUnknown(toMarkedJsonSchema(type.data))] : []
  }
  const op = kind === 'record' ? readers.get(of) : findOperation(of)
  if (!op) return []
  if (kind === 'changes')
    return [{ properties: { input: toMarkedJsonSchema(op.input), result: toMarkedJsonSchema(op.output) } }]
  if (kind === 'answer') return [toMarkedJsonSchema(getPlannedSchema(op)), undeclared]
  return kind === 'input'
    ? [{ ...toMarkedJsonSchema(getInputSchema(op)), ...marks.get(op.input) }]
    : [toMarkedJsonSchema(op.output)]
}

const trees = new Map<string, MarkedTree | undefined>()

/** Returns what leads to the marked fields of a schema; undefined: none has the mark. Null: there is no such schema. */
export const findMarked = <M extends keyof Marks>(
  name: M,
  kind: SchemaKind,
  of: string,
): MarkedTree<M> | null | undefined => {
  const key = `${name} ${kind} ${of}`
  if (!trees.has(key)) {
    const schemas = listSchemas(kind, of)
    if (schemas.length === 0) return null
    trees.set(key, compile(name, schemas))
  }
  return trees.get(key) as MarkedTree<M> | undefined
}

/** Returns what leads on through a member of an object, or an item of a list (`null`). */
export const stepInto = <M extends keyof Marks>(
  tree: MarkedTree<M> | null | undefined,
  member: string | null,
): MarkedTree<M> | undefined =>
  member === null
    ? tree?.items
    : (tree?.members.get(member) ?? (tree?.declared.has(member) ? undefined : tree?.others))

/** Returns what a marked field shows; undefined: it is left out. `record`: the object that it is a member of. */
type Use<M extends keyof Marks> = (mark: NonNullable<Marks[M]>, value: unknown, record: Json) => unknown

/** `rows`: objects in lists are looked into. */
const createWalk = <M extends keyof Marks>(use: Use<M>, rows: boolean) => {
  const walk = (tree: MarkedTree<M> | null | undefined, given: unknown, record: Json): unknown => {
    if (!tree || given === null || given === undefined) return given
    const value = tree.mark === undefined ? given : use(tree.mark, given, record)
    const { holds, items, others, members, declared, name } = tree
    if (Array.isArray(value)) {
      if (!items || (!rows && items.mark === undefined)) return value
      const walked = value.map((one) => walk(items, one, record))
      return walked.some((one, i) => one !== value[i]) ? walked : value
    }
    if (!isObject(value)) return value
    if (holds) return walk(findMarked(name, holds.kind, String(record[holds.by])), value, record)
    let copy = value
    const change = (member: string, node: MarkedTree<M>): void => {
      const changed = walk(node, value[member], value)
      if (changed === value[member]) return
      copy = copy === value ? { ...value } : copy
      if (changed === undefined) delete copy[member]
      else copy[member] = changed
    }
    for (const [member, node] of members) if (Object.hasOwn(value, member)) change(member, node)
    if (others) for (const member of Object.keys(value)) if (!declared.has(member)) change(member, others)
    return copy
  }
  return walk
}

/** Returns a value with its marked fields changed. What does not change is not copied. */
export const mapMarked = <M extends keyof Marks, T>(
  tree: MarkedTree<M> | null | undefined,
  value: T,
  use: Use<M>,
): T => createWalk(use, true)(tree, value, {}) as T

/** Adds each marked id in a value, or in a list at its place, with what it is of; `rows`: also of objects in lists. */
export const visitIds = (
  [kind, of]: readonly [SchemaKind, string],
  value: unknown,
  { rows, add }: { rows: boolean; add: (of: string, id: string, record: Json) => void },
): void => {
  const use: Use<'idOf'> = (mark, id, record) => {
    if (typeof id === 'string') add(mark === 'type' ? String(record['type']) : mark, id, record)
    return id
  }
  createWalk(use, rows)(findMarked('idOf', kind, of), value, {})
}
