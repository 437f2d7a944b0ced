import type { MessageType } from '../../catalog/messages.ts'
import type { NewMedia } from '../../storage/messages.ts'
import { type Json, numberOf, objectOf, objectsOf, present, textOf } from './json.ts'

/**
 * What a customer's message is in our words. `text`: what a reader sees of it. `content`: what the type has
 * beyond text. `replyTo`: the provider's id of the message it answers. `opensWindow`: false for what the
 * customer did not write.
 */
export type Content = {
  type: MessageType
  text: string | null
  content?: Json
  media?: NewMedia
  replyTo: string | null
  ad: boolean
  opensWindow: boolean
}

const LONGEST_TEXT = 65_536

/** Null when the message is nothing to show, as a reaction that was taken back. */
export const contentOf = (message: Json): Content | null => {
  const type = textOf(message['type']) ?? 'unsupported'
  const body = objectOf(message[type])
  const read = Object.hasOwn(readers, type) ? readers[type]!(body, message) : unsupported(body, message)
  if (read === null) return null
  const context = objectOf(message['context'])
  const content = present({
    ...read.content,
    forwarded: forwardedOf(context),
    ad: adOf(objectOf(message['referral'])),
  })
  return {
    type: read.type,
    text: read.text === null ? null : read.text.slice(0, LONGEST_TEXT),
    ...(content ? { content } : {}),
    ...(read.media ? { media: read.media } : {}),
    replyTo: read.replyTo ?? textOf(context['id']),
    ad: content?.['ad'] !== undefined,
    opensWindow: type !== 'system',
  }
}

type Read = {
  type: MessageType
  text: string | null
  content?: Json
  media?: NewMedia
  replyTo?: string | null
}
type Reader = (body: Json, message: Json) => Read | null

const media =
  (type: MessageType, own: (body: Json) => Json = () => ({})): Reader =>
  (body) => ({
    type,
    text: textOf(body['caption']),
    content: own(body),
    media: {
      state: textOf(body['id']) === null ? 'lost' : 'waiting',
      content_type: textOf(body['mime_type']),
      file_name: textOf(body['filename'])?.slice(0, 255) ?? null,
      sha256: textOf(body['sha256']),
      provider_media_id: textOf(body['id']),
    },
  })

const lines = (...parts: readonly (string | null)[]): string | null =>
  parts.filter((part) => part !== null).join('\n') || null

const location: Reader = (body) => {
  const [latitude, longitude] = [numberOf(body['latitude']), numberOf(body['longitude'])]
  const place = lines(textOf(body['name']), textOf(body['address']))
  return {
    type: 'LOCATION',
    text: place ?? (latitude === null || longitude === null ? null : `${latitude}, ${longitude}`),
    content: {
      location: present({
        latitude,
        longitude,
        name: textOf(body['name']),
        address: textOf(body['address']),
        url: textOf(body['url']),
      }),
    },
  }
}

const contacts: Reader = (_, message) => {
  const people = objectsOf(message['contacts'])
  const nameOf = (person: Json): string | null => {
    const name = objectOf(person['name'])
    return (
      textOf(name['formatted_name']) ??
      ([textOf(name['first_name']), textOf(name['last_name'])].filter(Boolean).join(' ') || null)
    )
  }
  return {
    type: 'CONTACTS',
    text: people.map(nameOf).filter(Boolean).join(', ') || null,
    content: { contacts: people },
  }
}

const order: Reader = (body) => {
  const items = objectsOf(body['product_items'])
  const text = items.map(
    (item) => `${textOf(item['quantity']) ?? '1'} × ${textOf(item['product_retailer_id']) ?? '?'}`,
  )
  return {
    type: 'ORDER',
    text: lines(textOf(body['text']), ...text),
    content: { order: present({ catalog_id: textOf(body['catalog_id']), items }) },
  }
}

/** The replies that an interactive message offers: a button, a row of a list, a form. */
const interactive: Reader = (body) => {
  const kind = textOf(body['type']) ?? ''
  const reply = objectOf(body[kind])
  const kinds: Record<string, string> = { button_reply: 'button', list_reply: 'list', nfm_reply: 'form' }
  return {
    type: 'INTERACTIVE',
    text: textOf(reply['title']) ?? textOf(reply['body']) ?? textOf(reply['name']),
    content: {
      reply: present({
        kind: kinds[kind] ?? kind,
        id: textOf(reply['id']),
        title: textOf(reply['title']),
        description: textOf(reply['description']),
        name: textOf(reply['name']),
        values: textOf(reply['response_json']),
      }),
    },
  }
}

/** A reaction is a short answer to the message it is on; without an emoji it takes one back. */
const reaction: Reader = (body) => {
  const emoji = textOf(body['emoji'])
  return emoji === null
    ? null
    : { type: 'TEXT', text: emoji, content: { reaction: emoji }, replyTo: textOf(body['message_id']) }
}

const unsupported: Reader = (_, message) => {
  const error = objectsOf(message['errors'])[0] ?? {}
  const kind = textOf(message['type'])
  return {
    type: 'SYSTEM',
    text: 'The customer sent a message of a kind that cannot be shown.',
    content: {
      unsupported: present({
        type: kind === 'unsupported' ? null : kind,
        code: numberOf(error['code']),
        title: textOf(error['title']),
        details: textOf(objectOf(error['error_data'])['details']),
      }),
    },
  }
}

const readers: Readonly<Record<string, Reader>> = {
  text: (body) => ({ type: 'TEXT', text: textOf(body['body']) }),
  image: media('IMAGE'),
  video: media('VIDEO'),
  document: media('DOCUMENT'),
  audio: media('AUDIO', (body) => ({ voice: body['voice'] === true ? true : null })),
  sticker: media('STICKER', (body) => ({ animated: body['animated'] === true ? true : null })),
  location,
  contacts,
  order,
  interactive,
  reaction,
  unsupported,
  button: (body) => ({
    type: 'INTERACTIVE',
    text: textOf(body['text']),
    content: { reply: present({ kind: 'button', id: textOf(body['payload']), title: textOf(body['text']) }) },
  }),
  system: (body) => ({
    type: 'SYSTEM',
    text: textOf(body['body']),
    content: { system: present({ kind: textOf(body['type']) }) },
  }),
}

const forwardedOf = (context: Json): string | null =>
  context['frequently_forwarded'] === true ? 'often' : context['forwarded'] === true ? 'once' : null

/** The ad or post that the customer came from. */
const adOf = (referral: Json): Json | undefined =>
  present({
    kind: textOf(referral['source_type']),
    id: textOf(referral['source_id']),
    url: textOf(referral['source_url']),
    headline: textOf(referral['headline']),
    text: textOf(referral['body']),
    media_type: textOf(referral['media_type']),
    media_url: textOf(referral['image_url']) ?? textOf(referral['video_url']),
    click_id: textOf(referral['ctwa_clid']),
  })
