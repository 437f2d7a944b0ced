import type { z } from 'zod'
import type { LintResult as Schema } from '../../catalog/templates.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { authenticationRules } from './lint/authentication.ts'
import { bodyTopic, cardBodyTopic, previewOf } from './lint/body.ts'
import { buttonValueRules } from './lint/button-values.ts'
import { buttonRules } from './lint/buttons.ts'
import { carouselRules } from './lint/carousel.ts'
import { footerRules } from './lint/footer.ts'
import { headerRules, headerVariables } from './lint/header.ts'
import { nameRules } from './lint/name.ts'
import { offerRules } from './lint/offer.ts'
import { type Draft, readDraft, type Rule } from './lint/rule.ts'
import { parseVariables } from './variables.ts'

export type LintResult = z.output<typeof Schema>

/** Every rule by topic, in the order in which they are run. */
export const ruleTopics: Readonly<Record<string, readonly Rule[]>> = {
  'Name, language, category': nameRules,
  Body: bodyTopic,
  Codes: authenticationRules,
  Header: headerRules,
  Footer: footerRules,
  Buttons: [...buttonRules, ...buttonValueRules],
  'Limited-time offer': offerRules,
  Carousel: carouselRules,
  'Texts of cards': cardBodyTopic,
}

const rules = Object.values(ruleTopics).flat()

/** All that is wrong with a draft, errors first. Whatever the schema takes is linted; nothing is thrown. */
export const lintDraft = (draft: Draft): LintResult => {
  const subject = readDraft(draft)
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
      header: headerVariables(subject),
      body: body?.variables.names.length ?? parseVariables(draft.body.text ?? '').names.length,
    },
    // The text of codes is the provider's.
    preview: body ? previewOf(body) : null,
  }
}

export const lintTemplate: Handler<
  InputOf<'messaging_lint_template'>,
  OutputOf<'messaging_lint_template'>
> = async (_ctx, { template }) => lintDraft(template)
