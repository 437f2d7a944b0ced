import { sql } from 'kysely'
import {
  customerColumns,
  type CustomerPhone,
  lineKey,
  toPhoneKey,
  toProviderPhone,
} from '../contacts/lines.ts'
import { searchText } from '../contacts/contacts.ts'
import { counterUpsert } from '../workspace/counters.ts'
import type { TableRow, Db } from '../database.ts'
import { fold } from '../values/text.ts'
import { isNamedBy, namedBy } from './provider-ids.ts'

/** A channel that an update of the provider is for. */
export type InboundChannel = {
  workspace_id: string
  id: string
  name: string | null
  status: TableRow<'channels'>['status']
  quality_rating: string | null
  phone_number_id: string | null
  account_id: string | null
}

/**
 * Finds the channels of these business numbers; the oldest where two claim a number. Called before the
 * workspace is known.
 */
export const findChannelsByNumber = async (
  tx: Db,
  numbers: readonly string[],
): Promise<Map<string, InboundChannel>> => {
  if (numbers.length === 0) return new Map()
  const { rows } = await sql<InboundChannel & { phone_number_id: string }>`
    select distinct on (provider_phone_number_id) workspace_id, id, name, status, quality_rating, account_id,
      provider_phone_number_id as phone_number_id
    from channels where provider_phone_number_id = any(${numbers}::text[])
      order by provider_phone_number_id, created_at, id`.execute(tx)
  return new Map(rows.map((row) => [row.phone_number_id, row]))
}

/**
 * The locked contact of a customer. `phone_key`: of its line, where it differs from the phone. `provider_phone`:
 * how the provider spelled the phone last, where that differs. `phone_told_at` and the like: since when the provider
 * says so; null where it has not.
 */
export type CustomerRow = {
  id: string
  name: string | null
  phone: string | null
  phone_key: string | null
  provider_phone: string | null
  chatapp_user_id: string | null
  username: string | null
  phone_told_at: string | null
  user_id_told_at: string | null
  username_told_at: string | null
  external_id: string | null
  dnd: boolean
  starred: boolean
  created_at: string
  updated_at: string
}

/**
 * A contact, and those of the keys of lines and user ids it was looked for by that it had. `is_open`: it has an open
 * conversation.
 */
export type CustomerWithFormer = CustomerRow & {
  former?: { key: string; left_at: string | null; is_open: boolean }[] | null
}

/** Returns contacts with these lines, by their keys, or user ids. */
export const findCustomers = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
  userIds: readonly string[],
): Promise<CustomerRow[]> =>
  (
    await sql<CustomerRow>`
    select ${customerColumns} from contacts
    where workspace_id = ${workspaceId} and (${lineKey} = any(${keys}::text[])
      or chatapp_user_id = any(${userIds}::text[])) order by contacts.id`.execute(tx)
  ).rows

/**
 * Locks the contacts with these lines, by their keys, or user ids, in the order of their ids; and those that had one of
 * them until later than `formerSince`.
 */
export const lockCustomers = async (
  tx: Db,
  workspaceId: string,
  keys: readonly string[],
  userIds: readonly string[],
  formerSince: string,
): Promise<CustomerWithFormer[]> => {
  const former = sql`from contact_former_ids p where p.workspace_id = ${workspaceId}
    and p.id_key = any(${[...keys, ...userIds]}::text[]) and p.changed_at > ${formerSince}`
  const { rows } = await sql<CustomerWithFormer>`
    select ${customerColumns},
      (select json_agg(json_build_object('key', p.id_key,
          'left_at', to_char(p.left_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'is_open', exists (select from conversations v where v.workspace_id = p.workspace_id
            and v.contact_id = p.contact_id and v.state = 'open')))
        ${former} and p.contact_id = contacts.id) as former
    from contacts
    where workspace_id = ${workspaceId} and (${lineKey} = any(${keys}::text[])
      or chatapp_user_id = any(${userIds}::text[])
      or id = any(array(select p.contact_id ${former})))
    order by contacts.id for update`.execute(tx)
  return rows
}

/** Locks contacts by their ids, in that order. */
export const lockCustomersById = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<CustomerRow[]> =>
  (
    await sql<CustomerRow>`
    select ${customerColumns} from contacts
    where workspace_id = ${workspaceId} and id = any(${ids}::bigint[]) order by contacts.id for update`.execute(
      tx,
    )
  ).rows

/**
 * Locks user ids, so that only one transaction creates a contact for an unknown one. They are no unique key,
 * since others write them too.
 */
export const lockUserIds = async (tx: Db, workspaceId: string, userIds: readonly string[]): Promise<void> => {
  await sql`
    select pg_advisory_xact_lock(key) from
      (select distinct hashtextextended(${`customer ${workspaceId} `} || u, 0) as key
        from unnest(${userIds}::text[]) as u order by key) as keys`.execute(tx)
}

/** What the provider says of a customer. `at`: when, ISO 8601 UTC; null where it says what was before. */
export type NewCustomer = {
  phone: CustomerPhone | null
  userId: string | null
  username: string | null
  name: string | null
  at: string | null
}

/**
 * Inserts contacts and counts them, except those whose line another contact has by now. The plan's limit
 * does not apply: a customer's message is never refused.
 */
export const insertCustomers = async (
  tx: Db,
  workspaceId: string,
  customers: readonly NewCustomer[],
  now: string,
): Promise<CustomerRow[]> => {
  const { rows } = await sql<CustomerRow>`
    insert into contacts (workspace_id, phone, phone_key, provider_phone, chatapp_user_id, username, name, name_key,
      search, phone_told_at, user_id_told_at, username_told_at, created_at, updated_at)
    select ${workspaceId}::bigint, phone, phone_key, provider_phone, user_id, username, name, name_key, search,
      case when phone is not null then at::timestamptz end, case when user_id is not null then at::timestamptz end,
      case when username is not null then at::timestamptz end, ${now}::timestamptz, ${now}::timestamptz
    from unnest(${customers.map((c) => c.phone?.phone ?? null)}::text[],
      ${customers.map((c) => toPhoneKey(c.phone))}::text[],
      ${customers.map((c) => c.phone && toProviderPhone(c.phone.phone, c.phone.spelling))}::text[],
      ${customers.map((c) => c.userId)}::text[], ${customers.map((c) => c.username)}::text[],
      ${customers.map((c) => c.name)}::text[], ${customers.map((c) => fold(c.name ?? ''))}::text[],
      ${customers.map((c) => searchText(c.name, c.phone?.phone ?? null, c.username))}::text[],
      ${customers.map((c) => c.at)}::text[])
        as u (phone, phone_key, provider_phone, user_id, username, name, name_key, search, at)
    order by ${lineKey} collate "C"
    on conflict (workspace_id, (coalesce(phone_key, phone))) do nothing returning ${customerColumns}`.execute(
    tx,
  )
  if (rows.length > 0) await counterUpsert(workspaceId, [['contacts', rows.length]]).execute(tx)
  return rows
}

/** Updates a locked contact with what its customer's update reported. */
export const updateCustomer = async (
  tx: Db,
  workspaceId: string,
  { id, former: _former, external_id: _externalId, starred: _starred, ...row }: CustomerWithFormer,
  updatedAt: string,
): Promise<void> => {
  await tx
    .updateTable('contacts')
    .set({
      ...row,
      name_key: fold(row.name ?? ''),
      search: searchText(row.name, row.phone, row.username),
      updated_at: updatedAt,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** A message, its channel, and those of the given ids of the provider that are its own. */
export type NamedMessage = { id: string; channel_id: string | null; named_by: string[] }

/** Returns messages by the provider's ids. */
export const findMessages = async (
  tx: Db,
  workspaceId: string,
  providerIds: readonly string[],
): Promise<NamedMessage[]> => {
  if (providerIds.length === 0) return []
  const { rows } = await sql<NamedMessage>`
    select id, channel_id, ${namedBy(providerIds)} as named_by from messages m
    where workspace_id = ${workspaceId} and ${isNamedBy(providerIds)}`.execute(tx)
  return rows
}

export type InboundTemplate = {
  workspace_id: string
  id: string
  name: string
  language: string
  status: string
  category: string | null
  rejection_reason: string | null
  quality_rating: string | null
  archived_at: string | null
}

const templateColumns = sql`t.workspace_id, t.id, t.name, t.language, t.status, t.category,
  t.rejection_reason, t.quality_rating, t.archived_at`

/**
 * Locks the templates with this provider id; where there are none, those of the account with this name and
 * language, whose provider id may not be stored yet. Called before the workspace is known: it follows from
 * the account, which the channels of a workspace refer to.
 */
export const lockTemplates = async (
  tx: Db,
  accountId: string,
  providerId: string,
  name: string | null,
  language: string | null,
): Promise<InboundTemplate[]> => {
  const workspaces = sql`(select distinct workspace_id from channels where account_id = ${accountId})`
  const { rows } = await sql<InboundTemplate>`
    select ${templateColumns} from templates t where t.workspace_id in ${workspaces}
      and t.provider_id = ${providerId} order by t.workspace_id, t.id for update`.execute(tx)
  if (rows.length > 0) return rows
  return (
    await sql<InboundTemplate>`
    select ${templateColumns} from templates t
    where t.workspace_id in ${workspaces} and t.provider_id is null and t.name = ${name}
      and t.language = ${language} and coalesce(t.account_id, ${accountId}) = ${accountId}
    order by t.workspace_id, t.id for update`.execute(tx)
  ).rows
}

export type TemplateReview = Pick<
  InboundTemplate,
  'status' | 'category' | 'rejection_reason' | 'quality_rating' | 'archived_at'
> & { provider_id: string; meta_errors?: unknown }

/** Writes the result of a review; `meta_errors` only where it is given. */
export const updateTemplateReview = async (
  tx: Db,
  workspaceId: string,
  id: string,
  review: TemplateReview,
  now: string,
): Promise<void> => {
  const { meta_errors: metaErrors, ...columns } = review
  await tx
    .updateTable('templates')
    .set({
      ...columns,
      ...(metaErrors === undefined
        ? {}
        : { meta_errors: sql`${metaErrors === null ? null : JSON.stringify(metaErrors)}::jsonb` }),
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}
