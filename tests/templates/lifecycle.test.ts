import assert from 'node:assert/strict'
import { everyDoor, type Scene } from '../doors.ts'
import { summarizeReply } from '../messaging/fixtures.ts'
import { createTemplateDriver, orderDraft } from './drafts.ts'
import { archive, submit } from './template-fixture.ts'

/** Dry run, then submission. Returns the id of the template; undefined where the transport cannot confirm. */
const submitOrder = async ({ server, workspace, call, door }: Scene): Promise<string | undefined> => {
  const sandbox = createTemplateDriver(server, workspace)
  const dryRun = await call('messaging_create_template', { template: orderDraft, dry_run: true })
  assert.deepEqual(
    [dryRun.status, dryRun.body.submitted, dryRun.body.id, dryRun.body.status, dryRun.body.dry_run],
    [201, false, null, null, true],
    dryRun.text,
  )
  assert.equal(dryRun.body.lint.preview, 'Hello Ada, your order 17 of today is on its way.')
  assert.deepEqual([(await call('messaging_list_templates')).body.total, await sandbox.templates()], [0, []])
  const created = await call(
    'messaging_create_template',
    { template: orderDraft },
    { ...submit, idempotencyKey: `submit-order-${workspace.id}` },
  )
  if (!door.confirms) {
    assert.equal(created.status, 428)
    return undefined
  }
  assert.deepEqual(
    [
      created.status,
      created.body.submitted,
      created.body.status,
      created.body.category,
      created.body.business_account_id,
      created.body.business_account_name,
    ],
    [201, true, 'PENDING', 'UTILITY', `77${workspace.id}`, 'Test account'],
    created.text,
  )
  const [stored, ...others] = await sandbox.templates()
  assert.deepEqual(
    [JSON.stringify(stored!.components), stored!.name, others],
    [JSON.stringify(created.body.payload_preview), orderDraft.name, []],
  )
  assert.equal(JSON.stringify(created.body.payload_preview), JSON.stringify(dryRun.body.payload_preview))
  return created.body.id as string
}

/** Rejection in review, an edit, and approval. */
const reviewAndEdit = async ({ server, workspace, call }: Scene, templateId: string): Promise<void> => {
  const sandbox = createTemplateDriver(server, workspace)
  assert.deepEqual(
    summarizeReply(
      await call('messaging_update_template', { template_id: templateId, template: orderDraft }, submit),
    ),
    [409, 'conflict', 'in_review'],
  )
  await sandbox.review(templateId, 'reject', 'Say which shop writes.')
  const rejected = (await call('messaging_get_template', { template_id: templateId })).body
  assert.deepEqual(
    [rejected.status, rejected.rejection_reason, rejected.variable_count, rejected.body_preview],
    ['REJECTED', 'Say which shop writes.', 2, 'Hello Ada, your order 17 of today is on its way.'],
  )
  assert.equal(rejected.meta_errors.rejection_info.reason, 'Say which shop writes.')

  const changed = {
    ...orderDraft,
    body: { ...orderDraft.body, text: 'Hello {{1}}, your coffee {{2}} of today is on its way.' },
  }
  const updated = await call(
    'messaging_update_template',
    { template_id: templateId, template: changed },
    submit,
  )
  assert.deepEqual(
    [updated.status, updated.body.id, updated.body.status, updated.body.submitted],
    [200, templateId, 'PENDING', true],
    updated.text,
  )
  assert.equal(
    JSON.stringify((await sandbox.templates())[0]!.components),
    JSON.stringify(updated.body.payload_preview),
  )
  await sandbox.review(templateId, 'approve')
  const approved = (await call('messaging_get_template', { template_id: templateId })).body
  assert.deepEqual(
    [approved.status, approved.rejection_reason, approved.meta_errors, approved.body.text],
    ['APPROVED', null, null, changed.body.text],
  )
}

const archiveTemplate = async ({ server, workspace, call }: Scene, templateId: string): Promise<void> => {
  const sandbox = createTemplateDriver(server, workspace)
  assert.deepEqual((await call('messaging_archive_templates', { ids: [templateId], dry_run: true })).body, {
    archived: [templateId],
    failed: [],
    dry_run: true,
  })
  assert.equal((await call('messaging_archive_templates', { ids: [templateId] })).status, 428)
  assert.deepEqual(
    (await call('messaging_archive_templates', { ids: [Number(templateId), templateId] }, archive)).body,
    { archived: [templateId], failed: [] },
  )
  assert.deepEqual(
    [
      (await call('messaging_get_template', { template_id: templateId })).body.status,
      (await sandbox.templates())[0]!.status,
    ],
    ['ARCHIVED', 'ARCHIVED'],
  )
  const send = await call('messaging_send_template', {
    phone: '+15550100042',
    template: { name: orderDraft.name, language: 'en_US', body: ['Ada', '17'] },
    dry_run: true,
  })
  assert.deepEqual(summarizeReply(send), [409, 'conflict', 'template_not_approved'])
}

everyDoor('Templates', (test) => {
  test('lifecycle: dry run, submit, reject, edit, approve and archive', async (scene) => {
    const templateId = await submitOrder(scene)
    if (templateId === undefined) return
    await reviewAndEdit(scene, templateId)
    await archiveTemplate(scene, templateId)
  })

  test('sample upload: dry run, upload, and content that does not match its type', async ({ call }) => {
    const sample = {
      file_name: 'sale & more.png',
      content_type: 'image/png',
      data: Buffer.from('89504e470d0a1a0a0000', 'hex').toString('base64'),
    }
    assert.deepEqual((await call('messaging_upload_template_sample', { ...sample, dry_run: true })).body, {
      media_handle: null,
      dry_run: true,
    })
    const uploaded = await call('messaging_upload_template_sample', sample)
    assert.equal(uploaded.status, 201, uploaded.text)
    assert.match(uploaded.body.media_handle, /^4::/)
    assert.deepEqual(
      summarizeReply(
        await call('messaging_upload_template_sample', { ...sample, content_type: 'application/pdf' }),
      ),
      [400, 'invalid_input', '#/data content_mismatch'],
    )
  })
})
