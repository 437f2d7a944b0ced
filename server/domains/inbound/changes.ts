import type { Db } from '../../../storage/database.ts'
import {
  type InboundTemplate,
  lockTemplates,
  updateTemplateReview,
} from '../../../storage/messages/inbound.ts'
import { insertTemplateReads, lockTemplate, updateTemplateRow } from '../../../storage/templates/templates.ts'
import type { ChangeContext } from '../../change-context.ts'
import { type HealthFact } from '../health/change.ts'
import { applyHealthFacts } from '../health/record.ts'
import { numberStates } from '../health/rules.ts'
import { mergeComponentsUpdate } from '../templates/components-update.ts'
import { emitStatusChange, toQuality } from '../templates/sync.ts'
import { type JsonObject, asNumber, asObject, asObjects, asText } from './json.ts'
import type { ChangePayload } from './parse-updates.ts'

/** The context of a workspace in this transaction: a change of an account can concern several. */
export type GetChangeContext = (
  workspaceId: string,
) => ChangeContext<'template.status_changed/1' | 'channel.status_changed/1'>

/**
 * Applies a template's review, or its new category. Returns false when no such template exists; it is read from the
 * account, of which nothing comes where no channel uses it.
 */
export const applyTemplateChange = async (
  tx: Db,
  contextOf: GetChangeContext,
  { account, field, value }: ChangePayload,
): Promise<boolean> => {
  const providerId = asText(value['message_template_id'])
  if (account === null || providerId === null || providerId.length > 100) return false
  const name = asText(value['message_template_name'])?.slice(0, 512) ?? null
  const language = asText(value['message_template_language'])
  const templates = await lockTemplates(tx, account, providerId, name, language)
  if (templates.length === 0) await insertTemplateReads(tx, account, name, 0)
  for (const template of templates)
    await applyReview(contextOf(template.workspace_id), template, providerId, field, value)
  return templates.length > 0
}

const applyReview = async (
  context: ChangeContext<'template.status_changed/1'>,
  template: InboundTemplate,
  providerId: string,
  field: string,
  value: JsonObject,
): Promise<void> => {
  const { status, category, rejection_reason: reason, quality_rating: quality } = template
  const next =
    field === 'message_template_status_update'
      ? reviewOf(template, value, context.now)
      : {
          status,
          rejection_reason: reason,
          archived_at: template.archived_at,
          category: (field === 'template_category_update' ? asText(value['new_category']) : null) ?? category,
          quality_rating: toQuality(asText(value['new_quality_score'])) ?? quality,
        }
  await updateTemplateReview(
    context.tx,
    context.workspaceId,
    template.id,
    { ...next, provider_id: providerId },
    context.now,
  )
  if (field === 'message_template_components_update') await applyComponents(context, template.id, value)
  emitStatusChange(context, template, next)
}

/** The text of a template was edited at the provider. That of codes is the provider's own. */
const applyComponents = async (
  { tx, workspaceId, now }: ChangeContext<'template.status_changed/1'>,
  id: string,
  value: JsonObject,
): Promise<void> => {
  const row = await lockTemplate(tx, workspaceId, id)
  if (!row || row.category === 'AUTHENTICATION') return
  const components = mergeComponentsUpdate(row.components, value)
  if (components) await updateTemplateRow(tx, workspaceId, id, { components }, now)
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
    quality_rating: template.quality_rating,
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

/** Applies the state of a number, or of an account with all its numbers. Returns false without a channel. */
export const applyChannelChange = async (
  tx: Db,
  contextOf: GetChangeContext,
  { account, field, value }: ChangePayload,
  realNow: string,
): Promise<boolean> => {
  if (account === null) return false
  const shown = asText(value['display_phone_number']) ?? asText(value['phone_number'])
  const facts = readChannelFacts(field, value, realNow)
  const channels = await applyHealthFacts(
    tx,
    contextOf,
    { accountId: account, displayNumber: shown === null ? null : shown.replaceAll(/\D/g, '') },
    () => facts,
    realNow,
  )
  return channels.length > 0
}

const lookUp = <T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined =>
  typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined

const stopped = (reason: string): HealthFact => ({ kind: 'stopped', status: 'disconnected', reason })
const connected: HealthFact = { kind: 'connected', told: true }

const factByBanState: Readonly<Record<string, HealthFact>> = {
  DISABLE: stopped('account_banned'),
  REINSTATE: connected,
}
const factByAccountEvent: Readonly<Record<string, HealthFact>> = {
  PARTNER_REMOVED: stopped('account_removed'),
  PARTNER_APP_UNINSTALLED: stopped('account_removed'),
  ACCOUNT_DELETED: stopped('account_removed'),
  ACCOUNT_OFFBOARDED: stopped('account_removed'),
  ACCOUNT_RECONNECTED: connected,
}

/** What an update of the provider says of its channels. */
const readChannelFacts = (field: string, value: JsonObject, realNow: string): HealthFact[] => {
  const state = lookUp(numberStates, value['status'])
  const stateFact: HealthFact | undefined =
    state && (state === 'connected' ? connected : { kind: 'stopped', ...state })
  const fact =
    stateFact ??
    lookUp(factByBanState, asObject(value['ban_info'])['waba_ban_state']) ??
    lookUp(factByAccountEvent, value['event']) ??
    readRestriction(value, realNow)
  const [quality, limit] = [toQualityRating(value), toMessagingLimit(field, value)]
  return [
    ...(fact ? [fact] : []),
    ...(quality === null && limit === null ? [] : [{ kind: 'figures', quality, limit, told: true } as const]),
  ]
}

/** Restrictions of anything but messages, such as of adding numbers, do not concern channels. */
const readRestriction = (value: JsonObject, realNow: string): HealthFact | undefined => {
  if (value['event'] !== 'ACCOUNT_RESTRICTION') return undefined
  const all = asObjects(value['restriction_info'])
  const ofMessages = all.filter((one) => /MESSAGING|INITIATED/.test(asText(one['restriction_type']) ?? ''))
  if (all.length > 0 && ofMessages.length === 0) return undefined
  const ends = ofMessages.map((one) => toMs(one['expiration']))
  const last = ends.length > 0 && ends.every((ms) => ms !== null) ? Math.max(...ends) : null
  const seconds = last === null ? null : (last - Date.parse(realNow)) / 1000
  if (seconds !== null && seconds <= 0) return undefined
  return {
    kind: 'problem',
    problem: { status: 'restricted', reason: 'account_restricted', code: null, seconds },
  }
}

/** Times are Unix seconds in some documents and ISO 8601 in others. */
const toMs = (time: unknown): number | null => {
  const ms = typeof time === 'number' ? time * 1000 : Date.parse(asText(time) ?? '')
  return Number.isFinite(ms) && Math.abs(ms) < 8e15 ? ms : null
}

/** The rating itself, or the one that an event implies: numbers of low quality are flagged. */
const toQualityRating = (value: JsonObject): string | null => {
  const rating = asText(value['quality_rating']) ?? asText(value['new_quality_score'])
  return rating?.slice(0, 50) ?? lookUp({ FLAGGED: 'RED', UNFLAGGED: 'GREEN' }, value['event']) ?? null
}

/** The limit by its name; a number of customers is written like one. */
const toMessagingLimit = (field: string, value: JsonObject): string | null => {
  // Of a change of throughput, `current_limit` is no limit of customers.
  const current = value['event'] === 'THROUGHPUT_UPGRADE' ? null : asText(value['current_limit'])
  const name =
    asText(value['max_daily_conversations_per_business']) ??
    (field === 'phone_number_quality_update' ? current : null)
  if (name !== null) return name === 'TIER_NOT_SET' ? null : name.slice(0, 50)
  const count = asNumber(value['max_daily_conversation_per_phone'])
  if (count === null || !Number.isInteger(count)) return null
  if (count < 0) return 'TIER_UNLIMITED'
  return count >= 1000 && count % 1000 === 0 ? `TIER_${count / 1000}K` : `TIER_${count}`
}
