import type { TemplateDraft } from '../../catalog/templates.ts'
import { lockTemplate, type StoredTemplate, writeTemplate } from '../../storage/templates.ts'
import type { Context } from '../core/context.ts'
import { inThreeParts } from '../messaging/send.ts'
import type { How, InputOf, OutputOf } from '../core/handler.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'
import { lookUp, providerCode } from '../provider/port.ts'
import { type Account, accountOf, connectedAccounts, notConnected } from './accounts.ts'
import { requireSound } from './check.ts'
import { payloadOf } from './payload.ts'
import { sameTemplate } from './same.ts'
import { componentsOf, SUBMITTING, type Submission, submitted } from './submission.ts'

/** `telling`: the change shows in what the provider hands back. `before`: what a refusal restores. */
type Intent = Submission & {
  providerId: string
  changesCategory: boolean
  telling: boolean
  before: Pick<StoredTemplate, 'status' | 'category' | 'rejection_reason' | 'components'>
}

/**
 * `prepare` writes the change as in review: nobody sends the template, or changes it again, while it is not
 * known which text holds. A refusal restores it.
 */
export const updateTemplate = inThreeParts<
  InputOf<'messaging_update_template'>,
  OutputOf<'messaging_update_template'>,
  Intent,
  null
>({
  prepare: async (ctx, { template_id: id, template: draft }) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, id)
    if (!row) throw notFound('template', id)
    requireFixed(row, draft)
    const lint = requireSound(draft)
    const providerId = requireEditable(row, draft)
    const account = await requireAccount(ctx, row)
    const payload = payloadOf(draft)
    await writeTemplate(
      ctx.tx,
      ctx.actor.workspace.id,
      id,
      { status: 'PENDING', category: draft.category, rejection_reason: null, components: payload },
      ctx.now,
    )
    const { status, category, rejection_reason, components } = row
    return {
      templateId: id,
      account,
      name: row.name,
      language: row.language,
      category: draft.category,
      payload: JSON.stringify(payload),
      lint: JSON.stringify(lint),
      providerId,
      changesCategory: draft.category !== category,
      telling: !sameTemplate(payload, components, draft.category),
      before: { status, category, rejection_reason, components },
    }
  },
  call: async (intent, how) => {
    if (how.again && (await editedEarlier(intent, how))) return null
    await how.provider.editTemplate(
      intent.providerId,
      { components: componentsOf(intent), ...(intent.changesCategory ? { category: intent.category } : {}) },
      how.signal,
    )
    return null
  },
  settle: async (ctx, intent) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, intent.templateId)
    if (!row) throw notFound('template', intent.templateId)
    if (row.status === 'PENDING')
      await writeTemplate(ctx.tx, ctx.actor.workspace.id, row.id, { meta_errors: null }, ctx.now)
    const { category, components } = intent.before
    ctx.note(
      { category, components },
      { category: intent.category, components: JSON.parse(intent.payload) as unknown },
    )
    return submitted(ctx, intent, row, false)
  },
  refused: async (ctx, { templateId, before }, problem) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, templateId)
    if (!row) return
    // What the provider told meanwhile of its review stays.
    const { components, ...state } = before
    await writeTemplate(
      ctx.tx,
      ctx.actor.workspace.id,
      templateId,
      {
        components: components as unknown[],
        ...(row.status === 'PENDING' ? state : {}),
        ...(isVerdict(problem) ? { meta_errors: errorOf(problem, ctx.now) } : {}),
      },
      ctx.now,
    )
  },
  rehearse: () => null,
})

/** The provider refused the change itself, rather than any call at the moment. */
const isVerdict = (problem: Problem): boolean =>
  problem.code !== 'upstream_unavailable' && providerCode(problem) !== undefined

/** The provider's refusal, as the template keeps it. */
const errorOf = ({ message, extras }: Problem, at: string) => ({
  code: extras['provider_code'],
  subcode: extras['provider_subcode'] ?? null,
  message,
  trace_id: extras['provider_trace_id'] ?? null,
  at,
})

/**
 * Whether the change of an earlier call arrived. One that does not show in what the provider hands back
 * shows by being reviewed.
 */
const editedEarlier = async (
  { account, name, category, providerId, telling, ...intent }: Intent,
  { provider, signal }: How,
): Promise<boolean> => {
  const there = (await lookUp(provider.listTemplates(account.id, name, signal))).find(
    ({ id }) => id === providerId,
  )
  if (!there) return false
  return telling
    ? sameTemplate(JSON.parse(intent.payload), there.components, category)
    : there.status === 'PENDING'
}

const requireFixed = (row: StoredTemplate, draft: TemplateDraft): void => {
  for (const field of ['name', 'language'] as const) {
    if (draft[field] === row[field]) continue
    throw invalidField(
      'template',
      'fixed',
      `has another ${field} than the template, whose ${field} cannot change`,
      {
        path: [field],
        fix: `Send ${JSON.stringify(row[field])}, or submit a new template.`,
        allowed: [row[field]],
      },
    )
  }
}

const REVIEWED: readonly string[] = ['PENDING', 'IN_APPEAL', SUBMITTING]
const FINAL: readonly string[] = ['DISABLED', 'DELETED', 'PENDING_DELETION', 'LOCKED']

/** Answers the provider's id of a template that it would let be changed. */
const requireEditable = (
  { name, status, category, provider_id: providerId }: StoredTemplate,
  draft: TemplateDraft,
): string => {
  const refuse = (detail: string, reason: string): never => {
    throw new Problem('conflict', detail, { reason, template_status: status })
  }
  if (REVIEWED.includes(status))
    refuse(`The template ${name} is in review (${status}). Change it when the review is over.`, 'in_review')
  if (status === 'ARCHIVED')
    refuse(
      `The template ${name} is archived. Restore it at the provider first, or submit a new one.`,
      'archived',
    )
  if (FINAL.includes(status))
    refuse(`The template ${name} is ${status} and cannot be changed. Submit a new one.`, 'not_editable')
  if (status === 'APPROVED' && category !== null && category !== draft.category)
    refuse(
      `The template ${name} is approved as ${category}; the provider does not change the category then. Send ${category}.`,
      'category_fixed',
    )
  return (
    providerId ??
    refuse(`The template ${name} never reached the provider. Submit a new one.`, 'not_submitted')
  )
}

const requireAccount = async (
  ctx: Context,
  { name, account_id: accountId }: StoredTemplate,
): Promise<Account> => {
  const account = accountOf(await connectedAccounts(ctx), accountId)
  if (!account)
    throw notConnected(
      `No channel of the business account of the template ${name} is connected. Connect one first.`,
    )
  return account
}
