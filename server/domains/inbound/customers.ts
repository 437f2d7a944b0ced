import { type CustomerPhone, toPhoneKey, toProviderPhone } from '../../../storage/contacts/lines.ts'
import { rememberFormerId } from '../../../storage/contacts/former-ids.ts'
import {
  type ConversationState,
  listConversationsOf,
  lockConversationsOf,
} from '../../../storage/conversations/conversations.ts'
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
import { insertMessages } from '../../../storage/messages/messages.ts'
import { FORMER_PHONE_DAYS } from '../../../catalog/contacts/change-phone.ts'
import { givenName, mergeContacts, type MergeEvent, usernameAsName } from '../contacts/merge.ts'
import { parsePhoneLine } from '../contacts/phone.ts'
import { eventContact } from '../contacts/view.ts'
import { applyJoin } from '../inbox/lifecycle.ts'
import type { ChangeContext } from '../../change-context.ts'
import { daysAgo } from '../../work/partitions.ts'
import { toContactName } from '../../visibility/phones.ts'
import { type JsonObject, asObject, toStorableText, asText } from './json.ts'

/**
 * The sender as the provider reports it: users with a username may have no phone, older updates have no user
 * id.
 */
export type InboundCustomer = NewCustomer

/** The events of contacts that turn out to be one customer. */
export type JoinEvent = MergeEvent | 'conversation.closed/1'

const MAX_NAME_LENGTH = 255
const MAX_USERNAME_LENGTH = 100
const MAX_USER_ID_LENGTH = 200

/** An id in place of a phone, as some senders have: letters, and no mask. */
const isUserId = (text: string): boolean => /^[\w.:@-]*[A-Za-z][\w.:@-]*$/.test(text)

/**
 * Returns the customer of a message or preference; undefined when there is no address to reply to. `at`: when the
 * provider says so; null where it says what was before.
 */
export const parseCustomer = (
  { phone: given, userId }: { phone: unknown; userId: unknown },
  contact: JsonObject,
  at: string | null,
): InboundCustomer | undefined => {
  const address = asText(given) ?? asText(contact['wa_id'])
  const phone = parseCustomerPhone(address)
  const id =
    asText(userId) ?? asText(contact['user_id']) ?? (!phone && address && isUserId(address) ? address : null)
  const profile = asObject(contact['profile'])
  const customer: InboundCustomer = {
    phone,
    userId: id !== null && id.length <= MAX_USER_ID_LENGTH ? id : null,
    username: toUsername(profile['username'] ?? contact['username']),
    name: toName(profile['name']),
    // Of two reports of one second, the one that arrives later counts.
    at: at && `${at.slice(0, 19)}.000Z`,
  }
  return customer.phone === null && customer.userId === null ? undefined : customer
}

const toUsername = (given: unknown): string | null => {
  const username = toStorableText(asText(given) ?? '')
    .trim()
    .replace(/^@/, '')
  return username === '' || username.length > MAX_USERNAME_LENGTH || /\s/.test(username) ? null : username
}

/** Returns the line of a phone, and the provider's spelling of it; null when it is no phone. */
const parseCustomerPhone = (given: string | null): CustomerPhone | null => {
  const text = (given ?? '').slice(0, 40)
  const line = parsePhoneLine(text)
  return 'error' in line ? null : { ...line, spelling: text.replaceAll(/\D/g, '') }
}

/** Returns the columns of a contact that has this phone. `at`: since when, as the provider says. */
export const toPhoneColumns = (
  phone: CustomerPhone,
  at: string | null,
): Pick<CustomerRow, 'phone' | 'phone_key' | 'provider_phone' | 'phone_told_at'> => ({
  phone: phone.phone,
  phone_key: toPhoneKey(phone),
  provider_phone: toProviderPhone(phone.phone, phone.spelling),
  phone_told_at: at,
})

/**
 * What the provider tells of a customer whose phone, user id or both changed: who it was, and who it is. Of what did
 * not change, either may have nothing.
 */
export type IdentityChange = { before: InboundCustomer; after: InboundCustomer }

/** By what the message says, since its kind has had several names. Undefined when it tells of no such change. */
export const parseIdentityChange = (message: JsonObject, at: string): IdentityChange | undefined => {
  if (message['type'] !== 'system') return undefined
  const system = asObject(message['system'])
  const after = parseCustomer(
    { phone: system['wa_id'] ?? system['new_wa_id'], userId: system['user_id'] ?? system['new_user_id'] },
    {},
    at,
  )
  if (!after) return undefined
  const named = [
    { phone: system['customer'], userId: system['previous_user_id'] },
    { phone: message['from'], userId: message['from_user_id'] },
  ].flatMap((one) => parseCustomer(one, {}, at) ?? [])
  // The end of the text: names are before it, and customers choose those.
  const [, told] = /\bfrom (\S+) to \S+\s*$/.exec(asText(system['body']) ?? '') ?? []
  const was = named.length > 0 ? named : [parseCustomer({ phone: told, userId: null }, {}, at) ?? after]
  const [phones, userIds] = [
    was.flatMap(({ phone }) => phone ?? []),
    was.flatMap(({ userId }) => userId ?? []),
  ]
  const isOther = {
    phone: (key: string) => key !== after.phone?.key,
    userId: (id: string) => id !== after.userId,
  }
  const before: InboundCustomer = {
    ...after,
    phone: phones.find(({ key }) => isOther.phone(key)) ?? phones[0] ?? null,
    userId: userIds.find(isOther.userId) ?? userIds[0] ?? null,
  }
  const isChange =
    (after.phone !== null && isOther.phone(before.phone?.key ?? '')) ||
    (after.userId !== null && isOther.userId(before.userId ?? ''))
  return isChange && was[0] !== after ? { before, after } : undefined
}

/** The key of a contact's line; null when it has no phone. */
export const lineKeyOf = ({ phone, phone_key: key }: CustomerRow): string | null => key ?? phone

export const toName = (given: unknown): string | null => {
  const name = [...toStorableText(asText(given) ?? '').trim()].slice(0, MAX_NAME_LENGTH).join('').trim()
  return name === '' ? null : (toContactName(name) ?? null)
}

/** Finds a customer's contact among the locked ones. By phone line first: staff know customers by it. */
export type FindContact = (customer: InboundCustomer) => CustomerRow | undefined

type Known = { contacts: CustomerWithFormer[]; isGuess: boolean }

/**
 * Finds the contacts of a customer: those that have its phone or user id, or had them at that time. Where there is
 * none, one that had the phone until lately and has an open conversation (`isGuess`), unless somebody else's user id
 * tells that the number has a new owner.
 */
const findKnown = (rows: readonly CustomerWithFormer[], { phone, userId, at }: InboundCustomer): Known => {
  const had = (row: CustomerWithFormer, key: string) => row.former?.find((former) => former.key === key)
  const ofPhone = (test: (row: CustomerWithFormer, key: string) => boolean) =>
    phone === null ? [] : rows.filter((row) => test(row, phone.key))
  const ofUserId = (test: (row: CustomerWithFormer, key: string) => boolean) =>
    userId === null ? [] : rows.filter((row) => test(row, userId))
  const known = new Set([
    ...ofPhone((row, key) => lineKeyOf(row) === key),
    ...ofUserId((row, key) => row.chatapp_user_id === key),
    // An id of digits is that of the number, not of the person.
    ...ofUserId((row, key) => /\D/.test(key) && had(row, key) !== undefined),
    ...ofPhone((row, key) => {
      const left = had(row, key)?.left_at
      return typeof left === 'string' && (at === null || at <= left)
    }),
  ])
  if (known.size > 0) return { contacts: [...known], isGuess: false }
  const guessed = ofPhone(
    (row, key) =>
      had(row, key)?.is_open === true && (userId === null || (row.chatapp_user_id ?? userId) === userId),
  )
  return { contacts: guessed.slice(0, 1), isGuess: true }
}

/**
 * The contacts of these customers, locked; created where there is none. What the provider says of a customer is of one
 * person: contacts that turn out to be one are joined, and of phones, user ids and usernames the contact has the last
 * by the provider's time. In every order of arrival one customer is one contact.
 *
 * `reports`: what the provider says of customers who wrote nothing, in statuses of messages to them. They only fill
 * what is missing, and join contacts that are known by user id alone. None is created, and those that have nothing to
 * change are not locked.
 *
 * `changes`: they create no contact either. Nothing is found by the `before` of one whose contact is unknown so far.
 */
export const findOrCreateContacts = async (
  context: ChangeContext<'contact.created/1' | JoinEvent>,
  customers: readonly InboundCustomer[],
  { reports, changes }: { reports: readonly InboundCustomer[]; changes: readonly IdentityChange[] },
): Promise<FindContact> => {
  // All locks at once, in the order of the ids: two batches would deadlock otherwise.
  const reported = [...customers, ...(await selectNews(context, reports))]
  const concerned = [...reported, ...changes.flatMap(({ before, after }) => [before, after])]
  if (concerned.length === 0) return () => undefined
  let rows = await lockContacts(context, concerned)
  const isUnknown = (customer: InboundCustomer): boolean => findKnown(rows, customer).contacts.length === 0
  const newUserIds = [...customers.filter(isUnknown), ...changes.map(({ after }) => after)].flatMap(
    ({ userId }) => userId ?? [],
  )
  if (newUserIds.length > 0) {
    await lockUserIds(context.tx, context.workspaceId, newUserIds)
    rows = await lockContacts(context, concerned)
  }
  // Before contacts are created: a message from the new phone would get one of its own.
  const isKnown = ({ before, after }: IdentityChange): boolean => !isUnknown(before) || !isUnknown(after)
  const pending = changes.toSorted((a, b) => byTime(a.after, b.after))
  // Each may tell whose the others are.
  const applyChanges = async (): Promise<void> => {
    for (let i = pending.findIndex(isKnown); i >= 0; i = pending.findIndex(isKnown)) {
      const [change] = pending.splice(i, 1)
      rows = await applyIdentityChange(context, rows, change!)
    }
  }
  await applyChanges()
  const unknown = customers.filter(isUnknown)
  if (unknown.length > 0) {
    rows = [...rows, ...(await createContacts(context, unknown.toSorted(byTime)))]
    // Another transaction created a contact with this phone just now.
    if (customers.some(isUnknown)) rows = mergeById(rows, await lockContacts(context, customers))
    await applyChanges()
  }
  rows = await joinCustomers(context, rows, reported)
  const waiting = new Set(pending.map(({ before }) => before))
  return (customer) => (waiting.has(customer) ? undefined : findKnown(rows, customer).contacts[0])
}

const byTime = ({ at: a }: InboundCustomer, { at: b }: InboundCustomer): number =>
  a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1

/** Gives the locked contact of a change the new phone and user id, joined with those that have them. */
const applyIdentityChange = async (
  context: ChangeContext<JoinEvent>,
  rows: readonly CustomerWithFormer[],
  { before, after }: IdentityChange,
): Promise<CustomerWithFormer[]> => {
  const [was, is] = [findKnown(rows, before), findKnown(rows, after)]
  if (was.contacts.length > 0 && was.isGuess) return [...rows]
  const [kept, ...others] = new Set([...was.contacts, ...(is.isGuess ? [] : is.contacts)])
  if (!kept) return [...rows]
  const now = { ...after, phone: after.phone ?? before.phone, userId: after.userId ?? before.userId }
  const remaining = await unify(context, rows, [kept, ...others], { ...now, isNotice: true })
  if (after.phone && before.phone) await leave(context, kept, before.phone.key, after.at)
  if (after.userId !== null) await leave(context, kept, before.userId, after.at)
  return remaining
}

/** Joins and fills the locked contacts of these customers. Returns the contacts that remain. */
const joinCustomers = async (
  context: ChangeContext<JoinEvent>,
  rows: readonly CustomerWithFormer[],
  customers: readonly InboundCustomer[],
): Promise<CustomerWithFormer[]> => {
  let remaining = [...rows]
  for (const customer of customers.toSorted(byTime)) {
    const { contacts, isGuess } = findKnown(remaining, customer)
    const [kept, ...others] = contacts
    if (!kept || isGuess) continue
    // Of what was before, another user id may be of another owner of the number.
    const isSame = (row: CustomerRow): boolean =>
      customer.at !== null ||
      (row.phone === null && (kept.chatapp_user_id ?? customer.userId) === customer.userId)
    remaining = await unify(context, remaining, [kept, ...others.filter(isSame)], customer)
  }
  return remaining
}

/** What the provider says of a customer. `isNotice`: a notice knows better than messages of the same second. */
type Told = InboundCustomer & { isNotice?: boolean }

/**
 * Joins locked contacts that are one customer, and writes what the provider says of it. The first stays; of phones,
 * user ids and usernames it has the last that the provider told. Returns the contacts that remain.
 */
const unify = async (
  context: ChangeContext<JoinEvent>,
  rows: readonly CustomerWithFormer[],
  [kept, ...others]: readonly [CustomerWithFormer, ...CustomerWithFormer[]],
  told: Told,
): Promise<CustomerWithFormer[]> => {
  const { tx, workspaceId } = context
  const had = [{ ...kept }, ...others].map((row) => [lineKeyOf(row), row.chatapp_user_id] as const)
  for (const other of others) {
    // What is told now is taken by the merge, so that its undo gives it back.
    const isLast = (name: 'phone_told_at' | 'user_id_told_at'): boolean =>
      told.at !== null && [kept, other].every((row) => (row[name] ?? '') <= told.at!)
    const toldNow = {
      phone: !!told.phone && lineKeyOf(other) === told.phone.key && isLast('phone_told_at'),
      userId: told.userId !== null && other.chatapp_user_id === told.userId && isLast('user_id_told_at'),
    }
    await updateContactFields(context, other, {
      ...(toldNow.phone ? { phone_told_at: told.at } : {}),
      ...(toldNow.userId ? { user_id_told_at: told.at } : {}),
    })
    const isLater = (name: 'phone_told_at' | 'user_id_told_at' | 'username_told_at'): boolean =>
      other[name] !== null && (kept[name] ?? '') < other[name]
    const preferOther = new Set([
      ...(toldNow.phone || isLater('phone_told_at') ? ['phone'] : []),
      ...(toldNow.userId || isLater('user_id_told_at') ? ['chatapp_user_id'] : []),
      ...(isLater('username_told_at') ? ['username'] : []),
    ])
    await mergeContacts(context, kept.id, other.id, { reason: 'same_customer', preferOther })
    const [merged] = await lockCustomersById(tx, workspaceId, [kept.id])
    Object.assign(kept, merged, { former: [...(kept.former ?? []), ...(other.former ?? [])] })
    await joinConversations(context, kept.id, other.id)
  }
  const remaining = rows.filter((row) => !others.includes(row))
  await learn(context, remaining, kept, told)
  if (told.at !== null) had.push([told.phone?.key ?? null, told.userId])
  for (const [key, userId] of had) {
    await leave(context, kept, key, kept.phone_told_at)
    await leave(context, kept, userId, kept.user_id_told_at)
  }
  return remaining
}

/** Leaves one conversation of a joined contact open on each channel, and says there what was joined. */
const joinConversations = async (
  context: ChangeContext<'conversation.closed/1'>,
  contactId: string,
  otherId: string,
): Promise<void> => {
  const { tx, workspaceId, now } = context
  await lockConversationsOf(tx, workspaceId, [contactId])
  const conversations = await listConversationsOf(tx, workspaceId, contactId)
  const [latest] = conversations
  if (!latest) return
  const open = conversations.filter((c) => c.state === 'open' && c.channel_id !== null)
  const closed: ConversationState[] = []
  for (const [stays, ...doubles] of Map.groupBy(open, (c) => c.channel_id).values()) {
    await applyJoin(context, stays!, doubles)
    closed.push(...doubles)
  }
  const ids = closed.map(({ id }) => id).join(', ')
  await insertMessages(tx, workspaceId, [
    {
      conversation_id: latest.id,
      channel_id: latest.channel_id,
      episode: latest.episode,
      direction: 'system',
      type: 'SYSTEM',
      status: 'system',
      text:
        `Contact ${otherId} was merged into this one: the provider says that both are one customer. ` +
        `crm_undo_contact_merge undoes it.${ids === '' ? '' : ` Closed, and continued here: conversation ${ids}.`}`,
      created_at: now,
    },
  ])
}

/** Remembers a key of a phone or a user id that a contact has no more. `at`: until when the provider says it had it. */
const leave = async (
  { tx, workspaceId, now }: ChangeContext,
  row: CustomerWithFormer,
  key: string | null,
  at: string | null,
): Promise<void> => {
  if (key === null || key === lineKeyOf(row) || key === row.chatapp_user_id) return
  const known = row.former?.find((former) => former.key === key)
  if (known && (known.left_at === null || (at !== null && known.left_at >= at))) return
  await rememberFormerId(tx, workspaceId, { id_key: key, contact_id: row.id, left_at: at }, now)
  row.former = [
    ...(row.former ?? []).filter((former) => former !== known),
    { key, left_at: at, is_open: true },
  ]
}

/** Applies what the provider says of a customer in the response to a message; see `findOrCreateContacts`. */
export const applyCustomerReport = async (
  context: ChangeContext<JoinEvent>,
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
  const told = reports.filter(({ phone }) => phone !== null)
  if (told.length === 0) return []
  const rows = await findCustomers(context.tx, context.workspaceId, ...listKeys(told))
  return told.filter((report) => {
    const [row] = findKnown(rows, report).contacts
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

/** One contact for each phone and each user id. */
const createContacts = async (
  context: ChangeContext<'contact.created/1'>,
  customers: readonly InboundCustomer[],
): Promise<CustomerRow[]> => {
  const newContacts: InboundCustomer[] = []
  for (const customer of customers) {
    const { phone, userId, username, name } = customer
    const known = newContacts.find(
      (p) => (phone !== null && p.phone?.key === phone.key) || (userId !== null && p.userId === userId),
    )
    if (!known) newContacts.push({ ...customer })
    else
      Object.assign(known, {
        phone: known.phone ?? phone,
        userId: known.userId ?? userId,
        username: known.username ?? username,
        name: known.name ?? name,
      })
  }
  if (newContacts.length === 0) return []
  const named = newContacts.map((one) => ({ ...one, name: one.name ?? usernameAsName(one.username) }))
  const rows = await insertCustomers(context.tx, context.workspaceId, named, context.now)
  for (const row of rows) context.emit('contact.created/1', { contact: eventContact(row) })
  return rows
}

/**
 * Writes what the provider says of the customer of a locked contact: what is missing, and of phone, user id and
 * username what is later than what it has. Messages of a number or user id that the contact has left by then came late.
 */
const learn = async (
  context: ChangeContext<'contact.updated/1'>,
  rows: readonly CustomerWithFormer[],
  row: CustomerWithFormer,
  { phone, userId, username, name, at, isNotice }: Told,
): Promise<void> => {
  const isLeft = (key: string): boolean =>
    row.former?.some(
      ({ key: left, left_at: until }) =>
        left === key && (isNotice ? until !== null && at! < until : until === null || at! <= until),
    ) ?? false
  const since = (toldAt: string | null): string | null =>
    toldAt === null || (isNotice && at !== null && toldAt < at) ? at : toldAt
  const takes = (own: string | null, toldAt: string | null, key: string): boolean =>
    own === null || (at !== null && (toldAt ?? '') <= at && !isLeft(key))
  const isOfOther = (test: (other: CustomerRow) => boolean): boolean =>
    rows.some((other) => other !== row && test(other))
  const changes: Partial<CustomerRow> = {}
  if (phone !== null && lineKeyOf(row) === phone.key) {
    if (phone.spelling !== null) changes.provider_phone = toProviderPhone(row.phone!, phone.spelling)
    changes.phone_told_at = since(row.phone_told_at)
  } else if (
    phone !== null &&
    takes(row.phone, row.phone_told_at, phone.key) &&
    !isOfOther((other) => lineKeyOf(other) === phone.key)
  )
    Object.assign(changes, toPhoneColumns(phone, at))
  if (userId !== null && row.chatapp_user_id === userId) changes.user_id_told_at = since(row.user_id_told_at)
  else if (
    userId !== null &&
    takes(row.chatapp_user_id, row.user_id_told_at, userId) &&
    !isOfOther((other) => other.chatapp_user_id === userId)
  )
    Object.assign(changes, { chatapp_user_id: userId, user_id_told_at: at })
  if (username !== null && takes(row.username, row.username_told_at, ''))
    Object.assign(changes, { username, username_told_at: at })
  if (givenName(row) === null) changes.name = name ?? usernameAsName(changes.username ?? row.username)
  await updateContactFields(context, row, changes)
}

const tellsSpelling = (row: CustomerRow, { key, spelling }: CustomerPhone): boolean =>
  spelling !== null && lineKeyOf(row) === key

/** Columns that nobody sees, so that their changes are no event. */
const INTERNAL_COLUMNS = new Set<string>([
  'phone_key',
  'provider_phone',
  'phone_told_at',
  'user_id_told_at',
  'username_told_at',
])

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
