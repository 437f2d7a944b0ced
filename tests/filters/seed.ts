import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { sql } from 'kysely'
import { type CustomFieldType, customFieldTypes } from '../../catalog/custom-fields.ts'
import type { Attrs } from '../../storage/contacts/values.ts'
import { listFields } from '../../storage/contacts/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { fold } from '../../storage/values/text.ts'
import { doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { insertContacts, insertRows } from './insert-contacts.ts'
import { loadModelContacts } from './load-contacts.ts'
import type { JsonObject, ModelContact, ModelContext } from './model.ts'
import {
  arbitraryContact,
  groupNames,
  options,
  relatedIds,
  SEEDED_NOW,
  SEEDED_TIME_ZONE,
  seededContext,
  tagNames,
  toFieldKey,
} from './sample-values.ts'

/**
 * A workspace with the edge cases of filters: absent values, equal sort keys, text from all of Unicode,
 * wildcards of `like`, limits of time.
 */
export type SeededWorkspace = {
  workspace: TestWorkspace
  contacts: ModelContact[]
  context: ModelContext & { saved: Map<string, JsonObject> }
  /** Ids that related records refer to. */
  relatedIds: { channels: string[]; staff: string[]; teams: string[]; broadcasts: string[] }
  /** Ids of another workspace. */
  foreign: { tags: string[]; groups: string[]; contacts: string[]; broadcasts: string[] }
}

const loadFields = async (db: Db, workspaceId: string) => {
  const fields = await listFields(db, workspaceId)
  return {
    types: new Map(fields.map((field) => [field.id, field.type])),
    idOf: (key: string): string => fields.find((field) => field.key === key)!.id,
  }
}

const createFields = async (run: ReturnType<typeof doAs>): Promise<void> => {
  for (const type of customFieldTypes)
    await run('crm_create_custom_field', {
      key: toFieldKey(type),
      type,
      ...(['select', 'multiselect', 'radio'].includes(type) ? { options } : {}),
    })
}

/** Inserts rows with names; returns their ids. `columns`: further columns of theirs. */
const insertNamed = (
  db: Db,
  workspaceId: string,
  table: string,
  rows: readonly { name: string; status?: string }[],
  columns = '',
): Promise<string[]> =>
  insertRows(
    db,
    table,
    `workspace_id bigint, name text, name_key text, created_at timestamptz${columns}`,
    rows.map((row) => ({
      ...row,
      name_key: fold(row.name),
      workspace_id: workspaceId,
      created_at: SEEDED_NOW,
    })),
    'returning id',
  )

/** Inserts tags or groups; returns a lookup of their ids by name. */
const insertLabels = async (
  db: Db,
  workspaceId: string,
  table: 'tags' | 'groups',
  names: readonly string[],
): Promise<(name: string) => string> => {
  const ids = await insertNamed(
    db,
    workspaceId,
    table,
    names.map((name) => ({ name })),
  )
  return (name) => ids[names.indexOf(name)]!
}

/** Inserts a conversation and a recipient that outlived their deleted contacts. */
const insertOrphans = async (db: Db, workspaceId: string, broadcastId: string): Promise<void> => {
  await insertRows(
    db,
    'conversations',
    'workspace_id bigint, state text, created_at timestamptz, updated_at timestamptz',
    [{ workspace_id: workspaceId, state: 'open', created_at: SEEDED_NOW, updated_at: SEEDED_NOW }],
  )
  await insertRows(
    db,
    'broadcast_recipients',
    'workspace_id bigint, broadcast_id bigint, contact_id bigint, status text',
    [
      {
        workspace_id: workspaceId,
        broadcast_id: broadcastId,
        contact_id: '4611686018427387904',
        status: 'read',
      },
    ],
  )
}

/** Inserts a key of a person and one of an agent, which nobody can use. */
const insertKeys = (db: Db, workspaceId: string, staffId: string): Promise<string[]> =>
  insertRows(
    db,
    'api_keys',
    `workspace_id bigint, hash bytea, staff_id bigint, scopes text[], agent boolean, api_version text,
    created_at timestamptz`,
    [false, true].map((agent) => ({
      workspace_id: workspaceId,
      hash: `\\x${randomBytes(32).toString('hex')}`,
      staff_id: staffId,
      scopes: [],
      agent,
      api_version: '2026-10-01',
      created_at: SEEDED_NOW,
    })),
    'returning id',
  )

const seedWorkspace = async (server: TestServer, count: number): Promise<SeededWorkspace> => {
  const { db } = server
  const workspace = await makeWorkspace(server, { timezone: SEEDED_TIME_ZONE })
  const run = doAs(server, workspace.owner.key)
  await createFields(run)
  await run('crm_create_custom_field', { key: 'gone', type: 'text' })
  const { types, idOf } = await loadFields(db, workspace.id)
  const tagId = await insertLabels(db, workspace.id, 'tags', tagNames)
  const groupId = await insertLabels(db, workspace.id, 'groups', groupNames)
  const broadcasts = await insertNamed(
    db,
    workspace.id,
    'broadcasts',
    [1, 2, 3].map((n) => ({ name: `Broadcast ${n}`, status: 'completed' })),
    ', status text',
  )
  const { staffId } = await workspace.staff({})
  const [personKey, agentKey] = await insertKeys(db, workspace.id, staffId)
  await insertContacts(
    db,
    workspace.id,
    types,
    fc.sample(arbitraryContact, { seed: 7, numRuns: count }).map((c, n) => ({
      ...c,
      phone: c.noPhone ? null : `${c.phonePrefix}${String((n * 7919) % 1_000_000).padStart(7, '0')}`,
      tagIds: c.tags.map(tagId),
      groupIds: c.groups.map(groupId),
      attrs: Object.fromEntries([
        ...Object.entries(c.values).flatMap(([type, value]) =>
          value === null ? [] : [[idOf(toFieldKey(type as CustomFieldType)), value]],
        ),
        ...(c.email === null ? [] : [[idOf('email'), c.email]]),
        ...(c.hasDeletedField ? [[idOf('gone'), 'Pro']] : []),
      ]) as Attrs,
      conversations: c.conversations.map((v) => ({
        ...v,
        messages: v.messages.map(({ by, ...message }) => ({
          ...message,
          ...(message.direction === 'outbound'
            ? {
                key_id: by === 'unknown' ? null : by === 'person' ? personKey! : agentKey!,
                approved_by: by === 'approved' ? staffId : null,
              }
            : { status: message.direction === 'inbound' ? 'received' : 'system' }),
        })),
      })),
      recipients: c.broadcasts.flatMap((r, i) =>
        r === null ? [] : [{ ...r, broadcast_id: broadcasts[i]! }],
      ),
    })),
  )
  await insertOrphans(db, workspace.id, broadcasts[0]!)
  await run('crm_delete_custom_field', { custom_field_id: idOf('gone') })
  const contacts = await loadModelContacts(db, workspace.id)
  return {
    workspace,
    contacts,
    context: { ...seededContext, saved: new Map() },
    relatedIds: { ...relatedIds, broadcasts },
    foreign: { tags: [], groups: [], contacts: [], broadcasts: [] },
  }
}

/** Seeds a workspace with edge cases, and one with equal contacts, which searches must never return. */
export const seedEdgeCases = async (server: TestServer, count = 400): Promise<SeededWorkspace> => {
  const other = await seedWorkspace(server, count)
  const seeded = await seedWorkspace(server, count)
  const foreign = {
    tags: [...new Set(other.contacts.flatMap((contact) => contact.tags.map((tag) => tag.id)))],
    groups: [...new Set(other.contacts.flatMap((contact) => contact.groups.map((group) => group.id)))],
    contacts: other.contacts.slice(0, 5).map((contact) => contact.id),
    broadcasts: other.relatedIds.broadcasts,
  }
  await sql`analyze`.execute(server.db)
  return { ...seeded, foreign }
}

/** Seeds many plain contacts, with conditions that most of them match and some that few match. */
export const seedManyContacts = async (
  server: TestServer,
  count: number,
): Promise<Pick<SeededWorkspace, 'workspace' | 'contacts' | 'context'>> => {
  const { db } = server
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', {
    key: 'plan',
    type: 'select',
    options: ['free', 'pro', 'team'].map((value) => ({ value, label: value })),
  })
  await run('crm_create_custom_field', { key: 'score', type: 'int' })
  await run('crm_upsert_contact', { phone: '+15550109999', name: 'Somebody else', tags: ['Most', 'Few'] })
  const tagId = async (name: string): Promise<string> =>
    (await run('crm_list_tags', { search: name })).data[0].id
  const [most, few, north] = [
    await tagId('Most'),
    await tagId('Few'),
    (await run('crm_create_group', { name: 'North' })).group.id,
  ]
  const { types, idOf } = await loadFields(db, workspace.id)
  await insertContacts(
    db,
    workspace.id,
    types,
    Array.from({ length: count }, (_, n) => {
      const at = Date.UTC(2025, 9) + ((n * 37) % 4000) * 3_600_000
      return {
        name: `Person ${(n * 31) % 977}`,
        phone: `1555${String((n * 7919) % 10_000_000).padStart(7, '0')}`,
        starred: n % 5 === 0,
        dnd: n % 11 === 0,
        created_at: at,
        updated_at: at,
        last_activity_at: null,
        attrs: {
          ...(n % 6 === 0 ? {} : { [idOf('plan')]: ['free', 'pro', 'team'][n % 3]! }),
          [idOf('score')]: (n * 13) % 101,
        },
        tagIds: [...(n % 7 === 0 ? [] : [most]), ...(n % 400 === 0 ? [few] : [])],
        groupIds: n % 3 === 0 ? [north] : [],
        conversations:
          n % 4 === 0
            ? []
            : [{ state: n % 16 === 1 ? 'closed' : 'open', created_at: at, last_activity_at: at }],
        recipients: [],
      }
    }),
  )
  await sql`analyze`.execute(db)
  return {
    workspace,
    contacts: await loadModelContacts(db, workspace.id),
    context: { now: server.app.now(), timeZone: 'UTC', saved: new Map() },
  }
}

/** Saves a filter, for the server and for the model. Returns its id. */
export const seedSavedFilter = async (
  server: TestServer,
  seeded: SeededWorkspace,
  filter: JsonObject,
  ownerStaffId: string | null = null,
): Promise<string> => {
  const [id] = await insertRows(
    server.db,
    'saved_filters',
    `workspace_id bigint, name text, name_key text, owner_staff_id bigint, filter jsonb,
    created_at timestamptz, updated_at timestamptz`,
    [
      {
        workspace_id: seeded.workspace.id,
        name: 'Saved',
        name_key: 'saved',
        owner_staff_id: ownerStaffId,
        filter,
        created_at: SEEDED_NOW,
        updated_at: SEEDED_NOW,
      },
    ],
    'returning id',
  )
  seeded.context.saved.set(id!, filter)
  return id!
}
