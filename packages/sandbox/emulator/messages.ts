import { isObject } from '../../../catalog/values.ts'
import { takeSandboxToken } from '../storage/rate-limits.ts'
import { type SandboxCustomer, findSandboxCustomer, upsertSandboxCustomer } from '../storage/customers.ts'
import {
  findSandboxMessagesByReference,
  findSandboxMessage,
  insertSandboxMessage,
  type SandboxMessage,
  setSandboxMessageStatus,
} from '../storage/messages.ts'
import { findSandboxNumber, type SandboxNumber } from '../storage/numbers.ts'
import { loadSandboxSettings, type SandboxSettings } from '../storage/settings.ts'
import { type SandboxTemplate, findSandboxTemplateByName } from '../storage/templates.ts'
import { insertSandboxUpdates } from '../storage/updates.ts'
import {
  type SandboxCall,
  stripNonDigits,
  isNonEmptyText,
  addMs,
  okResponse,
  inTransaction,
  timeAt,
} from './call.ts'
import {
  badParameterValue,
  invalidParameter,
  unknownObject,
  providerError,
  parameterRequired,
} from './errors.ts'
import { isUserId, newWamid, deriveUserId } from './ids.ts'
import { checkFreeForm, isFreeForm } from './message-checks.ts'
import { checkComponents } from './template-params.ts'
import { type Billing, statusUpdate } from './updates.ts'

/** Recipient of a message: phone digits or a user id, and the input that named it. */
type Recipient = { input: string; wa_id?: string; user_id?: string }

const DELIVERY_DELAY_MS = 300
const MAX_SHUFFLE_DELAY_MS = 800
const HOUR_MS = 3_600_000

/** As the provider's error lists them. */
const MESSAGE_TYPES = [
  'AUDIO',
  'CONTACTS',
  'DOCUMENT',
  'IMAGE',
  'INTERACTIVE',
  'LOCATION',
  'REACTION',
  'STICKER',
  'TEMPLATE',
  'TEXT',
  'VIDEO',
]

export const requireSender = async (call: SandboxCall): Promise<SandboxNumber> => {
  const number = await findSandboxNumber(call.db, call.path.id!)
  if (!number) throw unknownObject(call.path.id!, call.method)
  return number
}

/** Serves `POST /{phone}/messages` and `/marketing_messages`. */
export const handlePostMessage = async (call: SandboxCall): Promise<Response> => {
  const { body } = call
  const number = await requireSender(call)
  if (body.messaging_product === undefined) throw parameterRequired('messaging_product')
  if (body.messaging_product !== 'whatsapp')
    throw invalidParameter('Param messaging_product must be one of {whatsapp}.')
  if (body.status !== undefined) return await handleMarkRead(call, number)
  if (number.status !== 'CONNECTED') throw providerError(133010)
  const to = parseRecipient(body)
  const type = body.type === undefined ? 'text' : body.type
  if (typeof type !== 'string' || (type !== 'template' && !isFreeForm(type)))
    throw badParameterValue(`Param type must be one of {${MESSAGE_TYPES.join(', ')}}.`)
  if (to.wa_id !== undefined && to.wa_id === number.digits) throw providerError(131021)
  const reference = parseReference(body)
  if (body.context !== undefined && (!isObject(body.context) || !isNonEmptyText(body.context.message_id)))
    throw badParameterValue("Param context['message_id'] must be the id of a message.")
  const template = type === 'template' ? await checkTemplate(call, number, to) : undefined
  if (call.path.edge === 'marketing_messages' && template?.category !== 'MARKETING')
    throw invalidParameter('Only marketing template messages can be sent by this endpoint.')
  if (!template) await checkFreeForm(call, type, body)
  const settings = await loadSandboxSettings(call.db, number.account_id)
  await limitRate(call, settings, number, to)
  return await inTransaction(call.db, (tx) =>
    acceptMessage({ ...call, db: tx }, settings, number, to, { type, template, reference }),
  )
}

const parseRecipient = ({ to, recipient }: Record<string, unknown>): Recipient => {
  if (recipient !== undefined && to === undefined) {
    if (typeof recipient !== 'string' || !isUserId(recipient))
      throw badParameterValue('Param recipient is not a valid user ID.')
    return { input: recipient, user_id: recipient }
  }
  if (to === undefined) throw parameterRequired('to')
  const digits = typeof to === 'string' && /^\+?[\d\s().-]+$/.test(to) ? stripNonDigits(to) : ''
  if (typeof to !== 'string' || digits.length < 5 || digits.length > 15)
    throw badParameterValue('Param to is not a valid phone number.')
  return { input: to, wa_id: digits }
}

const parseReference = (body: Record<string, unknown>): string | null => {
  const reference = body.biz_opaque_callback_data
  if (reference === undefined) return null
  if (typeof reference !== 'string' || reference.length > 512)
    throw badParameterValue('Param biz_opaque_callback_data must be at most 512 characters long.')
  return reference
}

/** Returns the template of a send. Throws when it cannot be sent or the parameters do not fit it. */
const checkTemplate = async (
  call: SandboxCall,
  number: SandboxNumber,
  to: Recipient,
): Promise<SandboxTemplate> => {
  const part = call.body.template
  if (!isObject(part)) throw parameterRequired('template')
  if (!isNonEmptyText(part.name)) throw parameterRequired("template['name']")
  const language = isObject(part.language) ? part.language.code : undefined
  if (!isNonEmptyText(language)) throw parameterRequired("template['language']['code']")
  const template = await findSandboxTemplateByName(call.db, number.account_id, part.name, language)
  if (template?.status === 'PAUSED')
    throw providerError(132015, `template name (${part.name}) is paused due to low quality.`)
  if (template?.status === 'DISABLED')
    throw providerError(132016, `template name (${part.name}) is disabled.`)
  if (template?.status !== 'APPROVED')
    throw providerError(
      132001,
      `template name (${part.name.slice(0, 512)}) does not exist in ${language.slice(0, 20)}`,
    )
  const components = part.components ?? []
  if (!Array.isArray(components) || !components.every(isObject))
    throw badParameterValue("Param template['components'] must be a list of objects.")
  await checkComponents(call, template.components, components, template)
  if (template.category === 'AUTHENTICATION' && to.user_id !== undefined) throw providerError(131062)
  return template
}

/** Throws when the number or the pair of number and recipient sends too fast, measured on real time. */
const limitRate = async (
  call: SandboxCall,
  { throughput, pair_burst: burst, pair_seconds: seconds }: SandboxSettings,
  number: SandboxNumber,
  to: Recipient,
): Promise<void> => {
  const take = (bucket: string, capacity: number, windowSeconds: number): Promise<boolean> =>
    takeSandboxToken(call.db, bucket, capacity, windowSeconds)
  if (throughput !== null && !(await take(`number ${number.id}`, throughput, 1))) throw providerError(130429)
  if (burst !== null && !(await take(`pair ${number.id} ${to.input}`, burst, burst * seconds)))
    throw providerError(131056)
}

type CheckedMessage = { type: string; template: SandboxTemplate | undefined; reference: string | null }

/** Stores the message and its coming statuses; `call.db` is a transaction. */
const acceptMessage = async (
  call: SandboxCall,
  settings: SandboxSettings,
  number: SandboxNumber,
  to: Recipient,
  { template, reference }: CheckedMessage,
): Promise<Response> => {
  const now = timeAt(call, number)
  const known = await findSandboxCustomer(call.db, number.id, to)
  if (!known && to.wa_id === undefined) throw providerError(131026)
  const customer =
    known ??
    (await upsertSandboxCustomer(call.db, {
      number_id: number.id,
      user_id: deriveUserId(number.account_id, to.wa_id!),
      wa_id: to.wa_id!,
      name: null,
    }))
  const window = readWindow(customer, settings, now)
  const failure = findFailure(call, customer, window.open, template)
  if (failure !== undefined && !failure.later) throw providerError(failure.code)
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
    settings.shuffle ? Math.floor(Math.random() * MAX_SHUFFLE_DELAY_MS) : usual
  if (failure)
    await insertSandboxUpdates(call.db, [
      statusUpdate(number, customer, message, {
        status: 'failed',
        at: now,
        code: failure.code,
        delayMs: delay(DELIVERY_DELAY_MS),
      }),
    ])
  else {
    const billing = billingOf(window, template)
    await insertSandboxUpdates(call.db, [
      statusUpdate(number, customer, message, { status: 'sent', at: now, billing, delayMs: delay(0) }),
      statusUpdate(number, customer, message, {
        status: 'delivered',
        at: addMs(now, DELIVERY_DELAY_MS),
        billing,
        delayMs: delay(DELIVERY_DELAY_MS),
      }),
    ])
  }
  return okResponse({
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

/** A customer's message opens the window for 24 hours; an ad for 72, where the settings have `free_entry`. */
const readWindow = (customer: SandboxCustomer, settings: SandboxSettings, now: string): WindowState => {
  const isWithin = (time: string | null, hours: number): boolean =>
    time !== null && Date.parse(now) < Date.parse(time) + hours * HOUR_MS
  const free = isWithin(customer.free_entry_at, 72)
  return { open: isWithin(customer.last_inbound_at, 24) || (settings.free_entry && free), free }
}

/**
 * Why a valid message is not delivered. `later`: a status reports it, after the message was accepted.
 */
const findFailure = (
  call: SandboxCall,
  customer: SandboxCustomer,
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

/** Marks a customer's message as read, with or without a typing indicator. */
const handleMarkRead = async (call: SandboxCall, number: SandboxNumber): Promise<Response> => {
  const { status, message_id: id, typing_indicator: typing } = call.body
  if (status !== 'read') throw invalidParameter('Param status must be one of {read}.')
  if (!isNonEmptyText(id)) throw parameterRequired('message_id')
  if (typing !== undefined && (!isObject(typing) || typing.type !== 'text'))
    throw badParameterValue("Param typing_indicator['type'] must be one of {text}.")
  const message = await findSandboxMessage(call.db, id)
  if (!message?.inbound || message.number_id !== number.id) throw badParameterValue('Message ID is invalid.')
  await setSandboxMessageStatus(call.db, id, 'read')
  return okResponse({ success: true })
}

/**
 * Lists the messages with this callback data, so that a send whose response was lost is found for certain.
 * The real provider has no such endpoint.
 */
export const handleFindMessages = async (call: SandboxCall): Promise<Response> => {
  const number = await requireSender(call)
  const reference = call.query.get('biz_opaque_callback_data')
  if (!reference) throw parameterRequired('biz_opaque_callback_data')
  return okResponse({ data: await findSandboxMessagesByReference(call.db, number.id, reference) })
}
