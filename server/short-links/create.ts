import {
  deletePendingLink,
  findLinkByMessage,
  insertPendingLink,
  listNumbers,
  lockLinkMessage,
  noteLinkCall,
  readPendingLink,
  readShortLink,
  takeCode,
  takenCodes,
  writeMadeLink,
} from '../../storage/short-links.ts'
import type { Context } from '../core/context.ts'
import { AT_WORK_MS, inThreeParts } from '../messaging/send.ts'
import type { How, InputOf, OutputOf, ProviderHandler } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { lookUp, outcomeUnknown, type ProviderLink } from '../provider/port.ts'
import { chooseNumber, digitsOf } from './number.ts'
import { drawQr, newQrKey, type QrFormat } from './qr.ts'
import { eventLink, showLink } from './view.ts'

/**
 * The link's row is committed before the provider is asked, so that a second one with its message is
 * refused from then on.
 */
type Intent = {
  workspaceId: string
  linkId: string
  channelId: string
  phoneNumberId: string
  message: string
  qrFormat: QrFormat | null
}
/** Without a code in a rehearsal. */
type Result = { code: string; url: string; qr: Uint8Array | null } | { code: null }

const prepare = async (ctx: Context, input: InputOf<'messaging_create_short_link'>): Promise<Intent> => {
  const {
    tx,
    actor: { workspace, staff },
  } = ctx
  const { message } = input
  const number = await chooseNumber(ctx, input)
  await lockLinkMessage(tx, workspace.id, number.id, message)
  const there = input.allow_duplicate
    ? undefined
    : await findLinkByMessage(tx, workspace.id, number.id, message)
  if (there) {
    throw new Problem(
      'conflict',
      `${there.made ? 'There is a link' : 'A link is being made'} with this message on channel ${number.id}. Use it, or send allow_duplicate.`,
      {
        reason: 'duplicate',
        existing_id: there.id,
      },
    )
  }
  const qrFormat = input.qr_format === 'NONE' ? null : input.qr_format
  // Real time: how long the provider is silent is no matter of the business's clock, which can be advanced.
  const calledAt = new Date().toISOString()
  const linkId = await insertPendingLink(
    tx,
    workspace.id,
    { channel_id: number.id, message, qr_format: qrFormat, created_by: staff.id, called_at: calledAt },
    ctx.now,
  )
  return {
    workspaceId: workspace.id,
    linkId,
    channelId: number.id,
    phoneNumberId: number.provider_phone_number_id!,
    message,
    qrFormat,
  }
}

const call = async (intent: Intent, how: How): Promise<Result> => {
  const { code, url } = (how.again ? await madeEarlier(intent, how) : undefined) ?? (await make(intent, how))
  return { code, url, qr: intent.qrFormat && (await drawQr(url, intent.qrFormat)) }
}

/**
 * The provider knows links by nothing but their message, so two with the same message, made at once, can
 * each take the other's for its own: then it takes the other's in turn, and only when there is none is
 * another made.
 */
const make = async (intent: Intent, how: How): Promise<ProviderLink> => {
  const { workspaceId, linkId, phoneNumberId } = intent
  for (;;) {
    const link = await ask(intent, how)
    if (await takeCode(how.tx, workspaceId, linkId, link.code)) return link
    const row = await readPendingLink(how.tx, workspaceId, linkId)
    // Whoever took over from us was quicker: this one is too many.
    if (row?.code !== null) await how.provider.deleteLink({ phoneNumberId }, link.code, how.signal)
    const other = row?.code === null ? await find(intent, how) : await madeEarlier(intent, how)
    if (other) return other
  }
}

const ask = async (
  { workspaceId, linkId, phoneNumberId, message }: Intent,
  { provider, signal, tx }: How,
): Promise<ProviderLink> => {
  try {
    // The QR image is our own: the provider's expires.
    return await provider.createLink({ phoneNumberId }, { message, qrFormat: null }, signal)
  } catch (error) {
    if (error instanceof Problem && error.code === 'upstream_unavailable' && !outcomeUnknown(error))
      await noteNothingDone(tx, workspaceId, linkId)
    throw error
  }
}

/** The next call need not wait, as this one was not taken. */
const noteNothingDone = async (tx: How['tx'], workspaceId: string, linkId: string): Promise<void> => {
  const row = await readPendingLink(tx, workspaceId, linkId)
  if (row) await noteLinkCall(tx, workspaceId, linkId, row.called_at, null)
}

/** The link that an earlier call made; undefined when it may be made now. */
const madeEarlier = async (intent: Intent, how: How): Promise<ProviderLink | undefined> => {
  const { workspaceId, linkId, phoneNumberId } = intent
  const row = await readPendingLink(how.tx, workspaceId, linkId)
  if (!row)
    throw new Problem(
      'upstream_error',
      'The link was taken back meanwhile. Make it anew, with a fresh Idempotency-Key.',
    )
  if (row.code !== null) {
    const known = await lookUp(how.provider.findLink({ phoneNumberId }, row.code, how.signal))
    if (!known)
      throw new Problem(
        'upstream_error',
        'The link was deleted at the messaging provider meanwhile. Make it anew, with a fresh Idempotency-Key.',
      )
    return known
  }
  if (row.called_at !== null) {
    const found = await find(intent, how)
    if (found) return found
    const wait = Date.parse(row.called_at) + AT_WORK_MS - Date.now()
    if (wait > 0) throw unanswered(wait)
  }
  if (!(await noteLinkCall(how.tx, workspaceId, linkId, row.called_at, new Date().toISOString())))
    throw unanswered(AT_WORK_MS)
  return undefined
}

const unanswered = (waitMs: number): Problem =>
  new Problem(
    'timeout',
    'The messaging provider has not said yet whether it made the link. Retry with the same Idempotency-Key; it never runs twice.',
    {},
    { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  )

/** The newest link at the provider with this message that stands for none of ours; it is taken. */
const find = async (
  { workspaceId, linkId, channelId, phoneNumberId, message }: Intent,
  { provider, signal, tx }: How,
): Promise<ProviderLink | undefined> => {
  const same = (await lookUp(provider.listLinks({ phoneNumberId }, signal))).filter(
    (link) => link.message === message,
  )
  const taken = await takenCodes(
    tx,
    workspaceId,
    channelId,
    same.map((link) => link.code),
  )
  for (const link of same)
    if (!taken.has(link.code) && (await takeCode(tx, workspaceId, linkId, link.code))) return link
  return undefined
}

const settle = async (
  ctx: Context,
  intent: Intent,
  made: Result,
): Promise<OutputOf<'messaging_create_short_link'>> => {
  const { workspaceId, linkId, qrFormat } = intent
  if (made.code === null) return await rehearsed(ctx, intent)
  await writeMadeLink(
    ctx.tx,
    workspaceId,
    linkId,
    { code: made.code, url: made.url, qr: made.qr, qr_key: qrFormat && newQrKey() },
    ctx.now,
  )
  const row = await readShortLink(ctx.tx, workspaceId, linkId)
  if (!row)
    throw new Problem(
      'upstream_error',
      'The link was taken back meanwhile. Make it anew, with a fresh Idempotency-Key.',
    )
  ctx.emit('short_link.created/1', eventLink(row))
  return showLink(ctx.publicUrl, row)
}

/** What is not there yet has neither an id nor an address, and no time. */
const rehearsed = async (
  ctx: Context,
  { channelId, message, qrFormat }: Intent,
): Promise<OutputOf<'messaging_create_short_link'>> => {
  const { id, name, identifier } = (await listNumbers(ctx.tx, ctx.actor.workspace.id)).find(
    (number) => number.id === channelId,
  )!
  return {
    id: null,
    code: null,
    url: null,
    message,
    qr_image_url: null,
    qr_image_format: qrFormat,
    channel: { id, name, phone: digitsOf(identifier) },
    created_at: null,
    updated_at: null,
  }
}

export const createShortLink = inThreeParts<
  InputOf<'messaging_create_short_link'>,
  OutputOf<'messaging_create_short_link'>,
  Intent,
  Result
>({
  prepare,
  call,
  settle,
  refused: (ctx, { workspaceId, linkId }) => deletePendingLink(ctx.tx, workspaceId, linkId),
  rehearse: () => ({ code: null }),
} satisfies ProviderHandler<
  InputOf<'messaging_create_short_link'>,
  OutputOf<'messaging_create_short_link'>,
  Intent,
  Result
>)
