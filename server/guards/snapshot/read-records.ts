import { findOperation, type OperationName } from '../../../catalog/index.ts'
import { readers } from '../../../catalog/marked.ts'
import type { RecordName } from '../../../catalog/marks.ts'
import type { Db } from '../../../storage/database.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import type { Actor } from '../../kernel/context.ts'
import { createContext } from '../../kernel/create-context.ts'
import { Problem } from '../../kernel/problem.ts'
import { getLocalHandler } from '../../kernel/write-call.ts'
import { validate } from '../../kernel/validate.ts'

/*
 * Reads the records that a call names, by the operations that show them, so that what is masked or hidden elsewhere is
 * so here.
 */

type Json = Record<string, unknown>

/** The lists in which records are found that no operation reads by their id. */
const lists = {
  tag: 'crm_list_tags',
  group: 'crm_list_groups',
  custom_field: 'crm_list_custom_fields',
  quick_message: 'messaging_list_quick_messages',
  staff: 'workspace_list_staff',
  team: 'workspace_list_teams',
  channel: 'workspace_channels',
} as const satisfies Readonly<Record<string, OperationName>>

export type RecordKind = RecordName | keyof typeof lists

/** Runs an operation as the actor; null when what it reads does not exist, or not for them. Throws what passes. */
export type Read = (name: OperationName, input: Json) => Promise<Json | null>

export const createRead =
  (app: Kernel, tx: Db, actor: Actor): Read =>
  async (name, raw) => {
    const op = findOperation(name)!
    const handler = getLocalHandler(app, op)
    try {
      const { input } = validate(op, raw)
      return (await handler(createContext(app, { tx, actor, op, input }), input)) as Json
    } catch (error) {
      if (error instanceof Problem && error.status < 500) return null
      throw error
    }
  }

const MAX_PAGES = 20

const readList = async (read: Read, name: OperationName): Promise<Map<unknown, Json>> => {
  const isPaged = 'cursor' in findOperation(name)!.input.shape
  const rows = new Map<unknown, Json>()
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await read(name, isPaged ? { limit: 100, ...(cursor ? { cursor } : {}) } : {})
    for (const row of (answer?.['data'] ?? []) as Json[]) rows.set(row['id'], row)
    cursor = answer?.['next_cursor']
    if (!cursor) break
  }
  return rows
}

/** Returns a record; null where there is none that the actor may see. */
export type RecordReader = (record: { kind: RecordKind; id: string }) => Promise<Json | null>

/** Creates a reader of records, which fetches each list once. */
export const createRecordReader = (read: Read): RecordReader => {
  const fetched = new Map<OperationName, Promise<Map<unknown, Json>>>()
  return async ({ kind, id }) => {
    const reader = readers.get(kind)
    if (reader) return await read(reader.name as OperationName, { [`${kind}_id`]: id })
    const name = lists[kind as keyof typeof lists]
    const list = fetched.get(name) ?? readList(read, name)
    fetched.set(name, list)
    return (await list).get(id) ?? null
  }
}
