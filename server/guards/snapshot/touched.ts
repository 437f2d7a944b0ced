import { isObject } from '../../../catalog/values.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import type { Db } from '../../../storage/database.ts'
import { findLabels } from '../../../storage/labels/labels.ts'
import type { Actor } from '../../kernel/context.ts'
import type { RecordKind, RecordReader } from '../../kernel/read-records.ts'

/* The records that a change touches: those that its input names, and those that its events name. */

type Json = Record<string, unknown>

/** A record, by its kind and id. `made`: the change creates it. */
export type Touched = { readonly kind: RecordKind; readonly id: string; readonly made: boolean }

/** The kinds of the records that a plan lists. */
const listedKinds: readonly RecordKind[] = [
  'contact',
  'conversation',
  'template',
  'saved_filter',
  'short_link',
  'endpoint',
  'delivery',
  'approval',
  'job',
  'group',
  'custom_field',
  'quick_message',
]

/** Records that others name, and that no plan lists. */
const namedOnly: readonly RecordKind[] = ['message', 'tag']

/** Of what kind the records are that a field names: messages for `last_message`. */
const findKind = (of: string): RecordKind | undefined =>
  [...listedKinds, ...namedOnly].find((kind) => of === kind || of.endsWith(`_${kind}`))

const toListedKind = (name: string): RecordKind | undefined => listedKinds.find((kind) => kind === name)

const toKind = (field: string): RecordKind | undefined => {
  const kind = field.replace(/_ids?$/, '')
  return kind === field ? undefined : toListedKind(kind)
}

const listIds = (value: unknown): string[] =>
  [value].flat().filter((id): id is string => typeof id === 'string')

/** Finds ids by the names of members: `contact_id`, `contact_ids`, or a record under its kind. */
const collect = (value: unknown, add: (kind: RecordKind, id: string) => void): void => {
  if (!isObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    const kind = toKind(name)
    if (kind) for (const id of listIds(member)) add(kind, id)
    const own = toListedKind(name)
    if (own && isObject(member) && typeof member['id'] === 'string') add(own, member['id'])
    if (isObject(member)) collect(member, add)
  }
}

/** Returns the records that a change touches, in the order of their kinds and ids. */
export const listTouched = (
  input: Json,
  output: Json,
  events: readonly Pick<EventRow, 'type' | 'data'>[],
): Touched[] => {
  const found = new Map<string, { kind: RecordKind; id: string; made: boolean }>()
  const add = (made: boolean) => (kind: RecordKind, id: string) => {
    const known = found.get(`${kind} ${id}`)
    if (known) known.made ||= made
    else found.set(`${kind} ${id}`, { kind, id, made })
  }
  collect(input, add(false))
  collect(output, add(false))
  for (const { type, data } of events) {
    const { actor: _actor, ...records } = data as Json
    collect(records, add(false))
    const made = /^(\w+)\.created\//.exec(type)?.[1]
    const kind = made === undefined ? undefined : toListedKind(made)
    const record = kind && records[kind]
    if (kind && isObject(record) && typeof record['id'] === 'string') add(true)(kind, record['id'])
  }
  return [...found.values()].sort(
    (a, b) => a.kind.localeCompare(b.kind) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1),
  )
}

/** Whether events tell of a change to several records of a kind that it did not create. */
export const changesMany = (events: readonly Pick<EventRow, 'type' | 'data'>[]): boolean => {
  const kinds = listTouched({}, {}, events).flatMap(({ kind, made }) => (made ? [] : kind))
  return new Set(kinds).size < kinds.length
}

/** Creates a test whether a record is there that a field names; ids of other things than records always are. */
export const createExistenceTest =
  (tx: Db, actor: Actor, read: RecordReader) =>
  async (of: string, id: string): Promise<boolean> => {
    const kind = findKind(of)
    if (kind === undefined) return true
    if (kind === 'tag') return (await findLabels(tx, actor.workspace.id, kind, [id], [])).length > 0
    return (await read({ kind, id })) !== null
  }
