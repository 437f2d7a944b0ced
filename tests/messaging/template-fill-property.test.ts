import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { TemplateValues } from '../../server/messaging/template-values.ts'
import { fill, textBody, type TemplatePart } from './template-fill.ts'

type GeneratedButton = { type: string; url?: string }

const MEDIA_URL = 'https://a.example/x'
const value = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[a-z0-9]{1,8}$/) },
  fc.constantFrom('a\nb', ' ', '     x', '{{1}}'),
)
const bodyText = fc
  .array(fc.oneof(fc.constantFrom('a', 'b, ', ' {{1}}', ' {{2}}', ' {{3}}'), fc.constant(' {{name}}')), {
    maxLength: 6,
  })
  .map((parts) => `Hi${parts.join('')}`)
const button = fc.constantFrom<GeneratedButton>(
  { type: 'QUICK_REPLY' },
  { type: 'URL', url: 'https://a.example/{{1}}' },
  { type: 'URL', url: 'https://a.example/' },
  { type: 'COPY_CODE' },
  { type: 'PHONE_NUMBER' },
)
const header = fc.constantFrom<TemplatePart | undefined>(
  undefined,
  { type: 'HEADER', format: 'TEXT', text: 'Plain' },
  { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
  { type: 'HEADER', format: 'IMAGE' },
  { type: 'HEADER', format: 'LOCATION' },
)
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Values of any shape, which fit a template by chance only. */
const anyValues = fc.record(
  {
    header: optional(
      fc.record(
        {
          text: value,
          media_url: fc.constant(MEDIA_URL),
          latitude: fc.constant(1),
          longitude: fc.constant(2),
        },
        { requiredKeys: [] },
      ),
    ),
    body: optional(fc.array(value, { maxLength: 4 })),
    buttons: optional(
      fc.array(
        fc.record(
          { index: fc.integer({ min: 0, max: 3 }), text: value, payload: value, coupon_code: value },
          { requiredKeys: ['index'] },
        ),
        { maxLength: 3 },
      ),
    ),
  },
  { requiredKeys: [] },
)

const countVariables = (text: string): number => new Set(text.match(/\{\{\w+\}\}/g) ?? []).size
const needsValue = ({ type, url }: GeneratedButton): boolean =>
  type === 'COPY_CODE' || url?.includes('{{') === true

const validHeader = (part: TemplatePart | undefined) => {
  if (part?.['format'] === 'IMAGE') return { media_url: MEDIA_URL }
  if (part?.['format'] === 'LOCATION') return { latitude: 1, longitude: 2 }
  return part?.['text'] === 'For {{1}}' ? { text: 'x' } : undefined
}

/** Returns values that the template accepts. */
const validValues = (text: string, head: TemplatePart | undefined, buttons: readonly GeneratedButton[]) => ({
  header: validHeader(head),
  body: Array.from({ length: countVariables(text) }, () => 'x'),
  buttons: buttons.flatMap((b, index): object[] => {
    if (!needsValue(b)) return []
    return b.type === 'COPY_CODE' ? [{ index, coupon_code: 'X' }] : [{ index, text: 'x' }]
  }),
})

/** A template and its values, which are valid but for one part, which may be anything. */
const input = fc.tuple(bodyText, header, fc.array(button, { maxLength: 3 })).chain(([text, head, buttons]) =>
  fc.tuple(fc.constantFrom('none', 'header', 'body', 'buttons'), anyValues).map(([part, values]) => {
    const valid = validValues(text, head, buttons)
    const mixed = part === 'none' ? valid : { ...valid, [part]: (values as Record<string, unknown>)[part] }
    return { text, head, buttons, values: JSON.parse(JSON.stringify(mixed)) as Partial<TemplateValues> }
  }),
)
type Input = typeof input extends fc.Arbitrary<infer T> ? T : never

/** Asserts that a filled template has a parameter for each variable. */
const assertFilled = (components: readonly unknown[], { text, head, buttons, values }: Input): void => {
  const filled = components as { type: string; parameters: { text?: string }[]; index?: string }[]
  const count = countVariables(text)
  assert.equal(filled.find((c) => c.type === 'body')?.parameters.length ?? 0, count)
  assert.equal(values.body?.length ?? 0, count)
  assert.equal(
    filled.some((c) => c.type === 'header'),
    head !== undefined && head['text'] !== 'Plain',
  )
  for (const [i, b] of buttons.entries())
    if (needsValue(b))
      assert.ok(
        filled.some((c) => c.index === String(i)),
        `button ${i}`,
      )
}

/** Asserts that the pointer of an error leads to a value that was sent, or to one that is missing. */
const assertPointer = (pointer: string, { text, values }: Input): void => {
  const [part, index] = pointer.slice('#/template/'.length).split('/')
  assert.ok(['header', 'body', 'buttons'].includes(part!), pointer)
  if (part === 'body' && index !== undefined)
    assert.ok(Number(index) < Math.max(values.body?.length ?? 0, countVariables(text)), pointer)
  if (part === 'buttons') assert.ok(Number(index) <= (values.buttons?.length ?? 0), pointer)
}

describe('Filling a template: generated values', () => {
  it('a filled template has a parameter for each variable, and errors point to the values', () => {
    const counts = { accepted: 0, rejected: 0 }
    fc.assert(
      fc.property(input, (generated) => {
        const { text, head, buttons, values } = generated
        const components: TemplatePart[] = [
          ...(head ? [head] : []),
          textBody(text),
          ...(buttons.length > 0 ? [{ type: 'BUTTONS', buttons }] : []),
        ]
        const filled = fill(components, values)
        if ('components' in filled) {
          counts.accepted++
          assertFilled(filled.components, generated)
        } else {
          counts.rejected++
          assert.ok('errors' in filled && filled.errors.length > 0)
          for (const { pointer } of filled.errors) assertPointer(pointer!, generated)
        }
      }),
      { numRuns: 1000 },
    )
    assert.ok(counts.accepted > 100 && counts.rejected > 100, JSON.stringify(counts))
  })
})
