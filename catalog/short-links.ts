import { z } from 'zod'
import { deleted, Id, listWithTotal, page, Search, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

const since = '2026-10-01'

export const ShortLink = z.object({
  id: Id.nullable().describe('Short link id; null in a dry run.'),
  code: z.string().nullable().describe('The code at the end of the link; null in a dry run.'),
  url: z.string().nullable().describe('The click-to-chat link; null in a dry run.'),
  message: z.string().nullable().describe('Text that the customer finds typed.'),
  qr_image_url: z.string().nullable().describe('Our own copy of the QR image, read without a key.'),
  qr_image_format: z.enum(['PNG', 'SVG']).nullable().describe('Format of the image.'),
  channel: z.object({
    id: Id.describe('Channel id.'), name: z.string().nullable().describe('Name.'), phone: z.string().nullable().describe('Business number.'),
  }).nullable().describe('The number it leads to.'),
  created_at: Timestamp.nullable().describe('When it was made.'),
  updated_at: Timestamp.nullable().describe('When it last changed.'),
}).meta({ id: 'ShortLink' })

/** As the provider counts: an emoji counts as 2 (spec, POST /v1/short-links). */
export const linkLength = (message: string): number =>
  [...new Intl.Segmenter('und', { granularity: 'grapheme' }).segment(message)].reduce((n, { segment }) => n + (/\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20E3/u.test(segment) ? 2 : [...segment].length), 0)

const row = {
  id: '31', code: 'ANED2T5QRU7HG1', url: 'https://wcrm.example.com/message/ANED2T5QRU7HG1', message: 'Hello, I would like to order.', qr_image_url: 'https://wcrm.example.com/qr/31.png',
  qr_image_format: 'PNG' as const, channel: { id: '1', name: 'Shop', phone: '15550100000' }, created_at: '2026-10-01T09:30:00.000Z', updated_at: '2026-10-01T09:30:00.000Z',
}

export const listShortLinks = operation({
  name: 'messaging_list_short_links', cli: 'short-links list', routes: ['GET /v1/short-links'], since, stability: 'stable',
  summary: 'List click-to-chat links, newest first',
  scope: 'mcp:read',
  input: z.object({ channel_id: Id.optional().describe('Only of this channel.'), search: Search('Message or code'), ...page }),
  output: z.object(listWithTotal(ShortLink)),
  errors: [],
  examples: [{ title: 'Links to order', input: { search: 'order' }, output: { data: [row], total: 1, next_cursor: null } }],
})

export const createShortLink = operation({
  name: 'messaging_create_short_link', cli: 'short-links create', routes: [{ route: 'POST /v1/short-links', status: 201 }], since, stability: 'beta',
  summary: 'Make a click-to-chat link with a QR image',
  description: 'Name the channel or its phone when several numbers are connected. A second link with the same message on the same number is refused unless `allow_duplicate`.',
  scope: 'messaging:write', dryRun: true, idempotency: 'required', repeatable: false, emits: ['short_link.created/1'],
  input: z.object({
    message: z.string().min(1).max(1000).describe('1 to 140 characters of plain text, an emoji counts as 2; not URL-encoded.'),
    channel_id: z.string().max(64).optional().describe('Channel of the number.'),
    phone: z.string().max(32).optional().describe('The number itself, in any form, instead of `channel_id`.'),
    qr_format: z.enum(['PNG', 'SVG', 'NONE']).default('PNG').describe('Format of the QR image.'),
    allow_duplicate: z.boolean().default(false).describe('Make a second link with the same message.'),
  }),
  output: ShortLink,
  errors: ['not_found', 'conflict', 'upstream_error'],
  examples: [{ title: 'A link for the shop window', input: { message: 'Hello, I would like to order.' }, output: row }],
})

export const getShortLink = operation({
  name: 'messaging_get_short_link', cli: 'short-links get', routes: ['GET /v1/short-links/{short_link_id}'], since, stability: 'stable',
  summary: 'Get one click-to-chat link',
  scope: 'mcp:read',
  input: z.object({ short_link_id: Id.describe('Short link id.') }),
  output: ShortLink,
  errors: ['not_found'],
  examples: [{ title: 'One link', input: { short_link_id: '31' }, output: row }],
})

export const deleteShortLink = operation({
  name: 'messaging_delete_short_link', cli: 'short-links delete', routes: ['DELETE /v1/short-links/{short_link_id}'], since, stability: 'stable',
  summary: 'Delete a click-to-chat link, so that it no longer works',
  scope: 'messaging:write', dryRun: true, idempotency: 'optional', confirm: 'delete', repeatable: true, emits: ['short_link.deleted/1'],
  input: z.object({ short_link_id: Id.describe('Short link id.') }),
  output: z.object(deleted),
  errors: ['not_found', 'conflict', 'confirm_required', 'upstream_error'],
  examples: [{ title: 'Gone', input: { short_link_id: '31' }, output: { id: '31', deleted: true } }],
})
