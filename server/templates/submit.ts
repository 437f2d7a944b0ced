import {
  countHeldTemplates,
  deleteTemplateRow,
  lockTemplate,
  lockTemplateLimit,
  reserveTemplate,
  writeTemplate,
} from '../../storage/templates.ts'
import type { Context } from '../core/context.ts'
import { inThreeParts } from '../messaging/send.ts'
import type { How, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { lookUp } from '../provider/port.ts'
import { chooseAccount } from './accounts.ts'
import { requireSound } from './check.ts'
import { payloadOf } from './payload.ts'
import { sameTemplate } from './same.ts'
import { componentsOf, inLanguage, SUBMITTING, type Submission, submitted } from './submission.ts'

type Intent = Submission & { allowCategoryChange: boolean }
type Result = { id: string; status: string; category: string | null; rejectedReason: string | null }

/**
 * `prepare` writes the template as SUBMITTING, which keeps its name from others and gives a review that is
 * quicker than the provider's answer something to find; a refusal takes it back.
 */
export const createTemplate = inThreeParts<
  InputOf<'messaging_create_template'>,
  OutputOf<'messaging_create_template'>,
  Intent,
  Result
>({
  prepare: async (ctx, { template: draft, allow_category_change: allowCategoryChange, ...choice }) => {
    const lint = requireSound(draft)
    const account = await chooseAccount(ctx, choice)
    const { name, language, category } = draft
    const payload = payloadOf(draft)
    await lockLimit(ctx)
    const templateId = await reserveTemplate(
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
    if (templateId === undefined) throw duplicate(name, language)
    await requireRoom(ctx)
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
  call: async (intent, how) => {
    if (how.again) {
      const earlier = await submittedEarlier(intent, how)
      if (earlier) return earlier
    }
    const { account, name, language, category, allowCategoryChange } = intent
    try {
      const made = await how.provider.createTemplate(
        account.id,
        { name, language, category, allowCategoryChange, components: componentsOf(intent) },
        how.signal,
      )
      return { ...made, rejectedReason: null }
    } catch (error) {
      // The call whose answer was lost may have come to its end only after it was looked for.
      const ours =
        how.again && error instanceof Problem && error.extras.reason === 'duplicate'
          ? await submittedEarlier(intent, how)
          : undefined
      if (ours) return ours
      throw error
    }
  },
  settle: async (ctx, intent, { id: providerId, status, category, rejectedReason }) => {
    const workspaceId = ctx.actor.workspace.id
    const row = await lockTemplate(ctx.tx, workspaceId, intent.templateId)
    if (!row)
      throw new Problem(
        'conflict',
        `The template ${intent.name} was taken back meanwhile. Read the list of templates, and submit it again if it is not there.`,
      )
    // What the provider told meanwhile is newer than its answer.
    const state =
      row.provider_id === providerId && row.status !== SUBMITTING
        ? row
        : {
            id: row.id,
            status,
            category: category ?? row.category,
            rejection_reason: status === 'REJECTED' ? rejectedReason : null,
          }
    await writeTemplate(
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
    return submitted(ctx, intent, state, true)
  },
  refused: async (ctx, { templateId }) => {
    await deleteTemplateRow(ctx.tx, ctx.actor.workspace.id, templateId)
  },
  rehearse: ({ templateId, category }) => ({
    id: `rehearsed ${templateId}`,
    status: 'PENDING',
    category,
    rejectedReason: null,
  }),
})

/**
 * The template that an earlier call made; undefined when there is none. One that is plainly another holds
 * the name.
 */
const submittedEarlier = async (intent: Intent, { provider, signal }: How): Promise<Result | undefined> => {
  const { account, name, language, category } = intent
  const there = inLanguage(await lookUp(provider.listTemplates(account.id, name, signal)), language)
  if (!there) return undefined
  if (!sameTemplate(componentsOf(intent), there.components, category)) throw duplicate(name, language)
  return there
}

const duplicate = (name: string, language: string): Problem =>
  new Problem(
    'conflict',
    `The account has a template ${name} in the language ${language}. Choose another name, or change that one with messaging_update_template.`,
    { reason: 'duplicate' },
  )

const lockLimit = async ({ tx, actor: { workspace } }: Context): Promise<void> => {
  if (workspace.templateLimit !== null) await lockTemplateLimit(tx, workspace.id)
}

/** Asked once the new template is counted among the others. */
const requireRoom = async ({ tx, actor: { workspace } }: Context): Promise<void> => {
  const { templateLimit: most } = workspace
  if (most === null || (await countHeldTemplates(tx, workspace.id)) <= most) return
  throw new Problem(
    'forbidden',
    `The plan allows ${most} templates, and the workspace has them. Archive some, or ask an administrator for a higher limit.`,
    { reason: 'template_limit', limit: most },
  )
}
