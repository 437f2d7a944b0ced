import type { Context, CallOptions } from '../../handler.ts'
import type { Reason } from '../../../catalog/reasons.ts'
import type { TemplateDraft } from '../../../catalog/templates/schemas.ts'
import {
  lockTemplate,
  type TemplateDetails,
  updateTemplateRow,
} from '../../../storage/templates/templates.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { lookUpOutcome, providerCodeOf } from '../../provider/port.ts'
import { type BusinessAccount, findAccount, listConnectedAccounts, notConnectedProblem } from './accounts.ts'
import { requireValidDraft } from './validate-draft.ts'
import { buildPayload } from './payload.ts'
import { isSameTemplate } from './same-template.ts'
import { parsePayload, SUBMITTING, type Submission, completeSubmission, toStoredError } from './submission.ts'

/**
 * Stored between the parts, so its members keep their names. `telling`: the change is visible in what the
 * provider returns. `before`: what a refusal restores.
 */
type UpdateIntent = Submission & {
  providerId: string
  changesCategory: boolean
  telling: boolean
  before: Pick<TemplateDetails, 'status' | 'category' | 'rejection_reason' | 'components'>
}

/**
 * `prepare` stores the change with the status of a review, so that the template cannot be sent or changed
 * while it is unknown which text is in force. A refusal restores the previous state.
 */
export const updateTemplate = defineProviderHandler<'messaging_update_template', UpdateIntent, null>({
  prepare: async (ctx, { template_id: id, template: draft }) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, id)
    if (!row) throw notFound('template', id)
    requireSameIdentity(row, draft)
    const lint = requireValidDraft(draft)
    const providerId = requireEditable(row, draft)
    const account = await requireAccount(ctx, row)
    const payload = buildPayload(draft)
    await updateTemplateRow(
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
      telling: !isSameTemplate(payload, components, draft.category),
      before: { status, category, rejection_reason, components },
    }
  },
  call: async (intent, { services: { provider }, signal }) => {
    await provider.editTemplate(
      intent.providerId,
      { components: parsePayload(intent), ...(intent.changesCategory ? { category: intent.category } : {}) },
      signal,
      { accountId: intent.account.id },
    )
    return null
  },
  findOutcome: async (intent, options) => ((await wasEditedEarlier(intent, options)) ? null : undefined),
  // The same change twice leaves the same template.
  mayRepeat: true,
  complete: async (ctx, intent) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, intent.templateId)
    if (!row) throw notFound('template', intent.templateId)
    if (row.status === 'PENDING')
      await updateTemplateRow(ctx.tx, ctx.actor.workspace.id, row.id, { meta_errors: null }, ctx.now)
    const { category, components } = intent.before
    ctx.auditChange(
      { category, components },
      { category: intent.category, components: JSON.parse(intent.payload) as unknown },
    )
    return completeSubmission(ctx, intent, row, false)
  },
  compensate: async (ctx, { templateId, before }, problem) => {
    const row = await lockTemplate(ctx.tx, ctx.actor.workspace.id, templateId)
    if (!row) return
    // A review that the provider reported in the meantime stays.
    const { components, ...state } = before
    await updateTemplateRow(
      ctx.tx,
      ctx.actor.workspace.id,
      templateId,
      {
        components: components as unknown[],
        ...(row.status === 'PENDING' ? state : {}),
        ...(isTemplateRefusal(problem) ? { meta_errors: toStoredError(problem, ctx.now) } : {}),
      },
      ctx.now,
    )
  },
  dryRunResult: () => null,
})

/** Whether the provider refused the change itself, rather than any call at the moment. */
const isTemplateRefusal = (problem: Problem): boolean =>
  problem.code !== 'upstream_unavailable' && providerCodeOf(problem) !== undefined

/**
 * Whether the change of an earlier call arrived. A change that is not visible in the provider's components
 * is recognized by the review.
 */
const wasEditedEarlier = async (
  { account, name, category, providerId, telling, ...intent }: UpdateIntent,
  { services: { provider }, signal }: CallOptions,
): Promise<boolean> => {
  const current = (await lookUpOutcome(provider.listTemplates(account.id, name, signal))).find(
    ({ id }) => id === providerId,
  )
  if (!current) return false
  return telling
    ? isSameTemplate(JSON.parse(intent.payload), current.components, category)
    : current.status === 'PENDING'
}

const requireSameIdentity = (row: TemplateDetails, draft: TemplateDraft): void => {
  for (const field of ['name', 'language'] as const) {
    if (draft[field] === row[field]) continue
    throw invalidField(
      'template',
      'fixed',
      `has a different ${field} than the template, whose ${field} cannot be changed`,
      {
        path: [field],
        fix: `Send ${JSON.stringify(row[field])}, or submit a new template.`,
        allowed: [row[field]],
      },
    )
  }
}

const IN_REVIEW_STATUSES: readonly string[] = ['PENDING', 'IN_APPEAL', SUBMITTING]
const FINAL_STATUSES: readonly string[] = ['DISABLED', 'DELETED', 'PENDING_DELETION', 'LOCKED']

/** Returns the provider's id of a template that the provider allows to change. Throws 409 otherwise. */
const requireEditable = (
  { name, status, category, provider_id: providerId }: TemplateDetails,
  draft: TemplateDraft,
): string => {
  const refuse = (detail: string, reason: Reason): never => {
    throw new Problem('conflict', detail, { reason, template_status: status })
  }
  if (IN_REVIEW_STATUSES.includes(status))
    refuse(`The template ${name} is in review (${status}). Change it when the review is over.`, 'in_review')
  if (status === 'ARCHIVED')
    refuse(
      `The template ${name} is archived. Restore it at the provider first, or submit a new one.`,
      'archived',
    )
  if (FINAL_STATUSES.includes(status))
    refuse(`The template ${name} is ${status} and cannot be changed. Submit a new one.`, 'not_editable')
  if (status === 'APPROVED' && category !== null && category !== draft.category)
    refuse(
      `The template ${name} is approved as ${category}, so its category cannot be changed. Send ${category}.`,
      'category_fixed',
    )
  return (
    providerId ??
    refuse(`The template ${name} never reached the provider. Submit a new one.`, 'not_submitted')
  )
}

const requireAccount = async (
  ctx: Context,
  { name, account_id: accountId }: TemplateDetails,
): Promise<BusinessAccount> => {
  const account = findAccount(await listConnectedAccounts(ctx), accountId)
  if (!account)
    throw notConnectedProblem(
      `No channel of the business account of the template ${name} is connected. Connect one first.`,
    )
  return account
}
