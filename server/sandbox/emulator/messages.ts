import { leaseTokens } from '../../../storage/rate-limits.ts'
import { type Customer, findCustomer, keepCustomer } from '../../../storage/sandbox/customers.ts'
import {
  findByReference,
  findSandboxMessage,
  insertSandboxMessage,
  type SandboxMessage,
  setMessageStatus,
} from '../../../storage/sandbox/messages.ts'
import { findNumber, type SandboxNumber } from '../../../storage/sandbox/numbers.ts'
import { readSandboxSettings, type SandboxSettings } from '../../../storage/sandbox/settings.ts'
import { type SandboxTemplate, templateByName } from '../../../storage/sandbox/templates.ts'
import { enqueueUpdates } from '../../../storage/sandbox/updates.ts'
import { type Call, digitsOf, isObject, isText, later, ok, within } from './call.ts'
import { badValue, invalid, noObject, refuse, required } from './errors.ts'
import { isUserId, newWamid, userIdOf } from './ids.ts'
import { checkFreeForm, isFreeForm } from './message-checks.ts'
import { checkComponents } from './template-params.ts'
import { type Billing, statusUpdate } from './updates.ts'

/** Who a message is for: phone digits or a user id, and the words it was said in. */
type Recipient = { input: string; wa_id?: string; user_id?: string }

const DELIVERY_MS = 300
const SHUFFLED_MS = 800
const HOUR_MS = 3_600_000

export const senderOf = async (call: Call): Promise<SandboxNumber> => {
  const number = await findNumber(call.db, call.path.id!)
  if (!number) throw noObject(call.path.id!, call.method)
  return number
}

/** `POST /{phone}/messages` and `/marketing_messages`. */
export const postMessage = async (call: Call): Promise<Response> => {
  const { body } = call
  const number = await senderOf(call)
  if (body.messaging_product === undefined) throw required('messaging_product')
  if (body.messaging_product !== 'whatsapp')
    throw invalid('Param messaging_product must be one of {whatsapp}.')
  if (body.status !== undefined) return await markRead(call, number)
  if (number.status !== 'CONNECTED') throw refuse(133010)
  const to = recipientOf(body)
  const type = body.type === undefined ? 'text' : body.type
  if (typeof type !== 'string' || (type !== 'template' && !isFreeForm(type)))
    throw badValue(
      'Param type must be one of {AUDIO, CONTACTS, DOCUMENT, IMAGE, INTERACTIVE, LOCATION, REACTION, STICKER, TEMPLATE, TEXT, VIDEO}.',
    )
  if (to.wa_id !== undefined && to.wa_id === number.digits) throw refuse(131021)
  const reference = referenceOf(body)
  if (body.context !== undefined && (!isObject(body.context) || !isText(body.context.message_id)))
    throw badValue("Param context['message_id'] must be the id of a message.")
  const template = type === 'template' ? await checkTemplate(call, number, to) : undefined
  if (call.path.edge === 'marketing_messages' && template?.category !== 'MARKETING')
    throw invalid('Only marketing template messages can be sent by this endpoint.')
  if (!template) await checkFreeForm(call, type, body)
  const settings = await readSandboxSettings(call.db)
  await limitRate(call, settings, number, to)
  return await within(call.db, (tx) =>
    accept({ ...call, db: tx }, settings, number, to, { type, template, reference }),
  )
}

const recipientOf = ({ to, recipient }: Record<string, unknown>): Recipient => {
  if (recipient !== undefined && to === undefined) {
    if (typeof recipient !== 'string' || !isUserId(recipient))
      throw badValue('Param recipient is not a valid user ID.')
    return { input: recipient, user_id: recipient }
  }
  if (to === undefined) throw required('to')
  const digits = typeof to === 'string' && /^\+?[\d\s().-]+$/.test(to) ? digitsOf(to) : ''
  if (typeof to !== 'string' || digits.length < 5 || digits.length > 15)
    throw badValue('Param to is not a valid phone number.')
  return { input: to, wa_id: digits }
}

const referenceOf = (body: Record<string, unknown>): string | null => {
  const reference = body.biz_opaque_callback_data
  if (reference === undefined) return null
  if (typeof reference !== 'string' || reference.length > 512)
    throw badValue('Param biz_opaque_callback_data must be at most 512 characters long.')
  return reference
}

/** The template of a send, whose parameters fit it. */
const checkTemplate = async (call: Call, number: SandboxNumber, to: Recipient): Promise<SandboxTemplate> => {
  const part = call.body.template
  if (!isObject(part)) throw required('template')
  if (!isText(part.name)) throw required("template['name']")
  const language = isObject(part.language) ? part.language.code : undefined
  if (!isText(language)) throw required("template['language']['code']")
  const template = await templateByName(call.db, number.account_id, part.name, language)
  if (template?.status === 'PAUSED')
    throw refuse(132015, `template name (${part.name}) is paused due to low quality.`)
  if (template?.status === 'DISABLED') throw refuse(132016, `template name (${part.name}) is disabled.`)
  if (template?.status !== 'APPROVED')
    throw refuse(
      132001,
      `template name (${part.name.slice(0, 512)}) does not exist in ${language.slice(0, 20)}`,
    )
  const components = part.components ?? []
  if (!Array.isArray(components) || !components.every(isObject))
    throw badValue("Param template['components'] must be a list of objects.")
  await checkComponents(call, template.components, components, template)
  if (template.category === 'AUTHENTICATION' && to.user_id !== undefined) throw refuse(131062)
  return template
}

/** On real time, and exact over all servers. */
const limitRate = async (
  call: Call,
  { throughput, pair_burst: burst, pair_seconds: seconds }: SandboxSettings,
  number: SandboxNumber,
  to: Recipient,
): Promise<void> => {
  const take = async (bucket: string, capacity: number, window: number) =>
    (await leaseTokens(call.db, `sandbox ${bucket}`, capacity, window, 1, 0)).granted > 0
  if (throughput !== null && !(await take(`number ${number.id}`, throughput, 1))) throw refuse(130429)
  if (burst !== null && !(await take(`pair ${number.id} ${to.input}`, burst, burst * seconds)))
    throw refuse(131056)
}

type Checked = { type: string; template: SandboxTemplate | undefined; reference: string | null }

/** Keeps the message and what its statuses will say, in one transaction. */
const accept = async (
  call: Call,
  settings: SandboxSettings,
  number: SandboxNumber,
  to: Recipient,
  { template, reference }: Checked,
): Promise<Response> => {
  const now = call.now()
  const known = await findCustomer(call.db, number.id, to)
  if (!known && to.wa_id === undefined) throw refuse(131026)
  const customer =
    known ??
    (await keepCustomer(call.db, {
      number_id: number.id,
      user_id: userIdOf(number.account_id, to.wa_id!),
      wa_id: to.wa_id!,
      name: null,
    }))
  const window = windowOf(customer, settings, now)
  const failure = failureOf(call, customer, window.open, template)
  if (failure !== undefined && !failure.later) throw refuse(failure.code)
  const message: SandboxMessage = {
    id: newWamid(),
    number_id: number.id,
    account_id: number.account_id,
    inbound: false,
    user_id: customer.user_id,
    wa_id: customer.wa_id,
    reference,
    category: template?.category ?? null,
    body: call.body,
    status: failure ? 'failed' : 'sent',
    created_at: now,
  }
  await insertSandboxMessage(call.db, message)
  const delay = (usual: number): number =>
    settings.shuffle ? Math.floor(Math.random() * SHUFFLED_MS) : usual
  if (failure)
    await enqueueUpdates(call.db, [
      statusUpdate(number, customer, message, {
        status: 'failed',
        at: now,
        code: failure.code,
        delayMs: delay(DELIVERY_MS),
      }),
    ])
  else {
    const billing = billingOf(window, template)
    await enqueueUpdates(call.db, [
      statusUpdate(number, customer, message, { status: 'sent', at: now, billing, delayMs: delay(0) }),
      statusUpdate(number, customer, message, {
        status: 'delivered',
        at: later(now, DELIVERY_MS),
        billing,
        delayMs: delay(DELIVERY_MS),
      }),
    ])
  }
  return ok({
    messaging_product: 'whatsapp',
    contacts: [
      to.wa_id === undefined
        ? { input: to.input, user_id: customer.user_id }
        : { input: to.input, wa_id: to.wa_id },
    ],
    messages: [{ id: message.id, ...(template ? { message_status: 'accepted' } : {}) }],
  })
}

type WindowState = { open: boolean; free: boolean }

/** A customer's message opens the window for 24 hours; an ad, for 72, where the sandbox is told so. */
const windowOf = (customer: Customer, settings: SandboxSettings, now: string): WindowState => {
  const within = (time: string | null, hours: number): boolean =>
    time !== null && Date.parse(now) < Date.parse(time) + hours * HOUR_MS
  const free = within(customer.free_entry_at, 72)
  return { open: within(customer.last_inbound_at, 24) || (settings.free_entry && free), free }
}

/**
 * Why a message that is well made does not arrive; `later`: a status says it, after the message was
 * accepted.
 */
const failureOf = (
  call: Call,
  customer: Customer,
  open: boolean,
  template: SandboxTemplate | undefined,
): { code: number; later: boolean } | undefined => {
  const later = call.fault?.async === true
  if (call.fault?.code !== undefined && later) return { code: call.fault.code, later }
  if (!template && !open) return { code: 131047, later }
  if (template?.category === 'MARKETING' && customer.marketing_stopped) return { code: 131050, later: true }
  return undefined
}

const billingOf = ({ open, free }: WindowState, template: SandboxTemplate | undefined): Billing => {
  const category = template?.category.toLowerCase() ?? 'service'
  return {
    kind: free
      ? 'free_entry_point'
      : open && (category === 'service' || category === 'utility')
        ? 'free_customer_service'
        : 'regular',
    category,
  }
}

/** Marks a customer's message as read, and shows that somebody types. */
const markRead = async (call: Call, number: SandboxNumber): Promise<Response> => {
  const { status, message_id: id, typing_indicator: typing } = call.body
  if (status !== 'read') throw invalid('Param status must be one of {read}.')
  if (!isText(id)) throw required('message_id')
  if (typing !== undefined && (!isObject(typing) || typing.type !== 'text'))
    throw badValue("Param typing_indicator['type'] must be one of {text}.")
  const message = await findSandboxMessage(call.db, id)
  if (!message?.inbound || message.number_id !== number.id) throw badValue('Message ID is invalid.')
  await setMessageStatus(call.db, id, 'read')
  return ok({ success: true })
}

/**
 * Not of the true provider: which messages carry this callback data, so that a send whose answer was lost
 * is found for certain.
 */
export const findMessages = async (call: Call): Promise<Response> => {
  const number = await senderOf(call)
  const reference = call.query.get('biz_opaque_callback_data')
  if (!reference) throw required('biz_opaque_callback_data')
  return ok({ data: await findByReference(call.db, number.id, reference) })
}
