import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { type Attrs, toAttributeRows } from '../../storage/contacts/values.ts'
import { reserveContactIds, searchText } from '../../storage/contacts/contacts.ts'
import { addToCounters } from '../../storage/workspace/counters.ts'
import type { Db } from '../../storage/database.ts'
import { fold } from '../../storage/values/text.ts'

/**
 * Inserts rows. `columns`: their names and types, as in a table definition. Returns the ids with `returning`
 * set to `returning id`.
 */
export const insertRows = async (
  db: Db,
  table: string,
  columns: string,
  rows: readonly object[],
  returning = '',
): Promise<string[]> => {
  const columnNames = columns
    .split(',')
    .map((column) => column.trim().split(' ')[0])
    .join(', ')
  const { rows: inserted } = await sql<{ id: string }>`
    insert into ${sql.table(table)} (${sql.raw(columnNames)}) select ${sql.raw(columnNames)}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (${sql.raw(columns)})
    ${sql.raw(returning)}`.execute(db)
  return inserted.map((row) => row.id)
}

type MessageSeed = {
  direction: string
  status: string
  created_at: number
  key_id?: string | null
  approved_by?: string | null
}

type ContactSeed = Partial<Record<'email' | 'chatapp_user_id' | 'web_visitor_id', string | null>> & {
  name: string | null
  phone: string | null
  dnd: boolean
  starred: boolean
  created_at: number
  updated_at: number
  last_activity_at: number | null
  attrs: Attrs
  tagIds: readonly string[]
  groupIds: readonly string[]
  conversations: readonly {
    state: string
    created_at: number
    last_activity_at: number | null
    messages?: readonly MessageSeed[]
  }[]
  consents?: readonly { purpose: string; channel: string; state: string; at: number }[]
  recipients: readonly { broadcast_id: string; sent_at: number | null }[]
}

/** Lists the related rows of all contacts, each with the ids of its workspace and contact. */
type ListRelated = (rows: (contact: ContactSeed) => readonly object[]) => object[]

const insertRelated = async (
  db: Db,
  types: ReadonlyMap<string, CustomFieldType>,
  listRelated: ListRelated,
): Promise<void> => {
  const toTime = (time: number | null): string | null => (time === null ? null : new Date(time).toISOString())
  await insertRows(
    db,
    'contact_attributes',
    `workspace_id bigint, contact_id bigint, field_id bigint, n smallint, text_key text, free boolean,
    number_value numeric, bool_value boolean, time_value timestamptz`,
    listRelated((c) => toAttributeRows(types, c.attrs)),
  )
  await insertRows(
    db,
    'contact_tags',
    'workspace_id bigint, contact_id bigint, tag_id bigint',
    listRelated((c) => c.tagIds.map((tag_id) => ({ tag_id }))),
  )
  await insertRows(
    db,
    'contact_groups',
    'workspace_id bigint, contact_id bigint, group_id bigint',
    listRelated((c) => c.groupIds.map((group_id) => ({ group_id }))),
  )
  const conversations = listRelated((c) => c.conversations) as {
    workspace_id: string
    messages?: readonly MessageSeed[]
  }[]
  const conversationIds = await insertRows(
    db,
    'conversations',
    `workspace_id bigint, contact_id bigint, state text, channel_id bigint, assigned_staff_id bigint,
    assigned_team_id bigint, created_at timestamptz, updated_at timestamptz,
    last_activity_at timestamptz, unread_count integer, reply_status text`,
    listRelated((c) =>
      c.conversations.map((v) => ({
        unread_count: 0,
        ...v,
        created_at: toTime(v.created_at),
        updated_at: toTime(v.created_at),
        last_activity_at: toTime(v.last_activity_at),
      })),
    ),
    'returning id',
  )
  await insertRows(
    db,
    'messages',
    `workspace_id bigint, conversation_id bigint, direction text, type text, status text, key_id bigint,
    approved_by bigint, created_at timestamptz`,
    conversations.flatMap(({ workspace_id, messages = [] }, n) =>
      messages.map((message) => ({
        ...message,
        workspace_id,
        conversation_id: conversationIds[n],
        type: 'TEXT',
        created_at: toTime(message.created_at),
      })),
    ),
  )
  await insertRows(
    db,
    'consents',
    `workspace_id bigint, contact_id bigint, purpose text, channel text, state text, at timestamptz,
    change_id bigint`,
    listRelated((c) => (c.consents ?? []).map((k, n) => ({ ...k, at: toTime(k.at), change_id: n }))),
  )
  await insertRows(
    db,
    'broadcast_recipients',
    `workspace_id bigint, broadcast_id bigint, contact_id bigint, status text, responded boolean,
    sent_at timestamptz`,
    listRelated((c) => c.recipients.map((r) => ({ ...r, sent_at: toTime(r.sent_at) }))),
  )
}

/** Inserts contacts with their related records. Times are in milliseconds since 1970. */
export const insertContacts = async (
  db: Db,
  workspaceId: string,
  types: ReadonlyMap<string, CustomFieldType>,
  contacts: readonly ContactSeed[],
): Promise<void> => {
  const contactIds = await reserveContactIds(db, contacts.length)
  const toTime = (time: number | null): string | null => (time === null ? null : new Date(time).toISOString())
  const rowsWithIds = contacts.map((c, n) => ({
    ...c,
    workspace_id: workspaceId,
    id: contactIds[n]!,
    contact_id: contactIds[n]!,
  }))
  const listRelated: ListRelated = (rows) =>
    rowsWithIds.flatMap((c) =>
      rows(c).map((row) => ({ ...row, workspace_id: workspaceId, contact_id: c.contact_id })),
    )
  await insertRows(
    db,
    'contacts',
    `workspace_id bigint, id bigint, name text, phone text, chatapp_user_id text, dnd boolean,
    starred boolean, email text, web_visitor_id text, name_key text, search text,
    created_at timestamptz, updated_at timestamptz, last_activity_at timestamptz`,
    rowsWithIds.map((c) => ({
      ...c,
      name_key: fold(c.name ?? ''),
      search: searchText(c.name, c.phone),
      created_at: toTime(c.created_at),
      updated_at: toTime(c.updated_at),
      last_activity_at: toTime(c.last_activity_at),
    })),
  )
  await insertRows(
    db,
    'contact_facts',
    'workspace_id bigint, contact_id bigint, attrs jsonb',
    rowsWithIds.filter((c) => Object.keys(c.attrs).length > 0),
  )
  await insertRelated(db, types, listRelated)
  const subjects = contacts.flatMap((c) => [
    'contacts',
    ...c.tagIds.map((id) => `tag:${id}`),
    ...c.groupIds.map((id) => `group:${id}`),
  ])
  await addToCounters(
    db,
    workspaceId,
    new Map([...Map.groupBy(subjects, (subject) => subject)].map(([subject, all]) => [subject, all.length])),
  )
}
