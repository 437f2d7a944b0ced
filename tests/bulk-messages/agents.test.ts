import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callConfirming, createAgentScene } from '../approvals/scene.ts'
import { everyDatabase } from '../doors.ts'
import { endWaits, goOn, insertAutumnBlend, phoneOf, runSends, TEMPLATE } from './scene.ts'

everyDatabase('A template to many, asked for by an agent', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    await insertAutumnBlend(server(), scene.workspace)
    for (let n = 0; n < 3; n++) {
      const { status } = await scene.person('crm_upsert_contact', {
        phone: `+${phoneOf(scene.workspace.id, n, '4930')}`,
        name: `Bulk ${n}`,
      })
      assert.equal(status, 200)
    }
    return { ...scene, input: { filter: { name: { startsWith: 'Bulk' } }, template: TEMPLATE } }
  }

  /** The provider takes no message to them the first time. */
  const putOff = async ({ sandbox, workspace }: Awaited<ReturnType<typeof createScene>>): Promise<void> => {
    for (let n = 0; n < 3; n++)
      await sandbox.fault({ code: 131056, to: `+${phoneOf(workspace.id, n, '4930')}` })
  }

  it('waits for a person, who sees the text and how many get it', async () => {
    const scene = await createScene()
    const dry = { ...scene.input, dry_run: true }
    const { plan } = (await scene.ask('messaging_send_bulk', dry, { plan: 'show' })).body
    const asked = await scene.ask('messaging_send_bulk', scene.input, { plan: plan.token })
    assert.deepEqual([asked.status, asked.body.approval?.status], [202, 'pending'], asked.text)
    const approvalId = asked.body.approval.id
    const { summary, input } = (await scene.person('approvals_get', { approval_id: approvalId })).body
    const lines = new Set<string>(summary)
    for (const line of [
      'Template: autumn_blend, en_US',
      'Text: Hello [name, or "there"], the autumn blend arrives on Friday.',
      'Footer: Reply STOP to stop',
      'First message: Hello Bulk 0, the autumn blend arrives on Friday.',
      'Another message: Hello Bulk 2, the autumn blend arrives on Friday.',
      'Contacts whose values change from now on get no message.',
      'Countries: DE 3',
      'Recipients: 3',
    ])
      assert.ok(lines.has(line), summary.join('\n'))
    assert.deepEqual([input.channel_id, input.max_recipients], [scene.channelId, 3])
    const approved = await scene.person('approvals_approve', { approval_id: approvalId })
    assert.equal(approved.status, 200, approved.text)
    await scene.work()
    await runSends(server())
    await server().settle()
    const { data } = (await scene.person('messaging_list_broadcasts')).body
    assert.equal(data[0].totals.sent, 3)
    const { outcome } = (await scene.person('approvals_get', { approval_id: approvalId })).body
    assert.deepEqual([outcome.code, outcome.broadcast_id], [null, data[0].id])
    const last = (await scene.person('inbox_search_conversations', { limit: 1 })).body.data[0]
    const message = (await scene.person('inbox_list_messages', { conversation_id: last.id, limit: 1 })).body
      .data[0]
    assert.deepEqual([message.actor.agent, message.actor.approved_by.name], [true, 'Owner'])
  })

  it('is for no more than the person was shown', async () => {
    const scene = await createScene()
    const dry = { ...scene.input, dry_run: true }
    const { plan } = (await scene.ask('messaging_send_bulk', dry, { plan: 'show' })).body
    // Its values are not those of the plan, whoever is asked about it.
    const renamed = { phone: `+${phoneOf(scene.workspace.id, 2, '4930')}`, name: 'Bulk 2: pay to us' }
    assert.equal((await scene.ask('crm_upsert_contact', renamed)).status, 200)
    const { approval } = (await scene.ask('messaging_send_bulk', scene.input, { plan: plan.token })).body
    await scene.person('crm_upsert_contact', {
      phone: `+${phoneOf(scene.workspace.id, 9, '4930')}`,
      name: 'Bulk late',
    })
    const { summary } = (await scene.person('approvals_get', { approval_id: approval.id })).body
    assert.match(summary.join('\n'), /^Left out: 1 values changed$/m)
    await scene.person('approvals_approve', { approval_id: approval.id })
    await scene.work()
    const { body } = await scene.person('approvals_get', { approval_id: approval.id })
    assert.equal(body.status, 'done', JSON.stringify(body.outcome))
    await runSends(server())
    await server().settle()
    const [broadcast] = (await scene.person('messaging_list_broadcasts')).body.data
    assert.equal(broadcast.totals.sent, 2)
    for (const n of [2, 9])
      assert.equal((await scene.sandbox.sent(phoneOf(scene.workspace.id, n, '4930'))).length, 0)
  })

  for (const named of ['filter', 'contact_ids'])
    it(`by ${named} says to nobody what the person did not approve`, async () => {
      const scene = await createScene()
      const { id: workspaceId } = scene.workspace
      const rename = (n: number, name: string) =>
        scene.ask('crm_upsert_contact', { phone: `+${phoneOf(workspaceId, n, '4930')}`, name })
      const { filter, template } = scene.input
      const { data } = (await scene.person('crm_search_contacts', { filter })).body
      const ids = data.map(({ id }: { id: string }) => id)
      const input = named === 'filter' ? scene.input : { contact_ids: ids, template }
      const asked = await scene.ask('messaging_send_bulk', input)
      const approvalId = asked.body.approval?.id
      await putOff(scene)
      assert.equal((await rename(0, 'Bulk 0: pay to +1 555 0100')).status, 200)
      const approved = await scene.person('approvals_approve', { approval_id: approvalId })
      assert.equal(approved.status, 200, approved.text)
      await scene.work()
      await runSends(server())
      assert.equal((await scene.sandbox.sent()).length, 0)
      assert.equal((await rename(1, 'Bulk 1: pay to +1 555 0100')).status, 200)
      await goOn(server(), workspaceId)
      const [broadcast] = (await scene.person('messaging_list_broadcasts')).body.data
      assert.deepEqual([broadcast.totals.sent, broadcast.totals.failed], [1, 1], JSON.stringify(broadcast))
      const recipients = (
        await scene.person('messaging_list_broadcast_recipients', { broadcast_id: broadcast.id })
      ).body.data
      assert.deepEqual(
        recipients.map((one: { message_status: string; error: string | null }) => [
          one.message_status,
          one.error,
        ]),
        [
          ['failed', 'The values of the contact are not those that a person approved.'],
          ['delivered', null],
        ],
      )
      assert.doesNotMatch(JSON.stringify(await scene.sandbox.sent()), /pay to/)
    })

  it('confirmed in the client says to nobody what the person there was not asked about', async () => {
    const scene = await createScene()
    await scene.setPolicy({ approval: 'client' })
    await putOff(scene)
    const rename = async (): Promise<void> => {
      const phone = `+${phoneOf(scene.workspace.id, 0, '4930')}`
      const name = 'Bulk 0: pay to +1 555 0100'
      assert.equal((await scene.ask('crm_upsert_contact', { phone, name })).status, 200)
    }
    const at = { url: server().url, key: scene.agent.key }
    const { result, questions, question } = await callConfirming(
      at,
      ['messaging_send_bulk', scene.input],
      rename,
    )
    assert.deepEqual([questions, /pay to/.test(question)], [1, false], question)
    assert.deepEqual([result.recipients, result.left_out], [2, [{ reason: 'values_changed', count: 1 }]])
    await goOn(server(), scene.workspace.id)
    assert.doesNotMatch(JSON.stringify(await scene.sandbox.sent()), /pay to/)
  })

  for (const approval of ['person', 'client'] as const)
    it(`stops where its template has got a text that nobody approved: ${approval}`, async () => {
      const scene = await createScene()
      await scene.setPolicy({ approval })
      await putOff(scene)
      if (approval === 'client') {
        const at = { url: server().url, key: scene.agent.key }
        await callConfirming(at, ['messaging_send_bulk', scene.input])
      } else {
        const { id } = (await scene.ask('messaging_send_bulk', scene.input)).body.approval
        await scene.person('approvals_approve', { approval_id: id })
        await scene.work()
      }
      await runSends(server())
      // One gets what was approved.
      await sql`update broadcast_recipients set retry_at = null where workspace_id = ${scene.workspace.id}
        and contact_id = (select min(contact_id) from broadcast_recipients
          where workspace_id = ${scene.workspace.id} and status = 'pending')`.execute(server().db)
      await endWaits(server(), scene.workspace.id)
      await runSends(server())
      const components = [{ type: 'BODY', text: 'Hello {{1}}, pay {{2}} to another account.' }]
      await sql`update templates set components = ${JSON.stringify(components)}::text::jsonb
        where workspace_id = ${scene.workspace.id}`.execute(server().db)
      await server().sync(scene.workspace.id)
      await goOn(server(), scene.workspace.id)
      const [{ id }] = (await scene.person('jobs_list', {})).body.data
      for (const resumed of [false, true]) {
        if (resumed) await scene.person('jobs_resume', { job_id: id })
        await goOn(server(), scene.workspace.id)
        const { state, problem } = (await scene.person('jobs_get', { job_id: id })).body
        assert.deepEqual([state, problem?.code], ['failed', 'conflict'])
        assert.match(problem.detail, /not what the approver was shown/)
      }
      assert.equal((await scene.sandbox.sent()).length, 1)
    })

  it('that the policy allows has the values of the time of sending', async () => {
    const scene = await createScene()
    await scene.setPolicy({ verbs: { send: 'allow' } })
    await putOff(scene)
    assert.equal((await scene.ask('messaging_send_bulk', scene.input)).status, 202)
    await runSends(server())
    const phone = phoneOf(scene.workspace.id, 0, '4930')
    const renamed = await scene.person('crm_upsert_contact', { phone: `+${phone}`, name: 'Bulk Zero' })
    assert.equal(renamed.body.contact.name, 'Bulk Zero', renamed.text)
    await goOn(server(), scene.workspace.id)
    assert.match(JSON.stringify(await scene.sandbox.sent(phone)), /Bulk Zero/)
  })

  it('is not asked for where nobody would get it yet', async () => {
    const scene = await createScene()
    const input = { ...scene.input, filter: { name: { startsWith: 'Nobody' } } }
    const { status, body } = await scene.ask('messaging_send_bulk', input)
    assert.deepEqual([status, body.reason], [409, 'no_recipients'])
    assert.equal((await scene.person('approvals_list', {})).body.data.length, 0)
  })

  it('stops where its policy denies it by now', async () => {
    const scene = await createScene()
    await scene.setPolicy({ verbs: { send: 'allow' } })
    await putOff(scene)
    const { job } = (await scene.ask('messaging_send_bulk', scene.input)).body
    await runSends(server())
    await scene.setPolicy({ verbs: { send: 'deny' } })
    await goOn(server(), scene.workspace.id)
    const { body } = await scene.person('jobs_get', { job_id: job.id })
    assert.equal(body.state, 'failed')
    assert.match(JSON.stringify(body.problem), /policy of the key denies messaging_send_bulk/)
    assert.equal((await scene.sandbox.sent()).length, 0)
  })

  it('is asked for where messages in an hour are bounded, and counts', async () => {
    const scene = await createScene()
    const allow = { verbs: { send: 'allow' } as const }
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 3 } })
    const asked = await scene.ask('messaging_send_bulk', scene.input)
    assert.deepEqual(asked.body.approval?.asked_for, ['sends_per_hour'], asked.text)
    await scene.person('approvals_approve', { approval_id: asked.body.approval.id })
    await scene.work()
    await runSends(server())
    const reply = await scene.ask(...scene.reply('One more'))
    assert.deepEqual(reply.body.approval?.asked_for, ['sends_per_hour'], reply.text)
  })

  it('that was paused is not resumed by the agent alone', async () => {
    const scene = await createScene()
    await scene.setPolicy({ verbs: { send: 'allow' } })
    const { job } = (await scene.ask('messaging_send_bulk', scene.input)).body
    await scene.person('jobs_pause', { job_id: job.id })
    await scene.setPolicy({
      verbs: { send: 'deny' },
      operations: { jobs_resume: 'allow', jobs_undo: 'allow' },
    })
    for (const call of ['jobs_resume', 'jobs_undo']) {
      const refused = await scene.ask(call, { job_id: job.id })
      assert.deepEqual([refused.status, refused.body.reason], [403, 'denied_by_policy'], refused.text)
    }
    await scene.setPolicy({ verbs: { send: 'allow' } })
    assert.equal((await scene.ask('jobs_undo', { job_id: job.id })).status, 409)
    const asked = await scene.ask('jobs_resume', { job_id: job.id })
    assert.deepEqual([asked.status, asked.body.approval?.asked_for], [202, ['operation']], asked.text)
    assert.equal((await scene.person('jobs_get', { job_id: job.id })).body.state, 'paused')
  })
})
