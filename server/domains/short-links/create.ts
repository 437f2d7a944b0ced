import type { Context, CallOptions, InputOf, OutputOf } from '../../handler.ts'
import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import {
  deletePendingLink,
  findLinkByMessage,
  insertPendingLink,
  listChannelNumbers,
  lockLinkMessage,
  updateLinkCalledAt,
  findPendingLink,
  loadShortLink,
  claimLinkCode,
  listTakenCodes,
  completeLink,
} from '../../../storage/messages/short-links.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome, type ProviderLink } from '../../provider/port.ts'
import { chooseNumber, toDigits } from './number.ts'
import { drawQr, createQrKey, type QrFormat } from './qr.ts'
import { toEventLink, showLink } from './view.ts'

/**
 * The row of the link is committed before the provider is called, so that a second link with the same message
 * is refused from then on.
 */
type CreateLinkIntent = {
  workspaceId: string
  linkId: string
  channelId: string
  phoneNumberId: string
  message: string
  qrFormat: QrFormat | null
}
/**
 * How long a call may still arrive at the provider, in seconds: the provider or the network may be slow. Until then
 * another call could create a second link there that nobody knows of.
 */
const CALL_IN_FLIGHT_SECONDS = 15 * 60

/** `code` is null in a dry run. */
type CreateLinkResult = { code: string; url: string; qr: Uint8Array | null } | { code: null }

const prepare = async (
  ctx: Context,
  input: InputOf<'messaging_create_short_link'>,
): Promise<CreateLinkIntent> => {
  const {
    tx,
    actor: { workspace, staff },
  } = ctx
  const { message } = input
  const number = await chooseNumber(ctx, input)
  await lockLinkMessage(tx, workspace.id, number.id, message)
  const existing = input.allow_duplicate
    ? undefined
    : await findLinkByMessage(tx, workspace.id, number.id, message)
  if (existing) {
    throw new Problem(
      'conflict',
      `A link with this message on channel ${number.id} ${existing.made ? 'exists' : 'is being created'}. ` +
        'Use it, or send allow_duplicate.',
      { reason: 'duplicate', existing_id: existing.id },
    )
  }
  const qrFormat = input.qr_format === 'NONE' ? null : input.qr_format
  const linkId = await insertPendingLink(
    tx,
    workspace.id,
    { channel_id: number.id, message, qr_format: qrFormat, created_by: staff.id },
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

const toResult = async (
  { qrFormat }: CreateLinkIntent,
  { code, url }: ProviderLink,
): Promise<CreateLinkResult> => ({ code, url, qr: qrFormat && (await drawQr(url, qrFormat)) })

const call = async (intent: CreateLinkIntent, options: CallOptions): Promise<CreateLinkResult> => {
  if (options.again) await requireNoCallInFlight(intent, options)
  return await toResult(intent, await createLink(intent, options))
}

const findOutcome = async (
  intent: CreateLinkIntent,
  options: CallOptions,
): Promise<CreateLinkResult | undefined> => {
  const found = await findEarlierLink(intent, options)
  return found && (await toResult(intent, found))
}

/**
 * The provider has no key for a link but its message, so two calls with the same message at the same time can
 * each claim the link of the other. A call whose link was claimed by the other claims the other's, and
 * creates another link only when there is none.
 */
const createLink = async (intent: CreateLinkIntent, options: CallOptions): Promise<ProviderLink> => {
  const { workspaceId, linkId, phoneNumberId } = intent
  for (;;) {
    const link = await callProvider(intent, options)
    if (await claimLinkCode(options.db, workspaceId, linkId, link.code)) return link
    const row = await findPendingLink(options.db, workspaceId, linkId)
    // A retry that took over has stored a link already: this one is a duplicate.
    if (row?.code !== null)
      await options.services.provider.deleteLink({ phoneNumberId }, link.code, options.signal)
    const other =
      row?.code === null ? await claimExistingLink(intent, options) : await findEarlierLink(intent, options)
    if (other) return other
  }
}

const callProvider = async (
  { workspaceId, linkId, phoneNumberId, message }: CreateLinkIntent,
  { services: { provider }, signal, db }: CallOptions,
): Promise<ProviderLink> => {
  try {
    // The QR image is our own: the provider's expires.
    return await provider.createLink({ phoneNumberId }, { message, qrFormat: null }, signal)
  } catch (error) {
    if (error instanceof Problem && error.code === 'upstream_unavailable' && !isOutcomeUnknown(error))
      await clearCallTime(db, workspaceId, linkId)
    throw error
  }
}

/** Lets the next call run at once, since the provider did not accept this one. */
const clearCallTime = async (db: CallOptions['db'], workspaceId: string, linkId: string): Promise<void> => {
  const row = await findPendingLink(db, workspaceId, linkId)
  if (row) await updateLinkCalledAt(db, workspaceId, linkId, row.called_at, 'not in flight')
}

/** Returns the link that an earlier call created; undefined without one. */
const findEarlierLink = async (
  intent: CreateLinkIntent,
  options: CallOptions,
): Promise<ProviderLink | undefined> => {
  const { workspaceId, linkId, phoneNumberId } = intent
  const row = await findPendingLink(options.db, workspaceId, linkId)
  if (!row) throw linkRemovedProblem()
  if (row.code !== null) {
    const known = await lookUpOutcome(
      options.services.provider.findLink({ phoneNumberId }, row.code, options.signal),
    )
    if (!known)
      throw new Problem(
        'upstream_error',
        'The link was deleted at the messaging provider in the meantime. ' +
          'Create it again with a new Idempotency-Key.',
      )
    return known
  }
  return row.called_at === null ? undefined : await claimExistingLink(intent, options)
}

/** Throws 504 `timeout` while an earlier call may still be in flight; else records that a new one begins. */
const requireNoCallInFlight = async (
  { workspaceId, linkId }: CreateLinkIntent,
  { db }: CallOptions,
): Promise<void> => {
  const row = await findPendingLink(db, workspaceId, linkId)
  if (!row) throw linkRemovedProblem()
  const waitSeconds = row.age === null ? 0 : CALL_IN_FLIGHT_SECONDS - row.age
  if (waitSeconds > 0) throw outcomePendingProblem(Math.min(waitSeconds, CALL_IN_FLIGHT_SECONDS))
  if (!(await updateLinkCalledAt(db, workspaceId, linkId, row.called_at, 'called')))
    throw outcomePendingProblem(CALL_IN_FLIGHT_SECONDS)
}

const linkRemovedProblem = (): Problem =>
  new Problem(
    'upstream_error',
    'The link was removed in the meantime. Create it again with a new Idempotency-Key.',
  )

const outcomePendingProblem = (seconds: number): Problem =>
  new Problem(
    'timeout',
    'It is not known yet whether the messaging provider created the link. A repeat with the same ' +
      'Idempotency-Key finds it, or creates it once no earlier call can arrive any more, in ' +
      `${Math.ceil(seconds / 60)} minutes.`,
    {},
    { 'Retry-After': String(Math.ceil(seconds)) },
  )

/** Finds the newest link at the provider with this message that belongs to no row, and claims it. */
const claimExistingLink = async (
  { workspaceId, linkId, channelId, phoneNumberId, message }: CreateLinkIntent,
  { services: { provider }, signal, db }: CallOptions,
): Promise<ProviderLink | undefined> => {
  const sameMessage = (await lookUpOutcome(provider.listLinks({ phoneNumberId }, signal))).filter(
    (link) => link.message === message,
  )
  const taken = await listTakenCodes(
    db,
    workspaceId,
    channelId,
    sameMessage.map((link) => link.code),
  )
  for (const link of sameMessage)
    if (!taken.has(link.code) && (await claimLinkCode(db, workspaceId, linkId, link.code))) return link
  return undefined
}

const complete = async (
  ctx: Context<'short_link.created/1'>,
  intent: CreateLinkIntent,
  result: CreateLinkResult,
): Promise<OutputOf<'messaging_create_short_link'>> => {
  const { workspaceId, linkId, qrFormat } = intent
  if (result.code === null) return await showDryRun(ctx, intent)
  await completeLink(
    ctx.tx,
    workspaceId,
    linkId,
    { code: result.code, url: result.url, qr: result.qr, qr_key: qrFormat && createQrKey() },
    ctx.now,
  )
  const row = await loadShortLink(ctx.tx, workspaceId, linkId)
  if (!row) throw linkRemovedProblem()
  ctx.emit('short_link.created/1', toEventLink(row))
  return showLink(ctx.services.config.publicUrl, row)
}

/** A link that was not created has no id, no address and no times. */
const showDryRun = async (
  ctx: Context,
  { channelId, message, qrFormat }: CreateLinkIntent,
): Promise<OutputOf<'messaging_create_short_link'>> => {
  const { id, name, identifier } = (await listChannelNumbers(ctx.tx, ctx.actor.workspace.id)).find(
    (number) => number.id === channelId,
  )!
  return {
    id: null,
    code: null,
    url: null,
    message,
    qr_image_url: null,
    qr_image_format: qrFormat,
    channel: { id, name, phone: toDigits(identifier) },
    created_at: null,
    updated_at: null,
  }
}

export const createShortLink = defineProviderHandler<
  'messaging_create_short_link',
  CreateLinkIntent,
  CreateLinkResult
>({
  prepare,
  call,
  findOutcome,
  // After a quarter of an hour, when no earlier call can arrive any more.
  mayRepeat: true,
  complete,
  compensate: (ctx, { workspaceId, linkId }) => deletePendingLink(ctx.tx, workspaceId, linkId),
  dryRunResult: () => ({ code: null }),
})
