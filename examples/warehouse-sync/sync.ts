// Copies contacts and events into an SQLite file, from where the last run ended; see README.md.

import { DatabaseSync } from 'node:sqlite'
import { createClient, type Event, isWcrmError } from '@wcrm/client'

const readSetting = (name: string): string => {
  const value = process.env[name]
  if (!value) throw new Error(`set ${name}: README.md says where it comes from`)
  return value
}

const wcrm = createClient({ url: readSetting('WCRM_URL'), apiKey: readSetting('WCRM_API_KEY') })
const { WAREHOUSE_FILE = 'warehouse.sqlite', PAGE_SIZE = '100' } = process.env
const limit = Number(PAGE_SIZE)

const db = new DatabaseSync(WAREHOUSE_FILE)
db.exec(`
  pragma journal_mode = wal;
  create table if not exists contacts (id text primary key, name text, phone text);
  create table if not exists events (
    id text primary key, type text not null, occurred_at text not null, contact_id text, data text);
  create table if not exists progress (name text primary key, value text)`)

/** Rows and the place up to which they were read are one transaction: a kill leaves both or neither. */
const save = (progress: Readonly<Record<string, string | null>>, write: () => void = () => {}): void => {
  db.exec('begin immediate')
  write()
  for (const [name, value] of Object.entries(progress))
    db.prepare('insert or replace into progress (name, value) values (?, ?)').run(name, value)
  db.exec('commit')
}

const readProgress = (name: string): string | null | undefined => {
  const row = db.prepare('select value from progress where name = ?').get(name)
  return row && (row['value'] === null ? null : String(row['value']))
}

type Contact = { id: string; name?: string | null | undefined; phone?: string | null | undefined }

const saveContact = ({ id, name = null, phone = null }: Contact): void => {
  db.prepare('insert or replace into contacts (id, name, phone) values (?, ?, ?)').run(id, name, phone)
}

/** A deleted contact leaves no personal data behind: its row goes, and what its events said. */
const eraseContact = (id: string): void => {
  db.prepare('delete from contacts where id = ?').run(id)
  db.prepare('update events set data = null where contact_id = ?').run(id)
}

/** Copies all contacts, page by page. The log is read from the place before it, so that no change is missed. */
const backfill = async (): Promise<void> => {
  if (readProgress('events') === undefined) {
    const { next_cursor } = await wcrm.events.list({ after: 'now' })
    save({ events: next_cursor, contacts: '' })
  }
  for (let cursor = readProgress('contacts'); typeof cursor === 'string';) {
    const page = await wcrm.contacts.search(cursor === '' ? { limit } : { limit, cursor })
    save({ contacts: page.next_cursor }, () => {
      for (const { id, name, phone } of page.data) if (id !== null) saveContact({ id, name, phone })
    })
    cursor = page.next_cursor
    console.log(JSON.stringify({ contacts: page.data.length }))
  }
}

const contactOf = ({ data }: Event): string | null => {
  if ('contact' in data && data.contact) return data.contact.id
  return 'message' in data && 'contact_id' in data.message ? data.message.contact_id : null
}

/** Returns the contact as it is now; undefined when it is gone. */
const readContact = async (id: string): Promise<Contact | undefined> => {
  try {
    const { name, phone } = await wcrm.contacts.get({ contact_id: id })
    return { id, name, phone }
  } catch (error) {
    if (isWcrmError(error, 'not_found')) return undefined
    throw error
  }
}

/** Copies the events since the last run, and the contacts that they are about as these are now. */
const follow = async (): Promise<void> => {
  for (;;) {
    const after = readProgress('events')
    const page = await wcrm.events.list(after ? { after, limit } : { limit })
    const last = page.next_cursor ?? page.data.at(-1)?.id
    if (last === undefined || last === after) return
    const ids = new Set(page.data.map(contactOf).filter((id) => id !== null))
    const contacts = new Map<string, Contact | undefined>()
    for (const id of ids) contacts.set(id, await readContact(id))
    save({ events: last }, () => {
      for (const event of page.data)
        db.prepare('insert or ignore into events values (?, ?, ?, ?, ?)').run(
          event.id,
          event.type,
          event.occurred_at,
          contactOf(event),
          JSON.stringify(event.data),
        )
      for (const [id, contact] of contacts)
        if (contact) saveContact(contact)
        else eraseContact(id)
    })
    console.log(JSON.stringify({ events: page.data.length }))
  }
}

await backfill()
await follow()
