import type { Context } from '../../handler.ts'
import { loadTemplate, type TemplateDetails } from '../../../storage/templates/templates.ts'
import type { Problem } from '../../kernel/problem.ts'
import type { ProviderTemplate } from '../../provider/port.ts'
import type { BusinessAccount } from './accounts.ts'
import type { DraftLint } from './lint.ts'
import type { PayloadComponent } from './payload.ts'

/**
 * What a submission stores between its parts. `payload` and `lint` are JSON text: the database's JSON type
 * does not keep the order of members, and the response must show what the provider got, byte for byte.
 */
export type Submission = {
  templateId: string
  account: BusinessAccount
  name: string
  language: string
  category: string
  payload: string
  lint: string
}

export const parsePayload = ({ payload }: Submission): PayloadComponent[] =>
  JSON.parse(payload) as PayloadComponent[]

/** Our own status of a template until the provider has accepted it. */
export const SUBMITTING = 'SUBMITTING'

type State = Pick<TemplateDetails, 'id' | 'status' | 'category'>

/**
 * Emits the event of a submission, and returns the output of create and update. In a dry run it has no
 * status, and no id for a new template. `created`: the template is new.
 */
export const completeSubmission = async (
  ctx: Context<'template.submitted/1'>,
  submission: Submission,
  { id, status, category }: State,
  created: boolean,
) => {
  const { name, language, account } = submission
  const row = (await loadTemplate(ctx.tx, ctx.actor.workspace.id, id))!
  ctx.emit('template.submitted/1', { template: { id, name, language, category, status } })
  return {
    submitted: !ctx.dryRun,
    id: ctx.dryRun && created ? null : id,
    name,
    language,
    category,
    status: ctx.dryRun ? null : status,
    business_account_id: account.id,
    business_account_name: account.name,
    lint: JSON.parse(submission.lint) as DraftLint,
    payload_preview: parsePayload(submission),
    version: String(row.version),
  }
}

/** Finds the template of a language among those of one name. */
export const findByLanguage = (
  templates: readonly ProviderTemplate[],
  language: string,
): ProviderTemplate | undefined => templates.find((template) => template.language === language)

/** Returns the provider's refusal in the form that is stored with the template. */
export const toStoredError = ({ message, extras }: Problem, at: string) => ({
  code: extras['provider_code'],
  subcode: extras['provider_subcode'] ?? null,
  message,
  trace_id: extras['provider_trace_id'] ?? null,
  at,
})
