import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lintDraft } from '../../server/domains/templates/lint.ts'
import { buildPayload } from '../../server/domains/templates/payload.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { createSandboxDriver } from '../messaging/fixtures.ts'
import { captureProblem, signal } from '../provider/adapter-fixture.ts'
import { everySandbox } from '../sandbox/sandbox-fixture.ts'
import { buttonEntries } from './corpus/buttons.ts'
import { corpusSources, type CorpusEntry, type Verdict } from './corpus/entry.ts'
import { kindEntries } from './corpus/kinds.ts'
import { textEntries } from './corpus/texts.ts'
import { plantSamples } from './samples.ts'
import { createTemplateFixture } from './template-fixture.ts'

const corpus: readonly CorpusEntry[] = [...textEntries, ...buttonEntries, ...kindEntries]

const isAccepted = ({ verdict }: CorpusEntry): boolean => verdict === 'accepted'
const isRejected = (verdict: Verdict): verdict is { rejected: string } =>
  typeof verdict === 'object' && 'rejected' in verdict

const toSubmission = ({ draft: { name, language, category }, draft }: CorpusEntry) => ({
  name,
  language,
  category,
  components: buildPayload(draft),
})

/** Returns the ids of entries for which `holds` is false, so that a failure lists all of them. */
const listDisagreements = async (
  holds: (entry: CorpusEntry) => Promise<true | string>,
): Promise<string[]> => {
  const found: string[] = []
  for (const entry of corpus) {
    const outcome = await holds(entry)
    if (outcome !== true) found.push(`${entry.id}: ${JSON.stringify(entry.verdict)}, but ${outcome}`)
  }
  return found
}

describe('Template corpus', () => {
  it('has at least 120 drafts with different ids, of every source and certainty', () => {
    assert.ok(corpus.length >= 120, `${corpus.length} drafts`)
    assert.equal(new Set(corpus.map(({ id }) => id)).size, corpus.length)
    assert.deepEqual(
      [...new Set(corpus.map(({ source }) => source))].toSorted(),
      Object.keys(corpusSources).toSorted(),
    )
    for (const certainty of ['certain', 'likely', 'assumed'])
      assert.ok(corpus.some((entry) => entry.certainty === certainty))
  })

  it('lint: valid is what the provider accepts and approves', async () => {
    assert.deepEqual(
      await listDisagreements(async (entry) => {
        const { valid, issues } = lintDraft(entry.draft)
        return (
          valid === isAccepted(entry) || `lint says ${valid ? 'valid' : issues.map((i) => i.rule).join(', ')}`
        )
      }),
      [],
    )
  })
})

everySandbox('Template corpus: sandbox', (withSandbox) => {
  it('gives the verdict of the provider, with its code and subcode', async () => {
    await withSandbox(async ({ db, call, account, clock, sandbox, changes }) => {
      await plantSamples(db)
      const outcomes = await listDisagreements(async (entry) => {
        const { status, body } = await call('POST', `v23.0/${account}/message_templates`, toSubmission(entry))
        const { verdict } = entry
        if (status === 200) return verdict === 'accepted' || isRejected(verdict) || 'it was accepted'
        const { code, error_subcode: subcode, error_user_msg: text } = body.error
        if (typeof verdict !== 'object' || isRejected(verdict)) return `refused: ${text}`
        return (
          (code === verdict.code && subcode === verdict.subcode) || `refused with ${code}/${subcode}: ${text}`
        )
      })
      assert.deepEqual(outcomes, [])
      clock.offsetMs += 5000
      // A run reviews a hundred templates at most.
      for (let i = 0; i < 5; i++) await sandbox.drain()
      const reviews = new Map(
        changes
          .filter(({ field }) => field === 'message_template_status_update')
          .map(({ value }) => [value['message_template_name'], value['reason']]),
      )
      for (const { draft, verdict } of corpus)
        if (isRejected(verdict)) assert.equal(reviews.get(draft.name), verdict.rejected, draft.name)
        else if (verdict === 'accepted' && draft.category !== 'AUTHENTICATION')
          assert.equal(reviews.get(draft.name), 'NONE', draft.name)
    })
  })
})

everyDatabase(
  'Template corpus: service',
  (server) => {
    it('lint, dry run and submission accept what the provider accepts, and the review agrees', async () => {
      const { call, create, run, workspace } = await createTemplateFixture(server())
      const submitted: string[] = []
      assert.deepEqual(
        await listDisagreements(async (entry) => {
          const template = entry.draft
          const lint = await call('messaging_lint_template', { template })
          if (lint.body.valid !== isAccepted(entry)) return `lint: ${lint.text}`
          for (const options of [{ dry_run: true }, {}]) {
            const { status, body, text } = await create(template, options)
            if (isAccepted(entry) ? status !== 201 : status !== 400 || body.reason !== 'template_rules')
              return `${JSON.stringify(options)}: ${text}`
            if (status === 201 && body.id !== null) submitted.push(body.id)
          }
          return true
        }),
        [],
      )
      await createSandboxDriver(server(), workspace).advance('1m')
      await server().settle()
      for (const id of submitted)
        assert.equal((await run('messaging_get_template', { template_id: id })).status, 'APPROVED', id)
    })

    it('adapter: a refusal has the code of the provider, whose it is unless it names a rule', async () => {
      const { workspace } = await createTemplateFixture(server())
      const { provider } = server().app
      assert.deepEqual(
        await listDisagreements(async (entry) => {
          const { verdict } = entry
          const submission = provider.createTemplate(`77${workspace.id}`, toSubmission(entry), signal)
          if (verdict === 'accepted' || isRejected(verdict))
            return await submission.then(
              () => true as const,
              (error: Error) => error.message,
            )
          const { code, extras } = await captureProblem(submission)
          return (
            (extras['provider_code'] === verdict.code &&
              extras['provider_subcode'] === verdict.subcode &&
              (extras.errors?.[0]?.rule === undefined
                ? code === 'upstream_error'
                : code === 'invalid_input' && extras.reason === 'template_rules')) ||
            `${code} ${JSON.stringify(extras)}`
          )
        }),
        [],
      )
    })
  },
  { dedicated: true },
)

everyDoor('Template corpus', (test) => {
  test('lint and dry run agree with the provider', async ({ server, call }) => {
    await plantSamples(server.db)
    for (const entry of corpus.filter((_, i) => i % 20 === 0)) {
      const template = entry.draft
      const { body } = await call('messaging_lint_template', { template })
      assert.equal(body.valid, isAccepted(entry), entry.id)
      const dryRun = await call('messaging_create_template', { template, dry_run: true })
      assert.equal(dryRun.status, isAccepted(entry) ? 201 : 400, `${entry.id}: ${dryRun.text}`)
    }
  })
})
