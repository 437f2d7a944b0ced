import {
  type CustomerRow,
  insertCustomers,
  lockCustomers,
  lockUserIds,
  type NewCustomer,
  updateCustomer,
} from '../../storage/inbound.ts'
import { parsePhone } from '../contacts/phone.ts'
import { eventContact } from '../contacts/view.ts'
import type { ConversationContext } from '../inbox/conversation-context.ts'
import { toContactName } from '../visibility/phones.ts'
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
  const parsedPhone = parsePhone((asText(phone) ?? asText(contact['wa_id']) ?? '').slice(0, 40))
  const id = asText(userId) ?? asText(contact['user_id'])
  const customer: InboundCustomer = {
    phone: 'digits' in parsedPhone ? parsedPhone.digits : null,
    userId: id !== null && id.length <= MAX_USER_ID_LENGTH ? id : null,
    name: toName(asObject(contact['profile'])['name']),
  }
  return customer.phone === null && customer.userId === null ? undefined : customer
}

const toName = (given: unknown): string | null => {
  const name = [...toStorableText(asText(given) ?? '').trim()].slice(0, MAX_NAME_LENGTH).join('').trim()
  return name === '' ? null : (toContactName(name) ?? null)
}

/** Finds a customer's contact among the locked ones. By phone first: staff know customers by it. */
export type FindContact = (customer: InboundCustomer) => CustomerRow | undefined

const createFinder = (rows: readonly CustomerRow[]): FindContact => {
  const byPhone = new Map(rows.flatMap((row) => (row.phone === null ? [] : [[row.phone, row] as const])))
  // The lowest id wins where several contacts have the user id.
  const byUser = new Map(
    rows
      .toReversed()
      .flatMap((row) => (row.chatapp_user_id === null ? [] : [[row.chatapp_user_id, row] as const])),
  )
  return ({ phone, userId }) =>
    (phone === null ? undefined : byPhone.get(phone)) ?? (userId === null ? undefined : byUser.get(userId))
}

/**
 * The contacts of these customers, locked; created where there is none. Missing fields of a contact are
 * filled: user id, phone, name. In every order of arrival one customer is one contact.
 */
export const findOrCreateContacts = async (
  context: ConversationContext<'contact.created/1' | 'contact.updated/1'>,
  customers: readonly InboundCustomer[],
): Promise<FindContact> => {
  let rows = await lockContacts(context, customers)
  const unknown = customers.filter((customer) => !createFinder(rows)(customer))
  if (unknown.length > 0) {
    const userIds = unknown.flatMap((c) => c.userId ?? [])
    if (userIds.length > 0) {
      await lockUserIds(context.tx, context.workspaceId, userIds)
      rows = await lockContacts(context, customers)
    }
    rows = [
      ...rows,
      ...(await createContacts(
        context,
        unknown.filter((customer) => !createFinder(rows)(customer)),
      )),
    ]
    // Another transaction created a contact with this phone just now.
    if (customers.some((customer) => !createFinder(rows)(customer)))
      rows = mergeById(rows, await lockContacts(context, customers))
  }
  for (const customer of customers) await fillMissingFields(context, rows, customer)
  return createFinder(rows)
}

const lockContacts = (
  { tx, workspaceId }: ConversationContext,
  customers: readonly InboundCustomer[],
): Promise<CustomerRow[]> =>
  lockCustomers(
    tx,
    workspaceId,
    [...new Set(customers.flatMap((c) => c.phone ?? []))],
    [...new Set(customers.flatMap((c) => c.userId ?? []))],
  )

const mergeById = (rows: readonly CustomerRow[], more: readonly CustomerRow[]): CustomerRow[] => [
  ...new Map([...rows, ...more].map((row) => [row.id, row])).values(),
]

/** One contact for each phone, and for each user id without one. */
const createContacts = async (
  context: ConversationContext<'contact.created/1'>,
  customers: readonly InboundCustomer[],
): Promise<CustomerRow[]> => {
  const newContacts: InboundCustomer[] = []
  for (const { phone, userId, name } of customers) {
    const known = newContacts.find(
      (p) =>
        (phone !== null && p.phone === phone) ||
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
  context: ConversationContext<'contact.updated/1'>,
  rows: readonly CustomerRow[],
  customer: InboundCustomer,
): Promise<void> => {
  const find = createFinder(rows)
  const row = find(customer)
  if (!row) return
  const missing: Partial<CustomerRow> = {
    ...(row.name === null && customer.name !== null ? { name: customer.name } : {}),
    ...(row.phone === null && customer.phone !== null ? { phone: customer.phone } : {}),
    // When another contact has the user id, both are kept unchanged, for staff to merge.
    ...(row.chatapp_user_id === null &&
    customer.userId !== null &&
    !find({ phone: null, userId: customer.userId, name: null })
      ? { chatapp_user_id: customer.userId }
      : {}),
  }
  await updateContactFields(context, row, missing)
}

/** Writes the fields of a locked contact that differ, also into `row`, and emits the event. */
export const updateContactFields = async (
  context: ConversationContext<'contact.updated/1'>,
  row: CustomerRow,
  changes: Partial<CustomerRow>,
): Promise<void> => {
  const names = (Object.keys(changes) as (keyof CustomerRow)[]).filter((name) => changes[name] !== row[name])
  if (names.length === 0) return
  Object.assign(row, changes, { updated_at: context.now })
  await updateCustomer(context.tx, context.workspaceId, row, context.now)
  context.emit('contact.updated/1', { contact: eventContact(row), changes: names })
}
