import type { Context, OutputOf } from '../../handler.ts'
import { loadMarketingWithdrawals } from '../consent/require.ts'
import type { ConversationRow } from '../../../storage/conversations/lists.ts'
import type { SendingChannel } from '../../../storage/messages/sends.ts'
import { listSendableTemplates, type TemplateRow } from '../../../storage/templates/templates.ts'
import { parseTemplateParts } from '../messaging/template-components.ts'
import { describeSend } from '../templates/send-schema.ts'

type QueueTemplate = OutputOf<'inbox_queue'>['templates'][number]
type Candidate = Pick<TemplateRow, 'account_id' | 'category'> & { values: number; shown: QueueTemplate }

/** The templates for conversations in which no free-form reply can be sent. */
export type TemplateChoice = {
  /** The ids of those that fit, best first. */
  idsFor: (row: ConversationRow) => string[]
  /** What the ids of these rows name. */
  list: (rows: readonly ConversationRow[]) => QueueTemplate[]
}

const MAX_FITTING = 3
/** Of an account with thousands of templates the newest are considered. */
const MAX_CONSIDERED = 50

const countValues = (example: Record<string, unknown>): number =>
  JSON.stringify(example).match(/"(?:[^"\\]|\\.)*"(?!:)/g)?.length ?? 0

const toCandidate = (row: TemplateRow, now: string): Candidate[] => {
  const example = describeSend(row, now)?.example
  if (!example) return []
  const text = parseTemplateParts(row.components).body?.text ?? null
  return [
    {
      account_id: row.account_id,
      category: row.category,
      values: countValues(example),
      shown: { id: row.id, category: row.category, text, example },
    },
  ]
}

/**
 * Loads the templates that fit: approved ones of the channel's account, for service before marketing (which
 * contacts with do-not-disturb or a withdrawn consent do not get), those with the fewest values first.
 */
export const loadTemplateChoice = async (
  ctx: Context,
  rows: readonly ConversationRow[],
  usable: ReadonlyMap<string, SendingChannel>,
): Promise<TemplateChoice> => {
  const channelOf = (row: ConversationRow): SendingChannel | undefined =>
    row.channel_id === null || row.contact_id === null ? undefined : usable.get(row.channel_id)
  const channels = rows.flatMap((row) => channelOf(row) ?? [])
  if (channels.length === 0) return { idsFor: () => [], list: () => [] }
  const ids = channels.map((channel) => channel.account_id)
  const accounts = ids.includes(null) ? null : [...new Set(ids)].map(String)
  const found = await listSendableTemplates(ctx.tx, ctx.actor.workspace.id, accounts, MAX_CONSIDERED)
  const candidates = found
    .flatMap((row) => toCandidate(row, ctx.now))
    .toSorted(
      (a, b) => Number(b.category === 'UTILITY') - Number(a.category === 'UTILITY') || a.values - b.values,
    )
  const declines = await loadMarketingWithdrawals(
    ctx,
    rows.flatMap((row) => row.contact_id ?? []),
  )
  const shut = new Set(rows.map((row) => row.id))
  const choose = (row: ConversationRow): QueueTemplate[] => {
    const channel = shut.has(row.id) ? channelOf(row) : undefined
    if (!channel) return []
    return candidates
      .filter(
        ({ account_id: account, category }) =>
          (account === null || channel.account_id === null || account === channel.account_id) &&
          (category !== 'MARKETING' || !(row.contact_dnd === true || declines(row.contact_id, channel.type))),
      )
      .slice(0, MAX_FITTING)
      .map(({ shown }) => shown)
  }
  return {
    idsFor: (row) => choose(row).map(({ id }) => id),
    list: (shown) => [...new Map(shown.flatMap(choose).map((one) => [one.id, one])).values()],
  }
}
