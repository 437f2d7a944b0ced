import type { z } from 'zod'
import type { Contact, ContactView } from '../../../catalog/contacts/schemas.ts'
import type { ContactRow, ContactConversationRow } from '../../../storage/contacts/contacts.ts'
import type { CachedField } from '../../../storage/workspace/names-cache.ts'
import { toIsoTime } from '../../../storage/values/times.ts'
import type { Actor } from '../../kernel/context.ts'
import { showAttributes } from './attributes.ts'
import { showContactName, showPhone, showQuotingText } from '../../visibility/phones.ts'
import { canSeeField, canSeeMetadata, hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'

const iso = (time: string | null): string | null => (time === null ? null : toIsoTime(time))

/** Returns a contact as this actor may see it: hidden phones are masked, hidden fields left out. */
export const showContact = (
  actor: Actor,
  row: ContactRow,
  fields: readonly CachedField[],
  detail: 'summary' | 'full',
): z.input<typeof Contact> => {
  const hidePhones = hasHiddenPhones(actor)
  const conversations = showTimeline(row.conversations ?? [])
  const emailHidden = fields.some((f) => f.key === 'email' && !canSeeField(actor, f))
  return {
    id: row.id,
    name: showContactName(actor, row.name),
    phone: showPhone(actor, row.phone),
    phone_masked: row.phone !== null && hidePhones,
    chatapp_user_id: showQuotingText(actor, row.chatapp_user_id),
    username: showQuotingText(actor, row.username),
    external_id: row.external_id,
    dnd: row.dnd,
    starred: row.starred,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...(detail === 'full' ? { email: emailHidden ? null : row.email } : {}),
    web_visitor_id: showQuotingText(actor, row.web_visitor_id),
    ...(detail === 'full' ? { tags: row.tags ?? [], groups: row.groups ?? [] } : {}),
    ...(detail === 'full' && canSeeMetadata(actor) ? { metadata: row.metadata ?? {} } : {}),
    attributes: showAttributes(actor, row.attrs, fields),
    conversations,
    // An actor with access to some channels sees the activity on those only.
    last_activity_at:
      listVisibleChannels(actor) === null ? row.last_activity_at : (row.seen_activity_at ?? null),
    ...(row.conversations === undefined ? { unavailable: ['conversations' as const] } : {}),
    version: String(row.version),
  }
}

type ContactDetail = 'ids' | 'compact' | 'summary' | 'full'

/**
 * What must be read for a detail: the labels of contacts, and their conversations, which tell the latest activity
 * to staff who are limited to channels.
 */
export const detailShape = (actor: Actor, detail: ContactDetail) => ({
  labels: detail === 'full' || detail === 'compact',
  timeline: detail !== 'ids' && (detail !== 'compact' || listVisibleChannels(actor) !== null),
})

/** Returns a contact in a detail, as this actor may see it. */
export const showContactView = (
  actor: Actor,
  row: ContactRow,
  fields: readonly CachedField[],
  detail: ContactDetail,
): z.input<typeof ContactView> => {
  if (detail === 'ids') return { id: row.id }
  if (detail !== 'compact') return showContact(actor, row, fields, detail)
  const full = showContact(actor, row, fields, 'full')
  return {
    id: full.id,
    name: full.name,
    phone: full.phone,
    dnd: full.dnd,
    starred: full.starred,
    external_id: full.external_id,
    email: full.email,
    tags: full.tags,
    groups: full.groups,
    attributes_map: Object.fromEntries(
      full.attributes.map(({ key, typed_value: typed, display }) => [key, typed ?? display]),
    ),
    last_activity_at: full.last_activity_at,
    version: full.version,
  }
}

const showTimeline = (rows: readonly ContactConversationRow[]) =>
  rows.map((row) => ({
    id: row.id,
    channel_id: row.channel_id,
    state: row.state,
    assigned: row.assigned_staff_id !== null || row.assigned_team_id !== null,
    assigned_staff_id: row.assigned_staff_id,
    created_at: iso(row.created_at),
    last_activity_at: iso(row.last_activity_at),
  }))

/** Returns a contact as events carry it. */
export const eventContact = (
  row: Pick<
    ContactRow,
    'id' | 'name' | 'phone' | 'external_id' | 'dnd' | 'starred' | 'created_at' | 'updated_at'
  >,
) => ({
  id: row.id,
  name: row.name,
  phone: row.phone,
  external_id: row.external_id,
  dnd: row.dnd,
  starred: row.starred,
  created_at: row.created_at,
  updated_at: row.updated_at,
})
