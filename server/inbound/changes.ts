import type { ChannelsTable, Db } from '../../storage/database.ts'
import {
  type InboundChannel,
  type InboundTemplate,
  lockChannelsOfAccount,
  lockTemplates,
  updateChannelState,
  updateTemplateReview,
} from '../../storage/inbound.ts'
import type { Flow } from '../inbox/lifecycle.ts'
import { type Json, objectOf, textOf } from './json.ts'
import type { ChangePayload } from './split.ts'

/** The flow of a workspace within this transaction: changes of an account can concern several. */
export type FlowOf = (workspaceId: string) => Flow

/**
 * What the provider tells of a template: its review, or the category it belongs to. False when we have no
 * such template.
 */
export const changeTemplate = async (
  tx: Db,
  flowOf: FlowOf,
  { account, field, value }: ChangePayload,
): Promise<boolean> => {
  const providerId = textOf(value['message_template_id'])
  if (account === null || providerId === null || providerId.length > 100) return false
  const templates = await lockTemplates(
    tx,
    account,
    providerId,
    textOf(value['message_template_name']),
    textOf(value['message_template_language']),
  )
  for (const template of templates)
    await review(flowOf(template.workspace_id), template, providerId, field, value)
  return templates.length > 0
}

const review = async (
  flow: Flow,
  template: InboundTemplate,
  providerId: string,
  field: string,
  value: Json,
): Promise<void> => {
  const { status, category, rejection_reason: reason } = template
  const next =
    field === 'message_template_status_update'
      ? statusReview(template, value, flow.now)
      : {
          status,
          rejection_reason: reason,
          archived_at: template.archived_at,
          category: (field === 'template_category_update' ? textOf(value['new_category']) : null) ?? category,
        }
  await updateTemplateReview(
    flow.tx,
    flow.workspaceId,
    template.id,
    { ...next, provider_id: providerId },
    flow.now,
  )
  if (next.status === status && next.category === category && next.rejection_reason === reason) return
  flow.emit('template.status_changed/1', {
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

/** Events that are not the name of the state they lead to; a flagged template can still be sent. */
const leadsTo: Readonly<Record<string, string | null>> = { REINSTATED: 'APPROVED', FLAGGED: null }

const statusReview = (template: InboundTemplate, value: Json, now: string) => {
  const event = (textOf(value['event']) ?? template.status).slice(0, 100)
  // An archived template comes back as it went: the reason of a rejection is kept for that.
  const status =
    event === 'UNARCHIVED'
      ? template.rejection_reason === null
        ? 'APPROVED'
        : 'REJECTED'
      : ((Object.hasOwn(leadsTo, event) ? leadsTo[event] : event) ?? template.status)
  const moved = status === 'ARCHIVED' || event === 'UNARCHIVED'
  const refused = ['REJECTED', 'PAUSED', 'DISABLED'].includes(status) && !moved
  return {
    status,
    category: textOf(value['message_template_category']) ?? template.category,
    rejection_reason: moved ? template.rejection_reason : refused ? reasonOf(value) : null,
    meta_errors: refused || event === 'FLAGGED' ? value : null,
    archived_at: status === 'ARCHIVED' ? (template.archived_at ?? now) : null,
  }
}

/** The reviewer's own words where there are any, else the code that stands for them. */
const reasonOf = (value: Json): string | null => {
  const code = textOf(value['reason'])
  const other = objectOf(value['other_info'])
  return (
    textOf(objectOf(value['rejection_info'])['reason']) ??
    (code === 'NONE' ? null : code) ??
    textOf(other['description']) ??
    textOf(other['title'])
  )
}

type ChannelState = Pick<InboundChannel, 'status' | 'quality_rating'>

/**
 * What the provider tells of a number, or of an account with all its numbers. False when no channel of ours
 * is meant.
 */
export const changeNumbers = async (
  tx: Db,
  flowOf: FlowOf,
  { account, value }: ChangePayload,
): Promise<boolean> => {
  if (account === null) return false
  const shown = textOf(value['display_phone_number']) ?? textOf(value['phone_number'])
  const channels = await lockChannelsOfAccount(
    tx,
    account,
    shown === null ? null : shown.replaceAll(/\D/g, ''),
  )
  for (const channel of channels) {
    const next: ChannelState = {
      status: statusOf(value) ?? channel.status,
      quality_rating: qualityOf(value) ?? channel.quality_rating,
    }
    if (next.status === channel.status && next.quality_rating === channel.quality_rating) continue
    const flow = flowOf(channel.workspace_id)
    await updateChannelState(tx, channel.workspace_id, channel.id, next)
    flow.emit('channel.status_changed/1', {
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

/** The provider's states of numbers as ours (reference 2.5). */
const numberStates: Readonly<Record<string, ChannelsTable['status']>> = {
  CONNECTED: 'connected',
  DISCONNECTED: 'disconnected',
  UNLINKED: 'disconnected',
  BANNED: 'disconnected',
  RESTRICTED: 'disconnected',
  PENDING: 'inactive',
  DELETED: 'inactive',
  MIGRATED: 'inactive',
}
const banStates: Readonly<Record<string, ChannelsTable['status']>> = {
  DISABLE: 'disconnected',
  REINSTATE: 'connected',
}
const accountEvents: Readonly<Record<string, ChannelsTable['status']>> = {
  PARTNER_REMOVED: 'disconnected',
  ACCOUNT_DELETED: 'disconnected',
  ACCOUNT_OFFBOARDED: 'disconnected',
  ACCOUNT_RECONNECTED: 'connected',
}

const known = <T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined =>
  typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined

const statusOf = (value: Json): ChannelsTable['status'] | undefined =>
  known(numberStates, value['status']) ??
  known(banStates, objectOf(value['ban_info'])['waba_ban_state']) ??
  known(accountEvents, value['event'])

/** The rating itself, or what an event says about it: numbers of low quality are flagged. */
const qualityOf = (value: Json): string | null => {
  const rating = textOf(value['quality_rating']) ?? textOf(value['new_quality_score'])
  return rating?.slice(0, 50) ?? known({ FLAGGED: 'RED', UNFLAGGED: 'GREEN' }, value['event']) ?? null
}
