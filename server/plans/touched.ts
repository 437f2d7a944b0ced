import { findOperation, type OperationName } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import type { EventRow } from '../../storage/events.ts'
import type { Db } from '../../storage/database.ts'
import { findLabels } from '../../storage/labels.ts'
import type { App } from '../core/app.ts'
import type { Actor } from '../core/context.ts'
import { createContext } from '../core/create-context.ts'
import type { LocalHandler } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { validate } from '../core/steps/validate.ts'

/*
 * The records that a change touches: those that its input names, and those that its events name. They are read by the
 * operations that show them, so that what is masked or hidden elsewhere is so here.
 */

type Json = Record<string, unknown>

/** A record, by its kind and id. `made`: the change creates it. */
export type Touched = { readonly kind: string; readonly id: string; readonly made: boolean }

/** By which operation a record of each kind is read, or found in a list. */
const readers: Readonly<Record<string, { name: OperationName; list?: true }>> = {
  contact: { name: 'crm_get_contact' },
  conversation: { name: 'inbox_get_conversation' },
  template: { name: 'messaging_get_template' },
  saved_filter: { name: 'crm_get_saved_filter' },
  short_link: { name: 'messaging_get_short_link' },
  endpoint: { name: 'webhooks_get_endpoint' },
  delivery: { name: 'webhooks_get_delivery' },
  approval: { name: 'approvals_get' },
  job: { name: 'jobs_get' },
  group: { name: 'crm_list_groups', list: true },
  custom_field: { name: 'crm_list_custom_fields', list: true },
  quick_message: { name: 'messaging_list_quick_messages', list: true },
}

/** Records that others name, and that no plan lists. */
const namedOnly = ['message', 'tag']

/** Of what kind the records are that a field names: messages for `last_message`. */
const findKind = (of: string): string | undefined =>
  [...Object.keys(readers), ...namedOnly].find((kind) => of === kind || of.endsWith(`_${kind}`))

/** Members may have any name, such as those of metadata: an object has `constructor` by itself. */
const isRead = (kind: string): boolean => Object.hasOwn(readers, kind)

const toKind = (field: string): string | undefined => {
  const kind = field.replace(/_ids?$/, '')
  return kind !== field && isRead(kind) ? kind : undefined
}

const listIds = (value: unknown): string[] =>
  [value].flat().filter((id): id is string => typeof id === 'string')

/** Finds ids by the names of members: `contact_id`, `contact_ids`, or a record under its kind. */
const collect = (value: unknown, add: (kind: string, id: string) => void): void => {
  if (!isObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    const kind = toKind(name)
    if (kind) for (const id of listIds(member)) add(kind, id)
    if (isRead(name) && isObject(member) && typeof member['id'] === 'string') add(name, member['id'])
    if (isObject(member)) collect(member, add)
  }
}

/** Returns the records that a change touches, in the order of their kinds and ids. */
export const listTouched = (
  input: Json,
  output: Json,
  events: readonly Pick<EventRow, 'type' | 'data'>[],
): Touched[] => {
  const found = new Map<string, { kind: string; id: string; made: boolean }>()
  const add = (made: boolean) => (kind: string, id: string) => {
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
    const record = made === undefined ? undefined : records[made]
    if (isObject(record) && typeof record['id'] === 'string') add(true)(made!, record['id'])
  }
  return [...found.values()].sort(
    (a, b) => a.kind.localeCompare(b.kind) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1),
  )
}

const run = async (app: App, tx: Db, actor: Actor, name: OperationName, raw: Json): Promise<Json> => {
  const op = findOperation(name)!
  const { input } = validate(op, raw)
  const handler = app.handlers[name] as unknown as LocalHandler<unknown>
  return (await handler(createContext(app, { tx, actor, op, input }), input)) as Json
}

const readOrNull = async (...call: Parameters<typeof run>): Promise<Json | null> => {
  try {
    return await run(...call)
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return null
    throw error
  }
}

const MAX_PAGES = 20

type RecordReader = (touched: Pick<Touched, 'kind' | 'id'>) => Promise<Json | null>

/** Creates a reader of records in this transaction; a list is fetched once. Null: none that the actor may see. */
export const createRecordReader = (app: App, tx: Db, actor: Actor): RecordReader => {
  const lists = new Map<string, Map<unknown, Json>>()
  const load = async (name: OperationName): Promise<Map<unknown, Json>> => {
    const known = lists.get(name)
    if (known) return known
    const rows = new Map<unknown, Json>()
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await run(app, tx, actor, name, { limit: 100, ...(cursor ? { cursor } : {}) })
      for (const row of answer['data'] as Json[]) rows.set(row['id'], row)
      cursor = answer['next_cursor']
      if (!cursor) break
    }
    lists.set(name, rows)
    return rows
  }
  return async ({ kind, id }) => {
    const { name, list } = readers[kind]!
    if (list) return (await load(name)).get(id) ?? null
    return await readOrNull(app, tx, actor, name, { [`${kind}_id`]: id })
  }
}

/** Creates a test whether a record is there that a field names; ids of other things than records always are. */
export const createExistenceTest =
  (app: App, tx: Db, actor: Actor, read: RecordReader) =>
  async (of: string, id: string): Promise<boolean> => {
    const kind = findKind(of)
    if (kind === undefined) return true
    if (kind === 'tag') return (await findLabels(tx, actor.workspace.id, kind, [id], [])).length > 0
    if (kind !== 'message') return (await read({ kind, id })) !== null
    return (await readOrNull(app, tx, actor, 'messaging_get_message', { message_id: id })) !== null
  }
