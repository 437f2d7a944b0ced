import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { migrate } from '../../storage/migrate.ts'
import type { Db } from '../../storage/database.ts'
import { databases, onEmptyDatabase } from '../databases.ts'

const at = (minute: number): string => new Date(Date.UTC(2026, 9, 1, 9, minute)).toISOString()

type OldMessage = {
  id: number
  direction?: string
  text?: string
  content?: unknown
  reply_to_id?: number
  status?: string
}

/** Inserts a conversation as versions before the migration wrote it; the last message is its last. */
const insertConversation = async (db: Db, id: number, messages: readonly OldMessage[]): Promise<void> => {
  await sql`
    insert into conversations (workspace_id, id, state, reply_status, last_message_id, created_at, updated_at)
    values (1, ${id}, 'open', 'incoming_no_reply', ${messages.at(-1)!.id}, ${at(0)}, ${at(0)})`.execute(db)
  for (const message of messages) {
    const { direction = 'inbound', text = 'hello', content = null, status = 'received' } = message
    await sql`
      insert into messages (workspace_id, id, conversation_id, direction, type, status, text, content,
        reply_to_id, created_at)
      values (1, ${message.id}, ${id}, ${direction}, 'TEXT', ${status}, ${text},
        ${content === null ? null : JSON.stringify(content)}::text::jsonb, ${message.reply_to_id ?? null},
        ${at(message.id)})`.execute(db)
  }
}

const rows = async (db: Db, query: string): Promise<unknown[]> =>
  (await sql.raw<Record<string, unknown>>(query).execute(db)).rows.map((row) => ({ ...row }))

for (const database of databases)
  describe(`Migration of reactions and waits (${database})`, () => {
    it('moves reactions to their messages, and finds out who waits and what failed', () =>
      onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0016-late-failures' })
        const reaction = (emoji: string) => ({ text: emoji, content: { reaction: emoji } })
        await insertConversation(db, 1, [
          { id: 1, direction: 'outbound', status: 'read' },
          { id: 2, ...reaction('👍'), reply_to_id: 1 },
          { id: 3, text: 'a reply to the reaction', reply_to_id: 2 },
          { id: 4, ...reaction('❤️'), reply_to_id: 1 },
        ])
        await insertConversation(db, 2, [
          { id: 5, direction: 'outbound', status: 'failed' },
          // Of an unknown message, and a text that only looks like one.
          { id: 6, ...reaction('🎉') },
          { id: 7, text: '👍', reply_to_id: 5 },
        ])
        await insertConversation(db, 3, [
          { id: 8, direction: 'outbound', status: 'failed' },
          { id: 9, direction: 'outbound', status: 'delivered' },
        ])
        await sql`
          insert into reply_waits (workspace_id, conversation_id, since, kind, episode, ended_at) values
            (1, 1, ${at(1)}, 'first_response', 1, ${at(2)}), (1, 1, ${at(3)}, 'next_response', 1, null),
            (1, 2, ${at(6)}, 'next_response', 1, null)`.execute(db)
        await migrate(db)
        assert.deepEqual(
          await rows(db, 'select id, reply_to_id from messages order by messages.id'),
          [
            ['1', null],
            ['3', null],
            ['5', null],
            ['6', null],
            ['7', '5'],
            ['8', null],
            ['9', null],
          ].map(([id, reply]) => ({ id, reply_to_id: reply })),
        )
        assert.deepEqual(await rows(db, 'select message_id, sender, emoji, at from message_reactions'), [
          { message_id: '1', sender: 'customer', emoji: '❤️', at: at(4) },
        ])
        assert.deepEqual(
          await rows(
            db,
            `select last_message_id, waiting_since, delivery_failed from conversations
              order by conversations.id`,
          ),
          [
            { last_message_id: '3', waiting_since: at(3), delivery_failed: false },
            { last_message_id: '7', waiting_since: at(6), delivery_failed: true },
            { last_message_id: '9', waiting_since: null, delivery_failed: false },
          ],
        )
      }))

    it('delivery_failed follows every change of messages', () =>
      onEmptyDatabase(database, async (db) => {
        await migrate(db)
        const failed = async () =>
          (
            (await rows(db, 'select delivery_failed as x from conversations order by conversations.id')) as {
              x: boolean
            }[]
          ).map(({ x }) => x)
        await insertConversation(db, 1, [{ id: 1, direction: 'outbound', status: 'sent' }])
        await insertConversation(db, 2, [{ id: 2 }])
        const run = async (statement: string) => {
          await sql.raw(statement).execute(db)
          return await failed()
        }
        assert.deepEqual(await run(`update messages set status = 'failed' where id = 1`), [true, false])
        assert.deepEqual(await run(`update messages set status = 'read' where id = 1`), [false, false])
        assert.deepEqual(await run(`update messages set status = 'failed' where id = 1`), [true, false])
        const insert = (id: number, status: string, minute: number) => `
          insert into messages (workspace_id, id, conversation_id, direction, type, status, created_at)
          values (1, ${id}, 1, 'outbound', 'TEXT', '${status}', '${at(minute)}')`
        assert.deepEqual(await run(insert(10, 'pending', 10)), [false, false])
        assert.deepEqual(await run('delete from messages where id = 10'), [true, false])
        assert.deepEqual(await run(insert(11, 'sent', 0)), [true, false], 'an earlier one')
        assert.deepEqual(await run('update messages set conversation_id = 2 where id = 1'), [false, true])
      }))
  })
