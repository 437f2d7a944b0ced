import type { TemplateDraft } from '../../catalog/templates.ts'
import { type FieldError, pointerOf, Problem } from '../core/problem.ts'
import { type LintResult, lintDraft } from './lint.ts'

const MOST_ERRORS = 50

/** `buttons[0].url` as a JSON Pointer into the input. */
const pointerTo = (path: string): string => pointerOf(['template', ...path.split(/[.[\]]+/).filter(Boolean)])

/**
 * What lint says of a draft that may be submitted. Throws 400 `template_rules`, which names the rules it
 * breaks.
 */
export const requireSound = (draft: TemplateDraft): LintResult => {
  const lint = lintDraft(draft)
  if (lint.valid) return lint
  const errors = lint.issues
    .filter(({ severity }) => severity === 'error')
    .map(({ rule, path, message, fix }): FieldError => ({
      pointer: pointerTo(path),
      code: 'template_rules',
      detail: message,
      rule,
      fix,
    }))
  const [{ detail, fix } = { detail: '', fix: '' }] = errors
  throw new Problem(
    'invalid_input',
    errors.length === 1
      ? `${detail} ${fix}`
      : `The draft breaks ${errors.length} rules; the first: ${detail}`,
    { reason: 'template_rules', errors: errors.slice(0, MOST_ERRORS) },
  )
}
