import { sql } from 'kysely'
import { mediaKey } from '../server/media-store.ts'
import type { Db } from '../storage/database.ts'
import { findOrInsertBroadcast } from '../storage/demo/broadcasts.ts'
import { insertMessages } from '../storage/messages/messages.ts'
import type { TestServer } from './servers.ts'

/** Inserts a conversation for each contact, templates, saved replies, and two broadcasts to all contacts. */
export const seedMessaging = async (
  server: TestServer,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const { db } = server
  await seedTemplates(db, workspaceId, staffId, marker, now)
  await seedConversations(server, workspaceId, staffId, marker, now)
  for (const n of [1, 2]) {
    const { id } = await findOrInsertBroadcast(db, workspaceId, {
      name: `${marker} broadcast ${n}`,
      status: 'completed',
      template_name: `${marker}_offer`,
      channel_id: null,
      scheduled_at: now,
      started_at: now,
      created_at: now,
    })
    await sql`
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded,
        sent_at, delivered_at, read_at, responded_at)
      select workspace_id, ${id}::bigint, id, 'read', true,
        ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
      from contacts where workspace_id = ${workspaceId}`.execute(db)
  }
}

/** Inserts saved replies, a template, and last the one of the examples, which is the one that inputs use. */
const seedTemplates = async (
  db: Db,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const templates = [
    [`${marker.toLowerCase()}_notice`, `${marker} moves.`],
    ['order_update', `Hello {{1}}, your order from ${marker} is on its way.`],
  ] as const
  for (const [n, [name, text]] of templates.entries()) {
    await sql`
      insert into templates (workspace_id, account_id, account_name, provider_id, name, language, category,
        status, components, created_at, updated_at)
      select workspace_id, account_id, account_name, ${`5500${n}${workspaceId}`}, ${name}, 'en_US', 'UTILITY',
        'APPROVED', ${JSON.stringify([{ type: 'BODY', text }])}::text::jsonb,
        ${now}::timestamptz, ${now}::timestamptz
      from channels where workspace_id = ${workspaceId} and is_default`.execute(db)
  }
  for (const n of [1, 2]) {
    await sql`
      insert into event_consumers (workspace_id, name, event_id, acknowledged_at, created_at)
      select workspace_id, ${n === 1 ? 'nightly' : `${marker}-consumer`}, id, ${now}, ${now} from events
      where workspace_id = ${workspaceId} order by id limit 1`.execute(db)
    await sql`
      insert into consent_changes (workspace_id, contact_id, purpose, channel, state, source, proof, at, recorded_at)
      select workspace_id, id, 'research', 'all', 'granted', 'form', ${`${marker} form ${n}`}, ${now}, ${now}
      from contacts where workspace_id = ${workspaceId} order by id`.execute(db)
    await sql`
      insert into consents (workspace_id, contact_id, purpose, channel, state, at, change_id)
      select distinct on (contact_id) workspace_id, contact_id, purpose, channel, state, at, id from consent_changes
      where workspace_id = ${workspaceId} order by contact_id, id desc
      on conflict (workspace_id, contact_id, purpose, channel) do update set change_id = excluded.change_id`.execute(
      db,
    )
    await sql`
      insert into quick_messages (workspace_id, code, code_key, title, type, text, visibility,
        owner_staff_id, created_at, updated_at)
      values (${workspaceId}, ${`${marker}-${n}`}, ${`${marker}-${n}`.toLowerCase()},
        ${`${marker} saved reply ${n}`}, 'TEXT', ${`${marker} thanks you.`}, 'company',
        ${staffId}, ${now}, ${now})`.execute(db)
  }
  await sql`
    insert into quick_message_favorites (workspace_id, staff_id, quick_message_id)
    select workspace_id, owner_staff_id, id from quick_messages where workspace_id = ${workspaceId}`.execute(
    db,
  )
}

/**
 * Inserts a conversation per contact: the customer got a reply and wrote again with an image, so the window
 * is open and a reply is due. The last one, which inputs use, is unassigned, so that it can be claimed.
 */
const seedConversations = async (
  { db, app }: TestServer,
  workspaceId: string,
  staffId: string,
  marker: string,
  now: string,
): Promise<void> => {
  const before = (minutes: number): string => new Date(Date.parse(now) - minutes * 60_000).toISOString()
  const {
    rows: [policy],
  } = await sql<{ id: string }>`
    insert into sla_policies (workspace_id, name, first_response_seconds, next_response_seconds, created_at)
    values (${workspaceId}, ${`${marker} service level`}, 3600, 3600, ${now}) returning id`.execute(db)
  const { rows } = await sql<{ id: string; channel_id: string }>`
    insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, assigned_at,
      unread_count, reply_status, last_inbound_at, window_expires_at, sla_policy_id,
      next_response_due_at, created_at, last_activity_at, updated_at)
    select c.workspace_id, c.id, h.id, 'open', s.id, case when s.id is not null then ${now}::timestamptz end,
      1, 'incoming_no_reply', ${now}::timestamptz, ${now}::timestamptz + interval '24 hours',
      ${policy!.id}::bigint, ${now}::timestamptz + interval '1 hour', ${before(10)}::timestamptz,
      ${now}::timestamptz, ${now}::timestamptz
    from contacts c join channels h on h.workspace_id = c.workspace_id and h.is_default
    left join staff s on s.workspace_id = c.workspace_id and s.id = ${staffId}::bigint
      and c.id < (select max(id) from contacts where workspace_id = ${workspaceId})
    where c.workspace_id = ${workspaceId} order by c.id returning id, channel_id`.execute(db)
  for (const { id, channel_id } of rows) {
    const message = { conversation_id: id, channel_id, episode: 1 } as const
    const [, , last] = await insertMessages(db, workspaceId, [
      {
        ...message,
        direction: 'inbound',
        type: 'TEXT',
        status: 'received',
        text: `${marker} question`,
        provider_id: `wamid.${id}in`,
        created_at: before(10),
      },
      {
        ...message,
        direction: 'outbound',
        type: 'TEXT',
        status: 'sent',
        text: `${marker} answer`,
        staff_id: staffId,
        provider_id: `wamid.${id}out`,
        created_at: before(5),
        sent_at: before(5),
      },
      {
        ...message,
        direction: 'inbound',
        type: 'IMAGE',
        status: 'received',
        text: `${marker} picture`,
        provider_id: `wamid.${id}pic`,
        created_at: now,
        media: { state: 'kept', content_type: 'image/jpeg', file_name: `${marker}.jpg`, size: marker.length },
      },
    ])
    await app.media!.write(mediaKey(workspaceId, last!), [Buffer.from(marker)])
    await sql`
      update media set key = ${mediaKey(workspaceId, last!)}
      where workspace_id = ${workspaceId} and message_id = ${last!}::bigint`.execute(db)
    await sql`
      update conversations set last_message_id = ${last!}::bigint
      where workspace_id = ${workspaceId} and id = ${id}`.execute(db)
  }
  await sql`
    insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, first_response_at)
    select workspace_id, id, 1, created_at, ${before(5)}::timestamptz
    from conversations where workspace_id = ${workspaceId}`.execute(db)
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at)
    select workspace_id, id, ${now}::timestamptz, 'next_response', 1, next_response_due_at
    from conversations where workspace_id = ${workspaceId}`.execute(db)
  await sql`
    insert into agent_sessions (workspace_id, conversation_id, episode, key_id, started_at)
    select v.workspace_id, v.id, 1, k.id, v.created_at from conversations v
    join api_keys k on k.workspace_id = v.workspace_id
    where v.workspace_id = ${workspaceId} on conflict do nothing`.execute(db)
  await sql`
    update conversations set waiting_since = ${now}::timestamptz
    where workspace_id = ${workspaceId}`.execute(db)
  await sql`
    insert into message_reactions (workspace_id, message_id, sender, emoji, at)
    select workspace_id, id, 'customer', ${`👍 ${marker}`}, ${now}::timestamptz from messages
    where workspace_id = ${workspaceId} and direction = 'outbound'`.execute(db)
  await sql`
    insert into conversation_tags (workspace_id, conversation_id, tag_id)
    select workspace_id, id, (select max(t.id) from tags t where t.workspace_id = v.workspace_id)
    from conversations v where workspace_id = ${workspaceId}`.execute(db)
  await sql`
    update contacts set last_activity_at = ${now}::timestamptz
    where workspace_id = ${workspaceId}`.execute(db)
}
