import { type RawBuilder, sql } from 'kysely'
import {
  attachNames,
  contactColumns,
  type ContactQueryRow,
  type ContactRow,
  fullColumns,
  type TimelineScope,
  type TimelineSql,
} from './contacts.ts'
import type { Db } from './database.ts'
import { QUICK } from './driver.ts'
import { toStorableId } from './ids.ts'
import { type CachedField, namesVersionColumn } from './names-cache.ts'
import { prepare } from './prepared.ts'
import { readInBatch } from './read-batches.ts'

export type ContactWithFields = { contact: ContactRow; fields: CachedField[] }

/** What contacts are read by: one id, one external id, or several ids. */
const keys = {
  id: (value: RawBuilder<unknown>) => sql`c.id = ${value}`,
  externalId: (value: RawBuilder<unknown>) => sql`c.external_id = ${value}`,
  ids: (value: RawBuilder<unknown>) => sql`c.id = any(${value}::bigint[])`,
} as const

type SelectValues = { workspaceId: string; value: string | readonly string[]; channels: readonly string[] }

const prepareSelect = (key: keyof typeof keys, toTimeline: (channels: RawBuilder<unknown>) => TimelineSql) =>
  prepare<SelectValues, ContactQueryRow>(
    ['workspaceId', 'value', 'channels'],
    ({ workspaceId, value, channels }) => sql`${sql.raw(QUICK)}
      select ${contactColumns(toTimeline(channels))}, ${fullColumns}, ${namesVersionColumn(workspaceId)}
      from contacts c left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
      where c.workspace_id = ${workspaceId} and ${keys[key](value)}`,
  )

const prepareSelects = (key: keyof typeof keys) => ({
  all: prepareSelect(key, () => 'all'),
  none: prepareSelect(key, () => 'none'),
  some: prepareSelect(key, (channels) => channels),
})

const selects = {
  id: prepareSelects('id'),
  externalId: prepareSelects('externalId'),
  ids: prepareSelects('ids'),
}

/** Returns a full contact and the custom fields of its values; undefined when there is none. */
export const readContact = async (
  tx: Db,
  workspaceId: string,
  id: string,
  timeline: TimelineScope = 'all',
): Promise<ContactWithFields | undefined> => {
  const one = async (value: string) => (await readContacts(tx, workspaceId, 'id', value, timeline))[0]
  const value = toStorableId(id)
  if (tx.isTransaction) return await one(value)
  const many = async (ids: readonly string[]) => {
    const found = await readContacts(tx, workspaceId, 'ids', ids, timeline)
    return new Map(found.map((read) => [read.contact.id, read]))
  }
  return await readInBatch(tx, `${workspaceId} ${String(timeline)}`, value, { one, many })
}

/** The same by the external id. */
export const readContactByExternalId = async (
  tx: Db,
  workspaceId: string,
  externalId: string,
  timeline: TimelineScope,
): Promise<ContactWithFields | undefined> =>
  (await readContacts(tx, workspaceId, 'externalId', externalId, timeline))[0]

const readContacts = async (
  tx: Db,
  workspaceId: string,
  key: keyof typeof keys,
  value: string | readonly string[],
  timeline: TimelineScope,
): Promise<ContactWithFields[]> => {
  const [scope, channels] = typeof timeline === 'string' ? [timeline, []] : (['some', timeline] as const)
  const { rows } = await selects[key][scope](tx, { workspaceId, value, channels })
  const fields = await attachNames(tx, workspaceId, rows)
  return rows.map((contact) => ({ contact, fields }))
}
