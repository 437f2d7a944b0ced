import assert from 'node:assert/strict'
import { SendTemplate } from '../../catalog/send-template.ts'
import { fillTemplate } from '../../server/messaging/template-fill.ts'
import type { TemplateValues } from '../../server/messaging/template-values.ts'

/** The business time at which templates are filled. */
export const FILL_TIME = '2026-10-01T09:30:00.000Z'

export type TemplatePart = Record<string, unknown>

export const fill = (components: TemplatePart[], values: Partial<TemplateValues>, category = 'UTILITY') =>
  fillTemplate(
    { category, components },
    SendTemplate.parse({ name: 'x', language: 'en', ...values }),
    FILL_TIME,
  )

/** Fills a template with valid values. */
export const fillValid = (components: TemplatePart[], values: Partial<TemplateValues>, category?: string) => {
  const filled = fill(components, values, category)
  assert.ok('components' in filled, JSON.stringify(filled))
  return filled
}

/** Fills a template with invalid values, and returns the pointer and code of each error. */
export const fillInvalid = (
  components: TemplatePart[],
  values: Partial<TemplateValues>,
  category?: string,
): [pointer: string, code: string][] => {
  const filled = fill(components, values, category)
  assert.ok('errors' in filled, JSON.stringify(filled))
  for (const { detail, fix } of filled.errors) assert.ok(detail && fix && !detail.endsWith('.'))
  return filled.errors.map(({ pointer, code }) => [pointer!.replace('#/template', ''), code])
}

export const textBody = (text: string) => ({ type: 'BODY', text })
