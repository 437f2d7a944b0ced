import assert from 'node:assert/strict'
import { it } from 'node:test'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { resolveSandboxSettings } from '../../server/provider/settings.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, summarizeReply } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { createTemplateDriver, orderDraft } from './drafts.ts'
import { submit } from './template-fixture.ts'

/** Calls the control API of the sandbox directly, for what workspaces may not do. */
const callControlApi = async <T>(
  server: Pick<TestServer, 'url'>,
  method: string,
  path: string,
  body?: object,
): Promise<T> => {
  const { baseUrl, token } = resolveSandboxSettings('a secret of at least sixteen', server.url)
  const response = await fetch(`${baseUrl}/control/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  assert.ok(response.ok, text)
  return JSON.parse(text) as T
}

everyDatabase('Template submission: lost responses', (server) => {
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const idempotencyKey = (name: string) => `${name}-template-${workspace.id}`
    const sandbox = createTemplateDriver(server(), workspace)
    return {
      workspace,
      call,
      sandbox,
      run: doAs(server(), workspace.owner.key),
      create: (name = 'lost') =>
        call(
          'messaging_create_template',
          { template: orderDraft },
          { ...submit, idempotencyKey: idempotencyKey(name) },
        ),
      update: (id: string, template: object) =>
        call(
          'messaging_update_template',
          { template_id: id, template },
          { ...submit, idempotencyKey: idempotencyKey('change') },
        ),
      events: async () =>
        (
          await server()
            .db.selectFrom('events')
            .select('type')
            .where('workspace_id', '=', workspace.id)
            .orderBy('id')
            .execute()
        ).map(({ type }) => type),
      loseResponse: () => sandbox.fault({ drop_answer: true }),
    }
  }

  it('create: submitted once, and the name stays reserved until the retry', async () => {
    const { create, run, sandbox, events, loseResponse } = await setUp()
    await loseResponse()
    const lost = await create()
    assert.deepEqual([lost.status, lost.body.code], [504, 'timeout'])
    const [reserved] = (await run('messaging_list_templates')).data
    assert.deepEqual([reserved.name, reserved.status, await events()], [orderDraft.name, 'SUBMITTING', []])
    assert.deepEqual(summarizeReply(await create('another')), [409, 'conflict', 'duplicate'])
    const created = await create()
    assert.deepEqual(
      [created.status, created.body.id, created.body.status],
      [201, reserved.id, 'PENDING'],
      created.text,
    )
    const stored = await sandbox.templates()
    assert.deepEqual(
      [stored.length, JSON.stringify(stored[0]!.components), await events()],
      [1, JSON.stringify(created.body.payload_preview), ['template.submitted/1']],
    )
    assert.equal((await create()).text, created.text)
  })

  it('create: completed by the background job when the caller does not retry', async () => {
    const { create, sandbox, loseResponse } = await setUp()
    await loseResponse()
    assert.equal((await create()).status, 504)
    await reconcileProviderCalls(server().app)
    const reply = await create()
    assert.deepEqual(
      [reply.status, reply.headers['idempotent-replayed'], (await sandbox.templates()).length],
      [201, 'true', 1],
    )
  })

  it('create: a review that ends before the retry keeps its result', async () => {
    const { create, run, sandbox, events, loseResponse } = await setUp()
    await loseResponse()
    assert.equal((await create()).status, 504)
    await callControlApi(server(), 'POST', 'review', {
      template_id: (await sandbox.templates())[0]!.id,
      decision: 'reject',
      reason: 'Say who writes.',
    })
    await server().settle()
    assert.equal((await run('messaging_list_templates')).data[0].status, 'REJECTED')
    const created = await create()
    assert.deepEqual([created.status, created.body.status], [201, 'REJECTED'])
    const shown = await run('messaging_get_template', { template_id: created.body.id })
    assert.deepEqual(
      [shown.status, shown.rejection_reason, await events()],
      ['REJECTED', 'Say who writes.', ['template.status_changed/1', 'template.submitted/1']],
    )
  })

  it('create: submitted again when the request never arrived', async () => {
    const { create, sandbox } = await setUp()
    await sandbox.fault({ code: 2 })
    const lost = await create()
    assert.deepEqual(summarizeReply(lost), [503, 'upstream_unavailable', 'outcome_unknown'])
    assert.equal(lost.body.idempotency_key, lost.headers['idempotency-key'])
    await reconcileProviderCalls(server().app)
    assert.equal((await sandbox.templates()).length, 0, 'not by itself')
    assert.equal((await create()).status, 201)
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('create: given up after 24 hours, and the name is free again', async () => {
    const { workspace, create, run, sandbox } = await setUp()
    await sandbox.fault({ code: 2 })
    assert.equal((await create()).status, 503)
    await createSandboxDriver(server(), workspace).advance('25h')
    await reconcileProviderCalls(server().app)
    assert.deepEqual((await run('messaging_list_templates')).data, [])
    assert.deepEqual(summarizeReply(await create()), [409, 'conflict', 'not_confirmed'])
    assert.equal((await create('another')).status, 201)
  })

  it('create: the outcome stays open while the provider cannot be queried', async () => {
    const { create, sandbox, run, loseResponse } = await setUp()
    await loseResponse()
    assert.equal((await create()).status, 504)
    await sandbox.fault({ code: 190 })
    const reply = await create()
    assert.deepEqual([reply.status, reply.body.code], [503, 'upstream_unavailable'])
    assert.equal((await run('messaging_list_templates')).data[0].status, 'SUBMITTING')
    assert.equal((await create()).status, 201)
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('create: a different template of the same name is reported as a duplicate', async () => {
    const { workspace, create, run, sandbox } = await setUp()
    await sandbox.fault({ code: 2 })
    assert.equal((await create()).status, 503)
    await callControlApi(server(), 'PUT', 'templates', {
      templates: [
        {
          account_id: `77${workspace.id}`,
          name: orderDraft.name,
          language: 'en_US',
          components: [{ type: 'BODY', text: 'Somebody else wrote this.' }],
        },
      ],
    })
    assert.deepEqual(summarizeReply(await create()), [409, 'conflict', 'duplicate'])
    assert.deepEqual(
      [(await run('messaging_list_templates')).data, (await sandbox.templates()).length],
      [[], 1],
    )
  })

  it('update: applied once', async () => {
    const { create, run, update, sandbox, events, loseResponse } = await setUp()
    const {
      body: { id },
    } = await create()
    await sandbox.review(id, 'approve')
    const changed = { ...orderDraft, footer: { text: 'Thanks' } }
    await loseResponse()
    assert.equal((await update(id, changed)).status, 504)
    // The provider refuses to change what is in review, so a second call would fail.
    const updated = await update(id, changed)
    assert.deepEqual(
      [updated.status, updated.body.status, (await sandbox.templates())[0]!.status],
      [200, 'PENDING', 'PENDING'],
      updated.text,
    )
    assert.deepEqual(
      [(await run('messaging_get_template', { template_id: id })).footer, (await events()).at(-1)],
      ['Thanks', 'template.submitted/1'],
    )
  })

  it('update: applied again when the request never arrived', async () => {
    const { create, update, sandbox } = await setUp()
    const {
      body: { id },
    } = await create()
    await sandbox.review(id, 'approve')
    const changed = { ...orderDraft, body: { ...orderDraft.body, examples: ['Grace', '18'] } }
    await sandbox.fault({ code: 2 })
    assert.equal((await update(id, changed)).status, 503)
    const updated = await update(id, changed)
    assert.equal(updated.status, 200, updated.text)
    assert.equal(
      JSON.stringify((await sandbox.templates())[0]!.components),
      JSON.stringify(updated.body.payload_preview),
    )
  })

  it('update: an unchanged template is reviewed again', async () => {
    const { create, update, sandbox, loseResponse } = await setUp()
    const {
      body: { id },
    } = await create()
    for (const fault of [loseResponse, () => sandbox.fault({ code: 2 })]) {
      await sandbox.review(id, 'reject', `Before ${fault.name}`)
      await server()
        .db.deleteFrom('idempotency')
        .where('operation', '=', 'messaging_update_template')
        .execute()
      await fault()
      assert.ok((await update(id, orderDraft)).status >= 503)
      assert.equal((await update(id, orderDraft)).status, 200)
      assert.equal((await sandbox.templates())[0]!.status, 'PENDING')
    }
  })
})
