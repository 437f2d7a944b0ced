import { type CustomerPhone, toPhoneKey, toProviderPhone } from '../../../storage/contacts/lines.ts'
import {
  type CustomerRow,
  type CustomerWithFormer,
  insertCustomers,
  findCustomers,
  lockCustomers,
  lockCustomersById,
  lockUserIds,
  type NewCustomer,
  updateCustomer,
} from '../../../storage/messages/inbound.ts'
import { FORMER_PHONE_DAYS } from '../../../catalog/contacts/change-phone.ts'
import { mergeContacts, type MergeEvent } from '../contacts/merge.ts'
import { parsePhoneLine } from '../contacts/phone.ts'
import { eventContact } from '../contacts/view.ts'
import type { ChangeContext } from '../../change-context.ts'
import { daysAgo } from '../../work/partitions.ts'
import { toContactName } from '../../visibility/phones.ts'
import { type JsonObject, asObject, toStorableText, asText } from './json.ts'

/**
 * The sender as the provider reports it: users with a username may have no phone, older updates have no user
 * id.
 */
export type InboundCustomer = NewCustomer

const MAX_NAME_LENGTH = 255
const MAX_USER_ID_LENGTH = 200

/** Returns the customer of a message or preference; undefined when there is no address to reply to. */
export const parseCustomer = (
  phone: unknown,
  userId: unknown,
  contact: JsonObject,
): InboundCustomer | undefined => {
  const id = asText(userId) ?? asText(contact['user_id'])
  const customer: InboundCustomer = {
    phone: parseCustomerPhone(asText(phone) ?? asText(contact['wa_id'])),
    userId: id !== null && id.length <= MAX_USER_ID_LENGTH ? id : null,
    name: toName(asObject(contact['profile'])['name']),
  }
  return customer.phone === null && customer.userId === null ? undefined : customer
}

/** Returns the line of a phone, and the provider's spelling of it; null when it is no phone. */
const parseCustomerPhone = (given: string | null): CustomerPhone | null => {
  const text = (given ?? '').slice(0, 40)
  const line = parsePhoneLine(text)
  return 'error' in line ? null : { ...line, spelling: text.replaceAll(/\D/g, '') }
}

/** Returns the columns of a contact that has this phone from the provider. */
export const toPhoneColumns = (
  phone: CustomerPhone,
): Pick<CustomerRow, 'phone' | 'phone_key' | 'provider_phone'> => ({
  phone: phone.phone,
  phone_key: toPhoneKey(phone),
  provider_phone: toProviderPhone(phone.phone, phone.spelling),
})

/**
 * What the provider tells of a customer whose phone, user id or both changed: who it was, and who it is. Of what did
 * not change, `after` may have nothing.
 */
export type IdentityChange = { before: InboundCustomer; after: InboundCustomer }

/** By what the message says, since its kind has had several names. Undefined when it tells of no such change. */
export const parseIdentityChange = (message: JsonObject): IdentityChange | undefined => {
  const system = asObject(message['system'])
  const before = parseCustomer(
    system['customer'] ?? message['from'],
    system['previous_user_id'] ?? message['from_user_id'],
    {},
  )
  const after = parseCustomer(system['wa_id'] ?? system['new_wa_id'], system['user_id'], {})
  if (message['type'] !== 'system' || !before || !after) return undefined
  const isChanged =
    (after.phone !== null && after.phone.key !== before.phone?.key) ||
    (after.userId !== null && after.userId !== before.userId)
  return isChanged ? { before, after } : undefined
}

/** The key of a contact's line; null when it has no phone. */
export const lineKeyOf = ({ phone, phone_key: key }: CustomerRow): string | null => key ?? phone

export const toName = (given: unknown): string | null => {
  const name = [...toStorableText(asText(given) ?? '').trim()].slice(0, MAX_NAME_LENGTH).join('').trim()
  return name === '' ? null : (toContactName(name) ?? null)
}

/** Finds a customer's contact among the locked ones. By phone line first: staff know customers by it. */
export type FindContact = (customer: InboundCustomer) => CustomerRow | undefined

const createFinder = (rows: readonly CustomerWithFormer[]): FindContact => {
  const byLine = new Map(
    rows.flatMap((row) => {
      const key = lineKeyOf(row)
      return key === null ? [] : [[key, row] as const]
    }),
  )
  // The lowest id wins where several contacts have the user id.
  const byUser = new Map(
    rows
      .toReversed()
      .flatMap((row) => (row.chatapp_user_id === null ? [] : [[row.chatapp_user_id, row] as const])),
  )
  const byFormer = new Map(rows.flatMap((row) => (row.former_keys ?? []).map((key) => [key, row] as const)))
  return (customer) => {
    const { phone, userId } = customer
    const known =
      (phone === null ? undefined : byLine.get(phone.key)) ??
      (userId === null ? undefined : byUser.get(userId))
    if (known || phone === null) return known
    const former = byFormer.get(phone.key)
    // With another user id, the number has a new owner.
    return userId === null || (former?.chatapp_user_id ?? userId) === userId ? former : undefined
  }
}

/** Whether a contact is the customer's by a line that it had alone, which whoever writes now may have by now. */
const isFormer = (row: CustomerRow, { phone, userId }: InboundCustomer): boolean =>
  phone !== null && row.phone !== null && lineKeyOf(row) !== phone.key && row.chatapp_user_id !== userId

/**
 * The contacts of these customers, locked; created where there is none. Missing fields of a contact are
 * filled: user id, phone, name. Where one contact has the phone and another the user id, they are merged. In
 * every order of arrival one customer is one contact.
 *
 * `reports`: what the provider says of customers who wrote nothing, in statuses of messages to them. Their
 * contacts are merged and filled too; none is created, and those that have nothing to change are not locked.
 *
 * `changes`: applied before all else, since a message from the new phone would create a contact of its own; they
 * create none. The contact of a change is found by its `before`.
 */
export const findOrCreateContacts = async (
  context: ChangeContext<'contact.created/1' | MergeEvent>,
  customers: readonly InboundCustomer[],
  { reports, changes }: { reports: readonly InboundCustomer[]; changes: readonly IdentityChange[] },
): Promise<FindContact> => {
  // All locks at once, in the order of the ids: two batches would deadlock otherwise.
  const reported = [...customers, ...(await selectNews(context, reports))]
  const concerned = [...reported, ...changes.flatMap(({ before, after }) => [before, after])]
  if (concerned.length === 0) return () => undefined
  let rows = await lockContacts(context, concerned)
  const isUnknown = (customer: InboundCustomer): boolean => !createFinder(rows)(customer)
  const newUserIds = [...customers.filter(isUnknown), ...changes.map(({ after }) => after)].flatMap(
    ({ userId }) => userId ?? [],
  )
  if (newUserIds.length > 0) {
    await lockUserIds(context.tx, context.workspaceId, newUserIds)
    rows = await lockContacts(context, concerned)
  }
  const names = new Map<InboundCustomer, InboundCustomer>()
  for (const change of changes) {
    rows = await mergeDoubles(context, rows, change.before)
    names.set(change.before, await applyIdentityChange(context, rows, change))
  }
  const unknown = customers.filter(isUnknown)
  if (unknown.length > 0) {
    rows = [...rows, ...(await createContacts(context, unknown))]
    // Another transaction created a contact with this phone just now.
    if (customers.some(isUnknown)) rows = mergeById(rows, await lockContacts(context, customers))
  }
  const find = createFinder(await joinCustomers(context, rows, reported))
  return (customer) => find(names.get(customer) ?? customer)
}

/**
 * Gives a locked contact the new phone and user id, unless another contact has one of them: then both are kept
 * unchanged, for staff to merge. Returns as whom the contact is known afterwards.
 */
const applyIdentityChange = async (
  context: ChangeContext<'contact.updated/1'>,
  rows: readonly CustomerRow[],
  { before, after }: IdentityChange,
): Promise<InboundCustomer> => {
  const row = createFinder(rows)(before)
  // Unknown, or changed already: the provider can report one change under several names.
  if (!row) return after
  const isTaken = rows.some(
    (other) =>
      other !== row &&
      ((after.phone !== null && lineKeyOf(other) === after.phone.key) ||
        (after.userId !== null && other.chatapp_user_id === after.userId)),
  )
  if (isTaken || isFormer(row, before)) return before
  await updateContactFields(context, row, {
    ...(after.phone !== null && lineKeyOf(row) !== after.phone.key ? toPhoneColumns(after.phone) : {}),
    ...(after.userId === null ? {} : { chatapp_user_id: after.userId }),
  })
  return after
}

/** Merges and fills the locked contacts of these customers. Returns the contacts that remain. */
const joinCustomers = async (
  context: ChangeContext<MergeEvent>,
  rows: readonly CustomerRow[],
  customers: readonly InboundCustomer[],
): Promise<CustomerRow[]> => {
  let remaining = [...rows]
  for (const customer of customers) {
    remaining = await mergeDoubles(context, remaining, customer)
    await fillMissingFields(context, remaining, customer)
  }
  return remaining
}

/**
 * Merges the contacts that are known by this customer's user id alone into the one with the phone. Not where
 * the contact with the phone has another user id: the number may have a new owner. Nor where both have a
 * phone: staff know two numbers.
 */
const mergeDoubles = async (
  context: ChangeContext<MergeEvent>,
  rows: readonly CustomerRow[],
  customer: InboundCustomer,
): Promise<CustomerRow[]> => {
  const kept = createFinder(rows)(customer)
  const { userId } = customer
  if (!kept || userId === null || (kept.chatapp_user_id ?? userId) !== userId) return [...rows]
  const doubles = rows.filter(
    (row) => row.id !== kept.id && row.chatapp_user_id === userId && row.phone === null,
  )
  for (const double of doubles) await mergeContacts(context, kept.id, double.id, { reason: 'same_customer' })
  if (doubles.length === 0) return [...rows]
  const [merged] = await lockCustomersById(context.tx, context.workspaceId, [kept.id])
  Object.assign(kept, merged)
  return rows.filter((row) => !doubles.includes(row))
}

/** Applies what the provider says of a customer in the response to a message; see `findOrCreateContacts`. */
export const applyCustomerReport = async (
  context: ChangeContext<MergeEvent>,
  report: InboundCustomer,
): Promise<void> => {
  const news = await selectNews(context, [report])
  if (news.length > 0) await joinCustomers(context, await lockContacts(context, news), news)
}

/** Returns the reports that say more than what is stored of contacts. */
const selectNews = async (
  context: ChangeContext,
  reports: readonly InboundCustomer[],
): Promise<InboundCustomer[]> => {
  const known = reports.filter(({ phone }) => phone !== null)
  if (known.length === 0) return []
  const rows = await findCustomers(context.tx, context.workspaceId, ...listKeys(known))
  const find = createFinder(rows)
  return known.filter((report) => {
    const row = find(report)
    return row !== undefined && isNews(row, rows, report)
  })
}

/** Whether a report says more than what is stored. */
const isNews = (
  row: CustomerRow,
  rows: readonly CustomerRow[],
  { phone, userId }: InboundCustomer,
): boolean =>
  row.phone === null ||
  (tellsSpelling(row, phone!) && row.provider_phone !== toProviderPhone(row.phone, phone!.spelling)) ||
  (userId !== null &&
    (row.chatapp_user_id === null ||
      rows.some((other) => other !== row && other.phone === null && other.chatapp_user_id === userId)))

const listKeys = (customers: readonly InboundCustomer[]): [keys: string[], userIds: string[]] => [
  [...new Set(customers.flatMap((c) => c.phone?.key ?? []))],
  [...new Set(customers.flatMap((c) => c.userId ?? []))],
]

const lockContacts = (
  { tx, workspaceId, now }: ChangeContext,
  customers: readonly InboundCustomer[],
): Promise<CustomerWithFormer[]> =>
  lockCustomers(tx, workspaceId, ...listKeys(customers), daysAgo(now, FORMER_PHONE_DAYS))

const mergeById = (rows: readonly CustomerRow[], more: readonly CustomerRow[]): CustomerRow[] => [
  ...new Map([...rows, ...more].map((row) => [row.id, row])).values(),
]

/** One contact for each phone, and for each user id without one. */
const createContacts = async (
  context: ChangeContext<'contact.created/1'>,
  customers: readonly InboundCustomer[],
): Promise<CustomerRow[]> => {
  const newContacts: InboundCustomer[] = []
  for (const { phone, userId, name } of customers) {
    const known = newContacts.find(
      (p) =>
        (phone !== null && p.phone?.key === phone.key) ||
        (userId !== null && p.userId === userId && (phone === null || p.phone === null)),
    )
    if (!known) newContacts.push({ phone, userId, name })
    else
      Object.assign(known, {
        phone: known.phone ?? phone,
        userId: known.userId ?? userId,
        name: known.name ?? name,
      })
  }
  if (newContacts.length === 0) return []
  const rows = await insertCustomers(context.tx, context.workspaceId, newContacts, context.now)
  for (const row of rows) context.emit('contact.created/1', { contact: eventContact(row) })
  return rows
}

const fillMissingFields = async (
  context: ChangeContext<'contact.updated/1'>,
  rows: readonly CustomerRow[],
  customer: InboundCustomer,
): Promise<void> => {
  const find = createFinder(rows)
  const row = find(customer)
  if (!row || isFormer(row, customer)) return
  const missing: Partial<CustomerRow> = {
    ...(row.name === null && customer.name !== null ? { name: customer.name } : {}),
    ...findPhoneChange(row, customer),
    // When another contact has the user id, both are kept unchanged, for staff to merge.
    ...(row.chatapp_user_id === null &&
    customer.userId !== null &&
    !find({ phone: null, userId: customer.userId, name: null })
      ? { chatapp_user_id: customer.userId }
      : {}),
  }
  await updateContactFields(context, row, missing)
}

const tellsSpelling = (row: CustomerRow, { key, spelling }: CustomerPhone): boolean =>
  spelling !== null && lineKeyOf(row) === key

/** Returns the phone of a contact without one, or how the provider spells the one that it has. */
const findPhoneChange = (row: CustomerRow, { phone }: InboundCustomer): Partial<CustomerRow> => {
  if (phone === null) return {}
  if (row.phone === null) return toPhoneColumns(phone)
  return tellsSpelling(row, phone) ? { provider_phone: toProviderPhone(row.phone, phone.spelling) } : {}
}

/** Columns that nobody sees, so that their changes are no event. */
const INTERNAL_COLUMNS = new Set<string>(['phone_key', 'provider_phone'])

/** Writes the fields of a locked contact that differ, also into `row`, and emits the event. */
export const updateContactFields = async (
  context: ChangeContext<'contact.updated/1'>,
  row: CustomerRow,
  changes: Partial<CustomerRow>,
): Promise<void> => {
  const names = (Object.keys(changes) as (keyof CustomerRow)[]).filter((name) => changes[name] !== row[name])
  if (names.length === 0) return
  const shown = names.filter((name) => !INTERNAL_COLUMNS.has(name))
  Object.assign(row, changes, shown.length > 0 ? { updated_at: context.now } : {})
  await updateCustomer(context.tx, context.workspaceId, row, row.updated_at)
  if (shown.length > 0) context.emit('contact.updated/1', { contact: eventContact(row), changes: shown })
}
