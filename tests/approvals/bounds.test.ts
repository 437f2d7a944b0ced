import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { defaultPolicy } from '../../catalog/policy.ts'
import { changeKey, updateKey } from '../../storage/access/admin-keys.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { createAgentScene, markApproved } from './scene.ts'

everyDatabase("Bounds of agents' keys", (server, database) => {
  const allow = { verbs: { send: 'allow' as const } }

  it('allowed within the bounds, without a verb; asked outside of them', async () => {
    const scene = await createAgentScene(server())
    const ask = async (text: string): Promise<unknown> => {
      const { status, body } = await scene.ask(...scene.reply(text))
      return status === 202 ? body.approval.asked_for : status
    }
    await scene.setPolicy(allow)
    assert.equal(await ask('one'), 201)
    await scene.setPolicy({ ...allow, bounds: { window_open: true } })
    assert.equal(await ask('two'), 201)
    await scene.setPolicy({ ...allow, bounds: { assigned: true } })
    assert.deepEqual(await ask('three'), ['assigned'])
    await scene.person('inbox_assign_conversation', {
      conversation_id: scene.id,
      staff_id: scene.manager.staffId,
    })
    assert.equal(await ask('four'), 201)
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 2 } })
    assert.deepEqual(
      [await ask('five'), await ask('six'), await ask('seven')],
      [201, 201, ['sends_per_hour']],
    )
    const day = new Date(server().app.now()).getUTCDay()
    const today = (['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const)[day]!
    await scene.setPolicy({ ...allow, bounds: { hours: { days: [today], from: '00:00', to: '24:00' } } })
    assert.equal(await ask('eight'), 201)
    await scene.setPolicy({ ...allow, bounds: { hours: { days: [], from: '00:00', to: '24:00' } } })
    assert.deepEqual(await ask('nine'), ['hours'])
  })

  it('of several conversations at once are never known to be met', async () => {
    const scene = await createAgentScene(server())
    const assignment = { conversation_id: scene.id, staff_id: scene.manager.staffId }
    await scene.person('inbox_assign_conversation', assignment)
    await scene.setPolicy({ bounds: { assigned: true } })
    const input = { conversation_ids: [scene.id], reason: 'Delivered' }
    const { status, body } = await scene.ask('inbox_close_conversations', input)
    assert.deepEqual([status, body.approval?.asked_for], [202, ['assigned']])
    assert.equal((await scene.ask('inbox_close_conversation', { conversation_id: scene.id })).status, 200)
  })

  it('other than the one that was asked for hold when an approved call runs, and so does the scope', async () => {
    const scene = await createAgentScene(server())
    const run = async (text: string, change: () => Promise<unknown>) => {
      await scene.setPolicy({ ...allow, bounds: { assigned: true } })
      const { approval } = (await scene.ask(...scene.reply(text))).body
      assert.deepEqual(approval.asked_for, ['assigned'])
      await markApproved({ db: server().db, workspace: scene.workspace }, approval.id)
      await change()
      await scene.work()
      const { body } = await scene.person('approvals_get', { approval_id: approval.id })
      return [body.status, body.outcome?.code ?? null, body.outcome?.reason ?? null]
    }
    const bounds = (more: object) => () => scene.setPolicy({ ...allow, bounds: { assigned: true, ...more } })
    assert.deepEqual(await run('One.', bounds({})), ['done', null, null])
    const hours = { days: [], from: '00:00', to: '24:00' }
    assert.deepEqual(await run('Two.', bounds({ hours })), ['failed', 'forbidden', 'denied_by_policy'])
    const loseScope = async () => {
      await updateKey(server().db, scene.workspace.id, scene.agent.keyId, { scopes: ['mcp:read'] })
      server().app.keyCache.keys.clear()
    }
    assert.deepEqual((await run('Three.', loseScope)).slice(0, 2), ['failed', 'insufficient_scope'])
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
  })

  /** A channel on which the contact wrote last; its conversation is assigned to the agent's manager. */
  const createLatest = async (scene: Awaited<ReturnType<typeof createAgentScene>>) => {
    const { db, app } = server()
    const fields = { type: 'web', name: 'Web', status: 'connected', url: 'https://example.com/hook' } as const
    const { id: channelId } = await createChannel(db, scene.workspace.id, fields, app.now())
    const { contactId } = scene
    const { id } = await plantConversation(server(), scene.workspace.id, { contactId, channelId })
    const assignment = { conversation_id: id, staff_id: scene.manager.staffId }
    assert.equal((await scene.person('inbox_assign_conversation', assignment)).status, 200)
    return { id, channelId }
  }

  it('of a template are those of the conversation that it is sent in', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, {})
    const { channelId } = await createLatest(scene)
    await scene.setPolicy({ ...allow, bounds: { assigned: true } })
    const input = { contact_id: scene.contactId, template: ORDER_UPDATE }
    const { status, body } = await scene.ask('messaging_send_template', input)
    assert.deepEqual([status, body.approval?.asked_for], [202, ['assigned']])
    const detail = await scene.person('approvals_get', { approval_id: body.approval.id })
    assert.equal(detail.body.input.channel_id, scene.channelId)
    assert.notEqual(channelId, scene.channelId)
    const assignment = { conversation_id: scene.id, staff_id: scene.manager.staffId }
    await scene.person('inbox_assign_conversation', assignment)
    const other = { ...input, template: { ...ORDER_UPDATE, body: ['Ada', '18'] } }
    assert.equal((await scene.ask('messaging_send_template', other)).status, 201)
  })

  it('on messages an hour count those that were sent, or may have been', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 2 } })
    const ask = async (text: string, more: object = {}) =>
      (await scene.ask('messaging_send_reply', { conversation_id: scene.id, text, ...more })).status
    // Not there, not in this conversation, and refused by the provider.
    assert.equal(await ask('No.', { conversation_id: '999999999' }), 404)
    assert.equal(await ask('No.', { reply_to_id: '999999999' }), 400)
    for (const code of [131042, 130429]) {
      await scene.sandbox.fault({ to: `+${scene.phone}`, code, times: 1 })
      assert.ok((await ask('No.')) >= 429, String(code))
    }
    assert.equal(await ask('One.'), 201)
    await scene.sandbox.fault({ to: `+${scene.phone}`, drop_answer: true, times: 1 })
    assert.equal(await ask('Perhaps.'), 504)
    assert.equal(await ask('Three.'), 202)
  })

  it('on messages an hour count an approved one once, however often it is tried', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy({ bounds: { sends_per_hour: 2 } })
    const { id } = (await scene.ask(...scene.reply('Approved.'))).body.approval
    await scene.person('approvals_approve', { approval_id: id })
    await scene.sandbox.fault({ to: `+${scene.phone}`, code: 130429, times: 3 })
    const getStatus = async () => (await scene.person('approvals_get', { approval_id: id })).body.status
    const statuses: string[] = []
    for (let n = 0; n < 4; n++) {
      await sql`update runs set run_after = clock_timestamp() where kind = 'approved_calls' and lease is null`.execute(
        server().db,
      )
      await scene.work()
      statuses.push(await getStatus())
    }
    assert.deepEqual(statuses, ['approved', 'approved', 'approved', 'done'])
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 2 } })
    const sent = [await scene.ask(...scene.reply('Second.')), await scene.ask(...scene.reply('Third.'))]
    assert.deepEqual(
      sent.map(({ status }) => status),
      [201, 202],
    )
  })

  it('that are met later change nothing for a call that waits or was declined', async () => {
    const scene = await createAgentScene(server())
    const bounds = (sendsPerHour: number) =>
      scene.setPolicy({ ...allow, bounds: { assigned: true, sends_per_hour: sendsPerHour } })
    await bounds(100)
    const ask = async (text: string) => (await scene.ask(...scene.reply(text))).body
    const [declined, waiting] = [await ask('No.'), await ask('Wait.')]
    await scene.person('approvals_decline', { approval_id: declined.approval.id })
    const assignment = { conversation_id: scene.id, staff_id: scene.manager.staffId }
    await scene.person('inbox_assign_conversation', assignment)
    assert.equal((await ask('No.')).code, 'declined')
    assert.equal((await ask('Wait.')).approval.id, waiting.approval.id)
    // Neither was counted.
    await bounds(1)
    assert.equal((await ask('Yes.')).message?.status, 'sent')
    await scene.person('approvals_approve', { approval_id: waiting.approval.id })
    await scene.work()
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 2)
    // What was approved counts, also where it was one too many.
    await bounds(2)
    const { status, body } = await scene.ask(...scene.reply('More.'))
    assert.deepEqual([status, body.approval?.asked_for], [202, ['sends_per_hour']])
  })

  /** Makes changes in a transaction, `last` while a call is under way that waits for the `first`. */
  const changeDuring = async (
    call: () => Promise<unknown>,
    first: (tx: Db) => Promise<unknown>,
    last: (tx: Db) => Promise<unknown> = async () => {},
  ) => {
    const { db } = server()
    const tx = await db.startTransaction().execute()
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    await first(tx)
    let hasEnded = false
    const calling = call().finally(() => (hasEnded = true))
    const isWaitedFor = async () =>
      (await sql`select from pg_stat_activity where ${rows[0]!.pid} = any(pg_blocking_pids(pid))`.execute(db))
        .rows.length > 0
    while (!hasEnded && !(await isWaitedFor())) await setImmediate()
    try {
      await last(tx)
    } finally {
      await tx.commit().execute()
      await calling
    }
  }

  /** Gives the conversation to somebody else while a call is under way that waits for that change. */
  const reassignDuring = (
    { workspace, id }: Awaited<ReturnType<typeof createAgentScene>>,
    call: () => Promise<unknown>,
  ) =>
    changeDuring(call, (tx) =>
      sql`
        update conversations set assigned_staff_id = ${workspace.owner.staffId}
        where workspace_id = ${workspace.id} and id = ${id}`.execute(tx),
    )

  // The embedded database has one session, which no other can keep waiting.
  if (database !== 'embedded') {
    it('hold for a conversation that is assigned to somebody else at the last moment', async () => {
      const scene = await createAgentScene(server())
      const assign = () =>
        scene.person('inbox_assign_conversation', {
          conversation_id: scene.id,
          staff_id: scene.manager.staffId,
        })
      await scene.setPolicy({ ...allow, bounds: { assigned: true, sends_per_hour: 1 } })
      const calls = [
        scene.reply('Late.'),
        ['inbox_close_conversation', { conversation_id: scene.id }],
      ] as const
      for (const [op, input] of calls) {
        await assign()
        await reassignDuring(scene, async () => {
          const { status, body } = await scene.ask(op, input)
          assert.deepEqual([status, body.reason], [409, 'still_running'], op)
        })
        const { status, body } = await scene.ask(op, input)
        assert.deepEqual([status, body.approval?.asked_for], [202, ['assigned']], op)
      }
      await assign()
      // The one that was refused at the last moment is not counted.
      assert.equal((await scene.ask(...scene.reply('In time.'))).status, 201)
      const hours = { days: [], from: '00:00', to: '24:00' }
      await scene.setPolicy({ ...allow, bounds: { assigned: true, hours } })
      const { id } = (await scene.ask(...scene.reply('At night.'))).body.approval
      await markApproved({ db: server().db, workspace: scene.workspace }, id)
      await reassignDuring(scene, scene.work)
      const { outcome } = (await scene.person('approvals_get', { approval_id: id })).body
      assert.equal(outcome.reason, 'denied_by_policy')
      assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
    })

    it('lock a contact before its conversation, as whatever locks both does', async () => {
      const scene = await createAgentScene(server())
      const { workspace, contactId, id } = scene
      await insertSandboxTemplates(server(), workspace, {})
      await scene.person('inbox_assign_conversation', {
        conversation_id: id,
        staff_id: scene.manager.staffId,
      })
      await scene.setPolicy({ ...allow, bounds: { assigned: true } })
      await changeDuring(
        async () => {
          const input = { contact_id: contactId, template: ORDER_UPDATE }
          const { status, text } = await scene.ask('messaging_send_template', input)
          assert.equal(status, 201, text)
        },
        (tx) =>
          sql`select from contacts where workspace_id = ${workspace.id} and id = ${contactId} for update`.execute(
            tx,
          ),
        // It fails at once where the call has the conversation by now.
        (tx) =>
          sql`select from conversations where workspace_id = ${workspace.id} and id = ${id} for update nowait`.execute(
            tx,
          ),
      )
    })
  }

  it('tell nothing of conversations on channels that the staff may not see', async () => {
    const scene = await createAgentScene(server())
    const hidden = await createLatest(scene)
    const limits = { name: 'Lim', role: 'agent' as const, channel_ids: [scene.channelId] }
    const limited = await scene.workspace.staff(limits)
    const { key, keyId } = await scene.workspace.key(limited.staffId, { agent: true })
    for (const bounds of [{ window_open: true }, { assigned: true }] as const) {
      await changeKey(server().db, scene.workspace.id, keyId, {
        policy: { ...defaultPolicy, ...allow, bounds },
      })
      server().app.keyCache.keys.clear()
      const [there, missing] = await Promise.all(
        [hidden.id, '999999999'].map((id) =>
          scene.as(key)('messaging_send_reply', { conversation_id: id, text: 'x', dry_run: true }),
        ),
      )
      assert.deepEqual(
        [there!.status, there!.headers['approval']],
        [missing!.status, missing!.headers['approval']],
      )
      assert.equal(there!.status, 404)
    }
  })

  it('a paused key may do nothing, and whoami shows the policy', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy(allow)
    assert.equal((await scene.ask('workspace_whoami')).body.key.policy.verbs.send, 'allow')
    await scene.pause(server().app.now())
    for (const door of doorsOf(server().url, scene.agent.key)) {
      const { status, text } = await door.call('workspace_whoami')
      assert.equal(status, 403, `${door.name}: ${text}`)
      assert.match(text, /key_paused/)
    }
  })
})
