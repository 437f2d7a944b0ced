import { getBatchSize, type RecordKind, type Target } from './records.ts'
import type { Context, InputOf, OutputOf } from '../../handler.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import { listMatchBatches } from '../../../storage/contacts/matches.ts'
import { listConversationMatches, listConversationSamples } from '../../../storage/conversations/matches.ts'
import { type ConversationState, lockConversations } from '../../../storage/conversations/conversations.ts'
import type { Condition } from '../../../storage/filters/predicates.ts'
import type { RecordFailure } from '../../kernel/context.ts'
import { notFound, type Problem } from '../../kernel/problem.ts'
import { parseFilter, parseSavedFilter } from '../filters/parse-filter.ts'
import { toConversationFilter } from '../inbox/filters.ts'
import { distinctIds, type LabelRefs } from '../labels/labels.ts'
import { refuseHiddenDigits, showContactName } from '../../visibility/phones.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'
import type { TargetChange } from './change-target.ts'

type Output = OutputOf<'inbox_close_conversations'>
type Sample = NonNullable<Output['samples']>[number]
type ConversationTarget = Target & Pick<InputOf<'inbox_close_conversations'>, 'filter' | 'saved_filter_id'>

/** A change of conversations. */
export type ConversationsChange<I extends ConversationTarget, E extends EventTypeId> = TargetChange<
  I,
  Sample,
  E
>

/** Returns what the contacts of the conversations must meet; undefined: they may be anybody's, or nobody's. */
const toContactConditions = async (
  ctx: Context,
  { filter: { query, contact } = {}, saved_filter_id: savedFilterId }: ConversationTarget,
): Promise<Condition[] | undefined> => {
  refuseHiddenDigits(ctx.actor, query)
  const conditions: Condition[] = [
    ...(savedFilterId === undefined ? [] : [await parseSavedFilter(ctx, String(savedFilterId))]),
    ...(query === undefined ? [] : [{ kind: 'query', text: query } as const]),
    ...(contact === undefined
      ? []
      : [(await parseFilter(ctx, contact, { path: ['filter', 'contact'] })).filter]),
  ]
  return conditions.length === 0 ? undefined : conditions
}

export const conversationRecords: RecordKind<ConversationTarget, Sample> = {
  idField: 'conversation_ids',
  plural: 'conversations',
  listMatches: async (ctx, input) => {
    const { filter = {} } = input
    const workspaceId = ctx.actor.workspace.id
    const size = getBatchSize(ctx.services)
    const { stepMs } = ctx.services.config.filters
    const conditions = await toContactConditions(ctx, input)
    const wanted = await toConversationFilter(ctx, filter, ['filter'])
    const contacts = conditions && (await listMatchBatches(ctx.tx, workspaceId, conditions, { size, stepMs }))
    return await listConversationMatches(ctx.tx, workspaceId, wanted, { contacts, size })
  },
  listSamples: async (ctx, ids) =>
    (await listConversationSamples(ctx.tx, ctx.actor.workspace.id, ids)).map((row) => ({
      conversation_id: row.id,
      contact_name: showContactName(ctx.actor, row.contact_name),
      channel: row.channel_name,
    })),
}

/** Conversations that were named, locked; those that the viewer may not see are missing as if they did not exist. */
export type LockedConversations = {
  requested: string[]
  conversations: ConversationState[]
  missing: RecordFailure[]
}

export const lockVisibleConversations = async (
  ctx: Context,
  ids: LabelRefs,
): Promise<LockedConversations> => {
  const requested = distinctIds(ids)
  const { workspace } = ctx.actor
  const conversations = await lockConversations(
    ctx.tx,
    workspace.id,
    requested,
    listVisibleChannels(ctx.actor),
  )
  const found = new Set(conversations.map(({ id }) => id))
  const missing = requested.filter((id) => !found.has(id))
  return {
    requested,
    conversations,
    missing: missing.map((id) => toFailure(id, notFound('conversation', id))),
  }
}

export const toFailure = (id: string, { code, message }: Problem): RecordFailure => ({ id, code, message })
