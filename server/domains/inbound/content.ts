import type { Content, StoredContent } from '../../../catalog/message-content.ts'
import type { MessageType } from '../../../catalog/message-schemas.ts'
import type { NewMedia } from '../../../storage/messages/messages.ts'
import { type JsonObject, asNumber, asObject, asObjects, omitAbsent, asText } from './json.ts'

/**
 * A customer's message in the terms of this service. `text`: all that the customer said, in words; null for media
 * alone. `stored`: the same by its members, and where it came from. `replyTo`: the provider's id of the message it
 * replies to. `isNotice`: the customer wrote nothing, so that there is nothing to answer.
 */
export type InboundContent = {
  type: MessageType
  text: string | null
  stored?: StoredContent
  media?: NewMedia
  replyTo: string | null
  isNotice: boolean
}

const MAX_TEXT_LENGTH = 65_536
const CALL_PERMISSION = 'call_permission_reply'

/** Whether the provider tells of a customer, or of what the customer pressed, in the form of a message. */
const isNotice = (type: string, body: JsonObject): boolean =>
  type === 'system' || type === 'request_welcome' || body['type'] === CALL_PERMISSION

/** What changes another message (`parseMessageChange`) is none of its own. */
export const parseContent = (message: JsonObject): InboundContent => {
  const type = asText(message['type']) ?? 'unsupported'
  const body = asObject(message[type])
  const read = (Object.hasOwn(parsers, type) && parsers[type]!(body, message)) || unsupported(message)
  const context = asObject(message['context'])
  const stored = omitAbsent({
    content: read.content,
    ad: toAd(asObject(message['referral'])),
    product: toProduct(asObject(context['referred_product'])),
    forwarded:
      context['frequently_forwarded'] === true ? 'often' : context['forwarded'] === true ? 'once' : null,
  })
  return {
    type: read.type,
    text: read.text?.slice(0, MAX_TEXT_LENGTH) ?? null,
    ...(stored ? { stored } : {}),
    ...(read.media ? { media: read.media } : {}),
    replyTo: asText(context['id']),
    isNotice: isNotice(type, body),
  }
}

type ParsedContent = {
  type: MessageType
  text: string | null
  content?: Content
  media?: NewMedia
}
/** Returns undefined where the message has nothing of what its type promises. */
type ContentParser = (body: JsonObject, message: JsonObject) => ParsedContent | undefined

const toNumber = (value: unknown): number | null => asNumber(Number(asText(value) ?? NaN))

const joinLines = (...parts: readonly (string | null)[]): string => parts.filter(Boolean).join('\n')
const joinWords = (separator: string, ...parts: readonly unknown[]): string | null =>
  parts.map(asText).filter(Boolean).join(separator) || null

const mediaParser =
  (type: MessageType, toContent?: (body: JsonObject) => Content): ContentParser =>
  (body) => ({
    type,
    text: asText(body['caption']),
    ...(toContent ? { content: toContent(body) } : {}),
    media: {
      state: asText(body['id']) === null ? 'lost' : 'waiting',
      content_type: asText(body['mime_type']),
      file_name: asText(body['filename'])?.slice(0, 255) ?? null,
      sha256: asText(body['sha256']),
      provider_media_id: asText(body['id']),
    },
  })

const location: ContentParser = (body) => {
  const [latitude, longitude] = [asNumber(body['latitude']), asNumber(body['longitude'])]
  const [name, address, url] = [asText(body['name']), asText(body['address']), asText(body['url'])]
  const text =
    joinLines(name, address) || (latitude === null || longitude === null ? '' : `${latitude}, ${longitude}`)
  return text === ''
    ? undefined
    : { type: 'LOCATION', text, content: { kind: 'location', latitude, longitude, name, address, url } }
}

type Card = Extract<Content, { kind: 'contacts' }>['contacts'][number]

const toCard = (card: JsonObject): Card => {
  const [name, org] = [asObject(card['name']), asObject(card['org'])]
  const list = <K extends string>(member: string, field: K, read: (one: JsonObject) => string | null) =>
    asObjects(card[member]).flatMap((one) => {
      const value = read(one)
      return value === null
        ? []
        : [{ [field]: value, kind: asText(one['type']) } as Record<K, string> & { kind: string | null }]
    })
  return {
    name: asText(name['formatted_name']) ?? joinWords(' ', name['first_name'], name['last_name']),
    company: asText(org['company']),
    title: asText(org['title']),
    phones: asObjects(card['phones']).flatMap((one) => {
      const number = asText(one['wa_id'])
      const phone = asText(one['phone']) ?? number
      return phone === null ? [] : [{ phone, kind: asText(one['type']), chatapp_number: number }]
    }),
    emails: list('emails', 'email', (one) => asText(one['email'])),
    addresses: list('addresses', 'address', (one) =>
      joinWords(', ', one['street'], joinWords(' ', one['zip'], one['city']), one['state'], one['country']),
    ),
    urls: list('urls', 'url', (one) => asText(one['url'])),
    birthday: asText(card['birthday']),
    own: card['origin'] === 'contact_request',
  }
}

/** All of a card in lines. */
const describeCard = ({ name, company, title, phones, emails, addresses, urls, birthday }: Card): string =>
  joinLines(
    name,
    joinWords(', ', title, company),
    ...phones.map(({ phone, chatapp_number: number }) =>
      number === null || phone.replaceAll(/\D/g, '') === number ? phone : `${phone} (+${number})`,
    ),
    ...emails.map(({ email }) => email),
    ...addresses.map(({ address }) => address),
    ...urls.map(({ url }) => url),
    birthday,
  )

const contacts: ContentParser = (_, message) => {
  const cards = asObjects(message['contacts']).map(toCard)
  const text = joinLines(...cards.map(describeCard))
  return text === '' ? undefined : { type: 'CONTACTS', text, content: { kind: 'contacts', contacts: cards } }
}

/** The number of a card with which the customer answered the request to share it (`origin`, since 2026). */
export const findOwnNumber = (message: JsonObject): string | null => {
  const card = asObjects(message['contacts']).find(({ origin }) => origin === 'contact_request')
  const phone = asObjects(card?.['phones'])[0]
  return message['type'] === 'contacts' && phone ? (asText(phone['wa_id']) ?? asText(phone['phone'])) : null
}

const order: ContentParser = (body) => {
  const items = asObjects(body['product_items']).map((item) => ({
    product_id: asText(item['product_retailer_id']),
    quantity: toNumber(item['quantity']),
    price: toNumber(item['item_price']),
    currency: asText(item['currency']),
  }))
  const sums = new Map<string, number>()
  for (const { price, quantity, currency } of items)
    if (price !== null && currency !== null)
      sums.set(currency, (sums.get(currency) ?? 0) + price * (quantity ?? 1))
  // Sums of decimal fractions, which no currency has more than four of.
  const totals = Array.from(sums, ([currency, sum]) => ({ currency, amount: Math.round(sum * 1e4) / 1e4 }))
  const note = asText(body['text'])
  const text = joinLines(
    note,
    ...items.map(
      ({ product_id: id, quantity, price, currency }) =>
        `${quantity ?? 1} × ${id ?? '?'}${price === null ? '' : `, ${price} ${currency ?? ''}`.trimEnd()}`,
    ),
    ...totals.map(({ currency, amount }) => `Total ${amount} ${currency}`),
  )
  return text === ''
    ? undefined
    : {
        type: 'ORDER',
        text,
        content: { kind: 'order', catalog_id: asText(body['catalog_id']), note, items, totals },
      }
}

/** The answers of a form, whose names are such as `screen_0_Rating_1`: in the middle is what its author called it. */
const parseAnswers = (json: string | null): { field: string; label: string; value: string }[] => {
  let answers: unknown
  try {
    answers = JSON.parse(json ?? '')
  } catch {
    return []
  }
  return Object.entries(asObject(answers)).flatMap(([field, value]) => {
    const text = toAnswer(value)
    const label = field
      .replace(/^screen_\d+_/, '')
      .replace(/_\d+$/, '')
      .replaceAll('_', ' ')
    return field === 'flow_token' || text === '' ? [] : [{ field, label, value: text }]
  })
}

const toAnswer = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(toAnswer).filter(Boolean).join(', ')
    : typeof value === 'object' && value !== null
      ? JSON.stringify(value)
      : String(value ?? '')

const replies: Readonly<Record<string, (reply: JsonObject) => { text: string | null; content: Content }>> = {
  button_reply: (reply) => ({
    text: asText(reply['title']) ?? asText(reply['id']),
    content: { kind: 'button', payload: asText(reply['id']), title: asText(reply['title']) },
  }),
  list_reply: (reply) => ({
    text: joinLines(asText(reply['title']) ?? asText(reply['id']), asText(reply['description'])),
    content: {
      kind: 'list',
      row_id: asText(reply['id']),
      title: asText(reply['title']),
      description: asText(reply['description']),
    },
  }),
  nfm_reply: (reply) => {
    const values = parseAnswers(asText(reply['response_json']))
    const lines = values.map(({ label, value }) => `${label}: ${value}`)
    return {
      text: joinLines(...lines) || (asText(reply['body']) ?? asText(reply['name'])),
      content: { kind: 'form', name: asText(reply['name']), values },
    }
  },
  [CALL_PERMISSION]: (reply) => {
    const accepted = reply['response'] === 'accept'
    const until = asNumber(reply['expiration_timestamp'])
    return {
      text: `The customer ${accepted ? 'allows' : 'does not allow'} calls.`,
      content: {
        kind: 'call_permission',
        accepted,
        expires_at: until === null || !(Math.abs(until) < 8e12) ? null : new Date(until * 1000).toISOString(),
        automatic: reply['response_source'] === 'automatic',
      },
    }
  },
}

/** Replies to an interactive message. */
const interactive: ContentParser = (body) => {
  const kind = asText(body['type']) ?? ''
  if (!Object.hasOwn(replies, kind)) return undefined
  const { text, content } = replies[kind]!(asObject(body[kind]))
  return text ? { type: 'INTERACTIVE', text, content } : undefined
}

const MAX_UNKNOWN_TEXTS = 50

const listTexts = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(listTexts)
      : []

/** What cannot be read says what it is, why, and what words are in it. */
const unsupported = (message: JsonObject): ParsedContent => {
  const error = asObjects(message['errors'])[0] ?? {}
  const given = asText(message['type'])
  const body = given === null ? undefined : message[given]
  const type = given === 'unsupported' ? asText(asObject(body)['type']) : given
  const details = asText(asObject(error['error_data'])['details'])
  const reason = details ?? asText(error['title'])
  const what = type === null ? 'a message' : `a message of the kind ${type.replaceAll('_', ' ')}`
  return {
    type: 'SYSTEM',
    text: joinLines(
      joinWords(' ', `The customer sent ${what}, which cannot be shown.`, reason),
      ...(given === 'unsupported' ? [] : listTexts(body).slice(0, MAX_UNKNOWN_TEXTS)),
    ),
    content: { kind: 'unsupported', type, code: asNumber(error['code']), reason },
  }
}

const notice = (text: string, kind: string | null): ParsedContent => ({
  type: 'SYSTEM',
  text,
  content: { kind: 'notice', notice: kind },
})

const parsers: Readonly<Record<string, ContentParser>> = {
  text: (body) => {
    const text = asText(body['body'])
    return text === null ? undefined : { type: 'TEXT', text }
  },
  image: mediaParser('IMAGE'),
  video: mediaParser('VIDEO'),
  document: mediaParser('DOCUMENT'),
  audio: mediaParser('AUDIO', (body) => ({ kind: 'audio', voice: body['voice'] === true })),
  sticker: mediaParser('STICKER', (body) => ({ kind: 'sticker', animated: body['animated'] === true })),
  location,
  contacts,
  order,
  interactive,
  button: (body) => {
    const [payload, title] = [asText(body['payload']), asText(body['text'])]
    const text = title ?? payload
    return text === null
      ? undefined
      : { type: 'INTERACTIVE', text, content: { kind: 'button', payload, title } }
  },
  request_welcome: () => notice('The customer opened the chat.', 'request_welcome'),
  system: (body) => {
    const kind = asText(body['type'])
    const text =
      asText(body['body']) ?? `Notice of the provider: ${(kind ?? 'unknown').replaceAll('_', ' ')}.`
    return notice(text, kind)
  },
}

/** The ad or post that the customer came from. */
const toAd = (referral: JsonObject) =>
  omitAbsent(referral)
    ? {
        ad_id: asText(referral['source_id']),
        type: asText(referral['source_type']),
        url: asText(referral['source_url']),
        headline: asText(referral['headline']),
        text: asText(referral['body']),
        media_url: asText(referral['image_url']) ?? asText(referral['video_url']),
        click_id: asText(referral['ctwa_clid']),
      }
    : undefined

const toProduct = (product: JsonObject) =>
  omitAbsent(product)
    ? { catalog_id: asText(product['catalog_id']), product_id: asText(product['product_retailer_id']) }
    : undefined
