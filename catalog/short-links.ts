import { z } from 'zod'
import { deleted, Id, idOf, listWithTotal, page, Search, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

const ShortLink = z
  .object({
    id: idOf('short_link').nullable().describe('Short link id; null in a dry run.'),
    code: z.string().nullable().describe('The code at the end of the link; null in a dry run.'),
    url: z.string().nullable().describe('The click-to-chat link; null in a dry run.'),
    message: z.string().nullable().describe('Text that the link prefills for the customer.'),
    qr_image_url: z
      .string()
      .nullable()
      .describe(
        'URL of the QR image of `url`, readable without a key; null if there is none, and in a dry run.',
      ),
    qr_image_format: z
      .enum(['PNG', 'SVG'])
      .nullable()
      .describe('Format of the image; null when there is none.'),
    channel: z
      .object({
        id: Id.describe('Channel id.'),
        name: z.string().nullable().describe('Name.'),
        phone: z.string().nullable().describe('Business number.'),
      })
      .nullable()
      .describe('The phone number it opens a chat with.'),
    created_at: Timestamp.nullable().describe('When it was created; null in a dry run.'),
    updated_at: Timestamp.nullable().describe('When it was last changed; null in a dry run.'),
  })
  .meta({ id: 'ShortLink' })

/**
 * One emoji as displayed: flags, keycaps, skin tones and joined sequences (UTS 51), but not signs
 * that are shown as text, such as ©.
 */
const EMOJI = new RegExp(
  [
    String.raw`\p{RI}{2}|[0-9#*]\uFE0F?\u20E3|`,
    String.raw`(?:\p{EBase}\uFE0F?\p{EMod}|\p{EPres}\uFE0F?|`,
    String.raw`\p{ExtPict}\uFE0F|\p{ExtPict}(?=\u200D\p{ExtPict}))`,
    String.raw`(?:[\u{E0020}-\u{E007E}]+\u{E007F})?(?:\u200D\p{ExtPict}\uFE0F?\p{EMod}?)*`,
  ].join(''),
  'gu',
)

/** Returns the length as the provider counts it: an emoji, of however many code points, counts as 2. */
export const countLinkCharacters = (message: string): number => [...message.replaceAll(EMOJI, '--')].length

const MAX_MESSAGE_LENGTH = 140
/** In UTF-16 units: enough for the maximum count of the longest emoji. */
const MAX_MESSAGE_UNITS = 2000

const Message = z
  .string()
  .trim()
  .min(1)
  .max(MAX_MESSAGE_UNITS)
  .superRefine((message, ctx) => {
    const control = /[^\P{Cc}\n]/u.exec(message)?.[0]
    if (control !== undefined) {
      const name = `U+${control.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
      ctx.addIssue({
        code: 'custom',
        message: `must be plain text: it contains the control character ${name}`,
        params: { code: 'invalid_text', fix: `Remove ${name}; a line break is U+000A alone.` },
      })
    }
    const length = message.length > MAX_MESSAGE_UNITS ? 0 : countLinkCharacters(message)
    if (length > MAX_MESSAGE_LENGTH) {
      ctx.addIssue({
        code: 'custom',
        message:
          `must have at most ${MAX_MESSAGE_LENGTH} characters, an emoji counting as 2; ` + `it has ${length}`,
        params: { code: 'too_long', fix: `Shorten it by ${length - MAX_MESSAGE_LENGTH}.` },
      })
    }
  })

const row = {
  id: '1',
  code: 'ANED2T5QRU7HG1',
  url: 'https://wcrm.example.com/message/ANED2T5QRU7HG1',
  message: 'Hello, I would like to order.',
  qr_image_url: 'https://wcrm.example.com/qr/5d41402abc4b2a76b9719d911017c592.png',
  qr_image_format: 'PNG' as const,
  channel: { id: '1', name: 'Shop', phone: '15550100000' },
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
}

export const listShortLinks = defineOperation({
  name: 'messaging_list_short_links',
  cli: 'short-links list',
  routes: ['GET /v1/short-links'],
  since,
  stability: 'stable',
  summary: 'List click-to-chat links, newest first',
  slim: ['id', 'url', 'message', 'channel.name'],
  words: 'click-to-chat links, wa.me links, QR codes, all links, URLs, clicks',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'url' },
    { path: 'message', wrap: true },
    { path: 'channel.name', title: 'channel' },
    { path: 'created_at', title: 'created' },
  ],
  input: z.object({
    channel_id: Id.optional().describe('Only on this channel.'),
    search: Search('Message or code'),
    ...page,
  }),
  output: z.object(listWithTotal(ShortLink)),
  errors: [],
  examples: [
    {
      title: 'Links to order',
      input: { search: 'order' },
      output: { data: [row], total: 1, next_cursor: null },
    },
  ],
})

export const createShortLink = defineOperation({
  name: 'messaging_create_short_link',
  cli: 'short-links create',
  routes: [{ route: 'POST /v1/short-links', status: 201 }],
  since,
  stability: 'beta',
  summary: 'Create a click-to-chat link with a QR image',
  description:
    'Send the channel or its phone when several numbers are connected. A second link with the same ' +
    'message on the same number is refused unless `allow_duplicate` is true; the error names the first ' +
    'in `existing_id`. After `outcome_unknown`, repeat with the same key: it finds the link, or ' +
    'creates it again after 15 minutes at the earliest. Without a messaging provider it is a 503 ' +
    '`service_unconfigured`, dry runs too.',
  words:
    'create a QR code, wa.me link, click-to-chat link, short URL, invite link, link for a website or ' +
    'poster, invite customers to write to us',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'required',
  effect: 'sends',
  repeatable: false,
  emits: ['short_link.created/1'],
  input: z.object({
    message: Message.describe(
      '1 to 140 characters of plain text; an emoji counts as 2. Line breaks are kept; leading ' +
        'and trailing white space is removed. Do not URL-encode it.',
    ),
    channel_id: z
      .string()
      .max(64)
      .optional()
      .describe('Channel of the number; required only when several numbers are connected.'),
    phone: z
      .string()
      .max(32)
      .optional()
      .describe('The phone number, in any notation; alternative to `channel_id`.'),
    qr_format: z
      .enum(['PNG', 'SVG', 'NONE'])
      .default('PNG')
      .describe('Format of the QR image; `NONE` for no image.'),
    allow_duplicate: z.boolean().default(false).describe('Create a second link with the same message.'),
  }),
  output: ShortLink,
  errors: ['not_found', 'conflict', 'upstream_error', 'service_unconfigured'],
  examples: [
    {
      title: 'A link for the shop window',
      input: { message: 'Hello, I saw your shop window.', channel_id: '1' },
      output: { ...row, id: '31', message: 'Hello, I saw your shop window.' },
    },
  ],
})

export const getShortLink = defineOperation({
  name: 'messaging_get_short_link',
  cli: 'short-links get',
  routes: ['GET /v1/short-links/{short_link_id}'],
  since,
  stability: 'stable',
  summary: 'Get one click-to-chat link',
  words: 'clicks of a link, link statistics, QR image, how often was it opened',
  scope: 'mcp:read',
  input: z.object({ short_link_id: idOf('short_link').describe('Short link id.') }),
  output: ShortLink,
  errors: ['not_found'],
  examples: [{ title: 'One link', input: { short_link_id: '1' }, output: row }],
})

export const deleteShortLink = defineOperation({
  name: 'messaging_delete_short_link',
  cli: 'short-links delete',
  routes: ['DELETE /v1/short-links/{short_link_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a click-to-chat link, so that it no longer works',
  description: 'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words: 'deactivate a link, remove a QR code, disable URL, a link must not work any more, stop',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  effect: 'replaces_and_sends',
  repeatable: true,
  emits: ['short_link.deleted/1'],
  input: z.object({ short_link_id: idOf('short_link').describe('Short link id.') }),
  output: z.object(deleted),
  errors: ['not_found', 'conflict', 'confirm_required', 'upstream_error', 'service_unconfigured'],
  examples: [{ title: 'Delete a link', input: { short_link_id: '1' }, output: { id: '1', deleted: true } }],
})
