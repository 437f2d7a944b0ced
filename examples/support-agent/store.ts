import { DatabaseSync } from 'node:sqlite'
import type { Turn } from './model.ts'

/** A customer's message that is to be answered. */
export type Work = {
  readonly messageId: string
  readonly conversationId: string
  /** The talk with the model so far. */
  readonly turns: Turn[]
  /** Idempotency key of the send that was rehearsed and is asked for; null before. */
  asked: string | null
}

export type Outcome = 'sent' | 'handed_over' | 'superseded' | 'left' | 'gone'

const SCHEMA = `
  create table if not exists work (
    message_id text primary key, conversation_id text not null, turns text not null default '[]', asked text,
    outcome text);
  create table if not exists progress (name text primary key, value text)`

/** What the agent is doing, in an SQLite file: it is killed and goes on from there. */
export const openStore = (file: string) => {
  const db = new DatabaseSync(file)
  db.exec(`pragma journal_mode = wal; ${SCHEMA}`)

  const toWork = (row: Record<string, unknown>): Work => ({
    messageId: String(row['message_id']),
    conversationId: String(row['conversation_id']),
    turns: JSON.parse(String(row['turns'])),
    asked: row['asked'] === null ? null : String(row['asked']),
  })

  return {
    /** The event up to which messages were read; undefined at the first start. */
    readPlace: (): string | undefined => {
      const row = db.prepare("select value from progress where name = 'events'").get()
      return row && String(row['value'])
    },
    /** Saves messages together with the place up to which they were read: a kill leaves both or neither. */
    addMessages: (
      place: string,
      messages: readonly { messageId: string; conversationId: string }[] = [],
    ): void => {
      db.exec('begin immediate')
      for (const { messageId, conversationId } of messages)
        db.prepare('insert into work (message_id, conversation_id) values (?, ?) on conflict do nothing').run(
          messageId,
          conversationId,
        )
      db.prepare("insert or replace into progress (name, value) values ('events', ?)").run(place)
      db.exec('commit')
    },
    listOpenConversations: (): string[] =>
      db
        .prepare('select distinct conversation_id as id from work where outcome is null')
        .all()
        .map(({ id }) => String(id)),
    /** Messages of a conversation that are not settled yet, oldest first. */
    listOpen: (conversationId: string): Work[] =>
      db
        .prepare('select * from work where conversation_id = ? and outcome is null order by rowid')
        .all(conversationId)
        .map(toWork),
    /** Whether the customer has written again. */
    hasNewer: ({ messageId, conversationId }: Work): boolean =>
      db
        .prepare(
          `select 1 from work where conversation_id = ?
           and rowid > (select rowid from work where message_id = ?)`,
        )
        .get(conversationId, messageId) !== undefined,
    save: ({ messageId, turns, asked }: Work): void => {
      db.prepare('update work set turns = ?, asked = ? where message_id = ?').run(
        JSON.stringify(turns),
        asked,
        messageId,
      )
    },
    end: ({ messageId }: Work, outcome: Outcome): void => {
      db.prepare('update work set outcome = ? where message_id = ?').run(outcome, messageId)
    },
  }
}

export type Store = ReturnType<typeof openStore>
