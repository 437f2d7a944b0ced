import { sql } from 'kysely'
import { lineKey } from '../contacts/lines.ts'
import type { Db } from '../database.ts'

/** Merges that lead from one contact to the next; more would be a loop. */
const MAX_MERGES = 100

/**
 * Returns what speaks against a message of a broadcast to this contact now. `isDouble`: its person was written to by
 * the same broadcast as another contact, one that was merged into it, or that has its line or its id at the messaging
 * app now.
 */
export const readRecipientState = async (
  tx: Db,
  workspaceId: string,
  { broadcastId, contactId }: { broadcastId: string; contactId: string },
): Promise<{ dnd: boolean; isDouble: boolean }> => {
  const { rows } = await sql<{ dnd: boolean; is_double: boolean }>`
    with recursive merged as (
      select contact_id, 1 as n from contact_merges where workspace_id = ${workspaceId} and into_id = ${contactId}
      union all
      select m.contact_id, d.n + 1 from merged d
      join contact_merges m on m.workspace_id = ${workspaceId} and m.into_id = d.contact_id
      where d.n < ${MAX_MERGES}
    ),
    own as (select chatapp_user_id as user_id, ${lineKey} as line, dnd from contacts
      where workspace_id = ${workspaceId} and id = ${contactId}),
    doubles as (
      select contact_id from merged
      union all
      select c.id from own, contacts c where c.workspace_id = ${workspaceId} and c.chatapp_user_id = own.user_id
      union all
      select c.id from own, contacts c where c.workspace_id = ${workspaceId} and c.chatapp_user_id = own.line
      union all
      select c.id from own, contacts c where c.workspace_id = ${workspaceId} and ${lineKey} = own.user_id
    )
    select own.dnd, exists (
      select from doubles d join broadcast_recipients r on r.workspace_id = ${workspaceId}
        and r.broadcast_id = ${broadcastId} and r.contact_id = d.contact_id
      where r.contact_id <> ${contactId} and r.message_id is not null) as is_double
    from own`.execute(tx)
  const { dnd, is_double: isDouble } = rows[0]!
  return { dnd, isDouble }
}
