import { findOperation, type OperationName } from '../../../catalog/index.ts'
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

/** By which operation a record of each kind is read by its id, or found in a list. */
const readers = {
  contact: { name: 'crm_get_contact' },
  conversation: { name: 'inbox_get_conversation' },
  message: { name: 'messaging_get_message' },
  template: { name: 'messaging_get_template' },
  saved_filter: { name: 'crm_get_saved_filter' },
  short_link: { name: 'messaging_get_short_link' },
  endpoint: { name: 'webhooks_get_endpoint' },
  delivery: { name: 'webhooks_get_delivery' },
  approval: { name: 'approvals_get' },
  job: { name: 'jobs_get' },
  tag: { name: 'crm_list_tags', list: true },
  group: { name: 'crm_list_groups', list: true },
  custom_field: { name: 'crm_list_custom_fields', list: true },
  quick_message: { name: 'messaging_list_quick_messages', list: true },
  staff: { name: 'workspace_list_staff', list: true },
  team: { name: 'workspace_list_teams', list: true },
  channel: { name: 'workspace_channels', list: true },
} as const satisfies Readonly<Record<string, { name: OperationName; list?: true }>>

export type RecordKind = keyof typeof readers

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
  const lists = new Map<OperationName, Promise<Map<unknown, Json>>>()
  return async ({ kind, id }) => {
    const reader = readers[kind]
    if (!('list' in reader)) return await read(reader.name, { [`${kind}_id`]: id })
    const list = lists.get(reader.name) ?? readList(read, reader.name)
    lists.set(reader.name, list)
    return (await list).get(id) ?? null
  }
}
