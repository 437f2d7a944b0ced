import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { toErrorFields } from '../../packages/sandbox/emulator/errors.ts'
import {
  checkEnvelope,
  checkTemplateComponents,
  findReviewFinding,
} from '../../packages/sandbox/emulator/template-checks.ts'
import { checkSampleTypes, listHeaderSamples } from '../../packages/sandbox/emulator/template-samples.ts'
import { lintDraft } from '../../server/domains/templates/lint.ts'
import { buildPayload } from '../../server/domains/templates/payload.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { createSandboxDriver } from '../messaging/fixtures.ts'
import { captureProblem, signal } from '../provider/adapter-fixture.ts'
import { makeWorkspace } from '../servers.ts'
import { validDrafts } from './draft-arbitraries.ts'
import { editedDrafts } from './draft-edits.ts'
import { rules } from './lint-fixture.ts'
import { plantSamples, sampleHandles, sampleTypes } from './samples.ts'

// Two independent implementations of the same rules: lint checks drafts, the sandbox checks payloads. Where
// they disagree, one of them is wrong.

const FITTING_TYPES: Readonly<Record<string, string>> = {
  IMAGE: 'image/png',
  VIDEO: 'video/mp4',
  DOCUMENT: 'application/pdf',
}

/** The media type that a handle names in its third part, `4:<name>:<type>:<signature>`, both in base64. */
const readNamedType = (handle: string): string | undefined => {
  const [version = '', name = '', type = ''] = handle.split(':')
  if (!/^\d+$/.test(version) || !/^[\w+/=-]*$/.test(name) || !/^[\w+/=-]+$/.test(type)) return undefined
  const text = Buffer.from(type, 'base64').toString('latin1').toLowerCase()
  return /^[a-z]+\/[a-z0-9.+-]+$/.test(text) ? text : undefined
}

/**
 * Lint cannot know whether a handle was uploaded: all of them were, but addresses, which are no handles. One that
 * names no type fits its header.
 */
const pretendUploads = (components: readonly unknown[]): Map<string, string> =>
  new Map(
    listHeaderSamples(components).flatMap(({ handle, format }): [string, string][] =>
      /^https?:/i.test(handle.trim()) ? [] : [[handle, readNamedType(handle) ?? FITTING_TYPES[format]!]],
    ),
  )

/** Returns why the sandbox rejects a draft, immediately or in review; undefined when it accepts it. */
const findSandboxError = (draft: TemplateDraft): string | undefined => {
  const components = JSON.parse(JSON.stringify(buildPayload(draft))) as unknown
  try {
    const { category } = checkEnvelope({ ...draft })
    const checked = checkTemplateComponents(components, category, false)
    checkSampleTypes(checked, pretendUploads(checked))
    return findReviewFinding(checked, false)?.reason
  } catch (error) {
    const fields = toErrorFields(error)
    if (!fields) throw error
    return fields.userMessage ?? fields.message
  }
}

const listErrorRules = (draft: TemplateDraft): string[] =>
  lintDraft(draft)
    .issues.filter(({ severity }) => severity === 'error')
    .map(({ rule }) => rule)

const errorRules = rules.filter(({ severity }) => severity === 'error').map(({ id }) => id)

describe('Template lint and sandbox', () => {
  const assertAgreement = (draft: TemplateDraft): string[] => {
    const sandboxError = findSandboxError(draft)
    const errors = listErrorRules(draft)
    assert.equal(
      errors.length === 0,
      sandboxError === undefined,
      `lint: ${errors.join(', ') || 'valid'}; sandbox: ${sandboxError ?? 'valid'}`,
    )
    return errors
  }

  it('agree on edited drafts', () => {
    fc.assert(
      fc.property(editedDrafts, (draft) => void assertAgreement(draft)),
      { numRuns: runs(1000, 20_000) },
    )
  })

  it('accept valid drafts', () => {
    fc.assert(
      fc.property(validDrafts, (draft) =>
        assert.deepEqual([listErrorRules(draft), findSandboxError(draft)], [[], undefined]),
      ),
      { numRuns: 1000 },
    )
  })

  // The seed is fixed because some rules are broken rarely.
  it('agree on 10,000 drafts that break every rule; about half of them are valid', () => {
    const broken = new Map<string, number>()
    let validCount = 0
    for (const draft of fc.sample(editedDrafts, { numRuns: 10_000, seed: 5 })) {
      const errors = new Set(assertAgreement(draft))
      if (errors.size === 0) validCount++
      for (const rule of errors) broken.set(rule, (broken.get(rule) ?? 0) + 1)
    }
    assert.deepEqual([...broken.keys()].toSorted(), errorRules.toSorted())
    assert.ok(validCount > 4000 && validCount < 7000, `${validCount} were valid`)
  })
})

/** Returns the draft with a unique name; an invalid name is kept. */
const withUniqueName = (draft: TemplateDraft, n: number): TemplateDraft =>
  /^[a-z0-9_]{1,512}$/.test(draft.name)
    ? { ...draft, name: `t${n}_${draft.name}`.slice(0, Math.max(10, draft.name.length)) }
    : draft

/** Returns the draft with samples that were uploaded; blank handles, addresses and known samples are kept. */
const withKnownHandles = (draft: TemplateDraft): TemplateDraft => {
  const known = (format: string, handle: string): string =>
    handle.trim() === '' || /^https?:/i.test(handle.trim()) || sampleTypes.has(handle)
      ? handle
      : (sampleHandles[format as keyof typeof sampleHandles] ?? handle)
  const { header, carousel } = draft
  return {
    ...draft,
    ...(header?.media_handle === undefined
      ? {}
      : { header: { ...header, media_handle: known(header.format, header.media_handle) } }),
    ...(carousel
      ? {
          carousel: {
            cards: carousel.cards.map((card) => ({
              ...card,
              media_handle: known(card.header_format, card.media_handle),
            })),
          },
        }
      : {}),
  }
}

const adjacentVariablesDraft: TemplateDraft = {
  name: 'gift_boxes',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Gift boxes for {{1}} {{2}} are ready in the shop.', examples: ['Ada', 'Grace'] },
}

/** True when the provider accepts the draft and rejects it in review. */
const isRejectedInReview = (draft: TemplateDraft): boolean => {
  const errors = listErrorRules(draft)
  return errors.length > 0 && errors.every((rule) => rule.endsWith('variables_adjacent'))
}

// Dedicated: the test advances the clock of the server.
everyDatabase(
  'Template lint and provider',
  (server) => {
    it('create accepts what the provider accepts, and the provider rejects what create rejects', async () => {
      const workspace = await makeWorkspace(server())
      await plantSamples(server().db)
      const call = callAs(server(), workspace.owner.key)
      const { provider } = server().app
      const account = `77${workspace.id}`
      const rejected: TemplateDraft[] = []
      const accepted: string[] = []
      for (const [n, draft] of [...fc.sample(editedDrafts, 40), ...fc.sample(validDrafts, 10)].entries()) {
        const template = withKnownHandles(withUniqueName(draft, n))
        const reply = await call(
          'messaging_create_template',
          { template },
          { confirm: 'submit', idempotencyKey: `agreement-${workspace.id}-${n}` },
        )
        if (listErrorRules(template).length > 0) {
          assert.deepEqual([reply.status, reply.body.reason], [400, 'template_rules'], reply.text)
          rejected.push(template)
        } else {
          assert.equal(reply.status, 201, `${JSON.stringify(template)} ${reply.text}`)
          accepted.push(reply.body.id)
        }
      }
      assert.ok(accepted.length >= 10, `${accepted.length} were accepted`)

      // Drafts that the API rejects are submitted to the provider directly.
      const inReview: string[] = []
      for (const [n, draft] of [...rejected, adjacentVariablesDraft].entries()) {
        const submission = {
          name: draft.name,
          language: draft.language,
          category: draft.category,
          components: buildPayload(draft),
        }
        if (isRejectedInReview(draft))
          inReview.push(
            (await provider.createTemplate(account, { ...submission, name: `in_review_${n}` }, signal)).id,
          )
        else await captureProblem(provider.createTemplate(account, submission, signal))
      }
      assert.ok(inReview.length > 0)
      await createSandboxDriver(server(), workspace).advance('1m')
      await server().settle()
      const templates = new Map(
        (await provider.listTemplates(account, undefined, signal)).map((t) => [t.id, t]),
      )
      assert.deepEqual(
        inReview.map((id) => [templates.get(id)!.status, templates.get(id)!.rejectedReason]),
        inReview.map(() => ['REJECTED', 'INVALID_FORMAT']),
      )
      assert.equal(templates.size, inReview.length + accepted.length)
      for (const id of accepted)
        assert.equal((await call('messaging_get_template', { template_id: id })).body.status, 'APPROVED')
    })
  },
  { dedicated: true },
)
