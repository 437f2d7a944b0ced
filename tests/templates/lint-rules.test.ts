import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { renderTemplateRules } from '../../scripts/template-rules.ts'
import { lintDraft } from '../../server/domains/templates/lint.ts'
import { buildExample, exampleDrafts } from '../../server/domains/templates/lint/examples.ts'
import { everyDoor } from '../doors.ts'
import { rules, validDraft } from './lint-fixture.ts'

describe('Template lint: rules', () => {
  it('ids are unique, and descriptions are sentences', () => {
    assert.equal(new Set(rules.map(({ id }) => id)).size, rules.length)
    for (const { id, about } of rules) assert.match(`${id}: ${about}`, /^[a-z_]+\.[a-z_]+: .+\.$/)
  })

  for (const [name, draft] of Object.entries(exampleDrafts))
    it(`the ${name} example draft has no issues`, () =>
      assert.deepEqual(lintDraft(TemplateDraft.parse(draft)).issues, []))

  for (const { id, severity, breaks, passes } of rules) {
    it(`${id}: its example breaks this rule, and its counterexample passes`, () => {
      const { issues, valid } = lintDraft(TemplateDraft.parse(buildExample(breaks)))
      const ownIssues = issues.filter(({ rule }) => rule === id)
      assert.deepEqual(
        ownIssues.map(({ path }) => path),
        [breaks.at],
        JSON.stringify(issues),
      )
      assert.equal(ownIssues[0]!.severity, severity)
      assert.deepEqual(
        issues.map(({ rule }) => rule).filter((rule) => rule !== id),
        breaks.also ?? [],
      )
      assert.equal(
        valid,
        issues.every((issue) => issue.severity !== 'error'),
      )
      for (const { message, fix } of issues)
        for (const sentence of [message, fix]) assert.match(sentence, /^\P{Ll}.{7,}\.$/u)
      const passing = lintDraft(TemplateDraft.parse(buildExample(passes))).issues
      assert.deepEqual(
        passing.filter((issue) => issue.rule === id),
        [],
        'the passing example',
      )
    })
  }

  it('docs/template-rules.md is up to date', () => {
    assert.equal(
      readFileSync('docs/template-rules.md', 'utf8'),
      renderTemplateRules(),
      'run `npm run generate`',
    )
  })
})

everyDoor('Template lint', (test) => {
  test('returns validity, counts, issues, variables and preview', async ({ call }) => {
    const { status, body: valid } = await call('messaging_lint_template', { template: validDraft })
    assert.equal(status, 200)
    assert.deepEqual(valid, {
      valid: true,
      errors: 0,
      warnings: 0,
      issues: [],
      variables: { header: 0, body: 0 },
      preview: validDraft.body.text,
    })
    const { body: invalid } = await call('messaging_lint_template', {
      template: {
        name: 'Order',
        language: 'en',
        category: 'MARKETING',
        buttons: [{ type: 'URL', text: 'Go', url: 'https://a.example/{{1}}/x' }],
      },
    })
    assert.deepEqual(
      invalid.issues.map(({ rule, path, severity }: Record<string, string>) => [rule, path, severity]),
      [
        ['name.form', 'name', 'error'],
        ['body.required', 'body.text', 'error'],
        ['buttons.url_variable', 'buttons[0].url', 'error'],
      ],
    )
    assert.deepEqual([invalid.valid, invalid.errors, invalid.preview], [false, 3, null])
  })
})
