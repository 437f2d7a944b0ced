import { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { lintDraft, rulesByTopic } from '../../server/domains/templates/lint.ts'

export type JsonFields = Record<string, unknown>

export const rules = Object.values(rulesByTopic).flat()
/** A valid draft. */
export const validDraft = {
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Your order is on its way.' },
}
/** Lints the valid draft with these fields replaced. */
export const lint = (fields: JsonFields) => lintDraft(TemplateDraft.parse({ ...validDraft, ...fields }))
/** Returns the rule and path of every issue, errors first. */
export const listIssues = (fields: JsonFields): string[] =>
  lint(fields).issues.map(({ rule, path }) => `${rule} ${path}`)
export const lintBody = (text: string, ...examples: string[]): string[] =>
  listIssues({ body: { text, examples } })
export const lintButtons = (...buttons: JsonFields[]): string[] => listIssues({ buttons })
