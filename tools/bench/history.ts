import { sql } from 'kysely'
import { createCallers } from '../../server/demo/calls.ts'
import { generateContacts } from '../../server/demo/contacts.ts'
import { fillExchanges } from '../../storage/contacts/exchanges.ts'
import type { Db } from '../../storage/database.ts'
import { findOrInsertBroadcast, insertRecipients } from '../../storage/demo/broadcasts.ts'

const DAY_MS = 86_400_000

/** A value from 0 up to `below` for each row, the same in every run. */
const random = (key: string, below: number) => sql.raw(`mod(hashint8(${key})::bigint + 2147483648, ${below})`)

/**
 * Adds contacts to a workspace, each with two conversations in which a customer wrote and mostly was answered, and a
 * broadcast to some of them: as many rows as a large workspace has, written in a few statements.
 */
export const fillWorkspace = async (
  db: Db,
  workspaceId: string,
  { contacts, now }: { contacts: number; now: string },
): Promise<void> => {
  const { rows } = await sql<{
    last: string
  }>`select coalesce(max(id), 0)::text as last from contacts`.execute(db)
  const callers = createCallers()
  const workspace = { id: workspaceId, name: '', timezone: 'UTC' }
  await generateContacts((work) => db.transaction().execute((tx) => work(callers(tx, workspace))), {
    contacts,
    seed: 1,
    now,
  })
  await db.transaction().execute(async (tx) => {
    await sql`alter table messages disable trigger user`.execute(tx)
    const channels = sql`(select array_agg(id order by id) from channels where workspace_id = ${workspaceId})`
    const staff = sql`(select array_agg(id order by id) from staff where workspace_id = ${workspaceId} and enabled)`
    await sql`
      with made as (
        insert into conversations (workspace_id, contact_id, channel_id, state, episode, assigned_staff_id, assigned_at,
          unread_count, reply_status, last_inbound_at, window_expires_at, waiting_since, created_at, updated_at,
          last_activity_at)
        select ${workspaceId}::bigint, id, channel, case when is_open then 'open' else 'closed' end, 1, agent,
          case when agent is not null then began end, case when waits then 1 else 0 end,
          case when waits then 'incoming_no_reply' else 'outgoing_no_response' end, began,
          began + interval '24 hours', case when waits then began end, began, began + interval '1 hour',
          case when waits then began else began + interval '10 minutes' end
        from (
          select c.id, k, ${channels}[1 + ${random('c.id * 2 + k', 1000)} % cardinality(${channels})] as channel,
            case when ${random('c.id * 3 + k', 10)} < 6
              then ${staff}[1 + ${random('c.id * 5 + k', 1000)} % cardinality(${staff})] end as agent,
            c.created_at + (${now}::timestamptz - interval '2 hours' - c.created_at)
              * ((k + ${random('c.id * 7 + k', 1000)} / 1000.0) / 2) as began,
            k = 1 and ${random('c.id * 11', 10)} < 3 as is_open,
            k = 1 and ${random('c.id * 11', 10)} < 2 as waits
          from contacts c, generate_series(0, 1) as k
          where c.workspace_id = ${workspaceId} and c.id > ${rows[0]!.last}::bigint
        ) as planned
        returning id, channel_id, state, assigned_staff_id, reply_status, created_at
      ), episodes as (
        insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, closed_at, closed_by,
          first_response_at)
        select ${workspaceId}::bigint, id, 1, created_at,
          case when state = 'closed' then created_at + interval '1 hour' end,
          case when state = 'closed' then assigned_staff_id end,
          case when reply_status = 'outgoing_no_response' then created_at + interval '10 minutes' end
        from made
      ), waits as (
        insert into reply_waits (workspace_id, conversation_id, since, kind, episode, ended_at, ended_by)
        select ${workspaceId}::bigint, id, created_at, 'first_response', 1,
          case when reply_status = 'outgoing_no_response' then created_at + interval '10 minutes' end,
          case when reply_status = 'outgoing_no_response' then assigned_staff_id end
        from made
      )
      insert into messages (workspace_id, conversation_id, channel_id, episode, direction, type, status, text, staff_id,
        created_at, sent_at, delivered_at)
      select ${workspaceId}::bigint, id, channel_id, 1, 'inbound', 'TEXT', 'received',
        'Is my order ' || id || ' on its way?', null, created_at, null, null
      from made
      union all
      select ${workspaceId}::bigint, id, channel_id, 1, 'outbound', 'TEXT', 'delivered',
        'It is, it arrives tomorrow.', assigned_staff_id, created_at + interval '10 minutes',
        created_at + interval '10 minutes', created_at + interval '11 minutes'
      from made where reply_status = 'outgoing_no_response'`.execute(tx)
    await sql`
      update conversations v set last_message_id = m.id
      from (select conversation_id, max(id) as id from messages where workspace_id = ${workspaceId} group by 1) as m
      where v.workspace_id = ${workspaceId} and v.id = m.conversation_id and v.last_message_id is null`.execute(
      tx,
    )
    await sql`
      update contacts c set last_activity_at = v.at
      from (select contact_id, max(last_activity_at) as at from conversations
        where workspace_id = ${workspaceId} group by 1) as v
      where c.workspace_id = ${workspaceId} and c.id = v.contact_id`.execute(tx)
    await fillExchanges(tx)
    await sql`alter table messages enable trigger user`.execute(tx)
    const at = new Date(Date.parse(now) - 12 * DAY_MS).toISOString()
    const { id } = await findOrInsertBroadcast(tx, workspaceId, {
      name: 'Autumn blend for all',
      status: 'completed',
      template_name: 'autumn_blend',
      channel_id: null,
      scheduled_at: at,
      started_at: at,
      created_at: at,
    })
    await insertRecipients(tx, workspaceId, { id, share: 0.3, reached: 1, started_at: at }, now)
  })
}
