import type { z } from 'zod'
import type { BridgeMessage } from '../../../catalog/channel-messages.ts'
import { EmailAddress } from '../../../catalog/fields.ts'
import {
  fillWebVisitorId,
  lockChannelCustomer,
  upsertChannelCustomer,
} from '../../../storage/channels/customers.ts'
import type { TokenChannel } from '../../../storage/channels/secrets.ts'
import { toPhoneKey } from '../../../storage/contacts/lines.ts'
import { readContact, updateContactRow } from '../../../storage/contacts/contacts.ts'
import { markFieldsUsed } from '../../../storage/contacts/custom-fields.ts'
import { type CustomerRow, findCustomers, insertCustomers } from '../../../storage/messages/inbound.ts'
import type { PhoneLine } from '../contacts/phone-lines.ts'
import { parsePhoneLine } from '../contacts/phone.ts'
import { eventContact } from '../contacts/view.ts'
import { toName, updateContactFields } from '../inbound/customers.ts'
import type { ChangeContext } from '../../change-context.ts'

type Person = z.output<typeof BridgeMessage>['from']
type Flow = ChangeContext<'contact.created/1' | 'contact.updated/1'>

/** The name under which a customer is locked: web visitors are the same on every web chat of a workspace. */
export const toCustomerLock = ({ id, type }: TokenChannel, customerId: string): string =>
  type === 'web' ? `visitor ${customerId}` : `customer ${id} ${customerId}`

/**
 * Returns the contact of a bridge's customer, locked; creates it when there is none. The caller holds the lock
 * of the customer's name. It is found by the bridge's id alone: what a visitor claims to be must not lead to
 * another's contact, so name, phone and email only fill what is missing. `seenAt`: real time, ISO 8601 UTC.
 */
export const findOrCreateCustomer = async (
  flow: Flow,
  channel: TokenChannel,
  person: Person,
  seenAt: string,
): Promise<CustomerRow> => {
  const { tx, workspaceId } = flow
  const visitorId = channel.type === 'web' ? person.id : null
  const name = toName(person.name)
  const known = await lockChannelCustomer(tx, workspaceId, channel.id, person.id, visitorId)
  const row = known ?? (await createCustomer(flow, name))
  if (visitorId !== null && (await fillWebVisitorId(tx, workspaceId, row.id, visitorId, flow.now)) && known) {
    row.updated_at = flow.now
    flow.emit('contact.updated/1', { contact: eventContact(row), changes: ['web_visitor_id'] })
  }
  await upsertChannelCustomer(tx, workspaceId, channel.id, person.id, row.id, seenAt)
  const line = row.phone === null ? await findFreeLine(flow, person.phone) : undefined
  await updateContactFields(flow, row, {
    ...(row.name === null && name !== null ? { name } : {}),
    ...(line === undefined ? {} : { phone: line.phone, phone_key: toPhoneKey(line) }),
  })
  await fillEmail(flow, row, person.email)
  return row
}

const createCustomer = async (flow: Flow, name: string | null): Promise<CustomerRow> => {
  const [created] = await insertCustomers(
    flow.tx,
    flow.workspaceId,
    [{ phone: null, userId: null, username: null, name, at: null }],
    flow.now,
  )
  flow.emit('contact.created/1', { contact: eventContact(created!) })
  return created!
}

/** Returns the line of a phone when no contact has it; undefined also when it is none. */
const findFreeLine = async (
  { tx, workspaceId }: Flow,
  text: string | null | undefined,
): Promise<PhoneLine | undefined> => {
  const line = parsePhoneLine((text ?? '').slice(0, 40))
  if ('error' in line) return undefined
  // Not locked: contacts are locked in the order of their ids, and this one's is locked already.
  const [owner] = await findCustomers(tx, workspaceId, [line.key], [])
  return owner ? undefined : line
}

/** Sets the custom field `email` of a locked contact that has none. */
const fillEmail = async (flow: Flow, row: CustomerRow, text: string | null | undefined): Promise<void> => {
  const email = EmailAddress.safeParse(text?.trim()).data
  if (email === undefined) return
  const { tx, workspaceId, now } = flow
  const read = await readContact(tx, workspaceId, row.id, 'none')
  const field = read?.fields.find(({ key }) => key === 'email')
  if (!read || !field || read.contact.email !== null) return
  await updateContactRow(
    tx,
    workspaceId,
    read.contact,
    {
      email,
      values: {
        attrs: { ...read.contact.attrs, [field.id]: email },
        changed: new Map([[field.id, field.type]]),
      },
    },
    now,
  )
  await markFieldsUsed(tx, workspaceId, [field.id])
  flow.emit('contact.updated/1', {
    contact: eventContact({ ...read.contact, updated_at: now }),
    changes: ['email'],
  })
}
