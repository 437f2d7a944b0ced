import type { TableRow, Db } from '../../storage/database.ts'
import {
  type InboundChannel,
  type InboundTemplate,
  lockChannelsOfAccount,
  lockTemplates,
  updateChannelState,
  updateTemplateReview,
} from '../../storage/inbound.ts'
import type { ConversationContext } from '../inbox/conversation-context.ts'
import { type JsonObject, asObject, asText } from './json.ts'
import type { ChangePayload } from './parse-updates.ts'

/** The context of a workspace in this transaction: a change of an account can concern several. */
export type GetConversationContext = (
  workspaceId: string,
) => ConversationContext<'template.status_changed/1' | 'channel.status_changed/1'>

/** Applies a template's review, or its new category. Returns false when no such template exists. */
export const applyTemplateChange = async (
  tx: Db,
  contextOf: GetConversationContext,
  { account, field, value }: ChangePayload,
): Promise<boolean> => {
  const providerId = asText(value['message_template_id'])
  if (account === null || providerId === null || providerId.length > 100) return false
  const templates = await lockTemplates(
    tx,
    account,
    providerId,
    asText(value['message_template_name']),
    asText(value['message_template_language']),
  )
  for (const template of templates)
    await applyReview(contextOf(template.workspace_id), template, providerId, field, value)
  return templates.length > 0
}

const applyReview = async (
  context: ConversationContext<'template.status_changed/1'>,
  template: InboundTemplate,
  providerId: string,
  field: string,
  value: JsonObject,
): Promise<void> => {
  const { status, category, rejection_reason: reason } = template
  const next =
    field === 'message_template_status_update'
      ? reviewOf(template, value, context.now)
      : {
          status,
          rejection_reason: reason,
          archived_at: template.archived_at,
          category: (field === 'template_category_update' ? asText(value['new_category']) : null) ?? category,
        }
  await updateTemplateReview(
    context.tx,
    context.workspaceId,
    template.id,
    { ...next, provider_id: providerId },
    context.now,
  )
  if (next.status === status && next.category === category && next.rejection_reason === reason) return
  context.emit('template.status_changed/1', {
    template: {
      id: template.id,
      name: template.name,
      language: template.language,
      status: next.status,
      previous_status: status,
      category: next.category,
      rejection_reason: next.status === 'ARCHIVED' ? null : next.rejection_reason,
    },
  })
}

/** Events whose name is not the resulting status; a flagged template can still be sent. */
const statusByEvent: Readonly<Record<string, string | null>> = { REINSTATED: 'APPROVED', FLAGGED: null }

const reviewOf = (template: InboundTemplate, value: JsonObject, now: string) => {
  const event = (asText(value['event']) ?? template.status).slice(0, 100)
  // An unarchived template has the status from before: the rejection reason is kept for that.
  const status =
    event === 'UNARCHIVED'
      ? template.rejection_reason === null
        ? 'APPROVED'
        : 'REJECTED'
      : ((Object.hasOwn(statusByEvent, event) ? statusByEvent[event] : event) ?? template.status)
  const moved = status === 'ARCHIVED' || event === 'UNARCHIVED'
  const refused = ['REJECTED', 'PAUSED', 'DISABLED'].includes(status) && !moved
  return {
    status,
    category: asText(value['message_template_category']) ?? template.category,
    rejection_reason: moved ? template.rejection_reason : refused ? toRejectionReason(value) : null,
    meta_errors: refused || event === 'FLAGGED' ? value : null,
    archived_at: status === 'ARCHIVED' ? (template.archived_at ?? now) : null,
  }
}

/** The reviewer's own words if there are any, else the code. */
const toRejectionReason = (value: JsonObject): string | null => {
  const code = asText(value['reason'])
  const other = asObject(value['other_info'])
  return (
    asText(asObject(value['rejection_info'])['reason']) ??
    (code === 'NONE' ? null : code) ??
    asText(other['description']) ??
    asText(other['title'])
  )
}

type ChannelState = Pick<InboundChannel, 'status' | 'quality_rating'>

/** Applies the status of a number, or of an account with all its numbers. Returns false without a channel. */
export const applyChannelChange = async (
  tx: Db,
  contextOf: GetConversationContext,
  { account, value }: ChangePayload,
): Promise<boolean> => {
  if (account === null) return false
  const shown = asText(value['display_phone_number']) ?? asText(value['phone_number'])
  const channels = await lockChannelsOfAccount(
    tx,
    account,
    shown === null ? null : shown.replaceAll(/\D/g, ''),
  )
  for (const channel of channels) {
    const next: ChannelState = {
      status: toChannelStatus(value) ?? channel.status,
      quality_rating: toQualityRating(value) ?? channel.quality_rating,
    }
    if (next.status === channel.status && next.quality_rating === channel.quality_rating) continue
    const context = contextOf(channel.workspace_id)
    await updateChannelState(tx, channel.workspace_id, channel.id, next)
    context.emit('channel.status_changed/1', {
      channel: {
        id: channel.id,
        name: channel.name,
        status: next.status,
        previous_status: channel.status,
        quality_rating: next.quality_rating,
      },
    })
  }
  return channels.length > 0
}

/** Channel statuses by the provider's states of phone numbers. */
const statusByPhoneState: Readonly<Record<string, TableRow<'channels'>['status']>> = {
  CONNECTED: 'connected',
  DISCONNECTED: 'disconnected',
  UNLINKED: 'disconnected',
  BANNED: 'disconnected',
  RESTRICTED: 'disconnected',
  PENDING: 'inactive',
  DELETED: 'inactive',
  MIGRATED: 'inactive',
}
const statusByBanState: Readonly<Record<string, TableRow<'channels'>['status']>> = {
  DISABLE: 'disconnected',
  REINSTATE: 'connected',
}
const statusByAccountEvent: Readonly<Record<string, TableRow<'channels'>['status']>> = {
  PARTNER_REMOVED: 'disconnected',
  ACCOUNT_DELETED: 'disconnected',
  ACCOUNT_OFFBOARDED: 'disconnected',
  ACCOUNT_RECONNECTED: 'connected',
}

const lookUp = <T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined =>
  typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined

const toChannelStatus = (value: JsonObject): TableRow<'channels'>['status'] | undefined =>
  lookUp(statusByPhoneState, value['status']) ??
  lookUp(statusByBanState, asObject(value['ban_info'])['waba_ban_state']) ??
  lookUp(statusByAccountEvent, value['event'])

/** The rating itself, or the one that an event implies: numbers of low quality are flagged. */
const toQualityRating = (value: JsonObject): string | null => {
  const rating = asText(value['quality_rating']) ?? asText(value['new_quality_score'])
  return rating?.slice(0, 50) ?? lookUp({ FLAGGED: 'RED', UNFLAGGED: 'GREEN' }, value['event']) ?? null
}
