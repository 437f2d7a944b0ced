import type { z } from 'zod'
import type { Contact } from '../../catalog/contacts.ts'
import type { ContactRow, ConversationRow } from '../../storage/contacts.ts'
import type { ShownField } from '../../storage/names-cache.ts'
import { isoOf } from '../../storage/times.ts'
import { type Actor, phonesHidden, seesManagerFields } from '../core/context.ts'
import { showAttributes } from './attributes.ts'
import { maskPhone } from './phone.ts'

const iso = (time: string | null): string | null => (time === null ? null : isoOf(time))

/** Ids at the messaging app hold the phone among other signs, as in `15550100042@c.us`. */
export const maskDigits = (id: string | null): string | null =>
  id?.replaceAll(/\d{5,}/g, (digits) => maskPhone(digits)) ?? null

/** A contact as one staff member may see it. */
export const showContact = (
  actor: Actor,
  row: ContactRow,
  fields: readonly ShownField[],
  detail: 'summary' | 'full',
): z.input<typeof Contact> => {
  const hidePhones = phonesHidden(actor)
  const managerOnly = seesManagerFields(actor)
  const conversations = showTimeline(row.conversations ?? [])
  const emailHidden = !managerOnly && fields.find((f) => f.key === 'email')?.visibility === 'manager_only'
  return {
    id: row.id,
    name: row.name,
    phone: row.phone !== null && hidePhones ? maskPhone(row.phone) : row.phone,
    phone_masked: row.phone !== null && hidePhones,
    chatapp_user_id: hidePhones ? maskDigits(row.chatapp_user_id) : row.chatapp_user_id,
    dnd: row.dnd,
    starred: row.starred,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...(detail === 'full' ? { email: emailHidden ? null : row.email } : {}),
    web_visitor_id: row.web_visitor_id,
    ...(detail === 'full' ? { tags: row.tags ?? [], groups: row.groups ?? [] } : {}),
    attributes: showAttributes(row.attrs, fields, { managerOnly, hidePhones }),
    conversations,
    // Whoever sees some channels only sees the activity of those.
    last_activity_at:
      actor.staff.channelIds === null
        ? row.last_activity_at
        : latest(conversations.map((v) => v.last_activity_at)),
    ...(row.conversations === undefined ? { unavailable: ['conversations'] } : {}),
  }
}

const showTimeline = (rows: readonly ConversationRow[]) =>
  rows.map((v) => ({
    id: v.id,
    channel_id: v.channel_id,
    state: v.state,
    assigned: v.assigned_staff_id !== null || v.assigned_team_id !== null,
    assigned_staff_id: v.assigned_staff_id,
    created_at: iso(v.created_at),
    last_activity_at: iso(v.last_activity_at),
  }))

const latest = (times: readonly (string | null)[]): string | null =>
  times.reduce((last, time) => (last === null || (time !== null && time > last) ? time : last), null)

/** A contact as events carry it. */
export const eventContact = (
  row: Pick<ContactRow, 'id' | 'name' | 'phone' | 'dnd' | 'starred' | 'created_at' | 'updated_at'>,
) => ({
  id: row.id,
  name: row.name,
  phone: row.phone,
  dnd: row.dnd,
  starred: row.starred,
  created_at: row.created_at,
  updated_at: row.updated_at,
})
