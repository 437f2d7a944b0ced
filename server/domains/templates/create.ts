import type { Context, CallOptions } from '../../handler.ts'
import {
  countTemplatesInPlan,
  deleteTemplateRow,
  lockTemplate,
  lockTemplateLimit,
  insertPendingTemplate,
  updateTemplateRow,
} from '../../../storage/templates/templates.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome } from '../../provider/port.ts'
import { chooseAccount } from './accounts.ts'
import { requireValidDraft } from './validate-draft.ts'
import { buildPayload } from './payload.ts'
import { isSameTemplate } from './same-template.ts'
import {
  parsePayload,
  findByLanguage,
  SUBMITTING,
  type Submission,
  completeSubmission,
} from './submission.ts'

type CreateIntent = Submission & { allowCategoryChange: boolean }
type CreateResult = { id: string; status: string; category: string | null; rejectedReason: string | null }

/**
 * `prepare` writes the template as SUBMITTING, which reserves its name, so that a review that arrives before
 * the provider's response finds it; a refusal deletes it.
 */
export const createTemplate = defineProviderHandler<'messaging_create_template', CreateIntent, CreateResult>({
  prepare: async (ctx, { template: draft, allow_category_change: allowCategoryChange, ...choice }) => {
    const lint = requireValidDraft(draft)
    const account = await chooseAccount(ctx, choice)
    const { name, language, category } = draft
    const payload = buildPayload(draft)
    await lockTemplateCount(ctx)
    const templateId = await insertPendingTemplate(
      ctx.tx,
      ctx.actor.workspace.id,
      {
        account_id: account.id,
        account_name: account.name,
        name,
        language,
        category,
        status: SUBMITTING,
        components: payload,
        submitted_by: ctx.actor.staff.id,
      },
      ctx.now,
    )
    if (templateId === undefined) throw duplicateProblem(name, language)
    await requireWithinLimit(ctx)
    return {
      templateId,
      account,
      name,
      language,
      category,
      payload: JSON.stringify(payload),
      lint: JSON.stringify(lint),
      allowCategoryChange,
    }
  },
  call: async (intent, { services: { provider }, signal }) => {
    const { account, name, language, category, allowCategoryChange } = intent
    const created = await provider.createTemplate(
      account.id,
      { name, language, category, allowCategoryChange, components: parsePayload(intent) },
      signal,
    )
    return { ...created, rejectedReason: null }
  },
  findOutcome: (intent, options) => findEarlierSubmission(intent, options),
  // The provider refuses a second template with the same name and language.
  mayRepeat: true,
  complete: async (ctx, intent, { id: providerId, status, category, rejectedReason }) => {
    const workspaceId = ctx.actor.workspace.id
    const row = await lockTemplate(ctx.tx, workspaceId, intent.templateId)
    if (!row)
      throw new Problem(
        'conflict',
        `The template ${intent.name} was withdrawn in the meantime. ` +
          'List the templates, and submit it again if it is missing.',
      )
    // A status that the provider reported in the meantime is newer than its response.
    const state =
      row.provider_id === providerId && row.status !== SUBMITTING
        ? row
        : {
            id: row.id,
            status,
            category: category ?? row.category,
            rejection_reason: status === 'REJECTED' ? rejectedReason : null,
          }
    await updateTemplateRow(
      ctx.tx,
      workspaceId,
      row.id,
      {
        provider_id: providerId,
        status: state.status,
        category: state.category,
        rejection_reason: state.rejection_reason,
      },
      ctx.now,
    )
    return completeSubmission(ctx, intent, state, true)
  },
  compensate: async (ctx, { templateId }) => {
    await deleteTemplateRow(ctx.tx, ctx.actor.workspace.id, templateId)
  },
  dryRunResult: ({ templateId, category }) => ({
    id: `dry-run ${templateId}`,
    status: 'PENDING',
    category,
    rejectedReason: null,
  }),
})

/**
 * Returns the template that an earlier call created; undefined without one. Throws 409 `duplicate` when a
 * different template has the name.
 */
const findEarlierSubmission = async (
  intent: CreateIntent,
  { services: { provider }, signal }: CallOptions,
): Promise<CreateResult | undefined> => {
  const { account, name, language, category } = intent
  const existing = findByLanguage(
    await lookUpOutcome(provider.listTemplates(account.id, name, signal)),
    language,
  )
  if (!existing) return undefined
  if (!isSameTemplate(parsePayload(intent), existing.components, category))
    throw duplicateProblem(name, language)
  return existing
}

const duplicateProblem = (name: string, language: string): Problem =>
  new Problem(
    'conflict',
    `The account already has a template ${name} in the language ${language}. ` +
      'Choose another name, or change that template with messaging_update_template.',
    { reason: 'duplicate' },
  )

const lockTemplateCount = async ({ tx, actor: { workspace } }: Context): Promise<void> => {
  if (workspace.templateLimit !== null) await lockTemplateLimit(tx, workspace.id)
}

/** Throws 403 `template_limit` above the limit of the plan; the new template is already counted. */
const requireWithinLimit = async ({ tx, actor: { workspace } }: Context): Promise<void> => {
  const { templateLimit: limit } = workspace
  if (limit === null || (await countTemplatesInPlan(tx, workspace.id)) <= limit) return
  throw new Problem(
    'forbidden',
    `The workspace has reached the limit of its plan, ${limit} templates. ` +
      'Archive some, or ask an administrator for a higher limit.',
    { reason: 'template_limit', limit },
  )
}
