import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { buttonTypes, headerFormats, TemplateDraft } from '../../catalog/templates/schemas.ts'
import { lintDraft } from '../../server/domains/templates/lint.ts'
import { parsePath } from '../../server/domains/templates/lint/examples.ts'
import { runs } from '../level.ts'
import { type JsonFields, rules } from './lint-fixture.ts'

const draftText = fc.oneof(
  fc
    .array(
      fc.constantFrom(
        '{{1}}',
        '{{2}}',
        '{{3}}',
        '{{',
        '}}',
        '{{x}}',
        ' ',
        '     ',
        '\n',
        '\t',
        'Your order',
        'sale',
        'bit.ly/x',
        '☕',
        '🇩🇪',
        '字',
        'é',
        '*',
        '_',
        '.',
        'https://a.example/',
        '\ud800',
        '\0',
      ),
      { maxLength: 14 },
    )
    .map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', 'x'.repeat(26), 'x'.repeat(61), '字'.repeat(200)),
)

const shortText = (maxLength: number) => draftText.map((text) => text.slice(0, maxLength))

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const button = fc.record(
  {
    type: fc.constantFrom(...buttonTypes),
    text: shortText(200),
    url: fc.oneof(
      draftText,
      draftText.map((text) => `https://a.example/${text}`),
    ),
    url_example: draftText,
    phone_number: fc.oneof(shortText(64), fc.constantFrom('+15550100001')),
    coupon_code: shortText(64),
    flow_id: shortText(64),
    flow_action: fc.constantFrom('NAVIGATE' as const, 'DATA_EXCHANGE' as const),
    navigate_screen: shortText(200),
    otp_type: fc.constantFrom('COPY_CODE' as const, 'ONE_TAP' as const, 'ZERO_TAP' as const),
    supported_apps: fc.array(fc.record({ package_name: shortText(255), signature_hash: shortText(64) }), {
      maxLength: 5,
    }),
  },
  { requiredKeys: ['type'] },
)

const body = fc.record(
  { text: draftText, examples: fc.array(draftText, { maxLength: 4 }) },
  { requiredKeys: [] },
)

/** Any draft that the schema accepts, with many that are nearly valid. */
const anyDraft = fc.record(
  {
    name: fc.oneof(draftText, fc.constant('order_update')),
    language: fc.constantFrom('en_US', 'en', 'de_BR', '', 'english', '_'),
    category: fc.constantFrom('MARKETING', 'UTILITY', 'AUTHENTICATION', 'MARKETING', 'utility', ''),
    header: optional(
      fc.record(
        {
          format: fc.constantFrom(...headerFormats),
          text: draftText,
          example: draftText,
          media_handle: draftText,
        },
        { requiredKeys: ['format'] },
      ),
    ),
    body: fc.oneof(
      body,
      fc.constant({ text: 'Your order is on its way.', add_security_recommendation: true }),
      fc.constant({ text: 'Your order is on its way.' }),
    ),
    footer: optional(
      fc.record({ text: draftText, code_expiration_minutes: fc.integer() }, { requiredKeys: [] }),
    ),
    buttons: optional(fc.array(button, { maxLength: 12 })),
    limited_time_offer: optional(
      fc.record({ text: shortText(200), has_expiration: fc.boolean() }, { requiredKeys: ['text'] }),
    ),
    carousel: fc.option(
      fc.record({
        cards: fc.array(
          fc.record(
            {
              header_format: fc.constantFrom('IMAGE' as const, 'VIDEO' as const),
              media_handle: shortText(20),
              body,
              buttons: fc.array(button, { maxLength: 5 }),
            },
            { requiredKeys: ['header_format', 'media_handle', 'buttons'] },
          ),
          { maxLength: 12 },
        ),
      }),
      { nil: undefined, freq: 3 },
    ),
  },
  { requiredKeys: ['name', 'language', 'category', 'body'] },
)

type JsonSchemaNode = {
  properties?: Record<string, JsonSchemaNode>
  items?: JsonSchemaNode
  anyOf?: JsonSchemaNode[]
}

const draftSchema = TemplateDraft.toJSONSchema({ io: 'input' }) as JsonSchemaNode

/** True when the path exists in the schema, and its list indexes exist in the draft. */
const isValidPath = (draft: unknown, path: string): boolean => {
  let [node, schema]: [unknown, JsonSchemaNode | undefined] = [draft, draftSchema]
  for (const step of parsePath(path)) {
    if (typeof step === 'number' && !(Array.isArray(node) && step < node.length)) return false
    node = (node as JsonFields | undefined)?.[step]
    schema = typeof step === 'number' ? schema?.items : schema?.properties?.[step]
  }
  return schema !== undefined
}

describe('Template lint: any draft', () => {
  it('counts match the issues, paths exist, the draft is unchanged, and nothing throws', () => {
    const raised = new Set<string>()
    fc.assert(
      fc.property(anyDraft, (input) => {
        const draft = TemplateDraft.parse(input)
        const before = JSON.stringify(draft)
        const result = lintDraft(draft)
        assert.equal(JSON.stringify(draft), before)
        const { valid, errors, warnings, issues } = result
        assert.equal(errors, issues.filter(({ severity }) => severity === 'error').length)
        assert.equal(warnings, issues.length - errors)
        assert.equal(valid, errors === 0)
        assert.ok(
          issues.slice(0, errors).every(({ severity }) => severity === 'error'),
          'errors come first',
        )
        assert.equal(
          new Set(issues.map(({ rule, path }) => `${rule} ${path}`)).size,
          issues.length,
          'a rule reports a path once',
        )
        for (const { rule, path, message, fix } of issues) {
          raised.add(rule)
          assert.ok(isValidPath(draft, path), `${rule}: ${path}`)
          assert.ok(
            message.length > 8 && fix.length > 8 && message.isWellFormed() && fix.isWellFormed(),
            `${rule}: ${message} ${fix}`,
          )
          assert.ok(message.length < 600 && fix.length < 600, `${rule}: ${message.length} ${fix.length}`)
        }
      }),
      { numRuns: runs(1000, 3000) },
    )
    assert.ok(raised.size > rules.length * 0.8, `${raised.size} of ${rules.length} rules were raised`)
  })

  it('applying a suggested fix resolves the issue', () => {
    let fixesApplied = 0
    fc.assert(
      fc.property(anyDraft, (input) => {
        const draft = TemplateDraft.parse(input)
        for (const { rule, path, fix } of lintDraft(draft).issues) {
          const text = /^Write (".*")\.$/u.exec(fix)?.[1]
          if (text === undefined) continue
          const fixedDraft = structuredClone(draft) as unknown as JsonFields
          const steps = parsePath(path)
          const holder = steps
            .slice(0, -1)
            .reduce<JsonFields>((node, step) => node[step] as JsonFields, fixedDraft)
          holder[steps.at(-1)!] = JSON.parse(text)
          assert.ok(
            !lintDraft(TemplateDraft.parse(fixedDraft)).issues.some(
              (issue) => issue.rule === rule && issue.path === path,
            ),
            `${rule}: ${fix}`,
          )
          fixesApplied++
        }
      }),
      { numRuns: runs(600, 1500) },
    )
    assert.ok(fixesApplied > runs(200, 500), `${fixesApplied} fixes applied`)
  })
})
