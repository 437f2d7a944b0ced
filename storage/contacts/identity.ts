import { sql } from 'kysely'
import { lineKey } from './lines.ts'
import type { Db } from '../database.ts'

/**
 * Locks the contacts with this line, by its key, and with this external id, in the order of their ids: none, one or
 * two.
 */
export const lockContactsByIdentity = async (
  tx: Db,
  workspaceId: string,
  key: string | null,
  externalId: string,
): Promise<{ id: string; line_key: string | null; external_id: string | null }[]> =>
  (
    await sql<{ id: string; line_key: string | null; external_id: string | null }>`
    select id, ${lineKey} as line_key, external_id from contacts
    where workspace_id = ${workspaceId}
      and (external_id = ${externalId} ${key === null ? sql`` : sql`or ${lineKey} = ${key}`})
    order by contacts.id for update`.execute(tx)
  ).rows

/** Returns the id of the contact with this external id; undefined when there is none. */
export const findContactIdByExternalId = async (
  tx: Db,
  workspaceId: string,
  externalId: string,
): Promise<string | undefined> =>
  (
    await tx
      .selectFrom('contacts')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('external_id', '=', externalId)
      .executeTakeFirst()
  )?.id

/** A contact with its line, if it has one, and its external id. */
export type IdentifiedContact = {
  id: string
  phone: string | null
  line_key: string | null
  external_id: string | null
}

/** Returns the contacts with these lines, by their keys, or external ids, by their own ids. */
export const findIdentifiedContacts = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
  externalIds: readonly string[],
): Promise<IdentifiedContact[]> =>
  (
    await sql<IdentifiedContact>`
    select id, phone, ${lineKey} as line_key, external_id from contacts
    where workspace_id = ${workspaceId}
      and (${lineKey} = any(${keys}::text[]) or external_id = any(${externalIds}::text[]))
    order by contacts.id`.execute(tx)
  ).rows
