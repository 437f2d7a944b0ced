import { sql } from 'kysely'
import type { Attrs } from '../../storage/contacts/values.ts'
import type { Db } from '../../storage/database.ts'
import type { ModelContact } from './model.ts'

type StoredContact = Omit<ModelContact, 'attributes'> & { attrs: Attrs }

/** Loads every contact of a workspace from the tables, as the model reads it. */
export const loadModelContacts = async (db: Db, workspaceId: string): Promise<ModelContact[]> => {
  const { rows: fields } = await sql<{ id: string; key: string; type: string }>`
    select id::text as id, key, type from custom_fields
    where workspace_id = ${workspaceId} and deleted_at is null`.execute(db)
  const toMs = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`
  const aggregate = (parts: string, from: string) =>
    sql.raw(`coalesce((select json_agg(json_build_object(${parts})) from ${from}), '[]')`)
  const ofContact = 'workspace_id = c.workspace_id and r.contact_id = c.id'
  const labels = (table: string, column: string) =>
    aggregate(
      "'id', t.id::text, 'name', t.name",
      `contact_${table} r join ${table} t on t.workspace_id = r.workspace_id and t.id = r.${column}
      where r.${ofContact}`,
    )
  const { rows } = await sql<{ contact: string }>`
    select json_build_object(
      'id', c.id::text, 'name', c.name, 'phoneNumber', c.phone, 'email', c.email,
      'chatappUserId', c.chatapp_user_id, 'webVisitorId', c.web_visitor_id,
      'createdAt', ${sql.raw(toMs('c.created_at'))}, 
      'updatedAt', ${sql.raw(toMs('c.updated_at'))}, 
      'lastActivityAt', ${sql.raw(toMs('c.last_activity_at'))}, 'dnd', c.dnd, 'starred', c.starred,
      'attrs', coalesce((select attrs from contact_facts r where r.${sql.raw(ofContact)}), '{}'),
      'tags', ${labels('tags', 'tag_id')}, 'groups', ${labels('groups', 'group_id')},
      'conversations', ${aggregate(
        `'state', r.state, 'channelId', r.channel_id::text, 'assignedStaffId', r.assigned_staff_id::text,
        'assignedTeamId', r.assigned_team_id::text, 'createdAt', ${toMs('r.created_at')},
        'lastActivityAt', ${toMs('r.last_activity_at')}, 'unreadCount', r.unread_count,
        'replyStatus', r.reply_status, 'messages', coalesce((select json_agg(json_build_object(
          'direction', m.direction, 'status', m.status, 'at', ${toMs('m.created_at')}, 'isByPerson',
          m.approved_by is not null or not coalesce((select k.agent from api_keys k where k.id = m.key_id), false)))
          from messages m where m.workspace_id = r.workspace_id and m.conversation_id = r.id), '[]')`,
        `conversations r where r.${ofContact}`,
      )},
      'consents', ${aggregate(
        "'purpose', r.purpose, 'channel', r.channel, 'state', r.state",
        `(select * from consents r where r.${ofContact} order by r.at, r.change_id) r`,
      )},
      'broadcasts', ${aggregate(
        `'id', r.broadcast_id::text, 'status', r.status, 'responded', r.responded,
        'sentAt', ${toMs('r.sent_at')}`,
        `broadcast_recipients r where r.${ofContact}`,
      )}
    )::text as contact
    from contacts c where c.workspace_id = ${workspaceId} order by c.id`.execute(db)
  return rows.map((row) => {
    const { attrs, ...contact } = JSON.parse(row.contact) as StoredContact
    const attributes = fields.flatMap(({ id, key, type }) => {
      const stored = attrs[id]
      return stored === undefined
        ? []
        : (Array.isArray(stored) ? stored : [stored]).map((value) => ({ key, type, value }))
    })
    return { ...contact, attributes }
  })
}
