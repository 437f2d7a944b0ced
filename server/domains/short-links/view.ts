import type { EventData } from '../../../catalog/events.ts'
import type { ShortLinkRow } from '../../../storage/messages/short-links.ts'
import { toDigits } from './number.ts'
import { qrUrl } from './qr.ts'

export const showLink = (publicUrl: string, row: ShortLinkRow) => ({
  id: row.id,
  code: row.code,
  url: row.url,
  message: row.message,
  qr_image_url: row.qr_format === null ? null : qrUrl(publicUrl, row.qr_key!, row.qr_format),
  qr_image_format: row.qr_format,
  channel: { id: row.channel_id, name: row.channel_name, phone: toDigits(row.channel_identifier) },
  created_at: row.created_at,
  updated_at: row.updated_at,
})

export const toEventLink = ({
  id,
  code,
  url,
  message,
  channel_id,
}: ShortLinkRow): EventData<'short_link.created/1'> => ({
  short_link: { id, code, url, message, channel_id },
})
