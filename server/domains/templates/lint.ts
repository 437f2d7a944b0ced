import type { Handler } from '../../handler.ts'
import type { z } from 'zod'
import type { LintResult as Schema } from '../../../catalog/templates/schemas.ts'
import { authenticationRules } from './lint/authentication.ts'
import { bodyRules, cardBodyRules } from './lint/body.ts'
import { renderPreview } from './lint/body-text.ts'
import { buttonValueRules } from './lint/button-values.ts'
import { buttonRules } from './lint/buttons.ts'
import { carouselRules } from './lint/carousel.ts'
import { footerRules } from './lint/footer.ts'
import { headerRules, countHeaderVariables } from './lint/header.ts'
import { nameRules } from './lint/name.ts'
import { offerRules } from './lint/offer.ts'
import { type Draft, parseDraft, type LintRule } from './lint/rule.ts'
import { parseVariables } from './variables.ts'

export type DraftLint = z.output<typeof Schema>

/** All rules by topic, in the order in which they run. */
export const rulesByTopic: Readonly<Record<string, readonly LintRule[]>> = {
  'Name, language, category': nameRules,
  Body: bodyRules,
  Codes: authenticationRules,
  Header: headerRules,
  Footer: footerRules,
  Buttons: [...buttonRules, ...buttonValueRules],
  'Limited-time offer': offerRules,
  Carousel: carouselRules,
  'Texts of cards': cardBodyRules,
}

const rules = Object.values(rulesByTopic).flat()

/** Lints any draft that the schema accepts. Returns all issues, errors first; never throws. */
export const lintDraft = (draft: Draft): DraftLint => {
  const subject = parseDraft(draft)
  const all = rules.flatMap(({ id: rule, severity, find }) =>
    find(subject).map((finding) => ({ rule, severity, ...finding })),
  )
  const errors = all.filter(({ severity }) => severity === 'error')
  const warnings = all.filter(({ severity }) => severity === 'warning')
  const body = subject.bodies.find(({ card }) => !card)
  return {
    valid: errors.length === 0,
    errors: errors.length,
    warnings: warnings.length,
    issues: [...errors, ...warnings],
    variables: {
      header: countHeaderVariables(subject),
      body: body?.variables.names.length ?? parseVariables(draft.body.text ?? '').names.length,
    },
    // The provider writes the text of authentication templates.
    preview: body ? renderPreview(body) : null,
  }
}

export const lintTemplate: Handler<'messaging_lint_template'> = async (_ctx, { template }) =>
  lintDraft(template)
