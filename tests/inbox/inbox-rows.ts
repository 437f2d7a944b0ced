import { createChannel } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { insertMessages, type NewMessage } from '../../storage/messages/messages.ts'
import { plantContact } from '../calls.ts'
import type { Scene } from '../doors.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** Times of test data are seconds after this one. */
const START = Date.UTC(2026, 9, 1)

export const at = (second: number): string => new Date(START + second * 1000).toISOString()

export const insertContact = (
  db: Db,
  workspaceId: string,
  name: string | null,
  phone: string,
): Promise<string> =>
  plantContact(db, workspaceId, { phone, name, email: null, attrs: {}, tagIds: [], groupIds: [] }, at(0))

export type ConversationFields = {
  contact_id: string | null
  channel_id: string | null
  state?: 'open' | 'closed'
  assigned_staff_id?: string | null
  assigned_team_id?: string | null
  reply_status?: 'incoming_no_reply' | 'outgoing_no_response' | null
  last_activity_at?: string | null
  created_at?: string
  unread_count?: number
  waiting_since?: string | null
  last_inbound_at?: string | null
  sla_policy_id?: string | null
  first_response_due_at?: string | null
  resolution_due_at?: string | null
  sla_breached?: boolean
}

export const insertConversation = async (
  db: Db,
  workspaceId: string,
  fields: ConversationFields,
): Promise<string> => {
  const created = fields.created_at ?? fields.last_activity_at ?? at(0)
  const { id } = await db
    .insertInto('conversations')
    .values({
      workspace_id: workspaceId,
      state: 'open',
      ...fields,
      created_at: created,
      updated_at: fields.last_activity_at ?? created,
      last_activity_at: fields.last_activity_at ?? null,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** Inserts a message. `last` makes it the last message of its conversation. */
export const insertMessage = async (
  db: Db,
  workspaceId: string,
  message: Partial<NewMessage> & { conversation_id: string; created_at: string },
  last = false,
): Promise<string> => {
  const [id] = await insertMessages(db, workspaceId, [
    { channel_id: null, episode: 1, direction: 'inbound', type: 'TEXT', status: 'received', ...message },
  ])
  if (last)
    await db
      .updateTable('conversations')
      .set({ last_message_id: id! })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', message.conversation_id)
      .execute()
  return id!
}

export const insertChannel = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  name: string,
  type = 'chatapp',
): Promise<string> => (await createChannel(db, workspace.id, { type, name, status: 'connected' }, at(0))).id

export const idsOf = (body: { data: { id: string }[] }): string[] => body.data.map((row) => row.id)

/** A workspace and its server. */
export type Owned = Pick<Scene, 'server' | 'workspace'>
