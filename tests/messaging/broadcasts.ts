import { sql } from 'kysely'
import type { Db, TableRow } from '../../storage/database.ts'
import { fold } from '../../storage/values/text.ts'
import { plantContact } from '../calls.ts'
import type { TestServer } from '../servers.ts'

/** The business time of the tests of broadcasts. */
export const BROADCASTS_NOW = '2026-10-01T09:30:00.000Z'
/** Returns the time so many hours after it. */
export const hoursLater = (hours: number): string =>
  new Date(Date.parse(BROADCASTS_NOW) + hours * 3_600_000).toISOString()

export type BroadcastFields = Partial<
  Pick<TableRow<'broadcasts'>, 'name' | 'status' | 'started_at' | 'scheduled_at' | 'created_at'>
> & { channel_id?: string }

export const insertBroadcastRow = async (
  db: Db,
  workspaceId: string,
  fields: BroadcastFields = {},
): Promise<string> =>
  (
    await db
      .insertInto('broadcasts')
      .values({
        workspace_id: workspaceId,
        name: 'Autumn blend',
        status: 'completed',
        template_name: 'autumn_blend',
        channel_id: null,
        scheduled_at: null,
        started_at: BROADCASTS_NOW,
        created_at: hoursLater(-1),
        ...fields,
        name_key: fold(fields.name ?? 'Autumn blend'),
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

export type RecipientFields = Pick<TableRow<'broadcast_recipients'>, 'status'> &
  Partial<Record<'responded' | 'opted_out', boolean>> &
  Partial<Record<`${'sent' | 'delivered' | 'read' | 'failed' | 'responded'}_at`, string>>

export const insertRecipients = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  recipients: readonly (RecipientFields & { contact_id: string })[],
): Promise<void> => {
  await sql`
    insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, opted_out,
      sent_at, delivered_at, read_at, failed_at, responded_at)
    select ${workspaceId}::bigint, ${broadcastId}::bigint, contact_id, status, coalesce(responded, false),
      coalesce(opted_out, false), sent_at, delivered_at, read_at, failed_at, responded_at
    from jsonb_to_recordset(${JSON.stringify(recipients)}::text::jsonb) as r (
      contact_id bigint, status text, responded boolean, opted_out boolean, sent_at timestamptz,
      delivered_at timestamptz, read_at timestamptz, failed_at timestamptz, responded_at timestamptz)
  `.execute(db)
}

/** Inserts this many contacts, and returns their ids. */
export const insertBroadcastContacts = async (
  { db }: TestServer,
  workspaceId: string,
  count: number,
): Promise<string[]> => {
  const ids: string[] = []
  for (let i = 1; i <= count; i++) {
    const contact = { name: `Person ${i}`, phone: `1555010${1000 + i}`, email: null }
    ids.push(
      await plantContact(
        db,
        workspaceId,
        { ...contact, attrs: {}, tagIds: [], groupIds: [] },
        BROADCASTS_NOW,
      ),
    )
  }
  return ids
}
