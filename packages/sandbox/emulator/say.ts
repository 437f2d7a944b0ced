import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import {
  changeSandboxCustomer,
  findSandboxCustomer,
  type SandboxCustomer,
  upsertSandboxCustomer,
} from '../storage/customers.ts'
import {
  findSandboxMessage,
  insertSandboxMessage,
  listMessagesWithButtons,
  type SandboxMessage,
} from '../storage/messages.ts'
import { findSandboxNumber, type SandboxNumber } from '../storage/numbers.ts'
import { findSandboxTemplateByName } from '../storage/templates.ts'
import { insertSandboxUpdates } from '../storage/updates.ts'
import {
  type SandboxCall,
  stripNonDigits,
  isNonEmptyText,
  okResponse,
  inTransaction,
  timeAt,
} from './call.ts'
import { invalidParameter, unknownObject, parameterRequired } from './errors.ts'
import { isUserId, newWamid, deriveUserId } from './ids.ts'
import { INBOUND_MEDIA_TTL_MS, storeMedia } from './media.ts'
import { MEDIA_TYPES } from './part-checks.ts'
import { echoUpdate, inboundUpdate } from './updates.ts'

/** A picture of one pixel, for messages without image data. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

const samples: Readonly<Record<string, { mime_type: string; data: string }>> = {
  image: { mime_type: 'image/png', data: PIXEL },
  sticker: { mime_type: 'image/webp', data: 'UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA' },
  audio: { mime_type: 'audio/ogg; codecs=opus', data: 'T2dnUwACAAAAAAAAAAA=' },
  video: { mime_type: 'video/mp4', data: 'AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t' },
  document: { mime_type: 'application/pdf', data: Buffer.from('%PDF-1.4\n%%EOF\n').toString('base64') },
}

/** The provider's data of an ad that a customer came from. */
const referral = {
  source_url: 'https://fb.me/3cr4Wqqkv',
  source_id: '120226305854810726',
  source_type: 'ad',
  headline: 'Talk to us',
  body: 'Summer succulents are here!',
  media_type: 'image',
  image_url: 'https://scontent.example/ad.jpg',
  ctwa_clid: 'Aff-n8ZTODiE79d22KtAwQKj9e_mIEOOj27vDVwFjN80dp4',
}

/** Changes of another message, and notices. They open no reply window: the provider's documents promise none. */
const WINDOWLESS_TYPES: readonly unknown[] = ['reaction', 'edit', 'revoke', 'system', 'request_welcome']

const RESERVED = ['id', 'from', 'from_user_id', 'timestamp']

/** Serves `POST control/say`: a customer writes a message, or the business in its phone app. Returns its id. */
export const handleSay = async (call: SandboxCall): Promise<Response> => {
  const { body } = call
  if (!isNonEmptyText(body.number_id)) throw parameterRequired('number_id')
  const number = await findSandboxNumber(call.db, body.number_id)
  if (!number) throw unknownObject(body.number_id, call.method)
  const customerKey = parseCustomerKey(body)
  const isEcho = body.echo === true
  const { tap, reply_to: replyTo } = body
  if (tap !== undefined && (!isNonEmptyText(tap) || isEcho || body.text !== undefined))
    throw invalidParameter('Param tap must be the title or id of a button or row, without text and echo.')
  const given =
    tap === undefined || body.message !== undefined ? await parseMessagePart(call, number) : undefined
  const extra = {
    ...(isNonEmptyText(replyTo) ? { context: { from: number.digits, id: replyTo } } : {}),
    ...(body.ad === undefined || body.ad === false
      ? {}
      : { referral: { ...referral, ...(isObject(body.ad) ? body.ad : {}) } }),
  }
  return await inTransaction(call.db, async (tx) => {
    const at = timeAt(call, number)
    const known = await findCustomer(tx, number.id, customerKey)
    const part =
      tap === undefined
        ? given!
        : await answerTap(tx, number, known, {
            tap,
            given,
            messageId: isNonEmptyText(replyTo) ? replyTo : undefined,
          })
    const ad = 'referral' in extra || 'referral' in part
    const customer = await upsertSandboxCustomer(tx, {
      number_id: number.id,
      user_id: known?.user_id ?? customerKey.user_id ?? deriveUserId(number.account_id, customerKey.wa_id!),
      wa_id: known?.wa_id ?? customerKey.wa_id ?? null,
      name: isNonEmptyText(body.name) ? body.name : null,
      last_inbound_at: isEcho || WINDOWLESS_TYPES.includes(part['type']) ? null : at,
      free_entry_at: ad ? at : null,
    })
    const message = { ...part, ...extra }
    const id = newWamid()
    await insertSandboxMessage(tx, {
      id,
      number_id: number.id,
      account_id: number.account_id,
      inbound: !isEcho,
      user_id: customer.user_id,
      wa_id: customer.wa_id,
      reference: null,
      category: null,
      body: message,
      status: isEcho ? 'sent' : 'received',
      created_at: at,
    })
    const shown = isNonEmptyText(body.username) ? { ...customer, username: body.username } : customer
    const toUpdate = isEcho ? echoUpdate : inboundUpdate
    await insertSandboxUpdates(tx, [toUpdate(number, shown, { id, at, part: message })])
    if (part['type'] === 'system' && isObject(part['system'])) {
      const { wa_id: waId, user_id: userId } = part['system']
      await changeSandboxCustomer(tx, customer, {
        wa_id: isNonEmptyText(waId) ? waId : null,
        user_id: isNonEmptyText(userId) ? userId : null,
      })
    }
    return okResponse({ id })
  })
}

type Part = Record<string, unknown>
/** What a customer can tap in a message. Without `answer`, the tap opens something and sends nothing. */
type Tappable = { title: string; id?: string; answer?: Part }

const samplePlace = {
  latitude: 38.7139,
  longitude: -9.1334,
  name: 'Garden of the sample',
  address: '1 Sample Street, Lisbon',
}

const asObjects = (value: unknown): Part[] => (Array.isArray(value) ? value.filter(isObject) : [])

const listInteractiveTaps = ({ type, action: given }: Part): Tappable[] => {
  const action = isObject(given) ? given : {}
  const toReply = (kind: string, reply: Part): Tappable => ({
    title: String(reply.title),
    id: String(reply.id),
    answer: { type: 'interactive', interactive: { type: kind, [kind]: reply } },
  })
  switch (type) {
    case 'button':
      return asObjects(action.buttons).flatMap(({ reply }) =>
        isObject(reply) ? toReply('button_reply', { id: reply.id, title: reply.title }) : [],
      )
    case 'list':
      return asObjects(action.sections)
        .flatMap(({ rows }) => asObjects(rows))
        .map(({ id, title, description }) =>
          toReply('list_reply', { id, title, ...(description ? { description } : {}) }),
        )
    case 'location_request_message':
      return [{ title: 'Send location', answer: { type: 'location', location: samplePlace } }]
    case 'cta_url':
      return [{ title: String(isObject(action.parameters) ? action.parameters.display_text : '') }]
    default:
      return []
  }
}

/** The buttons of a template or of one of its cards. `sent`: the components of the message. */
const listTemplateTaps = (components: unknown, sent: unknown): Tappable[] => {
  const isOf = (type: string) => (component: Part) => String(component.type).toLowerCase() === type
  const buttons = asObjects(asObjects(components).find(isOf('buttons'))?.buttons)
  const cards = asObjects(asObjects(components).find(isOf('carousel'))?.cards)
  const sentCards = asObjects(asObjects(sent).find(isOf('carousel'))?.cards)
  return [
    ...buttons.map(({ type, text }, index) => {
      const title = String(text)
      const parameters = asObjects(sent).find(
        (component) => isOf('button')(component) && String(component.index) === String(index),
      )?.parameters
      const payload = String(asObjects(parameters)[0]?.payload ?? title)
      return type === 'QUICK_REPLY'
        ? { title, id: payload, answer: { type: 'button', button: { payload, text: title } } }
        : { title }
    }),
    ...cards.flatMap((card, index) =>
      listTemplateTaps(
        card.components,
        sentCards.find((one, n) => Number(one.card_index ?? n) === index)?.components,
      ),
    ),
  ]
}

const listTaps = async (tx: Db, { account_id, body }: SandboxMessage): Promise<Tappable[]> => {
  const { interactive, template } = body
  if (isObject(interactive)) return listInteractiveTaps(interactive)
  if (!isObject(template)) return []
  const language = isObject(template.language) ? String(template.language.code) : ''
  const stored = await findSandboxTemplateByName(tx, account_id, String(template.name), language)
  return listTemplateTaps(stored?.components, template.components)
}

/**
 * The message that a tap sends, by the title or id of a button or row of the newest message that has any, or of this
 * one. `given`: the place that is sent when the message asks for one.
 */
const answerTap = async (
  tx: Db,
  number: SandboxNumber,
  customer: SandboxCustomer | undefined,
  { tap, given, messageId }: { tap: string; given: Part | undefined; messageId: string | undefined },
): Promise<Part> => {
  const messages =
    messageId === undefined
      ? await listMessagesWithButtons(tx, number.id, customer?.user_id ?? '')
      : [await findSandboxMessage(tx, messageId)].filter(
          (one) => one?.number_id === number.id && !one.inbound && one.user_id === customer?.user_id,
        )
  const key = tap.toLowerCase()
  const find = (taps: readonly Tappable[]) =>
    taps.find(({ id }) => id === tap) ?? taps.find(({ title }) => title.toLowerCase() === key)
  for (const message of messages) {
    const taps = await listTaps(tx, message!)
    const found = find(taps)
    if (found && !found.answer)
      throw invalidParameter(`The button ${found.title} opens something on the phone and sends nothing.`)
    const { answer } = found ?? {}
    if (answer && given && given.type !== answer.type)
      throw invalidParameter(`A tap on ${found!.title} sends a message of the type ${String(answer.type)}.`)
    if (answer) return { ...answer, ...given, context: { from: number.digits, id: message!.id } }
    const titles = taps.filter((one) => one.answer).map(({ title }) => title)
    if (titles.length > 0)
      throw invalidParameter(
        `The message has no button or row ${tap.slice(0, 100)}: it has ${titles.join(', ')}.`,
      )
  }
  throw invalidParameter('The customer has no message with a button or row to tap.')
}

/** Finds the customer of a key. Throws 400 when its phone and its user id belong to two customers. */
const findCustomer = async (
  tx: Db,
  numberId: string,
  { wa_id, user_id }: CustomerKey,
): Promise<SandboxCustomer | undefined> => {
  const byPhone = wa_id === undefined ? undefined : await findSandboxCustomer(tx, numberId, { wa_id })
  const byUserId = user_id === undefined ? undefined : await findSandboxCustomer(tx, numberId, { user_id })
  if (byPhone && byUserId && byPhone.user_id !== byUserId.user_id)
    throw invalidParameter('Params from and user_id belong to two customers.')
  return byPhone ?? byUserId
}

type CustomerKey = { wa_id?: string; user_id?: string }

/** Parses `from`, a phone number, and `user_id`, of a customer who hides it. One of them is required. */
export const parseCustomerKey = ({ from, user_id: userId }: Record<string, unknown>): CustomerKey => {
  const digits = typeof from === 'string' ? stripNonDigits(from) : undefined
  if (from !== undefined && (digits === undefined || digits.length < 5 || digits.length > 15))
    throw invalidParameter('Param from must be a phone number of 5 to 15 digits.')
  if (userId !== undefined && (typeof userId !== 'string' || !isUserId(userId)))
    throw invalidParameter('Param user_id must look like US.13491208655302741918.')
  if (digits === undefined && userId === undefined) throw parameterRequired('from')
  return {
    ...(digits === undefined ? {} : { wa_id: digits }),
    ...(userId === undefined ? {} : { user_id: userId as string }),
  }
}

/**
 * Returns the message without its envelope: of `text`, or of `message` in the provider's form. Files are in
 * `data` as base64, or made up.
 */
const parseMessagePart = async (call: SandboxCall, number: SandboxNumber): Promise<Part> => {
  const { text, message } = call.body
  if (message === undefined) {
    if (!isNonEmptyText(text) || text.length > 4096)
      throw invalidParameter('Param text must be 1 to 4096 characters long, or message must be given.')
    return { type: 'text', text: { body: text } }
  }
  if (!isObject(message) || !isNonEmptyText(message.type) || message.type.length > 40)
    throw invalidParameter('Param message must have a type.')
  const part = Object.fromEntries(Object.entries(message).filter(([name]) => !RESERVED.includes(name)))
  if (message.type === 'unsupported')
    return {
      errors: [
        {
          code: 131051,
          title: 'Message type unknown',
          message: 'Message type unknown',
          error_data: { details: 'Message type is currently not supported.' },
        },
      ],
      ...part,
    }
  if (!(MEDIA_TYPES as readonly string[]).includes(message.type)) return part
  const file = message[message.type] ?? {}
  if (!isObject(file)) throw invalidParameter(`Param message['${message.type}'] must be an object.`)
  return {
    ...part,
    [message.type]: isNonEmptyText(file.id)
      ? file
      : await storeMessageMedia(call, number, message.type, file),
  }
}

const storeMessageMedia = async (
  call: SandboxCall,
  number: SandboxNumber,
  type: string,
  { data, ...file }: Record<string, unknown>,
): Promise<Record<string, unknown>> => {
  if (data !== undefined && (typeof data !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)))
    throw invalidParameter(`Param message['${type}']['data'] must be base64.`)
  const sample = samples[type]!
  const mimeType =
    isNonEmptyText(file.mime_type) && file.mime_type.length <= 200 ? file.mime_type : sample.mime_type
  const stored = await storeMedia(
    call,
    number.id,
    { mime_type: mimeType, bytes: Buffer.from((data as string | undefined) ?? sample.data, 'base64') },
    INBOUND_MEDIA_TTL_MS,
  )
  return {
    ...(type === 'audio'
      ? { voice: false }
      : type === 'sticker'
        ? { animated: false }
        : type === 'document'
          ? { filename: 'document.pdf' }
          : {}),
    ...file,
    ...stored,
  }
}
