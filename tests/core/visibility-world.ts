import { sql } from 'kysely'
import { createEventId } from '../../server/ids.ts'
import { mediaKey } from '../../server/media-store.ts'
import { createChannel, type StaffFields } from '../../storage/workspace/admin.ts'
import { findOrInsertBroadcast } from '../../storage/demo/broadcasts.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { doAs } from '../calls.ts'
import { autonomous, makeWorkspace, type TestServer } from '../servers.ts'
import { seedWorld, type World } from '../world.ts'

/** What may be hidden from a viewer. */
type HiddenKind = 'phones' | 'channels' | 'fields' | 'teamReplies' | 'privateReplies'

/** Who looks at a world. `limited`: to the channels that both twins have. */
export type Viewer = {
  title: string
  staff: Pick<Partial<StaffFields>, 'role' | 'hide_phone_numbers' | 'reports'>
  limited?: true
  test?: true
  /** With an AI agent's key, from which phones are hidden. */
  agent?: true
  hidden: readonly HiddenKind[]
}

/** A workspace, and a viewer's key to it. */
export type TwinWorld = World & {
  key: string
  mainChannel: string
  lonerId: string
  clerkId: string
  /** Saved filters of the viewer and of others. */
  allFilters: readonly string[]
}

/** Ids in ranges that do not depend on what is hidden, so that they are alike in both twins. */
const FIRST_ID = 1000
const FIRST_HIDDEN_ID = 3000
const FIRST_NEW_ID = 5000
/** Workspaces get ids that no other number looks like. */
const FIRST_WORKSPACE_ID = 700_001
/** The first hidden record of each table; in the first twin there is none with this id. */
export const HIDDEN_ID = String(FIRST_HIDDEN_ID)

const MARKER = 'Zebra'
/** The middles of the phones; masks show the digits after them. */
const PHONE_MIDDLES = ['7391', '2861'] as const
/** The keys of the manager-only field that a saved filter of each twin compares. */
export const HIDDEN_KEYS = ['loyal_rank', 'vip_score'] as const

/** Sets the next id of every table whose ids are unique within a workspace. */
const setNextIds = async ({ db, app }: TestServer, next: number): Promise<void> => {
  await sql`
    with tables as materialized (
      select quote_ident(i.table_name) as name
      from information_schema.columns i join information_schema.columns w using (table_schema, table_name)
      where i.table_schema = 'public' and i.column_name = 'id' and w.column_name = 'workspace_id'
        and w.is_nullable = 'NO'), sequences as materialized (
      select pg_get_serial_sequence(name, 'id') as sequence from tables)
    select setval(sequence, ${next}::bigint, false) from sequences where sequence is not null`.execute(db)
  app.contactIdPool.length = 0
}

/**
 * Creates one of two workspaces that differ only in what the viewer may not see. `second`: the other one, with
 * more hidden records and other hidden values.
 */
export const seedTwin = async (server: TestServer, viewer: Viewer, second: boolean): Promise<TwinWorld> => {
  const differs = (kind: HiddenKind): boolean => second && viewer.hidden.includes(kind)
  await setNextIds(server, FIRST_ID)
  await sql`
    select setval(pg_get_serial_sequence('workspaces', 'id'),
      greatest(${FIRST_WORKSPACE_ID}, (select max(id) + 1 from workspaces)), false)`.execute(server.db)
  const workspace = await makeWorkspace(server, { name: 'Twin' })
  const run = doAs(server, workspace.owner.key)
  const hiddenKey = HIDDEN_KEYS[Number(differs('fields'))]!
  await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
  await run('crm_create_custom_field', { key: hiddenKey, type: 'text', visibility: 'manager_only' })
  const middle = PHONE_MIDDLES[Number(differs('phones'))]!
  const seeded = await seedWorld(server, workspace, MARKER, middle)
  const scene: Scene = { server, world: seeded, run, middle, hiddenKey, now: server.app.now() }
  const { lonerId, clerkId, filterIds } = await seedVisible(scene)
  const channels = seeded.ids['channels']!.toReversed()
  const { key, staffId } = await workspace.staff(
    { name: 'Viewer', role: 'agent', ...viewer.staff, channel_ids: viewer.limited ? channels : null },
    {
      ...(viewer.test ? { test: true } : {}),
      ...(viewer.agent ? { agent: true, phones: false, policy: autonomous } : {}),
    },
  )
  await setNextIds(server, FIRST_HIDDEN_ID)
  if (differs('channels')) await seedHiddenChannel(scene, staffId, lonerId)
  if (differs('fields')) await seedHiddenField(scene)
  if (differs('teamReplies') || differs('privateReplies')) await seedHiddenReplies(scene, differs)
  await setNextIds(server, FIRST_NEW_ID)
  const own = await seedOwn(server, key)
  const deliveries = await listContactDeliveries(scene)
  return {
    ...seeded,
    ids: { ...seeded.ids, ...own, webhook_deliveries: deliveries },
    key,
    mainChannel: channels[0]!,
    lonerId,
    clerkId,
    allFilters: [...filterIds, ...seeded.ids['saved_filters']!, ...(own['saved_filters'] ?? [])],
  }
}

type Scene = {
  server: TestServer
  world: World
  run: ReturnType<typeof doAs>
  middle: string
  hiddenKey: string
  now: string
}

type VisibleIds = { lonerId: string; clerkId: string; filterIds: string[] }

/** Adds what everybody sees, with hidden parts: numbers in texts, manager-only keys, a contact nobody wrote. */
const seedVisible = async ({ server, world, run, middle, hiddenKey, now }: Scene): Promise<VisibleIds> => {
  const { db } = server
  const workspaceId = world.workspace.id
  const [contactId] = world.ids['contacts']!
  const { id: lonerId } = await run('crm_upsert_contact', {
    phone: `+1555${middle}104`,
    name: `${MARKER} loner`,
    attributes: { mobile: `+1555${middle}204` },
  })
  await sql`
    update contacts set chatapp_user_id = phone || '@c.example' where workspace_id = ${workspaceId}`.execute(
    db,
  )
  // As imports of earlier versions left them.
  await sql`
    update contacts set name = phone, name_key = phone, search = phone || E'\n' || phone
    where workspace_id = ${workspaceId} and id = ${contactId!}::bigint`.execute(db)
  await run('crm_update_contact', {
    contact_id: contactId,
    attributes: { [hiddenKey]: 'gold', remark: 'New' },
  })
  await run('crm_update_contact', { contact_id: contactId, attributes: { [hiddenKey]: 'silver' } })
  const filterIds: string[] = []
  for (const filter of [
    { attributes: { some: { attributeName: { eq: hiddenKey }, stringValue: { eq: hiddenKey } } } },
    { or: [{ phoneNumber: { contains: middle } }, { name: { contains: `1555 ${middle} 101` } }] },
    { conversations: { some: { unreadCount: { gte: 1 } } } },
    { lastActivityAt: { gte: '2026-01-01T00:00:00Z' } },
  ])
    filterIds.push(
      (await run('crm_create_saved_filter', { name: `${MARKER} filter`, filter })).saved_filter.id,
    )
  const clerk = await world.workspace.staff({
    name: `${MARKER} clerk`,
    channel_ids: [...world.ids['channels']!],
  })
  await findOrInsertBroadcast(db, workspaceId, {
    name: `${MARKER} news`,
    status: 'completed',
    template_name: 'news',
    channel_id: world.ids['channels']!.at(-1)!,
    scheduled_at: now,
    started_at: now,
    created_at: now,
  })
  const [conversationId] = world.ids['conversations']!
  const message = { conversation_id: conversationId!, channel_id: null, episode: 1, created_at: now } as const
  await insertMessages(db, workspaceId, [
    {
      ...message,
      direction: 'outbound',
      type: 'TEXT',
      status: 'failed',
      text: 'Hello',
      error: `Recipient +1 555 ${middle} 101 unknown`,
    },
    { ...message, direction: 'system', type: 'SYSTEM', status: 'system', text: `Now +1555${middle}101` },
  ])
  await sql`
    update messages m set channel_id = v.channel_id from conversations v
    where m.workspace_id = ${workspaceId} and v.workspace_id = m.workspace_id and v.id = m.conversation_id
      and m.channel_id is null`.execute(db)
  await sql`
    update templates set meta_errors = ${JSON.stringify([`No +1555${middle}101`])}::jsonb
    where workspace_id = ${workspaceId}`.execute(db)
  return { lonerId, clerkId: clerk.staffId, filterIds }
}

/** Inserts a channel that the viewer may not see, with everything that a channel has. */
const seedHiddenChannel = async (scene: Scene, viewerId: string, lonerId: string): Promise<void> => {
  const { server, world, now } = scene
  const { db } = server
  const workspaceId = world.workspace.id
  const { id: channelId } = await createChannel(
    db,
    workspaceId,
    {
      type: 'chatapp',
      name: `${MARKER} secret line`,
      identifier: '15550100009',
      status: 'connected',
      account_id: `78${workspaceId}`,
      account_name: 'Secret account',
      provider_phone_number_id: `89${workspaceId}`,
    },
    now,
  )
  await sql`
    update staff set channel_ids = channel_ids || ${channelId}::bigint
    where workspace_id = ${workspaceId} and name = ${`${MARKER} clerk`}`.execute(db)
  for (const contactId of [lonerId, world.ids['contacts']![0]!])
    await seedHiddenConversation(scene, { channelId, contactId, viewerId })
  await seedHiddenBroadcast(scene, channelId)
  await sql`
    insert into short_links (workspace_id, channel_id, code, url, message, search, created_at, updated_at)
    values (${workspaceId}, ${channelId}::bigint, 'SECRETCODE', 'https://x.example/message/SECRETCODE',
      'Secret hello', 'secret hello', ${now}, ${now})`.execute(db)
  await server.sync(workspaceId)
  const message = { id: HIDDEN_ID, conversation_id: HIDDEN_ID, channel_id: channelId, text: 'Secret' }
  const conversation = { id: HIDDEN_ID, contact_id: lonerId, channel_id: channelId, state: 'open' }
  const link = { id: HIDDEN_ID, channel_id: channelId, message: 'Secret hello' }
  await insertEvents(
    db,
    workspaceId,
    (
      [
        ['conversation.created/1', { conversation }],
        ['message.received/1', { message }],
        ['short_link.created/1', { short_link: link }],
        ['channel.status_changed/1', { channel: { id: channelId, name: 'Secret' }, status: 'connected' }],
      ] as const
    ).map(([type, data]) => ({ id: createEventId(), type, occurred_at: now, data })),
  )
}

const seedHiddenConversation = async (
  { server: { db, app }, world, now }: Scene,
  { channelId, contactId, viewerId }: { channelId: string; contactId: string; viewerId: string },
): Promise<void> => {
  const workspaceId = world.workspace.id
  const later = new Date(Date.parse(now) + 60_000).toISOString()
  const {
    rows: [row],
  } = await sql<{ id: string }>`
    insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, assigned_at,
      unread_count, reply_status, last_inbound_at, window_expires_at, created_at, last_activity_at, updated_at)
    values (${workspaceId}, ${contactId}::bigint, ${channelId}::bigint, 'open', ${viewerId}::bigint, ${now},
      7, 'incoming_no_reply', ${later}, ${later}::timestamptz + interval '24 hours', ${now}, ${later}, ${later})
    returning id`.execute(db)
  const message = { conversation_id: row!.id, channel_id: channelId, episode: 1 } as const
  const media = { state: 'kept', content_type: 'image/jpeg', file_name: 'secret.jpg', size: 5 } as const
  const [, last] = await insertMessages(db, workspaceId, [
    {
      ...message,
      direction: 'outbound',
      type: 'TEXT',
      status: 'sent',
      text: 'Secret',
      staff_id: viewerId,
      created_at: now,
    },
    {
      ...message,
      direction: 'inbound',
      type: 'IMAGE',
      status: 'received',
      text: 'Secret',
      created_at: later,
      media,
    },
  ])
  await sql`
    insert into message_reactions (workspace_id, message_id, sender, emoji, at)
    select workspace_id, id, 'customer', '👍 Secret', ${later} from messages
    where workspace_id = ${workspaceId} and conversation_id = ${row!.id}::bigint`.execute(db)
  await app.media!.write(mediaKey(workspaceId, last!), [Buffer.from('image')])
  await sql`
    update media set key = ${mediaKey(workspaceId, last!)}
    where workspace_id = ${workspaceId} and message_id = ${last!}::bigint`.execute(db)
  await sql`
    update conversations set last_message_id = ${last!}::bigint
    where workspace_id = ${workspaceId} and id = ${row!.id}::bigint`.execute(db)
  await sql`
    insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, closed_at, closed_by,
      close_reason)
    values (${workspaceId}, ${row!.id}::bigint, 1, ${now}, ${later}, ${viewerId}::bigint, 'Secret'),
      (${workspaceId}, ${row!.id}::bigint, 2, ${later}, null, null, null)`.execute(db)
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at)
    values (${workspaceId}, ${row!.id}::bigint, ${now}, 'next_response', 1, ${now})`.execute(db)
  await sql`
    insert into conversation_tags (workspace_id, conversation_id, tag_id)
    select ${workspaceId}, ${row!.id}::bigint, min(id) from tags where workspace_id = ${workspaceId}`.execute(
    db,
  )
  await sql`
    update contacts set last_activity_at = ${later}
    where workspace_id = ${workspaceId} and id = ${contactId}::bigint`.execute(db)
}

const seedHiddenBroadcast = async (
  { server: { db }, world, now }: Scene,
  channelId: string,
): Promise<void> => {
  const workspaceId = world.workspace.id
  const { id } = await findOrInsertBroadcast(db, workspaceId, {
    name: `${MARKER} secret broadcast`,
    status: 'completed',
    template_name: 'secret_offer',
    channel_id: channelId,
    scheduled_at: now,
    started_at: now,
    created_at: now,
  })
  await sql`
    insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, sent_at)
    select workspace_id, ${id}::bigint, id, 'sent', false, ${now}::timestamptz
    from contacts where workspace_id = ${workspaceId}`.execute(db)
}

/** Adds another manager-only field with options, and other values of the first one. */
const seedHiddenField = async ({ run, world, server: { db }, hiddenKey }: Scene): Promise<void> => {
  const workspaceId = world.workspace.id
  const {
    rows: [field],
  } = await sql<{ id: string }>`
    insert into custom_fields (workspace_id, key, label, type, options, visibility, used, created_at)
    values (${workspaceId}, 'secret_level', 'Secret level', 'select',
      '[{"label": "Secret option", "value": "top"}]', 'manager_only', true, now()) returning id`.execute(db)
  await sql`
    update contact_facts set attrs = attrs || jsonb_build_object(${field!.id}::text, 'top'::text)
    where workspace_id = ${workspaceId}`.execute(db)
  const { data } = await run('crm_search_contacts', {
    filter: { attributes: { some: { attributeName: { eq: hiddenKey } } } },
  })
  if (data.length === 0) throw new Error('no contact has a value of the hidden field')
}

/** Inserts saved replies of another team and of another staff member alone. */
const seedHiddenReplies = async (
  { server: { db }, world, now }: Scene,
  differs: (kind: HiddenKind) => boolean,
): Promise<void> => {
  const workspaceId = world.workspace.id
  const visibilities = [
    ...(differs('privateReplies') ? ['private'] : []),
    ...(differs('teamReplies') ? ['team'] : []),
  ]
  for (const visibility of visibilities)
    await sql`
      insert into quick_messages (workspace_id, code, code_key, title, type, text, search, visibility, team_id,
        owner_staff_id, created_at, updated_at)
      values (${workspaceId}, ${`secret-${visibility}`}, ${`secret-${visibility}`}, 'Secret', 'TEXT', 'Secret',
        'secret', ${visibility}, ${visibility === 'team' ? world.ids['teams']![0]! : null}::bigint,
        ${world.workspace.owner.staffId}::bigint, ${now}, ${now})`.execute(db)
}

/** Creates what only its owner may change, with the viewer's key; a test key changes nothing. */
const seedOwn = async (server: TestServer, key: string): Promise<Record<string, string[]>> => {
  const run = doAs(server, key)
  const filter = await run('crm_create_saved_filter', { name: 'Own', filter: { name: { contains: MARKER } } })
  const quick = await run('messaging_create_quick_message', { code: 'own', text: 'Own' })
  return filter.dry_run ? {} : { saved_filters: [filter.saved_filter.id], quick_messages: [quick.id] }
}

/** Lists deliveries of events of contacts, which both twins have. */
const listContactDeliveries = async ({ server: { db }, world }: Scene): Promise<string[]> =>
  (
    await sql<{ id: string }>`
      select id from webhook_deliveries where workspace_id = ${world.workspace.id}
        and event_type = 'contact.created/1'
      order by endpoint_id, id`.execute(db)
  ).rows.map(({ id }) => id)
