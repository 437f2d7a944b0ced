import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from '../../storage/database.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { createStaffKey } from '../http/owner-key.ts'
import { withStorage } from '../databases.ts'
import { type ServerProcess, startCommand } from '../process.ts'
import { freePort } from '../../scripts/free-port.ts'
import { fillWorkspace } from '../../tools/bench/history.ts'

type Said = { api_key: string; workspace_id: string; url: string }

/** `start` starts the server anew, with the same port and data. `keys`: of the owner and of a colleague. */
export type InboxScene = { start: () => Promise<ServerProcess>; keys: readonly [string, string]; url: string }

export const CONVERSATIONS = 5000

const LONG_TEXT = 'ทดสอบ 質問 👨‍👩‍👧‍👦 سؤال '.repeat(170)

/** The customers of the demo can mostly be answered with a template only. */
const emptyQueue = async (db: Db, workspaceId: string): Promise<void> => {
  await db
    .updateTable('conversations')
    .where('workspace_id', '=', workspaceId)
    .set({ state: 'closed', waiting_since: null, reply_status: null, assigned_team_id: null })
    .execute()
}

/**
 * Fills the queue: 5,000 open conversations, nobody's, whose customers wait and can be answered. The one that waits
 * longest has a hundred messages of some 4,000 characters.
 */
const fillQueue = async (db: Db, workspaceId: string): Promise<void> => {
  const now = Date.now()
  const before = (hours: number): string => new Date(now - hours * 3_600_000).toISOString()
  const all = () => db.updateTable('conversations').where('workspace_id', '=', workspaceId)
  const { max } = await db
    .selectFrom('conversations')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.max('id').as('max'))
    .executeTakeFirstOrThrow()
  await fillWorkspace(db, workspaceId, { contacts: CONVERSATIONS / 2, now: before(0) })
  const filled = () => all().where('id', '>', String(max))
  const { channel } = await db
    .selectFrom('channels')
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'chatapp')
    .select(({ fn }) => fn.min('id').as('channel'))
    .executeTakeFirstOrThrow()
  await filled()
    .set({
      state: 'open',
      channel_id: channel,
      reply_status: 'incoming_no_reply',
      assigned_staff_id: null,
      assigned_team_id: null,
      last_inbound_at: before(1),
      waiting_since: before(1),
      unread_count: 1,
    })
    .execute()
  const { id } = await db
    .selectFrom('conversations')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.max('id').as('id'))
    .executeTakeFirstOrThrow()
  await all()
    .where('id', '=', id)
    .set({ waiting_since: before(2) })
    .execute()
  const message = {
    channel_id: channel,
    episode: 1,
    type: 'TEXT',
    status: 'received',
    text: LONG_TEXT,
  } as const
  const messages = Array.from({ length: 100 }, () => ({
    ...message,
    conversation_id: id,
    direction: 'inbound' as const,
    created_at: before(2),
  }))
  await insertMessages(db, workspaceId, messages)
}

/**
 * Prepares a server whose queue is empty, or full, and a second person's key. The sandbox refuses replies to those of a
 * full queue: no customer of its own has written them.
 */
export const startInboxScene = async (
  folder: string,
  { isFull }: { isFull: boolean },
): Promise<InboxScene> => {
  mkdirSync(join(folder, 'config'))
  const data = join(folder, 'data')
  const port = await freePort()
  const start = () =>
    startCommand<Said>(['serve', '--data', data, '--port', String(port), '--json'], {
      XDG_CONFIG_HOME: join(folder, 'config'),
      WCRM_KEYCHAIN: 'off',
      WCRM_LIMIT_WORKSPACE_READ: '1000000',
      WCRM_LIMIT_WORKSPACE_WRITE: '1000000',
    })
  const first = await start()
  const { api_key: owner, workspace_id: workspaceId } = first.said
  await first.stop()
  const colleague = await withStorage({ dataDir: data }, async ({ db }) => {
    await emptyQueue(db, workspaceId)
    if (isFull) await fillQueue(db, workspaceId)
    const staff = { name: 'Tomás', role: 'manager' } as const
    return await createStaffKey(db, workspaceId, staff, {
      scopes: ['mcp:read', 'inbox:write', 'messaging:write'],
    })
  })
  return { start, keys: [owner, colleague], url: `http://127.0.0.1:${port}` }
}
