import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { type Decision, defaultPolicy } from '../../catalog/policy.ts'
import { changeKey } from '../../storage/access/admin-keys.ts'
import { type StaffFields, updateStaff } from '../../storage/workspace/admin.ts'
import { claimRuns } from '../../storage/work/runs.ts'
import { callAs } from '../calls.ts'
import { insertAutumnBlend, TEMPLATE } from '../bulk-messages/scene.ts'
import { everyDatabase, everyDoor, type Scene } from '../doors.ts'
import { createAgentScene, markApproved } from './scene.ts'

const countMessages = async (scene: Awaited<ReturnType<typeof createAgentScene>>): Promise<number> =>
  (await scene.sandbox.sent(scene.phone)).length

everyDoor('Asking a person', (test) => {
  test('a reply of an agent waits, is approved with another text, and is sent once', async ({
    server,
    workspace,
    door,
    as,
  }) => {
    const scene = await createAgentScene(server, workspace)
    const ask = as(scene.agent.key)
    const [, input] = scene.reply('Tomorrow.')
    const asked = await doorCall(server.url, scene.agent.key, door.name)('messaging_send_reply', input)
    const { approval, next } = asked.body
    assert.equal(asked.status, 202)
    assert.deepEqual(
      [approval.status, approval.operation, approval.asked_for, approval.contact.name],
      ['pending', 'messaging_send_reply', ['verb'], 'Ada'],
    )
    assert.match(next, /approvals_get/)
    assert.equal(await countMessages(scene), 0)

    const detail = (await ask('approvals_get', { approval_id: approval.id })).body
    assert.ok(
      detail.summary.some((line: string) => line === 'Text: Tomorrow.'),
      detail.summary.join('\n'),
    )
    assert.ok(detail.summary.some((line: string) => line.startsWith('Reply window: open until')))

    const person = as(workspace.owner.key)
    assert.equal((await person('approvals_list', { status: 'pending' })).body.data[0].id, approval.id)
    assert.equal((await ask('approvals_approve', { approval_id: approval.id })).status, 403)
    const approved = await person('approvals_approve', {
      approval_id: approval.id,
      text: 'On Monday.',
      note: 'Not tomorrow.',
    })
    assert.deepEqual([approved.status, approved.body.approval.status], [200, 'approved'], approved.text)
    const ended = (await ask('approvals_get', { approval_id: approval.id, wait_seconds: 20 })).body
    assert.deepEqual(
      [ended.status, ended.outcome.status, ended.edited_text, ended.note, ended.decided_by.name],
      ['done', 201, 'On Monday.', 'Not tomorrow.', 'Owner'],
    )
    const sent = await scene.sandbox.sent(scene.phone)
    assert.deepEqual(
      sent.map((message: any) => message.text?.body ?? message.text),
      ['On Monday.'],
    )
  })

  test('what was asked while phones were shown is withheld once they are hidden', async (scene) => {
    const requests = await askOnContacts(scene, { role: 'agent' })
    await requests.restrict({ hide_phone_numbers: true })
    for (const [op, shown] of await requests.read()) {
      assert.ok(!shown.text.includes('15557391'), `${op}: ${shown.text}`)
      assert.deepEqual([shown.body.input === null, shown.body.preview], [op.startsWith('crm_'), null], op)
    }
    // Earlier versions did not keep whether phones were shown.
    const { db } = scene.server
    await sql`update approvals set view = view - 'phones' where workspace_id = ${scene.workspace.id}`.execute(
      db,
    )
    for (const [op, shown] of await requests.read()) assert.ok(!shown.text.includes('15557391'), op)
    await requests.restrict({ hide_phone_numbers: false })
    for (const [op, shown] of await requests.read())
      assert.ok(shown.text.includes('15557391'), `${op}: ${shown.text}`)
  })

  test('what was asked by a manager is withheld from them as an agent, with manager-only fields', async (scene) => {
    const requests = await askOnContacts(scene, { role: 'manager' })
    for (const [op, shown] of await requests.read())
      assert.equal(shown.text.includes('Generous'), op !== 'crm_create_saved_filter', `${op}: ${shown.text}`)
    await requests.restrict({ role: 'agent' })
    for (const [op, shown] of await requests.read())
      assert.ok(!shown.text.includes('Generous'), `${op}: ${shown.text}`)
  })
})

/**
 * The agent of a staff member asks for calls that hold phones in fields of every form, and a manager-only value.
 * `read` returns them as the staff member sees them.
 */
const askOnContacts = async ({ server, workspace, call, as }: Scene, { role }: Pick<StaffFields, 'role'>) => {
  await insertAutumnBlend(server, workspace)
  const phone = (n: number): string => `1555739100${n}`
  await call('crm_create_custom_field', { key: 'mobile', type: 'phone' })
  await call('crm_create_custom_field', { key: 'mood', type: 'text', visibility: 'manager_only' })
  const { body } = await call('crm_upsert_contact', {
    phone: `+${phone(1)}`,
    name: 'Ada',
    attributes: { mood: 'Generous' },
  })
  const { staffId } = await workspace.staff({ role })
  const agent = await workspace.key(staffId, { agent: true, phones: true })
  const isManager = role === 'manager'
  const attributes = { mobile: phone(2), ...(isManager ? { mood: 'Generous' } : {}) }
  const calls: [string, Record<string, unknown>][] = [
    ['crm_update_contact', { contact_id: body.id, attributes }],
    ['crm_upsert_contact', { phone: `+${phone(3)}`, name: `Bo ${phone(3)}`, attributes }],
    ['crm_import_contacts', { rows: [{ phone: `+${phone(4)}`, attributes }] }],
    ['crm_create_saved_filter', { name: 'Ada', filter: { phoneNumber: { eq: phone(1) } } }],
    ['crm_record_consent', { contact_id: body.id, state: 'granted', proof: `Ada ${phone(1)}, Generous` }],
    [
      'messaging_send_bulk',
      {
        contact_ids: [body.id],
        template: {
          ...TEMPLATE,
          body: [
            { field: 'phone', fallback: 'x' },
            isManager ? { attribute: 'mood', fallback: 'x' } : { text: 'Friday' },
          ],
        },
      },
    ],
  ]
  const operations = Object.fromEntries(calls.map(([op]) => [op, 'ask' as Decision]))
  await changeKey(server.db, workspace.id, agent.keyId, {
    policy: { ...structuredClone(defaultPolicy), operations },
  })
  server.app.keyCache.keys.clear()
  const asked: [string, string][] = []
  for (const [op, input] of calls) {
    const reply = await as(agent.key)(op, input)
    assert.equal(reply.status, 202, reply.text)
    asked.push([op, reply.body.approval.id])
  }
  return {
    restrict: async (fields: Partial<StaffFields>): Promise<void> => {
      await updateStaff(server.db, workspace.id, staffId, fields, undefined)
    },
    read: async () => {
      const person = as((await workspace.key(staffId)).key)
      return await Promise.all(
        asked.map(async ([op, id]) => [op, await person('approvals_get', { approval_id: id })] as const),
      )
    },
  }
}

import { doorsOf } from '../doors.ts'

const doorCall = (url: string, key: string, name: string) =>
  doorsOf(url, key).find((door) => door.name === name)!.call

everyDatabase('Approvals', (server) => {
  it('a repeat says what became of the call, and never makes a second request', async () => {
    const scene = await createAgentScene(server())
    const key = { idempotencyKey: 'order-0001-reply' }
    const first = await scene.ask(...scene.reply('Yes.'), key)
    assert.equal(first.status, 202, first.text)
    const { id } = first.body.approval
    assert.equal((await scene.ask(...scene.reply('Yes.'))).body.approval.id, id)
    assert.equal((await scene.ask(...scene.reply('Yes.'), key)).body.approval.id, id)
    const reused = await scene.ask(...scene.reply('No.'), key)
    assert.deepEqual([reused.status, reused.body.reason], [400, 'idempotency_key_reused'])
    await scene.person('approvals_approve', { approval_id: id })
    await scene.work()
    const repeated = await scene.ask(...scene.reply('Yes.'), key)
    assert.deepEqual(
      [repeated.status, repeated.headers['idempotent-replayed'], repeated.body.message.text],
      [201, 'true', 'Yes.'],
      repeated.text,
    )
    assert.equal(await countMessages(scene), 1)
  })

  it('declined: the code is its own, for the same call with any key, and it never runs', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('Yes.'))).body.approval
    const declined = await scene.person('approvals_decline', { approval_id: id, note: 'Too short.' })
    assert.equal(declined.body.approval.status, 'declined')
    for (const options of [{}, { idempotencyKey: 'another-key' }, { confirm: 'send' }]) {
      const again = await scene.ask(...scene.reply('Yes.'), options)
      assert.deepEqual(
        [again.status, again.body.code, again.body.approval_id, again.body.note],
        [403, 'declined', id, 'Too short.'],
        again.text,
      )
    }
    const late = await scene.person('approvals_approve', { approval_id: id })
    assert.deepEqual([late.status, late.body.reason], [409, 'already_decided'])
    assert.equal(await scene.work(), 0)
    assert.equal(await countMessages(scene), 0)
  })

  it('the call runs under the policy, the pause and the window of the moment', async () => {
    const scene = await createAgentScene(server())
    const approve = async (text: string): Promise<string> => {
      const { id } = (await scene.ask(...scene.reply(text))).body.approval
      await markApproved({ db: server().db, workspace: scene.workspace }, id)
      return id
    }
    const outcome = async (id: string) => {
      await scene.work()
      const { status, outcome } = (await scene.person('approvals_get', { approval_id: id })).body
      return [status, outcome.code, outcome.reason]
    }
    const denied = await approve('one')
    await scene.setPolicy({ verbs: { send: 'deny' } })
    assert.deepEqual(await outcome(denied), ['failed', 'forbidden', 'denied_by_policy'])
    await scene.setPolicy(null)
    const paused = await approve('two')
    await scene.pause(server().app.now())
    assert.deepEqual(await outcome(paused), ['failed', 'forbidden', 'key_paused'])
    await scene.pause(null)
    const closed = await approve('three')
    await scene.sandbox.advance('25h')
    assert.deepEqual((await outcome(closed)).slice(0, 2), ['failed', 'window_closed'])
    assert.equal(await countMessages(scene), 0)
  })

  it('expires in business time, and says so to the agent and to who comes too late', async () => {
    const scene = await createAgentScene(server())
    const key = { idempotencyKey: 'will-expire-1' }
    const { id } = (await scene.ask(...scene.reply('Yes.'), key)).body.approval
    await scene.sandbox.advance('24h')
    const late = await scene.person('approvals_decline', { approval_id: id })
    assert.deepEqual([late.status, late.body.reason], [409, 'expired'])
    await scene.work()
    assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'expired')
    const again = await scene.ask(...scene.reply('Yes.'), key)
    assert.deepEqual([again.status, again.body.code, again.body.reason], [403, 'declined', 'expired'])
  })

  it('the agent withdraws its own, and others do not see it', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('Yes.'))).body.approval
    const other = await scene.workspace.key(scene.manager.staffId, { agent: true })
    for (const op of ['approvals_get', 'approvals_cancel'])
      assert.equal((await scene.as(other.key)(op, { approval_id: id })).status, 404)
    const cancelled = await scene.ask('approvals_cancel', { approval_id: id })
    assert.equal(cancelled.body.approval?.status, 'cancelled', cancelled.text)
    assert.equal((await scene.person('approvals_approve', { approval_id: id })).status, 409)
  })

  it('as many as the limit wait for a decision, however many are asked at once', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('First.'))).body.approval
    await sql`
      insert into approvals (workspace_id, key_id, staff_id, operation, input, digest, door, request_id, asked_for,
        view, channel_ids, requested_at, expires_at)
      select workspace_id, key_id, staff_id, operation, input, sha256(n::text::bytea), door, request_id, asked_for,
        view, channel_ids, requested_at, expires_at
      from approvals, generate_series(2, 15) as n
      where workspace_id = ${scene.workspace.id} and id = ${id}`.execute(server().db)
    const answers = await Promise.all(
      Array.from({ length: 15 }, (_, i) => scene.ask(...scene.reply(`Reply ${i}.`))),
    )
    const refused = answers.filter(({ status }) => status !== 202)
    assert.deepEqual(
      [
        answers.length - refused.length,
        new Set(refused.map(({ status, body }) => `${status} ${body.reason}`)),
      ],
      [5, new Set(['429 too_many_approvals'])],
    )
    const { rows } = await sql<{ n: string }>`
      select count(*) as n from approvals
      where workspace_id = ${scene.workspace.id} and status = 'pending'`.execute(server().db)
    assert.equal(rows[0]!.n, '20')
    const [accepted] = answers.filter(({ status }) => status === 202)
    await scene.ask('approvals_cancel', { approval_id: accepted!.body.approval.id })
    assert.equal((await scene.ask(...scene.reply('One more.'))).status, 202)
    await scene.setPolicy({ open_approvals: 21 })
    const more = [await scene.ask(...scene.reply('The last.')), await scene.ask(...scene.reply('Too many.'))]
    assert.deepEqual(
      more.map(({ status }) => status),
      [202, 429],
    )
  })

  it('who may not see the channel or the phone learns nothing, and may not approve', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('Yes.'))).body.approval
    const blind = await scene.workspace.staff({ role: 'manager', channel_ids: [] })
    assert.deepEqual((await scene.as(blind.key)('approvals_list')).body.data, [])
    for (const op of ['approvals_get', 'approvals_approve', 'approvals_decline', 'approvals_cancel'])
      assert.equal((await scene.as(blind.key)(op, { approval_id: id })).status, 404, op)
    const colleague = await scene.workspace.staff({ role: 'agent' })
    assert.equal((await scene.as(colleague.key)('approvals_get', { approval_id: id })).status, 404)
    const hidden = await scene.workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const own = await scene.workspace.key(hidden.staffId, { agent: true })
    const asked = await scene.as(own.key)(...scene.reply('Mine.'))
    assert.equal(asked.status, 202, asked.text)
    const shown = await scene.as(hidden.key)('approvals_get', { approval_id: asked.body.approval.id })
    assert.ok(!shown.text.includes(scene.phone), shown.text)
    const managers = await scene.person('approvals_get', { approval_id: asked.body.approval.id })
    assert.ok(managers.text.includes(scene.phone))
    const few = await scene.workspace.key(scene.workspace.owner.staffId, {
      scopes: ['mcp:read', 'approvals:write'],
    })
    const refused = await scene.as(few.key)('approvals_approve', { approval_id: id })
    assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'])
    assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'pending')
  })

  it('what nobody sees is shown in the question, and nothing is cut', async () => {
    const scene = await createAgentScene(server())
    const text = `Pay \u202eereh\u2066 now\u200b. ${'x'.repeat(3000)} end 👩‍💻`
    const { id } = (await scene.ask(...scene.reply(text))).body.approval
    const { summary } = (
      await callAs(server(), scene.workspace.owner.key)('approvals_get', { approval_id: id })
    ).body
    const line = summary.find((one: string) => one.startsWith('Text: '))
    assert.equal(line, `Text: Pay \\u{202e}ereh\\u{2066} now\\u{200b}. ${'x'.repeat(3000)} end 👩‍💻`)
  })
})

everyDatabase('Approved calls that do not end at once', (server) => {
  it('an unknown outcome leaves it approved until it is known, and nothing is sent twice', async () => {
    const scene = await createAgentScene(server())
    const { approval } = (await scene.ask(...scene.reply('Once.'))).body
    await scene.sandbox.fault({ to: `+${scene.phone}`, drop_answer: true })
    await scene.person('approvals_approve', { approval_id: approval.id })
    await scene.work()
    const read = async () => (await scene.ask('approvals_get', { approval_id: approval.id })).body.status
    assert.equal(await read(), 'approved')
    await sql`
      update runs set run_after = now() where workspace_id = ${scene.workspace.id} and lease is null`.execute(
      server().db,
    )
    await scene.work()
    assert.deepEqual([await read(), await countMessages(scene)], ['done', 1])
  })

  it('a server that died under its lease is no failed attempt, and makes nobody wait', async () => {
    const scene = await createAgentScene(server())
    const { approval } = (await scene.ask(...scene.reply('Soon.'))).body
    await scene.sandbox.fault({ to: `+${scene.phone}`, drop_answer: true })
    const { db } = server()
    await markApproved({ db, workspace: scene.workspace }, approval.id)
    const claim = { kind: 'approved_calls', knows: ['messaging_send_reply'], leaseSeconds: -1, limit: 8 }
    for (let deaths = 0; deaths < 3; deaths++) assert.equal((await claimRuns(db, claim)).length, 1)
    await scene.work()
    const { rows } = await sql<{ attempts: number; seconds: number }>`
      select attempts, extract(epoch from run_after - clock_timestamp())::float8 as seconds
      from runs where workspace_id = ${scene.workspace.id} and kind = 'approved_calls'`.execute(db)
    assert.equal(rows[0]!.attempts, 1)
    assert.ok(rows[0]!.seconds <= 1, `waits for ${rows[0]!.seconds} s`)
  })

  it('what ended is deleted after 30 days', async () => {
    const scene = await createAgentScene(server())
    const { approval } = (await scene.ask(...scene.reply('Old.'))).body
    await scene.person('approvals_decline', { approval_id: approval.id })
    const remove = () => server().app.jobs.job('approval-retention').runOnce()
    await remove()
    assert.equal((await scene.ask('approvals_get', { approval_id: approval.id })).status, 200)
    await sql`
      update approvals set ended_at = now() - interval '31 days'
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    await remove()
    assert.equal((await scene.ask('approvals_get', { approval_id: approval.id })).status, 404)
  })
})
