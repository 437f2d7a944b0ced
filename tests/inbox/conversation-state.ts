import { sql } from 'kysely'
import { createChannel } from '../../storage/workspace/admin.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** Returns the events about conversations in commit order, without conversation.created. */
export const eventsOf = async (server: TestServer, workspaceId: string) =>
  (
    await sql<{ type: string; data: { conversation: Record<string, unknown>; reason?: string | null } }>`
    select type, data from events
      where workspace_id = ${workspaceId} and type like 'conversation.%' and type <> 'conversation.created/1'
      order by xid, id`.execute(server.db)
  ).rows

export const typesOf = async (server: TestServer, workspaceId: string): Promise<string[]> =>
  (await eventsOf(server, workspaceId)).map(({ type }) => type)

export const stateOf = async (server: TestServer, workspaceId: string, id: string) =>
  (
    await sql<Record<string, unknown>>`
      select * from conversations where workspace_id = ${workspaceId} and id = ${id}`.execute(server.db)
  ).rows[0]!

export const insertWebChannel = async (server: TestServer, workspace: TestWorkspace): Promise<string> =>
  (
    await createChannel(
      server.db,
      workspace.id,
      { type: 'web', name: 'Shop window', identifier: 'shop.example', status: 'connected' },
      server.app.now(),
    )
  ).id

export const changes: readonly (readonly [string, Record<string, unknown>])[] = [
  ['inbox_assign_conversation', { staff_id: '1' }],
  ['inbox_unassign_conversation', {}],
  ['inbox_close_conversation', {}],
  ['inbox_reopen_conversation', {}],
  ['inbox_tag_conversation', { add: ['VIP'] }],
  ['inbox_add_note', { text: 'Hello' }],
  ['inbox_set_reminder', { at: '2099-01-01T00:00:00Z' }],
  ['inbox_mark_read', {}],
]
