import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from '../messaging/fixtures.ts'
import { orderDraft, plainDraft } from './drafts.ts'
import { archive, createTemplateFixture, submit } from './template-fixture.ts'

everyDatabase('Templates: update and archive', (server) => {
  const setUp = () => createTemplateFixture(server())

  it('create, update, archive: the business account must be connected', async () => {
    const { workspace, create, call, run, insert } = await setUp()
    const id = await insert({ provider_id: `9${workspace.id}` })
    await server()
      .db.updateTable('channels')
      .set({ status: 'disconnected' })
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual(summarizeReply(await create(plainDraft)), [409, 'conflict', 'channel_not_connected'])
    assert.deepEqual(
      summarizeReply(
        await call('messaging_update_template', { template_id: id, template: orderDraft }, submit),
      ),
      [409, 'conflict', 'channel_not_connected'],
    )
    assert.deepEqual(
      (await run('messaging_archive_templates', { ids: [id] })).failed.map((f: { code: string }) => f.code),
      ['account_not_connected'],
    )
  })

  it('update: rejection by the provider keeps the template and stores meta_errors', async () => {
    const { create, call, run, sandbox } = await setUp()
    const {
      body: { id },
    } = await create(orderDraft)
    await sandbox.review(id, 'approve')
    const before = await run('messaging_get_template', { template_id: id })
    await sandbox.fault({ code: 80008 })
    const throttled = await call(
      'messaging_update_template',
      { template_id: id, template: { ...orderDraft, footer: { text: 'Later' } } },
      submit,
    )
    assert.deepEqual(
      [
        throttled.status,
        throttled.body.reason,
        (await run('messaging_get_template', { template_id: id })).meta_errors,
      ],
      [503, 'throttled', null],
    )
    await sandbox.fault({ code: 131031 })
    const rejected = await call(
      'messaging_update_template',
      { template_id: id, template: { ...orderDraft, footer: { text: 'Thanks' } } },
      submit,
    )
    assert.equal(rejected.status, 502, rejected.text)
    const {
      meta_errors: errors,
      updated_at: _,
      version: _version,
      ...fieldsAfter
    } = await run('messaging_get_template', { template_id: id })
    const { meta_errors: errorsBefore, updated_at: __, version: ___, ...fieldsBefore } = before
    assert.deepEqual([fieldsAfter, errorsBefore, errors.code], [fieldsBefore, null, 131031])
    await run('messaging_update_template', {
      template_id: id,
      template: { ...orderDraft, footer: { text: 'Thanks' } },
    })
    assert.deepEqual(
      [
        (await run('messaging_get_template', { template_id: id })).footer,
        (await run('messaging_get_template', { template_id: id })).meta_errors,
      ],
      ['Thanks', null],
    )
  })

  it('update: name and language are immutable, as is the category of an approved template', async () => {
    const { create, call, sandbox } = await setUp()
    const {
      body: { id },
    } = await create(orderDraft)
    await sandbox.review(id, 'approve')
    const update = (template: object) =>
      call('messaging_update_template', { template_id: id, template }, submit)
    assert.deepEqual(summarizeReply(await update({ ...orderDraft, name: 'other' })), [
      400,
      'invalid_input',
      '#/template/name fixed',
    ])
    assert.deepEqual(summarizeReply(await update({ ...orderDraft, language: 'en_GB' })), [
      400,
      'invalid_input',
      '#/template/language fixed',
    ])
    assert.deepEqual(summarizeReply(await update({ ...orderDraft, category: 'MARKETING' })), [
      409,
      'conflict',
      'category_fixed',
    ])
    await sandbox.review(id, 'reject')
    assert.equal((await update({ ...orderDraft, category: 'MARKETING' })).body.category, 'MARKETING')
    assert.equal((await sandbox.templates())[0]!.category, 'MARKETING')
    assert.equal(
      (await call('messaging_update_template', { template_id: '999999999', template: orderDraft }, submit))
        .status,
      404,
    )
  })

  it('archive: a partial failure lists each template', async () => {
    const { workspace, create, run, call, sandbox, insert } = await setUp()
    const [approved, pending] = [(await create(orderDraft)).body.id, (await create(plainDraft)).body.id] as [
      string,
      string,
    ]
    await sandbox.review(approved, 'approve')
    const otherAccount = await insert({
      name: 'other_account',
      account_id: `1${workspace.id}`,
      provider_id: `11${workspace.id}`,
    })
    const notSubmitted = await insert({ name: 'unsent', status: 'SUBMITTING' })
    const alreadyArchived = await insert({ name: 'gone', status: 'ARCHIVED' })
    const ids = [pending, '999999999', approved, otherAccount, notSubmitted, alreadyArchived]
    const expected = {
      archived: [approved, alreadyArchived],
      failed: [
        {
          id: pending,
          name: plainDraft.name,
          code: 'refused_by_whatsapp',
          reason:
            'The provider refused to archive the template; it archives approved and rejected ones only.',
        },
        { id: '999999999', code: 'not_found', reason: 'The template does not exist in this workspace.' },
        {
          id: otherAccount,
          name: 'other_account',
          code: 'account_not_connected',
          reason: "No channel of the template's business account is connected.",
        },
        {
          id: notSubmitted,
          name: 'unsent',
          code: 'not_submitted',
          reason: 'The template was never submitted to the provider.',
        },
      ],
    }
    assert.deepEqual(await run('messaging_archive_templates', { ids, dry_run: true }), {
      ...expected,
      dry_run: true,
    })
    assert.equal((await run('messaging_get_template', { template_id: approved })).status, 'APPROVED')
    assert.deepEqual(await run('messaging_archive_templates', { ids }), expected)
    assert.equal((await run('messaging_get_template', { template_id: approved })).status, 'ARCHIVED')
    assert.deepEqual(
      summarizeReply(
        await call('messaging_update_template', { template_id: approved, template: orderDraft }, submit),
      ),
      [409, 'conflict', 'archived'],
    )
  })

  it('archive: a template that is already archived at the provider counts as archived', async () => {
    const { workspace, create, call, sandbox, events } = await setUp()
    const {
      body: { id },
    } = await create(orderDraft)
    await sandbox.review(id, 'approve')
    await sandbox.fault({ drop_answer: true })
    const archiveAgain = () =>
      call(
        'messaging_archive_templates',
        { ids: [id] },
        { ...archive, idempotencyKey: `archive-${workspace.id}` },
      )
    assert.equal((await archiveAgain()).status, 504)
    assert.deepEqual((await archiveAgain()).body, { archived: [id], failed: [] })
    assert.equal((await events()).filter(({ type }) => type === 'template.archived/1').length, 1)
    await server()
      .db.updateTable('templates')
      .set({ status: 'APPROVED' })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', id)
      .execute()
    assert.deepEqual((await call('messaging_archive_templates', { ids: [id] }, archive)).body, {
      archived: [id],
      failed: [],
    })
  })

  it('archive: unarchiving at the provider restores the status and rejection reason', async () => {
    const { workspace, create, run, sandbox } = await setUp()
    const [approved, rejected] = [(await create(orderDraft)).body.id, (await create(plainDraft)).body.id] as [
      string,
      string,
    ]
    await sandbox.review(approved, 'approve')
    await sandbox.review(rejected, 'reject', 'Too plain.')
    await run('messaging_archive_templates', { ids: [approved, rejected] })
    await server().settle()
    const getStatus = async (id: string) => {
      const { status, rejection_reason: reason } = await run('messaging_get_template', { template_id: id })
      return [status, reason]
    }
    assert.deepEqual(
      [await getStatus(approved), await getStatus(rejected)],
      [
        ['ARCHIVED', null],
        ['ARCHIVED', null],
      ],
    )
    const archivedIds = (await sandbox.templates()).map(({ id }) => id as string)
    // The provider reports whole seconds: changes within one second are applied in the order of arrival.
    await server().app.provider.unarchiveTemplates(
      `77${workspace.id}`,
      archivedIds,
      new AbortController().signal,
    )
    await server().settle()
    assert.deepEqual(
      [await getStatus(approved), await getStatus(rejected)],
      [
        ['APPROVED', null],
        ['REJECTED', 'Too plain.'],
      ],
    )
  })
})
