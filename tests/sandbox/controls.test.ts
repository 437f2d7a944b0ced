import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { deleteAuditBefore } from '../../storage/access/audit.ts'
import { routes } from '../../packages/sandbox/control/routes.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, createSandboxRequest } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { createSandboxCli } from './cli-fixture.ts'

type Answer = { status: number; body: any; headers: Headers }

const callControl = async (
  server: Pick<TestServer, 'url'>,
  key: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> => {
  const response = await fetch(`${server.url}/sandbox/${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body ? { 'Content-Type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

const PHONE = '15550100042'

/** Valid input of every control that changes something; `ids` are of the caller's own records. */
const inputs = (ids: { message: string; inbound: string; template: string }): Record<string, object> => ({
  'sandbox.say': { from: PHONE, text: 'A secret of the customer' },
  'sandbox.react': { message_id: ids.message, emoji: '👍' },
  'sandbox.edit': { message_id: ids.inbound, text: 'A secret of the customer' },
  'sandbox.delete': { message_id: ids.inbound, from: PHONE },
  'sandbox.advance_clock': { advance: '1h' },
  'sandbox.reset_clock': {},
  'sandbox.review': { template_id: ids.template, decision: 'approve' },
  'sandbox.status': { message_id: ids.message, status: 'read' },
  'sandbox.add_fault': { on: 'links', code: 131000, times: 1 },
  'sandbox.clear_faults': {},
  'sandbox.account': { action: 'quality', value: 'GREEN' },
  'sandbox.webhooks': { duplicates: 0 },
  'sandbox.numbers': {},
})

everyDatabase('Sandbox: who may control it', (server) => {
  const call = (key: string, { method, path }: { method: string; path: string }, body?: object) =>
    callControl(server(), key, method, path, method === 'GET' ? undefined : (body ?? {}))

  /** A workspace with a sent message and a template of its own. */
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const sandbox = createSandboxDriver(server(), workspace)
    await sandbox.say({ from: PHONE, text: 'Hello' })
    const { data } = await run('inbox_search_conversations', {})
    const { message } = await run('messaging_send_reply', { conversation_id: data[0].id, text: 'Hi' })
    const { id: template } = await server()
      .db.insertInto('templates')
      .values({
        workspace_id: workspace.id,
        provider_id: `66${workspace.id}`,
        account_id: `77${workspace.id}`,
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: JSON.stringify([{ type: 'BODY', text: 'Hello.' }]),
        created_at: server().app.now(),
        updated_at: server().app.now(),
      } as never)
      .returning('id')
      .executeTakeFirstOrThrow()
    await server().sync(workspace.id)
    return {
      workspace,
      run,
      sandbox,
      conversationId: data[0].id as string,
      message: message.id as string,
      inbound: data[0].last_message.id as string,
      template,
    }
  }
  const listAudit = async ({ owner }: Pick<TestWorkspace, 'owner'>, filter: Record<string, unknown>) =>
    (await doAs(server(), owner.key)('audit_list', filter)).data

  it('every control refuses managers and agents, and says why', async () => {
    const { workspace, message, inbound, template } = await setUp()
    const body = inputs({ message, inbound, template })
    for (const role of ['manager', 'agent'] as const) {
      const { key } = await workspace.staff({ role })
      for (const route of routes) {
        const answer = await call(key, route, body[route.name])
        assert.deepEqual([answer.status, answer.body.reason], [403, 'not_admin'], `${role} ${route.name}`)
        assert.match(answer.body.detail, /owners and admins/)
      }
    }
    const refused = await listAudit(workspace, { outcome: 'refused', limit: 100 })
    assert.equal(refused.length, 2 * routes.length)
    assert.deepEqual(
      new Set(refused.map((row: { operation: string }) => row.operation)),
      new Set(routes.map((route) => route.name)),
    )
  })

  it('every control refuses a key from which phones are hidden, whoever owns it', async () => {
    const { workspace, message, inbound, template } = await setUp()
    const body = inputs({ message, inbound, template })
    const { key } = await workspace.key(workspace.owner.staffId, { agent: true, phones: false })
    for (const route of routes) {
      const answer = await call(key, route, body[route.name])
      assert.deepEqual([answer.status, answer.body.reason], [403, 'phone_hidden'], route.name)
      assert.ok(!JSON.stringify(answer.body).includes(PHONE), route.name)
    }
  })

  it("no AI agent's key moves the clock or decides reviews, whoever owns it", async () => {
    const { workspace, message, inbound, template } = await setUp()
    const body = inputs({ message, inbound, template })
    const { key } = await workspace.key(workspace.owner.staffId, { agent: true, phones: true })
    for (const name of ['sandbox.advance_clock', 'sandbox.reset_clock', 'sandbox.review']) {
      const answer = await call(
        key,
        routes.find((route) => route.name === name)!,
        body[name],
      )
      assert.deepEqual([answer.status, answer.body.reason], [403, 'denied_by_policy'], name)
    }
  })

  it('every control works for an admin, has limits, and every change is in the audit trail', async () => {
    const { workspace, message, inbound, template } = await setUp()
    const admin = await workspace.staff({ role: 'admin' })
    const body = inputs({ message, inbound, template })
    for (const route of routes) {
      const { status, headers, body: answer } = await call(admin.key, route, body[route.name])
      assert.equal(status, 200, `${route.name} ${JSON.stringify(answer)}`)
      assert.match(headers.get('ratelimit-policy') ?? '', route.changes ? /^"write"/ : /^"read"/, route.name)
      assert.ok(headers.get('ratelimit') && headers.get('request-id'), route.name)
    }
    const rows = await listAudit(workspace, { staff_id: admin.staffId, limit: 100 })
    assert.deepEqual(
      rows.map((row: { operation: string }) => row.operation).toSorted(),
      routes
        .filter((route) => route.changes)
        .map((route) => route.name)
        .toSorted(),
    )
    const find = (name: string) => rows.find((row: { operation: string }) => row.operation === name)
    assert.deepEqual(
      [find('sandbox.review').target, find('sandbox.status').target, find('sandbox.say').door],
      [{ type: 'template', id: template }, { type: 'message', id: message }, 'rest'],
    )
    assert.ok(!JSON.stringify(rows).includes('A secret of the customer'), 'texts are left out')
    assert.ok(!JSON.stringify(rows).includes(PHONE), 'phones are left out')
  })

  it('the door is the one that was used, also for a change that failed', async () => {
    const { workspace } = await setUp()
    const cli = createSandboxCli(server(), workspace.owner.key)
    await cli('clock', 'advance', '1h')
    await cli('status', '999999', 'read')
    const rows = await listAudit(workspace, { door: 'cli' })
    assert.deepEqual(
      rows.map((row: any) => [row.operation, row.outcome, row.code, row.client.startsWith('wcrm-cli/')]),
      [
        ['sandbox.status', 'failed', 'not_found', true],
        ['sandbox.advance_clock', 'done', null, true],
      ],
    )
  })

  it('a query parameter never turns into a change', async () => {
    const { workspace } = await setUp()
    for (const [method, path] of [
      ['POST', 'say'],
      ['DELETE', 'faults'],
      ['DELETE', 'clock'],
    ] as const) {
      const { status, body } = await call(workspace.owner.key, { method, path: `${path}?dry_run=true` })
      assert.deepEqual([status, body.errors[0].parameter], [400, 'dry_run'], path)
    }
  })

  it('controls change nothing of another workspace', async () => {
    const [first, second] = [await setUp(), await setUp()]
    const { key } = second.workspace.owner
    for (const [path, body] of [
      ['status', { message_id: first.message, status: 'failed', code: 131026 }],
      ['review', { template_id: first.template, decision: 'reject' }],
    ] as const)
      assert.equal((await call(key, { method: 'POST', path }, body)).status, 404, path)
    const otherChannel = (await doAs(server(), first.workspace.owner.key)('workspace_channels', {})).data[0]
      .id
    assert.equal(
      (await call(key, { method: 'POST', path: 'say' }, { from: PHONE, text: 'x', channel_id: otherChannel }))
        .status,
      404,
    )
    // A fault, repeated webhooks and a clock of the second, while the first works as before.
    const request = createSandboxRequest(server(), second.workspace)
    for (const on of ['messages', 'templates', 'links', 'media'])
      await request('POST', 'faults', { on, code: 131042 })
    await request('POST', 'webhooks', { duplicates: 5, shuffle: true })
    await request('POST', 'clock', { advance: '30d' })
    const reply = { conversation_id: first.conversationId, text: 'Still here' }
    const sent = await callAs(server(), first.workspace.owner.key)('messaging_send_reply', reply, {
      confirm: 'send',
    })
    assert.equal(sent.status, 201, JSON.stringify(sent.body))
    // Faults of the first are not cleared by the second.
    await createSandboxRequest(server(), first.workspace)('POST', 'faults', { on: 'messages', code: 131042 })
    await request('DELETE', 'faults')
    const faulty = await callAs(server(), first.workspace.owner.key)(
      'messaging_send_reply',
      { ...reply, text: 'Again' },
      { confirm: 'send' },
    )
    assert.equal(faulty.status, 502, JSON.stringify(faulty.body))
    const records = await Promise.all(
      (['messages', 'templates', 'links'] as const).map((path) => request<{ data: unknown[] }>('GET', path)),
    )
    assert.deepEqual(
      records.map(({ data }) => data.length),
      [1, 1, 0],
    )
  })
})

everyDatabase(
  'Sandbox: a server of its own',
  (server) => {
    const DAY_MS = 86_400_000

    it('the clock of a workspace is bounded, can be reset, and moves no other workspace', async () => {
      const [workspace, other] = [await makeWorkspace(server()), await makeWorkspace(server())]
      const request = createSandboxRequest(server(), workspace)
      const { offset_ms: offset, now } = await request<any>('POST', 'clock', { advance: '400d' })
      assert.equal(offset, 400 * DAY_MS)
      assert.ok(Math.abs(Date.parse(now) - Date.now() - offset) < 60_000)
      const further = await callControl(server(), workspace.owner.key, 'POST', 'clock', { advance: '1s' })
      assert.deepEqual([further.status, further.body.errors[0].code], [400, 'too_far'])
      assert.match(further.body.errors[0].fix, /clock reset/)
      assert.equal((await createSandboxRequest(server(), other)<any>('GET', 'clock')).offset_ms, 0)
      const run = doAs(server(), workspace.owner.key)
      const future = (await run('crm_upsert_contact', { phone: PHONE })).contact
      assert.ok(Date.parse(future.created_at) - Date.now() > 399 * DAY_MS)
      const present = await doAs(server(), other.owner.key)('crm_upsert_contact', { phone: PHONE })
      assert.ok(Math.abs(Date.parse(present.contact.created_at) - Date.now()) < 60_000)
      const { output } = await createSandboxCli(server(), workspace.owner.key)('clock', 'reset')
      assert.equal(output.offset_ms, 0)
      const { contact } = await run('crm_upsert_contact', { phone: '15550100043' })
      assert.ok(Math.abs(Date.parse(contact.created_at) - Date.now()) < 60_000)
    })

    it('the clock moves nothing that expires or is retained: keys, cursors, idempotency, audit', async () => {
      const workspace = await makeWorkspace(server())
      const key = await workspace.key(workspace.owner.staffId, {
        expires_at: new Date(Date.now() + DAY_MS).toISOString(),
      })
      const run = doAs(server(), key.key)
      for (const phone of [PHONE, '15550100043']) await run('crm_upsert_contact', { phone })
      const { next_cursor: cursor } = await run('crm_search_contacts', { limit: 1 })
      const group = () =>
        callAs(server(), key.key)('crm_create_group', { name: 'VIP' }, { idempotencyKey: 'create-vip-0001' })
      const first = await group()
      await createSandboxRequest(server(), workspace)('POST', 'clock', { advance: '400d' })
      assert.equal((await run('crm_search_contacts', { limit: 1, cursor })).data.length, 1)
      const again = await group()
      assert.deepEqual([again.status, again.text], [first.status, first.text])
      assert.equal(again.headers['idempotent-replayed'], 'true')
      // The audit trail of the other jobs' view of time: nothing is older than the retention.
      for (const job of ['audit-retention', 'idempotency-retention', 'event-retention'] as const)
        assert.equal(await server().app.jobs.job(job).runOnce(), 0, job)
      const { data } = await run('audit_list', {})
      assert.ok(data.length > 0)
      assert.ok(data.every((row: { at: string }) => Math.abs(Date.parse(row.at) - Date.now()) < 60_000))
      assert.equal(await deleteAuditBefore(server().db, new Date(Date.now() - DAY_MS).toISOString(), 1000), 0)
    })

    it('learns of all templates that were written into the database', async () => {
      const { db } = server()
      const workspace = await makeWorkspace(server())
      // More than one request may name.
      await sql`
        insert into templates
          (workspace_id, account_id, name, language, category, status, components, created_at, updated_at)
        select ${workspace.id}, ${`77${workspace.id}`}, 'update_' || n, 'en_US', 'UTILITY', 'APPROVED',
          json_build_array(json_build_object('type', 'BODY', 'text', repeat('Hello. ', 40))), now(), now()
        from generate_series(1, 10001) n`.execute(db)
      await server().sync()
      const { rows } = await sql`
        select t.name from templates t left join sandbox_templates s
          on s.id = t.provider_id and s.account_id = t.account_id and s.name = t.name
          and s.components::jsonb = t.components::jsonb
        where t.workspace_id = ${workspace.id} and s.id is null limit 10`.execute(db)
      assert.deepEqual(rows, [])
      const last = await db
        .selectFrom('templates')
        .select('id')
        .where('workspace_id', '=', workspace.id)
        .where('name', '=', 'update_10001')
        .executeTakeFirstOrThrow()
      const request = createSandboxRequest(server(), workspace)
      await request('POST', 'review', { template_id: last.id, decision: 'pause' })
      await server().settle()
      const { status } = await db
        .selectFrom('templates')
        .select('status')
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', last.id)
        .executeTakeFirstOrThrow()
      assert.equal(status, 'PAUSED')
    })
  },
  { dedicated: true },
)

everyDatabase(
  'Sandbox: the rate limit of its controls',
  (server) => {
    it('is that of changes, shared with operations', async () => {
      const workspace = await makeWorkspace(server())
      const answers: Answer[] = []
      for (let i = 0; i < 3; i++)
        answers.push(
          await callControl(server(), workspace.owner.key, 'POST', 'say', { from: PHONE, text: `${i}` }),
        )
      assert.deepEqual(
        answers.map(({ status, body }) => body.code ?? status),
        [200, 200, 'rate_limited'],
      )
      assert.ok(Number(answers[2]!.headers.get('retry-after')) >= 1)
      const operation = await callAs(server(), workspace.owner.key)('crm_create_group', { name: 'VIP' })
      assert.equal(operation.status, 429)
    })
  },
  { limitWrite: 2 },
)
