import { sql } from 'kysely'

/**
 * A phone line (server/domains/contacts/phone-lines.ts). `phone`: its number as it is stored and shown. `key`: the same
 * for all spellings of the line; stored where it differs from the number.
 */
export type StoredLine = { phone: string; key: string }

/** The key of a contact's line, unique in a workspace. The unique index `contacts_line` is on this expression. */
export const lineKey = sql<string>`coalesce(phone_key, phone)`

/** The columns of that index, for `on conflict`. */
export const lineIndex = sql`(workspace_id, (coalesce(phone_key, phone)))`

/** Returns what the column `phone_key` has for a line. */
export const toPhoneKey = (line: StoredLine | null): string | null =>
  line === null || line.key === line.phone ? null : line.key

/** A customer's line, and how the provider spells its phone; null when it does not say. */
export type CustomerPhone = StoredLine & { spelling: string | null }

/** Returns what the column `provider_phone` has for a phone that the provider spells so. */
export const toProviderPhone = (phone: string, spelling: string | null): string | null =>
  spelling === phone ? null : spelling

/** The columns of a `CustomerRow`. */
export const customerColumns = sql`
  id, name, phone, phone_key, provider_phone, chatapp_user_id, username, phone_told_at, user_id_told_at,
  username_told_at, external_id, dnd, starred, created_at, updated_at`
