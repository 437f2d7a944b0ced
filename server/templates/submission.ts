import type { StoredTemplate } from '../../storage/templates.ts'
import type { Context } from '../core/context.ts'
import type { ProviderTemplate } from '../provider/port.ts'
import type { Account } from './accounts.ts'
import type { LintResult } from './lint.ts'
import type { Component } from './payload.ts'

/**
 * What a submission keeps between its parts. `payload` and `lint` are JSON text: the database's own JSON
 * forgets the order of members, and what the provider is given must be what is answered, byte for byte.
 */
export type Submission = {
  templateId: string
  account: Account
  name: string
  language: string
  category: string
  payload: string
  lint: string
}

export const componentsOf = ({ payload }: Submission): Component[] => JSON.parse(payload) as Component[]

/** The status of a template, in our own word, until the provider has taken it. */
export const SUBMITTING = 'SUBMITTING'

type State = Pick<StoredTemplate, 'id' | 'status' | 'category'>

/**
 * What create and update answer, and the event that tells it. Nothing that a rehearsal would make has an id
 * or a status.
 */
export const submitted = (
  ctx: Context,
  submission: Submission,
  { id, status, category }: State,
  made: boolean,
) => {
  const { name, language, account } = submission
  ctx.emit('template.submitted/1', { template: { id, name, language, category, status } })
  return {
    submitted: !ctx.dryRun,
    id: ctx.dryRun && made ? null : id,
    name,
    language,
    category,
    status: ctx.dryRun ? null : status,
    business_account_id: account.id,
    business_account_name: account.name,
    lint: JSON.parse(submission.lint) as LintResult,
    payload_preview: componentsOf(submission),
  }
}

/** The one of this language among those of a name. */
export const inLanguage = (
  templates: readonly ProviderTemplate[],
  language: string,
): ProviderTemplate | undefined => templates.find((template) => template.language === language)
