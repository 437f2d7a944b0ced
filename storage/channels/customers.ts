import { sql } from 'kysely'
import { customerColumns } from '../contacts/lines.ts'
import type { Db } from '../database.ts'
import type { CustomerRow } from '../messages/inbound.ts'

/** The customers of bridged channels, by the ids that their bridges give them. */

/**
 * Locks names, in one order, so that of two requests about the same customer or message the second sees what
 * the first wrote.
 */
export const lockChannelNames = async (
  tx: Db,
  workspaceId: string,
  names: readonly string[],
): Promise<void> => {
  await sql`
    select pg_advisory_xact_lock(key) from
      (select distinct hashtextextended(${`channel ${workspaceId} `} || n, 0) as key
        from unnest(${names}::text[]) as n order by key) as keys`.execute(tx)
}

/**
 * Returns the contact of a customer, locked. `visitorId`: the web visitor id to look for where the channel
 * does not know the customer yet; null on channels that have none.
 */
export const lockChannelCustomer = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  customerId: string,
  visitorId: string | null,
): Promise<CustomerRow | undefined> =>
  (
    await sql<CustomerRow>`
    select ${customerColumns} from contacts
    where workspace_id = ${workspaceId} and id = coalesce(
      (select contact_id from channel_customers where workspace_id = ${workspaceId}
        and channel_id = ${channelId} and customer_id = ${customerId}),
      (select min(id) from contacts where workspace_id = ${workspaceId} and web_visitor_id = ${visitorId}))
    for update`.execute(tx)
  ).rows[0]

/** Records that the customer of a channel is this contact, and wrote just now (real time, ISO 8601 UTC). */
export const upsertChannelCustomer = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  customerId: string,
  contactId: string,
  at: string,
): Promise<void> => {
  await tx
    .insertInto('channel_customers')
    .values({
      workspace_id: workspaceId,
      channel_id: channelId,
      customer_id: customerId,
      contact_id: contactId,
      seen_at: at,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['workspace_id', 'channel_id', 'customer_id'])
        .doUpdateSet({ contact_id: contactId, seen_at: at }),
    )
    .execute()
}

/** Gives a contact without one its web visitor id; false when it has one. */
export const fillWebVisitorId = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  visitorId: string,
  now: string,
): Promise<boolean> => {
  const { numUpdatedRows } = await tx
    .updateTable('contacts')
    .set({ web_visitor_id: visitorId, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', contactId)
    .where('web_visitor_id', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Returns the id by which the bridge of a channel knows a contact: the one that wrote last. On web chat it is
 * else the web visitor id. Undefined when it knows none.
 */
export const findChannelCustomerId = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  contactId: string,
): Promise<string | undefined> =>
  (
    await sql<{ customer_id: string | null }>`
    select coalesce(
      (select customer_id from channel_customers
        where workspace_id = ${workspaceId} and contact_id = ${contactId} and channel_id = ${channelId}
        order by seen_at desc, customer_id limit 1),
      (select c.web_visitor_id from contacts c
        join channels h on h.workspace_id = c.workspace_id and h.id = ${channelId} and h.type = 'web'
        where c.workspace_id = ${workspaceId} and c.id = ${contactId})) as customer_id`.execute(tx)
  ).rows[0]?.customer_id ?? undefined
