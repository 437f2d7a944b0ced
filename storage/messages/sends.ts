import { sql } from 'kysely'
import type { Interactive } from '../../catalog/interactive.ts'
import type { Db, MessageStatus } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { type QuickMessageViewer, isVisibleTo } from './quick-messages.ts'

/**
 * Kept in a message until its outcome is known. `opens` and `makes_contact`: this send created the
 * conversation, or the contact (`contact_id`), whose events follow once they are sure to stay.
 */
export type ProviderCall = { opens: boolean; makes_contact: boolean; contact_id?: string | null }

/** An outbound message. `call` is null once its outcome is known. */
export type OutboundMessageRow = {
  id: string
  conversation_id: string
  episode: number
  contact_id: string | null
  status: MessageStatus
  provider_id: string | null
  staff_id: string | null
  key_id: string | null
  call: ProviderCall | null
  created_at: string
  sent_at: string | null
  delivered_at: string | null
  read_at: string | null
  failed_at: string | null
  error: string | null
  error_code: number | null
}

/** Identifies a message by our id or reference, or by the provider's id. */
export type OutboundMessageKey = { id?: string; reference?: string; providerId?: string }

const columns = sql`
  m.id, m.conversation_id, m.episode, v.contact_id, m.status, m.provider_id, m.staff_id, m.key_id,
  m.content->'call' as call, m.created_at, m.sent_at, m.delivered_at, m.read_at, m.failed_at, m.error, m.error_code`

const isOf = (providerId: string | undefined) =>
  sql`message_key(m.provider_id) = message_key(${providerId ?? null}::text)`

/** Finds an outbound message; where two match, the one with the provider's id. */
export const findOutboundMessage = async (
  tx: Db,
  workspaceId: string,
  { id, reference, providerId }: OutboundMessageKey,
): Promise<OutboundMessageRow | undefined> => {
  // Only what is given: a statement with all of them is planned anew at each call, which takes longer than it does.
  const isNamed = [
    ...(id === undefined ? [] : [sql`m.id = ${toStorableId(id)}::bigint`]),
    ...(providerId === undefined ? [] : [isOf(providerId)]),
    ...(reference === undefined ? [] : [sql`m.reference = ${reference}`]),
  ]
  const first = isNamed.length === 1 ? sql`` : sql`order by coalesce(${isOf(providerId)}, false) desc`
  const { rows } = await sql<OutboundMessageRow>`
    select ${columns} from messages m join conversations v on v.workspace_id = m.workspace_id
      and v.id = m.conversation_id
    where m.workspace_id = ${workspaceId} and m.direction = 'outbound'
      and (${sql.join(isNamed, sql` or `)}) ${first} limit 1`.execute(tx)
  return rows[0]
}

/**
 * Returns the message, locked; where the provider's id is given, unless it has another one by now. A caller that also
 * locks its contact or conversation does so before.
 */
export const lockOutboundMessage = async (
  tx: Db,
  workspaceId: string,
  id: string,
  providerId?: string,
): Promise<OutboundMessageRow | undefined> =>
  (
    await sql<OutboundMessageRow>`
    select ${columns} from messages m join conversations v on v.workspace_id = m.workspace_id
      and v.id = m.conversation_id
    where m.workspace_id = ${workspaceId} and m.id = ${id}::bigint
      ${providerId === undefined ? sql`` : sql`and ${isOf(providerId)}`} for update of m`.execute(tx)
  ).rows[0]

/**
 * True for a message of which the provider has reported nothing: one that is pending, or was given up and
 * counts as failed.
 */
export const isUnconfirmed = ({ status, provider_id: id }: OutboundMessageRow): boolean =>
  status === 'pending' || (status === 'failed' && id === null)

/** Marks a locked, unconfirmed message as accepted by the provider. */
export const markMessageSent = async (
  tx: Db,
  workspaceId: string,
  id: string,
  providerId: string,
  at: string,
): Promise<void> => {
  await sql`
    with m as (
      update messages set status = 'sent', provider_id = ${providerId}, sent_at = ${at},
        failed_at = null, error = null, error_code = null, content = nullif(content - 'call', '{}')
      where workspace_id = ${workspaceId} and id = ${id}::bigint and status in ('pending', 'failed')
        and provider_id is null
      returning workspace_id, id, status, sent_at, delivered_at, read_at, failed_at, error, error_code)
    ${updateRecipient}`.execute(tx)
}

/** Writes why the provider does not deliver a message yet that it accepted. */
export const markHeld = async (tx: Db, workspaceId: string, id: string, held: string): Promise<void> => {
  await sql`
    update messages set content = coalesce(content, '{}') || jsonb_build_object('held', ${held}::text)
    where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(tx)
}

/** Writes the delivery of the message `m` to the recipient of a broadcast that it was sent to. */
const updateRecipient = sql`
  update broadcast_recipients r set status = m.status, sent_at = m.sent_at, delivered_at = m.delivered_at,
    read_at = m.read_at, failed_at = m.failed_at, error = m.error, error_code = m.error_code::text
  from m where r.workspace_id = m.workspace_id and r.message_id = m.id`

export type DeliveryState = Pick<
  OutboundMessageRow,
  'status' | 'sent_at' | 'delivered_at' | 'read_at' | 'failed_at' | 'error' | 'error_code'
>

/** Updates the delivery state of a locked message whose outcome is known. */
export const updateDeliveryState = async (
  tx: Db,
  workspaceId: string,
  id: string,
  { status, sent_at, delivered_at, read_at, failed_at, error, error_code }: DeliveryState,
): Promise<void> => {
  await sql`
    with m as (
      update messages set status = ${status}, sent_at = ${sent_at}, delivered_at = ${delivered_at},
        read_at = ${read_at}, failed_at = ${failed_at}, error = ${error}, error_code = ${error_code}::integer,
        content = nullif(content - 'call', '{}')
      where workspace_id = ${workspaceId} and id = ${id}
      returning workspace_id, id, status, sent_at, delivered_at, read_at, failed_at, error, error_code)
    ${updateRecipient}`.execute(tx)
}

/**
 * Deletes a message that the provider refused. Returns what its send created and nobody has told of; undefined when
 * the message is no longer pending.
 */
export const deletePendingMessage = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<Pick<ProviderCall, 'opens' | 'makes_contact'> | undefined> =>
  (
    await sql<Pick<ProviderCall, 'opens' | 'makes_contact'>>`
    with gone as (delete from messages where workspace_id = ${workspaceId} and id = ${id}::bigint
      and status = 'pending' returning id, content->'call' as call),
    media as (delete from media using gone where media.workspace_id = ${workspaceId}
      and media.message_id = gone.id)
    select coalesce((call->>'opens')::boolean, false) as opens,
      coalesce((call->>'makes_contact')::boolean, false) as makes_contact from gone`.execute(tx)
  ).rows[0]

/** Deletes a locked conversation in which nothing happened; false when something did. */
export const deleteEmptyConversation = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await sql`
    with gone as (
      delete from conversations v where workspace_id = ${workspaceId} and id = ${id}::bigint and episode = 1
        and state = 'open' and assigned_staff_id is null and assigned_team_id is null
        and not exists (select 1 from messages m where m.workspace_id = v.workspace_id
          and m.conversation_id = v.id)
        and not exists (select 1 from conversation_tags t where t.workspace_id = v.workspace_id
          and t.conversation_id = v.id)
      returning id),
    e as (delete from conversation_episodes x using gone where x.workspace_id = ${workspaceId}
      and x.conversation_id = gone.id),
    w as (delete from reply_waits x using gone where x.workspace_id = ${workspaceId}
      and x.conversation_id = gone.id)
    select 1 from gone`.execute(tx)
  ).rows.length > 0

/** Whether a contact has not changed since it was created. */
export const isContactUntouched = async (tx: Db, workspaceId: string, contactId: string): Promise<boolean> =>
  (
    await sql`
    select 1 from contacts c where workspace_id = ${workspaceId} and id = ${contactId}::bigint
      and updated_at = created_at and not dnd
      and not exists (select 1 from conversations x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)
      and not exists (select 1 from contact_tags x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)
      and not exists (select 1 from contact_groups x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)
      and not exists (select 1 from contact_facts x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)
      and not exists (select 1 from broadcast_recipients x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)
      and not exists (select 1 from consent_changes x where x.workspace_id = c.workspace_id
        and x.contact_id = c.id)`.execute(tx)
  ).rows.length > 0

/** The contact that a message is sent to. */
export type Recipient = {
  id: string
  phone: string | null
  /** How the provider spells the phone, where it differs. */
  provider_phone: string | null
  chatapp_user_id: string | null
  dnd: boolean
}

export const readRecipient = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
): Promise<Recipient | undefined> =>
  await tx
    .selectFrom('contacts')
    .select(['id', 'phone', 'provider_phone', 'chatapp_user_id', 'dnd'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(contactId))
    .executeTakeFirst()

/** A channel as a send needs it. */
export type SendingChannel = {
  id: string
  name: string | null
  type: string
  status: string
  is_default: boolean
  account_id: string | null
  provider_phone_number_id: string | null
  /** Where replies are delivered on a bridged channel. */
  url: string | null
  /** Why the provider disconnected it, such as `token_revoked`. */
  health_reason?: string | null
}

const channelColumns = [
  'id',
  'name',
  'type',
  'status',
  'is_default',
  'account_id',
  'provider_phone_number_id',
  'url',
  // Why the provider does not take what is sent, as far as it is known.
  sql<string | null>`(select h.reason from channel_health h where h.workspace_id = channels.workspace_id
    and h.channel_id = channels.id and h.status = 'disconnected')`.as('health_reason'),
] as const

export const readSendingChannel = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<SendingChannel | undefined> =>
  await tx
    .selectFrom('channels')
    .select(channelColumns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .$castTo<SendingChannel>()
    .executeTakeFirst()

/** Lists the channels that can send templates now, by id. */
export const listUsableChannels = async (tx: Db, workspaceId: string): Promise<SendingChannel[]> =>
  await tx
    .selectFrom('channels')
    .select(channelColumns)
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'chatapp')
    .where('status', '=', 'connected')
    .where('provider_phone_number_id', 'is not', null)
    .orderBy('id')
    .$castTo<SendingChannel>()
    .execute()

/** Returns the channel id of the contact's latest conversation on one of these channels. */
export const findLatestChannelId = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  among: readonly string[],
): Promise<string | undefined> =>
  (
    await sql<{ channel_id: string }>`
    select channel_id from conversations where workspace_id = ${workspaceId}
      and contact_id = ${toStorableId(contactId)}::bigint and channel_id = any(${among}::bigint[])
    order by activity_at desc, id desc limit 1`.execute(tx)
  ).rows[0]?.channel_id

export const readDefaultChannel = async (tx: Db, workspaceId: string): Promise<SendingChannel | undefined> =>
  await tx
    .selectFrom('channels')
    .select(channelColumns)
    .where('workspace_id', '=', workspaceId)
    .where('is_default', '=', sql.lit(true))
    .limit(1)
    .$castTo<SendingChannel>()
    .executeTakeFirst()

/** Returns the message that a reply answers; undefined when it is not of this conversation. */
export const findReplyTarget = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  id: string,
): Promise<{ id: string; provider_id: string | null } | undefined> =>
  tx
    .selectFrom('messages')
    .select(['id', 'provider_id'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .where('conversation_id', '=', conversationId)
    .where('note', '=', sql.lit(false))
    .executeTakeFirst()

export type SendableQuickMessageRow = {
  id: string
  type: string
  text: string | null
  media_url: string | null
  file_name: string | null
  template_name: string | null
  interactive: Interactive | null
}

/** Returns a quick message that this staff member may use. */
export const readQuickMessage = async (
  tx: Db,
  workspaceId: string,
  viewer: QuickMessageViewer,
  id: string,
): Promise<SendableQuickMessageRow | undefined> =>
  (
    await sql<SendableQuickMessageRow>`
    select id, type, text, media_url, file_name, template_name, interactive from quick_messages q
    where q.workspace_id = ${workspaceId} and q.id = ${toStorableId(id)}
      and ${isVisibleTo(viewer)}`.execute(tx)
  ).rows[0]

/** Returns the facts that the reply window of a conversation follows from, without a lock. */
export const readWindowFacts = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
): Promise<
  | {
      channel_id: string | null
      channel_type: string | null
      last_inbound_at: string | null
      free_entry_at: string | null
      window_corrected_at: string | null
    }
  | undefined
> =>
  (
    await sql<{
      channel_id: string | null
      channel_type: string | null
      last_inbound_at: string | null
      free_entry_at: string | null
      window_corrected_at: string | null
    }>`
    select v.channel_id, h.type as channel_type, v.last_inbound_at, v.free_entry_at, v.window_corrected_at
    from conversations v left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.id = ${conversationId}::bigint`.execute(tx)
  ).rows[0]
