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
import type { Flow } from '../inbox/lifecycle.ts'
import { type Json, objectOf, storableText, textOf } from './json.ts'

/**
 * Who wrote, as the provider says it: users with a username may come without a phone, older updates without
 * a user id.
 */
export type Customer = NewCustomer

const LONGEST_NAME = 255
const LONGEST_USER_ID = 200

/** The customer of a message or preference; undefined when it names none that we could answer to. */
export const customerOf = (phone: unknown, userId: unknown, contact: Json): Customer | undefined => {
  const read = parsePhone((textOf(phone) ?? textOf(contact['wa_id']) ?? '').slice(0, 40))
  const id = textOf(userId) ?? textOf(contact['user_id'])
  const customer: Customer = {
    phone: 'digits' in read ? read.digits : null,
    userId: id !== null && id.length <= LONGEST_USER_ID ? id : null,
    name: nameOf(objectOf(contact['profile'])['name']),
  }
  return customer.phone === null && customer.userId === null ? undefined : customer
}

const nameOf = (given: unknown): string | null => {
  const name = [...storableText(textOf(given) ?? '').trim()].slice(0, LONGEST_NAME).join('').trim()
  return name === '' ? null : name
}

/**
 * Finds a customer's contact among those that were locked. By phone first: it is what staff know the
 * customer by.
 */
export type FindContact = (customer: Customer) => CustomerRow | undefined

const finder = (rows: readonly CustomerRow[]): FindContact => {
  const byPhone = new Map(rows.flatMap((row) => (row.phone === null ? [] : [[row.phone, row] as const])))
  // The one with the least id, where several have the user id.
  const byUser = new Map(
    rows
      .toReversed()
      .flatMap((row) => (row.chatapp_user_id === null ? [] : [[row.chatapp_user_id, row] as const])),
  )
  return ({ phone, userId }) =>
    (phone === null ? undefined : byPhone.get(phone)) ?? (userId === null ? undefined : byUser.get(userId))
}

/**
 * The contacts of these customers, locked; made where there is none. A contact learns what it did not know:
 * a user id, a phone, a name. In every order of arrival one customer is one contact.
 */
export const findCustomers = async (flow: Flow, customers: readonly Customer[]): Promise<FindContact> => {
  let rows = await lockedRows(flow, customers)
  const unknown = customers.filter((customer) => !finder(rows)(customer))
  if (unknown.length > 0) {
    const userIds = unknown.flatMap((c) => c.userId ?? [])
    if (userIds.length > 0) {
      await lockUserIds(flow.tx, flow.workspaceId, userIds)
      rows = await lockedRows(flow, customers)
    }
    rows = [
      ...rows,
      ...(await makeContacts(
        flow,
        unknown.filter((customer) => !finder(rows)(customer)),
      )),
    ]
    // Somebody else made a contact with this phone a moment ago.
    if (customers.some((customer) => !finder(rows)(customer)))
      rows = merged(rows, await lockedRows(flow, customers))
  }
  for (const customer of customers) await learn(flow, rows, customer)
  return finder(rows)
}

const lockedRows = ({ tx, workspaceId }: Flow, customers: readonly Customer[]): Promise<CustomerRow[]> =>
  lockCustomers(
    tx,
    workspaceId,
    [...new Set(customers.flatMap((c) => c.phone ?? []))],
    [...new Set(customers.flatMap((c) => c.userId ?? []))],
  )

const merged = (rows: readonly CustomerRow[], more: readonly CustomerRow[]): CustomerRow[] => [
  ...new Map([...rows, ...more].map((row) => [row.id, row])).values(),
]

/** One contact for each phone, and for each user id without one. */
const makeContacts = async (flow: Flow, customers: readonly Customer[]): Promise<CustomerRow[]> => {
  const people: Customer[] = []
  for (const { phone, userId, name } of customers) {
    const known = people.find(
      (p) =>
        (phone !== null && p.phone === phone) ||
        (userId !== null && p.userId === userId && (phone === null || p.phone === null)),
    )
    if (!known) people.push({ phone, userId, name })
    else
      Object.assign(known, {
        phone: known.phone ?? phone,
        userId: known.userId ?? userId,
        name: known.name ?? name,
      })
  }
  const made = people.length > 0 ? await insertCustomers(flow.tx, flow.workspaceId, people, flow.now) : []
  for (const row of made) flow.emit('contact.created/1', { contact: eventContact(row) })
  return made
}

const learn = async (flow: Flow, rows: readonly CustomerRow[], customer: Customer): Promise<void> => {
  const find = finder(rows)
  const row = find(customer)
  if (!row) return
  const learned: Partial<CustomerRow> = {
    ...(row.name === null && customer.name !== null ? { name: customer.name } : {}),
    ...(row.phone === null && customer.phone !== null ? { phone: customer.phone } : {}),
    // Another contact may have the user id: the two are left as they are, for somebody to look at.
    ...(row.chatapp_user_id === null &&
    customer.userId !== null &&
    !find({ phone: null, userId: customer.userId, name: null })
      ? { chatapp_user_id: customer.userId }
      : {}),
  }
  await changeCustomer(flow, row, learned)
}

/** Writes what differs on a locked contact, in `row` too, and notes the event. */
export const changeCustomer = async (
  flow: Flow,
  row: CustomerRow,
  changes: Partial<CustomerRow>,
): Promise<void> => {
  const names = Object.keys(changes).filter(
    (name) => changes[name as keyof CustomerRow] !== row[name as keyof CustomerRow],
  )
  if (names.length === 0) return
  Object.assign(row, changes, { updated_at: flow.now })
  await updateCustomer(flow.tx, flow.workspaceId, row, flow.now)
  flow.emit('contact.updated/1', { contact: eventContact(row), changes: names })
}
