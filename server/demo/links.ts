import { insertDemoShortLinks } from '../../storage/demo/templates.ts'
import type { Db } from '../../storage/database.ts'
import { newLinkCode } from '../../packages/sandbox/emulator/ids.ts'
import { drawQr, createQrKey, type QrFormat } from '../short-links/qr.ts'
import { DAY_MS, toIso } from './time.ts'

/** `channel`: index in the list of channels. */
type DemoLink = { channel: number; message: string; format: QrFormat | null; daysAgo: number }

const links: readonly DemoLink[] = [
  { channel: 0, message: 'Hello, I would like to order.', format: 'PNG', daysAgo: 90 },
  { channel: 1, message: 'Where is my order?', format: 'SVG', daysAgo: 31 },
  { channel: 0, message: 'Hallo! Ich habe eine Frage zum Herbstkaffee ☕', format: 'PNG', daysAgo: 12 },
  { channel: 0, message: 'I saw you at the market: tell me about the workshop.', format: null, daysAgo: 4 },
]

/** Inserts click-to-chat links as the sandbox creates them: they lead to this server. */
export const createDemoLinks = async (
  tx: Db,
  workspaceId: string,
  {
    channelIds,
    createdBy,
    publicUrl,
    now,
  }: { channelIds: readonly string[]; createdBy: string; publicUrl: string; now: string },
): Promise<void> => {
  await insertDemoShortLinks(
    tx,
    workspaceId,
    await Promise.all(
      links.map(async ({ channel, message, format, daysAgo }) => {
        const code = newLinkCode()
        const url = `${publicUrl}/message/${code}`
        return {
          channel_id: channelIds[channel]!,
          code,
          url,
          message,
          qr_format: format,
          qr: format && (await drawQr(url, format)),
          qr_key: format && createQrKey(),
          created_by: createdBy,
          at: toIso(Date.parse(now) - daysAgo * DAY_MS),
        }
      }),
    ),
  )
}
