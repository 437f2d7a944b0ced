import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import { findSandboxCustomer, type SandboxCustomer, upsertSandboxCustomer } from '../storage/customers.ts'
import { insertSandboxMessage } from '../storage/messages.ts'
import { findSandboxNumber, type SandboxNumber } from '../storage/numbers.ts'
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
  const part = await parseMessagePart(call, number)
  const isEcho = body.echo === true
  const extra = {
    ...(isNonEmptyText(body.reply_to) ? { context: { from: number.digits, id: body.reply_to } } : {}),
    ...(body.ad === undefined || body.ad === false
      ? {}
      : { referral: { ...referral, ...(isObject(body.ad) ? body.ad : {}) } }),
  }
  return await inTransaction(call.db, async (tx) => {
    const at = timeAt(call, number)
    const known = await findCustomer(tx, number.id, customerKey)
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
    return okResponse({ id })
  })
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
const parseMessagePart = async (
  call: SandboxCall,
  number: SandboxNumber,
): Promise<Record<string, unknown>> => {
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
