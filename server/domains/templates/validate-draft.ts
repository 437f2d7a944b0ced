import type { TemplateDraft } from '../../../catalog/templates/schemas.ts'
import { type FieldError, toPointer, Problem } from '../../kernel/problem.ts'
import { type DraftLint, lintDraft } from './lint.ts'

const MAX_ERRORS = 50

/** Converts a path such as `buttons[0].url` to a JSON Pointer into the input. */
const draftPointer = (path: string): string =>
  toPointer(['template', ...path.split(/[.[\]]+/).filter(Boolean)])

/** Returns the lint result of a valid draft. Throws 400 `template_rules` with the rules that it breaks. */
export const requireValidDraft = (draft: TemplateDraft): DraftLint => {
  const lint = lintDraft(draft)
  if (lint.valid) return lint
  const errors = lint.issues
    .filter(({ severity }) => severity === 'error')
    .map(({ rule, path, message, fix }): FieldError => ({
      pointer: draftPointer(path),
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
    { reason: 'template_rules', errors: errors.slice(0, MAX_ERRORS) },
  )
}
