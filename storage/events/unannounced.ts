import { type RawBuilder, sql } from 'kysely'
import type { ConversationState } from '../conversations/conversations.ts'
import type { Db } from '../database.ts'
import type { EventRow } from './events.ts'
import { asUnknown } from '../values/ids.ts'
import type { ProviderCall } from '../messages/sends.ts'

/*
 * A send commits the contact and the conversation that it creates before the provider is called, and their events are
 * written when its outcome is known: a refusal undoes both. A concurrent change announces them first, so that
 * readers of the log never see a record before its creation.
 */

/** The contacts and conversations that events name, except those whose creation they announce. */
export type EventSubjects = { contactIds: string[]; conversationIds: string[] }

type Named = { contact_id?: unknown; conversation_id?: unknown }
type SubjectData = {
  contact?: { id: string; merged_into?: string }
  contact_ids?: readonly string[]
  conversation?: Named & { id: string }
  message?: Named
  consent?: Named
}

const contactKey = (id: unknown): string[] => (typeof id === 'string' ? [`contact ${id}`] : [])
const conversationKey = (id: unknown): string[] => (typeof id === 'string' ? [`conversation ${id}`] : [])

const listKeys = ({ data }: EventRow): string[] => {
  const { contact, contact_ids: ids = [], conversation, message, consent } = data as SubjectData
  return [
    ...[contact?.id, contact?.merged_into, ...ids].flatMap(contactKey),
    ...[conversation, message, consent].flatMap((named) => contactKey(named?.contact_id)),
    ...[conversation?.id, message?.conversation_id].flatMap(conversationKey),
  ]
}

const CREATIONS: Readonly<Record<string, 'contact' | 'conversation'>> = {
  'contact.created/1': 'contact',
  'conversation.created/1': 'conversation',
}

/** The key of the record whose creation an event announces. */
const toCreatedKey = ({ type, data }: EventRow): string | undefined => {
  const kind = CREATIONS[type]
  return kind && `${kind} ${(data as SubjectData)[kind]!.id}`
}

export const listSubjects = (events: readonly EventRow[]): EventSubjects => {
  const keys = new Set(events.flatMap(listKeys))
  for (const event of events) keys.delete(toCreatedKey(event) ?? '')
  const idsOf = (kind: string): string[] =>
    [...keys].flatMap((key) => (key.startsWith(`${kind} `) ? [key.slice(kind.length + 1)] : []))
  return { contactIds: idsOf('contact'), conversationIds: idsOf('conversation') }
}

/**
 * Returns events of one statement with each creation before whatever else names the record: a status that overtakes
 * the response to a send may report other changes of the contact before it finds that the send created it.
 */
export const putCreationsFirst = (events: readonly EventRow[]): readonly EventRow[] => {
  const named = new Set<string>()
  const ordered: EventRow[] = []
  let isMoved = false
  for (const event of events) {
    const created = toCreatedKey(event)
    if (created !== undefined && named.has(created)) {
      ordered.splice(
        ordered.findIndex((other) => listKeys(other).includes(created)),
        0,
        event,
      )
      isMoved = true
    } else ordered.push(event)
    for (const key of listKeys(event)) named.add(key)
  }
  return isMoved ? renumber(ordered) : events
}

/** Gives out the ids of events anew, so that the log has them in this order. */
export const renumber = (events: readonly EventRow[]): EventRow[] => {
  const ids = events.map(({ id }) => id).toSorted()
  return events.map((event, at) => ({ ...event, id: ids[at]! }))
}

/** Messages whose send made one of these contacts or conversations, and has no outcome yet. */
const selectSends = (workspaceId: string, { contactIds, conversationIds }: EventSubjects) => {
  const isTrue = (name: keyof ProviderCall) => sql`m.content->'call'->${sql.lit(name)} = 'true'::jsonb`
  const sends = (condition: RawBuilder<unknown>) => sql`
    select m.id from messages m where m.workspace_id = ${workspaceId} and m.status = 'pending' and ${condition}`
  const parts = [
    ...(conversationIds.length === 0
      ? []
      : [
          sends(sql`m.conversation_id = any(${asUnknown(conversationIds)})
            and (${isTrue('opens')} or ${isTrue('makes_contact')})`),
        ]),
    ...(contactIds.length === 0
      ? []
      : [
          sends(sql`m.conversation_id = any(array(select v.id from conversations v
            where v.workspace_id = ${workspaceId} and v.contact_id = any(${asUnknown(contactIds)})))
            and ${isTrue('makes_contact')}`),
        ]),
  ]
  return parts.length === 0 ? undefined : sql.join(parts, sql` union all `)
}

/** A condition of a statement that writes events: nothing that they name is still to be announced. */
export const areAnnounced = (
  workspaceId: string,
  events: readonly EventRow[],
): RawBuilder<unknown> | undefined => {
  const sends = selectSends(workspaceId, listSubjects(events))
  return sends && sql`not exists (${sends})`
}

/** What a send created and is announced now, for `toEventConversation`. `messageId`: of the send. */
export type Unannounced = {
  messageId: string
  call: ProviderCall
  conversation: Pick<
    ConversationState,
    'id' | 'state' | 'contact_id' | 'channel_id' | 'assigned_staff_id' | 'assigned_team_id' | 'episode'
  >
}

/**
 * Returns which of these records sends created without announcing them, and marks them as announced. Only the messages
 * are locked, after whatever else the caller has locked.
 */
export const claimUnannounced = async (
  tx: Db,
  workspaceId: string,
  subjects: EventSubjects,
): Promise<Unannounced[]> => {
  const sends = selectSends(workspaceId, subjects)
  if (!sends) return []
  const { rows } = await sql<Unannounced['conversation'] & { message_id: string; call: ProviderCall }>`
    with claimed as materialized (
      select m.id, m.conversation_id, m.content->'call' as call from messages m
      where m.workspace_id = ${workspaceId} and m.id = any(array(${sends})) and m.status = 'pending'
        and (m.content->'call'->'opens' = 'true'::jsonb or m.content->'call'->'makes_contact' = 'true'::jsonb)
      order by m.id for update
    ), announced as (
      update messages m set content = jsonb_set(content, '{call}', ${ANNOUNCED}) from claimed c
      where m.workspace_id = ${workspaceId} and m.id = c.id
    )
    select c.id as message_id, c.call, v.id, v.state, v.contact_id, v.channel_id, v.assigned_staff_id,
      v.assigned_team_id, v.episode
    from claimed c join conversations v on v.workspace_id = ${workspaceId} and v.id = c.conversation_id
    order by c.id`.execute(tx)
  return rows.map(({ message_id: messageId, call, ...conversation }) => ({ messageId, call, conversation }))
}

/** What remains of a send's `call` once its records are announced, although its outcome is unknown. */
const ANNOUNCED = sql.raw(`'{"opens": false, "makes_contact": false}'::jsonb`)

/** Does the same for a message that the caller has locked. */
export const markAnnounced = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`
    update messages set content = jsonb_set(content, '{call}', ${ANNOUNCED})
    where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(tx)
}
