import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from '../messaging/fixtures.ts'
import type { TestServer } from '../servers.ts'
import { acceptedDrafts, expectedPayloads, orderDraft, plainDraft } from './drafts.ts'
import { createTemplateFixture, submit } from './template-fixture.ts'

/** Adds channels: of a second account, without an account, and of a third account that is disconnected. */
const insertChannels = async (server: TestServer, workspaceId: string) => {
  const branch = await createChannel(
    server.db,
    workspaceId,
    {
      type: 'chatapp',
      name: 'Branch',
      identifier: '15550100003',
      status: 'connected',
      account_id: `66${workspaceId}`,
      account_name: 'Branch account',
      provider_phone_number_id: `6688${workspaceId}`,
    },
    server.app.now(),
  )
  const web = await createChannel(
    server.db,
    workspaceId,
    { type: 'web', name: 'Web', identifier: 'a.example', status: 'connected' },
    server.app.now(),
  )
  const disconnected = await createChannel(
    server.db,
    workspaceId,
    {
      type: 'chatapp',
      name: 'Away',
      identifier: '15550100004',
      status: 'disconnected',
      account_id: `55${workspaceId}`,
    },
    server.app.now(),
  )
  return { branch, web, disconnected }
}

everyDatabase('Templates: create', (server) => {
  const setUp = (fields?: Parameters<typeof createTemplateFixture>[1]) =>
    createTemplateFixture(server(), fields)

  it('create: the provider receives exactly the payload of the preview', async () => {
    const { create, sandbox } = await setUp()
    for (const draft of acceptedDrafts) {
      const reply = await create(draft)
      assert.equal(reply.status, 201, `${draft.name}: ${reply.text}`)
      const stored = (await sandbox.templates()).find(({ name }) => name === draft.name)!
      assert.equal(JSON.stringify(stored.components), JSON.stringify(reply.body.payload_preview), draft.name)
      assert.deepEqual(reply.body.payload_preview, expectedPayloads[draft.name], draft.name)
    }
  })

  it('events: submitted, status_changed and archived are emitted once each', async () => {
    const { create, run, events, sandbox } = await setUp()
    const {
      body: { id },
    } = await create(orderDraft)
    assert.deepEqual(await events(), [
      {
        type: 'template.submitted/1',
        id,
        name: orderDraft.name,
        language: 'en_US',
        category: 'UTILITY',
        status: 'PENDING',
      },
    ])
    await sandbox.review(id, 'reject')
    await run('messaging_update_template', {
      template_id: id,
      template: { ...orderDraft, footer: { text: 'Thanks' } },
    })
    await sandbox.review(id, 'approve')
    await run('messaging_archive_templates', { ids: [id] })
    assert.deepEqual(
      (await events()).map(({ type, status }) => `${type} ${status}`),
      [
        'template.submitted/1 PENDING',
        'template.status_changed/1 REJECTED',
        'template.submitted/1 PENDING',
        'template.status_changed/1 APPROVED',
        'template.archived/1 ARCHIVED',
      ],
    )
    assert.deepEqual((await run('messaging_archive_templates', { ids: [id] })).archived, [id])
    assert.equal((await events()).length, 5)
  })

  it('create, update: broken rules are rejected, each with its rule and pointer', async () => {
    const { create, call, run } = await setUp()
    const invalid = {
      ...orderDraft,
      body: { text: 'Hello {{1}}{{2}}, we have good news about your order', examples: ['Ada'] },
      buttons: [{ type: 'URL', text: 'See it', url: 'http://shop.example' }],
    }
    const reply = await create(invalid)
    assert.deepEqual(
      [reply.status, reply.body.code, reply.body.reason],
      [400, 'invalid_input', 'template_rules'],
    )
    const rules = new Map(reply.body.errors.map((error: { rule: string }) => [error.rule, error]))
    for (const [rule, pointer] of [
      ['body.variables_adjacent', '#/template/body/text'],
      ['body.samples_count', '#/template/body/examples'],
      ['buttons.url_form', '#/template/buttons/0/url'],
    ] as const) {
      const issue = rules.get(rule) as { pointer: string; code: string; detail: string; fix: string }
      assert.deepEqual([issue.pointer, issue.code], [pointer, 'template_rules'])
      assert.ok(issue.detail !== '' && issue.fix !== '')
    }
    assert.equal((await create(invalid, { dry_run: true })).body.reason, 'template_rules')
    const {
      body: { id },
    } = await create(orderDraft)
    assert.equal(
      (await call('messaging_update_template', { template_id: id, template: { ...invalid } }, submit)).body
        .reason,
      'template_rules',
    )
    assert.equal((await run('messaging_list_templates')).total, 1)
  })

  it('create: a duplicate of name and language in the account is rejected', async () => {
    const { create, sandbox, events } = await setUp()
    assert.equal((await create(orderDraft)).status, 201)
    for (const options of [{}, { dry_run: true }])
      assert.deepEqual(summarizeReply(await create(orderDraft, options)), [409, 'conflict', 'duplicate'])
    assert.equal((await create({ ...orderDraft, language: 'de' })).status, 201)
    assert.deepEqual([(await sandbox.templates()).length, (await events()).length], [2, 2])
  })

  it('create: a duplicate that only the provider has is rejected and not stored', async () => {
    const { workspace, create, run, sandbox, insert } = await setUp()
    const id = await insert({ name: orderDraft.name })
    await server().sync(workspace.id)
    await server()
      .db.deleteFrom('templates')
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', id)
      .execute()
    assert.deepEqual(summarizeReply(await create(orderDraft)), [409, 'conflict', 'duplicate'])
    assert.deepEqual(
      [(await run('messaging_list_templates')).total, (await sandbox.templates()).length],
      [0, 1],
    )
  })

  it('create: concurrent calls with different idempotency keys submit one template', async () => {
    const { create, sandbox } = await setUp()
    const replies = await Promise.all([create(orderDraft), create(orderDraft), create(orderDraft)])
    assert.deepEqual(replies.map(({ status }) => status).toSorted(), [201, 409, 409])
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('create: the template limit of the plan counts templates that are not archived', async () => {
    const { create, run, sandbox, workspace } = await setUp({ template_limit: 2 })
    const first = await create(orderDraft)
    await sandbox.review(first.body.id, 'approve')
    const others = await Promise.all(['b', 'c', 'd'].map((name) => create({ ...plainDraft, name })))
    assert.deepEqual(others.map(({ status }) => status).toSorted(), [201, 403, 403])
    const rejected = others.find(({ status }) => status === 403)!
    assert.deepEqual(
      [rejected.body.code, rejected.body.reason, rejected.body.limit],
      ['forbidden', 'template_limit', 2],
    )
    assert.equal((await sandbox.templates()).length, 2, workspace.id)
    await run('messaging_archive_templates', { ids: [first.body.id] })
    assert.equal((await create({ ...plainDraft, name: 'e' })).status, 201)
  })

  it('create: the business account is selected by account, channel or access of the staff', async () => {
    const { workspace, create, sandbox } = await setUp()
    const { branch, web, disconnected } = await insertChannels(server(), workspace.id)
    await server().sync(workspace.id)
    const ambiguous = await create(orderDraft)
    assert.deepEqual(summarizeReply(ambiguous), [
      400,
      'invalid_input',
      'account_ambiguous',
      '#/business_account_id ambiguous',
    ])
    assert.deepEqual(ambiguous.body.errors[0].allowed, [`77${workspace.id}`, `66${workspace.id}`])
    for (const [target, status, reason] of [
      [{ business_account_id: '1' }, 404, undefined],
      [{ business_account_id: "x'; --" }, 404, undefined],
      [{ channel_id: '999999999' }, 404, undefined],
      [{ channel_id: 'x' }, 404, undefined],
      [{ channel_id: web.id }, 409, 'channel_not_supported'],
      [{ channel_id: disconnected.id }, 409, 'channel_not_connected'],
      [{ business_account_id: `55${workspace.id}` }, 409, 'channel_not_connected'],
      [{ channel_id: branch.id, business_account_id: `77${workspace.id}` }, 400, undefined],
    ] as const) {
      const reply = await create(orderDraft, target)
      assert.deepEqual([reply.status, reply.body.reason], [status, reason], reply.text)
    }
    assert.equal(
      (await create(orderDraft, { channel_id: '', business_account_id: '', dry_run: true })).body.reason,
      'account_ambiguous',
    )
    assert.equal(
      (await create(orderDraft, { channel_id: branch.id })).body.business_account_name,
      'Branch account',
    )
    assert.equal((await create(orderDraft, { business_account_id: `77${workspace.id}` })).status, 201)
    assert.deepEqual((await sandbox.templates()).map((t) => t.account_id).toSorted(), [
      `66${workspace.id}`,
      `77${workspace.id}`,
    ])
    const { key } = await workspace.staff({ role: 'agent', channel_ids: [branch.id] })
    const byBranchStaff = await callAs(server(), key)('messaging_create_template', {
      template: { ...orderDraft, name: 'branch' },
      dry_run: true,
    })
    assert.deepEqual(
      [byBranchStaff.status, byBranchStaff.body.business_account_id],
      [201, `66${workspace.id}`],
    )
    assert.equal(
      (
        await callAs(server(), key)('messaging_create_template', {
          template: orderDraft,
          business_account_id: `77${workspace.id}`,
          dry_run: true,
        })
      ).status,
      404,
    )
  })

  it('create: rejection by the provider stores nothing; reviews change status and category', async () => {
    const { create, run, sandbox, events } = await setUp()
    await sandbox.fault({ code: 131031 })
    const rejected = await create(orderDraft)
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.body.reason],
      [502, 'upstream_error', 'account_restricted'],
      rejected.text,
    )
    assert.deepEqual([(await run('messaging_list_templates')).data, await events()], [[], []])
    const {
      body: { id },
    } = await create(orderDraft)
    await sandbox.review(id, 'category', undefined, 'MARKETING')
    assert.equal((await run('messaging_get_template', { template_id: id })).category, 'MARKETING')
    await sandbox.review(id, 'pause')
    assert.equal((await run('messaging_get_template', { template_id: id })).status, 'PAUSED')
  })
})
