import type { MessageType } from '../../../catalog/message-schemas.ts'
import type { NewMedia } from '../../../storage/messages/messages.ts'
import { type JsonObject, asNumber, asObject, asObjects, omitAbsent, asText } from './json.ts'

/**
 * A customer's message in the terms of this service. `text`: what staff read. `content`: what the type has
 * beyond text. `replyTo`: the provider's id of the message it replies to. `isNotice`: the customer wrote nothing,
 * so that there is nothing to answer.
 */
export type InboundContent = {
  type: MessageType
  text: string | null
  content?: JsonObject
  media?: NewMedia
  replyTo: string | null
  ad: boolean
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
  const read = Object.hasOwn(parsers, type) ? parsers[type]!(body, message) : unsupported(body, message)
  const context = asObject(message['context'])
  const content = omitAbsent({
    ...read.content,
    forwarded: toForwarded(context),
    ad: toAd(asObject(message['referral'])),
  })
  return {
    type: read.type,
    text: read.text === null ? null : read.text.slice(0, MAX_TEXT_LENGTH),
    ...(content ? { content } : {}),
    ...(read.media ? { media: read.media } : {}),
    replyTo: asText(context['id']),
    ad: content?.['ad'] !== undefined,
    isNotice: isNotice(type, body),
  }
}

type ParsedContent = {
  type: MessageType
  text: string | null
  content?: JsonObject
  media?: NewMedia
}
type ContentParser = (body: JsonObject, message: JsonObject) => ParsedContent

const mediaParser =
  (type: MessageType, own: (body: JsonObject) => JsonObject = () => ({})): ContentParser =>
  (body) => ({
    type,
    text: asText(body['caption']),
    content: own(body),
    media: {
      state: asText(body['id']) === null ? 'lost' : 'waiting',
      content_type: asText(body['mime_type']),
      file_name: asText(body['filename'])?.slice(0, 255) ?? null,
      sha256: asText(body['sha256']),
      provider_media_id: asText(body['id']),
    },
  })

const joinLines = (...parts: readonly (string | null)[]): string | null =>
  parts.filter((part) => part !== null).join('\n') || null

const location: ContentParser = (body) => {
  const [latitude, longitude] = [asNumber(body['latitude']), asNumber(body['longitude'])]
  const place = joinLines(asText(body['name']), asText(body['address']))
  return {
    type: 'LOCATION',
    text: place ?? (latitude === null || longitude === null ? null : `${latitude}, ${longitude}`),
    content: {
      location: omitAbsent({
        latitude,
        longitude,
        name: asText(body['name']),
        address: asText(body['address']),
        url: asText(body['url']),
      }),
    },
  }
}

const contacts: ContentParser = (_, message) => {
  const people = asObjects(message['contacts'])
  const nameOf = (person: JsonObject): string | null => {
    const name = asObject(person['name'])
    return (
      asText(name['formatted_name']) ??
      ([asText(name['first_name']), asText(name['last_name'])].filter(Boolean).join(' ') || null)
    )
  }
  return {
    type: 'CONTACTS',
    text: people.map(nameOf).filter(Boolean).join(', ') || null,
    content: { contacts: people },
  }
}

const order: ContentParser = (body) => {
  const items = asObjects(body['product_items'])
  const text = items.map(
    (item) => `${asText(item['quantity']) ?? '1'} × ${asText(item['product_retailer_id']) ?? '?'}`,
  )
  return {
    type: 'ORDER',
    text: joinLines(asText(body['text']), ...text),
    content: { order: omitAbsent({ catalog_id: asText(body['catalog_id']), items }) },
  }
}

const replyKinds: Readonly<Record<string, string>> = {
  button_reply: 'button',
  list_reply: 'list',
  nfm_reply: 'form',
}

/** Replies to an interactive message: a button, a row of a list, a form. */
const interactive: ContentParser = (body) => {
  const kind = asText(body['type']) ?? ''
  const reply = asObject(body[kind])
  return {
    type: 'INTERACTIVE',
    text:
      kind === CALL_PERMISSION
        ? `The customer ${reply['response'] === 'accept' ? 'allows' : 'does not allow'} calls.`
        : (asText(reply['title']) ?? asText(reply['body']) ?? asText(reply['name'])),
    content: {
      reply: omitAbsent({
        kind: Object.hasOwn(replyKinds, kind) ? replyKinds[kind] : kind,
        id: asText(reply['id']),
        title: asText(reply['title']),
        description: asText(reply['description']),
        name: asText(reply['name']),
        values: asText(reply['response_json']),
      }),
    },
  }
}

const unsupported: ContentParser = (_, message) => {
  const error = asObjects(message['errors'])[0] ?? {}
  const kind = asText(message['type'])
  return {
    type: 'SYSTEM',
    text: 'The customer sent a message of a kind that cannot be shown.',
    content: {
      unsupported: omitAbsent({
        type: kind === 'unsupported' ? null : kind,
        code: asNumber(error['code']),
        title: asText(error['title']),
        details: asText(asObject(error['error_data'])['details']),
      }),
    },
  }
}

const parsers: Readonly<Record<string, ContentParser>> = {
  text: (body) => ({ type: 'TEXT', text: asText(body['body']) }),
  image: mediaParser('IMAGE'),
  video: mediaParser('VIDEO'),
  document: mediaParser('DOCUMENT'),
  audio: mediaParser('AUDIO', (body) => ({ voice: body['voice'] === true ? true : null })),
  sticker: mediaParser('STICKER', (body) => ({ animated: body['animated'] === true ? true : null })),
  location,
  contacts,
  order,
  interactive,
  unsupported,
  button: (body) => ({
    type: 'INTERACTIVE',
    text: asText(body['text']),
    content: {
      reply: omitAbsent({ kind: 'button', id: asText(body['payload']), title: asText(body['text']) }),
    },
  }),
  request_welcome: () => ({ type: 'SYSTEM', text: 'The customer opened the chat.' }),
  system: (body) => {
    const kind = asText(body['type'])
    return {
      type: 'SYSTEM',
      text: asText(body['body']) ?? `Notice of the provider: ${(kind ?? 'unknown').replaceAll('_', ' ')}.`,
      content: { system: omitAbsent({ kind }) },
    }
  },
}

const toForwarded = (context: JsonObject): string | null =>
  context['frequently_forwarded'] === true ? 'often' : context['forwarded'] === true ? 'once' : null

/** The ad or post that the customer came from. */
const toAd = (referral: JsonObject): JsonObject | undefined =>
  omitAbsent({
    kind: asText(referral['source_type']),
    id: asText(referral['source_id']),
    url: asText(referral['source_url']),
    headline: asText(referral['headline']),
    text: asText(referral['body']),
    media_type: asText(referral['media_type']),
    media_url: asText(referral['image_url']) ?? asText(referral['video_url']),
    click_id: asText(referral['ctwa_clid']),
  })
