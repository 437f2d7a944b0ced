import { visitIds } from '../../../catalog/marked.ts'
import type { SchemaKind } from '../../../catalog/marks.ts'
import { isObject } from '../../../catalog/values.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import type { Db } from '../../../storage/database.ts'
import { findLabels } from '../../../storage/labels/labels.ts'
import type { Actor } from '../../kernel/context.ts'
import type { RecordKind, RecordReader } from './read-records.ts'

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
  'broadcast',
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

/** Returns the records that a change of an operation touches, in the order of their kinds and ids. */
export const listTouched = (
  name: string,
  { input, output }: { input: Json; output: Json },
  events: readonly Pick<EventRow, 'type' | 'data'>[],
): Touched[] => {
  const found = new Map<string, { kind: RecordKind; id: string; made: boolean }>()
  const add = (of: string, id: string, made = false): void => {
    const kind = toListedKind(of)
    const known = found.get(`${of} ${id}`)
    if (known) known.made ||= made
    else if (kind) found.set(`${of} ${id}`, { kind, id, made })
  }
  const collect = (schema: readonly [SchemaKind, string], value: unknown): void =>
    visitIds(schema, value, { rows: false, add: (of, id) => add(of, id) })
  collect(['input', name], input)
  collect(['answer', name], output)
  for (const { type, data } of events) {
    collect(['event', type], data)
    const made = /^(\w+)\.created\//.exec(type)?.[1]
    const record = made === undefined ? undefined : (data as Json)[made]
    if (isObject(record) && typeof record['id'] === 'string') add(made!, record['id'], true)
  }
  return [...found.values()].sort(
    (a, b) => a.kind.localeCompare(b.kind) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1),
  )
}

/** Whether events tell of a change to several records of a kind that it did not create. */
export const changesMany = (events: readonly Pick<EventRow, 'type' | 'data'>[]): boolean => {
  const kinds = listTouched('', { input: {}, output: {} }, events).flatMap(({ kind, made }) =>
    made ? [] : kind,
  )
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
