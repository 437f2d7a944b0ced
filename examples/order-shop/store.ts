import { DatabaseSync } from 'node:sqlite'

export type Order = { id: string; name: string; phone: string; messageId: string | null; status: string }

/** Statuses of a message, from the first to the last: webhooks may come late, and an earlier status never wins. */
const RANKS = ['pending', 'sent', 'delivered', 'read', 'failed']

const SCHEMA = `
  create table if not exists orders (
    id text primary key, name text not null, phone text not null, message_id text);
  create table if not exists messages (id text primary key, rank integer not null);
  create table if not exists webhooks (id text primary key)`

/** The shop's orders in an SQLite file. */
export const openStore = (file: string) => {
  const db = new DatabaseSync(file)
  db.exec(`pragma journal_mode = wal; ${SCHEMA}`)

  /** Notes a status of a message. It may come before the answer to the send, so it is kept by message. */
  const noteStatus = (messageId: string, status: string): void => {
    db.prepare(
      `insert into messages (id, rank) values (?, ?)
       on conflict (id) do update set rank = max(rank, excluded.rank)`,
    ).run(messageId, RANKS.indexOf(status))
  }

  const toOrder = (row: Record<string, unknown>): Order => ({
    id: String(row['id']),
    name: String(row['name']),
    phone: String(row['phone']),
    messageId: row['message_id'] === null ? null : String(row['message_id']),
    status: RANKS[Number(row['rank'] ?? 0)] ?? 'pending',
  })

  const select = 'select orders.*, rank from orders left join messages on messages.id = message_id'

  return {
    noteStatus,
    /** Saves an order; one that is there already stays as it is. */
    addOrder: ({ id, name, phone }: Pick<Order, 'id' | 'name' | 'phone'>): void => {
      db.prepare('insert into orders (id, name, phone) values (?, ?, ?) on conflict do nothing').run(
        id,
        name,
        phone,
      )
    },
    setMessage: (id: string, messageId: string): void => {
      db.prepare('update orders set message_id = ? where id = ?').run(messageId, id)
    },
    findOrder: (id: string): Order | undefined => {
      const row = db.prepare(`${select} where orders.id = ?`).get(id)
      return row && toOrder(row)
    },
    /** Orders whose message was not sent, or has not arrived as far as the shop knows. */
    listOpen: (): Order[] =>
      db.prepare(`${select} where coalesce(rank, 0) < ?`).all(RANKS.indexOf('delivered')).map(toOrder),
    /** Takes a webhook once: the note that it came and its effect are one transaction. Returns whether it was new. */
    takeWebhook: (id: string, apply: () => void): boolean => {
      db.exec('begin immediate')
      try {
        const isNew = db
          .prepare('insert into webhooks (id) values (?) on conflict do nothing')
          .run(id).changes
        if (isNew) apply()
        db.exec('commit')
        return Boolean(isNew)
      } catch (error) {
        db.exec('rollback')
        throw error
      }
    },
  }
}

export type Store = ReturnType<typeof openStore>
