import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createAgentScene } from '../approvals/scene.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { createSandboxDriver, summarizeReply } from '../messaging/fixtures.ts'
import { startWithOptions, type TestServer, type TestWorkspace } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'
import { createBulkScene, endWaits, insertAutumnBlend, phoneOf, runSends, TEMPLATE } from './scene.ts'

const HOUR_MS = 60 * 60_000

/** Half an hour off the full one, all year. */
const ZONE = 'Asia/Kolkata'

const moveToZone = async (
  { db, app }: TestServer,
  { id }: TestWorkspace,
  timezone: string,
): Promise<void> => {
  await db.updateTable('workspaces').set({ timezone }).where('id', '=', id).execute()
  app.keyCache.keys.clear()
}

const inHours = (hours: number): Temporal.ZonedDateTime =>
  Temporal.Instant.fromEpochMilliseconds(
    Math.ceil(Date.now() / 60_000) * 60_000 + hours * HOUR_MS,
  ).toZonedDateTimeISO(ZONE)

const toUtc = (time: Temporal.ZonedDateTime): string => new Date(time.epochMilliseconds).toISOString()

/** A time of the day in the workspace, without its zone. */
const toLocal = (time: Temporal.ZonedDateTime): string =>
  time.toPlainDateTime().toString({ smallestUnit: 'second' })

/** Lets business time pass, and sends what is due then. */
const pass = async (server: TestServer, workspace: TestWorkspace, by: string): Promise<void> => {
  await createSandboxDriver(server, workspace).advance(by)
  await endWaits(server, workspace.id)
  await runSends(server)
  await server.settle()
}

everyDoor('A broadcast in time', (test) => {
  test('starts at a time of the workspace, which lists show, and not before', async (scene) => {
    const { call, door, server, workspace } = scene
    await insertAutumnBlend(server, workspace)
    await moveToZone(server, workspace, ZONE)
    await call('crm_upsert_contact', { phone: `+${phoneOf(workspace.id, 1)}`, name: 'Ada' })
    const at = inHours(24)
    const input = { filter: {}, all: true, template: TEMPLATE, scheduled_at: toLocal(at) }
    const rehearsed = await call('messaging_send_bulk', { ...input, dry_run: true })
    assert.equal(rehearsed.body.starts_at, at.toString(), rehearsed.text)
    for (const [time, code] of [
      [toUtc(inHours(-1)), 'not_future'],
      [toUtc(inHours(91 * 24)), 'too_late'],
    ] as const) {
      const refused = await call('messaging_send_bulk', { ...input, scheduled_at: time, dry_run: true })
      assert.equal(refused.status, 400, refused.text)
      assert.deepEqual(refused.body.errors[0].code, code)
      assert.match(refused.text, /scheduled_at must be.*Send an? (?:future|earlier) time/s)
    }
    const sent = await call('messaging_send_bulk', input, { confirm: 'send' })
    if (!door.confirms) return assert.equal(sent.status, 428, sent.text)
    const { broadcast, job } = sent.body
    assert.deepEqual(
      [broadcast.status, broadcast.scheduled_at, broadcast.started_at, broadcast.waiting, job.state],
      ['scheduled', toUtc(at), null, null, 'running'],
      sent.text,
    )
    const listed = (await call('messaging_list_broadcasts', { status: 'scheduled' })).body
    assert.deepEqual([listed.total, listed.data[0].scheduled_at], [1, toUtc(at)])
    const later = at.add({ hours: 2 })
    const reschedule = { broadcast_id: broadcast.id, scheduled_at: toLocal(later) }
    const moved = await call('messaging_reschedule_broadcast', reschedule)
    assert.deepEqual(
      [moved.body.broadcast?.scheduled_at, moved.body.starts_at],
      [toUtc(later), later.toString()],
      moved.text,
    )
    await pass(server, workspace, '25h')
    const { sent: messages } = createSandboxDriver(server, workspace)
    assert.equal((await messages()).length, 0)
    await pass(server, workspace, '2h')
    assert.equal((await messages()).length, 1)
    const { body } = await call('messaging_get_broadcast', { broadcast_id: broadcast.id })
    assert.deepEqual([body.status, body.scheduled_at, body.totals.sent], ['completed', toUtc(later), 1])
    assert.ok(Date.parse(body.started_at) >= later.epochMilliseconds, body.started_at)
    const late = await call('messaging_reschedule_broadcast', {
      ...reschedule,
      scheduled_at: toUtc(inHours(48)),
    })
    assert.deepEqual([late.status, late.body.reason], [409, 'already_started'], late.text)
  })
})

everyDatabase('A scheduled broadcast', (server, database) => {
  const schedule = async (count = 4, hours = 24) => {
    const scene = await createBulkScene(server())
    const ids: string[] = []
    for (let n = 0; n < count; n++)
      ids.push(await scene.add({ phone: `+${phoneOf(scene.workspace.id, n)}`, name: `Ada ${n}` }))
    const { body, text } = await scene.send({ scheduled_at: toUtc(inHours(hours)) })
    assert.equal(body.broadcast?.status, 'scheduled', text)
    const broadcast = { broadcast_id: body.broadcast.id }
    return {
      ...scene,
      ids,
      job: { job_id: body.job.id },
      broadcast,
      read: () => scene.run('messaging_get_broadcast', broadcast),
      pass: (by: string) => pass(server(), scene.workspace, by),
    }
  }

  it('is for those who were chosen, but for who declined or was deleted until it starts', async () => {
    const scene = await schedule()
    const { ids, run, call } = scene
    await run('crm_update_contact', { contact_id: ids[0], dnd: true })
    await run('crm_record_consent', { contact_id: ids[1], state: 'withdrawn', source: 'staff' })
    await call('crm_delete_contact', { contact_id: ids[2] }, { confirm: 'delete' })
    await scene.add({ phone: `+${phoneOf(scene.workspace.id, 9)}`, name: 'Ada late' })
    await scene.pass('25h')
    assert.deepEqual(
      (await scene.sandbox.sent()).map(({ to }) => to),
      [phoneOf(scene.workspace.id, 3)],
    )
    const { status, totals } = await scene.read()
    assert.deepEqual([status, totals.recipients, totals.sent, totals.failed], ['completed', 4, 1, 3])
    const job = await run('jobs_get', scene.job)
    assert.deepEqual([job.state, job.changed, job.failed], ['done', 1, 3])
  })

  it('that is cancelled starts never', async () => {
    const scene = await schedule(1)
    await scene.run('jobs_cancel', scene.job)
    await scene.pass('25h')
    const { status, started_at: startedAt } = await scene.read()
    assert.deepEqual([status, startedAt, (await scene.sandbox.sent()).length], ['cancelled', null, 0])
    const moved = await scene.call('messaging_reschedule_broadcast', {
      ...scene.broadcast,
      scheduled_at: toUtc(inHours(48)),
    })
    assert.deepEqual([moved.status, moved.body.reason], [409, 'already_started'])
  })

  it('that is paused can be put off, and starts late when it is resumed', async () => {
    const scene = await schedule(1)
    await scene.run('jobs_pause', scene.job)
    await scene.run('messaging_reschedule_broadcast', {
      ...scene.broadcast,
      scheduled_at: toUtc(inHours(25)),
    })
    await scene.pass('26h')
    const { status, waiting } = await scene.read()
    assert.deepEqual(
      [status, waiting?.reason, (await scene.sandbox.sent()).length],
      ['scheduled', 'stopped', 0],
    )
    await scene.run('jobs_resume', scene.job)
    await scene.pass('1s')
    assert.equal((await scene.read()).status, 'completed')
    assert.equal((await scene.sandbox.sent()).length, 1)
  })

  it('that is moved forward is noticed at once', async () => {
    const scene = await schedule(1, 48)
    await runSends(server())
    await scene.sandbox.advance('23h')
    await scene.run('messaging_reschedule_broadcast', {
      ...scene.broadcast,
      scheduled_at: new Date(Date.now() + 23 * HOUR_MS + 1000).toISOString(),
    })
    await scene.sandbox.advance('1h')
    const from = performance.now()
    await waitUntil('the message is sent', async () => {
      await runSends(server())
      return (await scene.sandbox.sent()).length === 1
    })
    // Its job looks at the clock each minute.
    assert.ok(performance.now() - from < 30_000)
  })

  it('is sent once, late, where no server ran at its time, however many start then', async () => {
    const scene = await schedule()
    await runSends(server())
    await scene.sandbox.advance('30h')
    const other = await startWithOptions(database, { ownJobs: true })
    try {
      await other.app.jobs.job('sandbox-clock').runOnce()
      await endWaits(server(), scene.workspace.id)
      await Promise.all([runSends(other), runSends(server()), runSends(other)])
      await server().settle()
    } finally {
      await other.close()
    }
    await runSends(server())
    assert.equal((await scene.sandbox.sent()).length, 4)
    assert.equal((await scene.read()).status, 'completed')
  })

  it('is checked by the time of its start', async () => {
    const scene = await createBulkScene(server(), [
      {
        name: 'offer',
        category: 'MARKETING',
        components: [
          { type: 'BODY', text: 'Half price.' },
          { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Hurry', has_expiration: true } },
        ],
      },
    ])
    await scene.add({ phone: `+${phoneOf(scene.workspace.id, 1)}`, name: 'Ada' })
    const input = {
      filter: {},
      all: true,
      template: { name: 'offer', language: 'en_US', offer_expires_at: toUtc(inHours(12)) },
      dry_run: true,
    }
    assert.equal((await scene.call('messaging_send_bulk', input)).status, 200)
    const late = await scene.call('messaging_send_bulk', { ...input, scheduled_at: toUtc(inHours(24)) })
    assert.deepEqual(summarizeReply(late), [
      400,
      'invalid_input',
      'template_values',
      '#/template/offer_expires_at in_the_past',
    ])
  })

  it('is changed by its creator and managers alone', async () => {
    const scene = await schedule(1)
    const agent = await scene.workspace.staff({ name: 'Lena', role: 'agent' })
    const { as } = await createAgentScene(server(), scene.workspace)
    const input = { ...scene.broadcast, scheduled_at: toUtc(inHours(48)) }
    const refused = await as(agent.key)('messaging_reschedule_broadcast', input)
    assert.deepEqual([refused.status, refused.body.code], [404, 'not_found'], refused.text)
  })
})

everyDatabase('A scheduled broadcast of an agent', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    const { workspace } = scene
    await insertAutumnBlend(server(), workspace)
    await moveToZone(server(), workspace, ZONE)
    const { body } = await scene.person('crm_upsert_contact', {
      phone: `+${phoneOf(workspace.id, 1, '4930')}`,
      name: 'Bulk',
    })
    const approve = async (approval: { id: string }): Promise<any> => {
      await scene.person('approvals_approve', { approval_id: approval.id })
      await scene.work()
      return (await scene.person('approvals_get', { approval_id: approval.id })).body
    }
    const input = { contact_ids: [body.contact.id], template: TEMPLATE }
    const ask = async (at: Temporal.ZonedDateTime): Promise<any> => {
      const asked = await scene.ask('messaging_send_bulk', { ...input, scheduled_at: toLocal(at) })
      assert.equal(asked.status, 202, asked.text)
      return asked.body.approval
    }
    const list = async (): Promise<any[]> => (await scene.person('messaging_list_broadcasts')).body.data
    return { ...scene, approve, input, list, schedule: ask }
  }

  it('starts at the instant that the person was shown, and is put off only by asking again', async () => {
    const scene = await createScene()
    const at = inHours(24)
    const approval = await scene.schedule(at)
    const { summary } = (await scene.person('approvals_get', { approval_id: approval.id })).body
    const shown = `${at.toPlainDate().toString()} ${at.toPlainTime().toString({ smallestUnit: 'minute' })} ${ZONE}`
    assert.ok(summary.includes(`Starts: ${shown}`), summary.join('\n'))
    await moveToZone(server(), scene.workspace, 'America/New_York')
    assert.equal((await scene.approve(approval)).status, 'done')
    const [broadcast] = await scene.list()
    assert.deepEqual([broadcast.status, broadcast.scheduled_at], ['scheduled', toUtc(at)])
    const later = { broadcast_id: broadcast.id, scheduled_at: toUtc(at.add({ hours: 1 })) }
    const asked = await scene.ask('messaging_reschedule_broadcast', later)
    assert.equal(asked.status, 202, asked.text)
    const question = (await scene.person('approvals_get', { approval_id: asked.body.approval.id })).body
      .summary
    assert.match(
      question.join('\n'),
      /^Broadcast: autumn_blend, scheduled, id \d+\nTemplate: autumn_blend\nRecipients: 1\nScheduled before: /m,
    )
    assert.equal((await scene.list())[0].scheduled_at, toUtc(at))
    assert.equal((await scene.approve(asked.body.approval)).status, 'done')
    assert.equal((await scene.list())[0].scheduled_at, later.scheduled_at)
  })

  it('is not begun where it was approved after its time', async () => {
    const scene = await createScene()
    const approval = await scene.schedule(inHours(2))
    await scene.sandbox.advance('3h')
    const refused = await scene.person('approvals_approve', { approval_id: approval.id })
    assert.equal(refused.status, 400, refused.text)
    assert.match(refused.text, /scheduled_at must be later than now/)
    assert.equal((await scene.list()).length, 0)
  })

  it('says what was approved, or nothing', async () => {
    const scene = await createScene()
    assert.equal((await scene.approve(await scene.schedule(inHours(2)))).status, 'done')
    const components = [{ type: 'BODY', text: 'Hello {{1}}, pay {{2}} to another account.' }]
    await server()
      .db.updateTable('templates')
      .set({ components: JSON.stringify(components) as never })
      .where('workspace_id', '=', scene.workspace.id)
      .execute()
    await server().sync(scene.workspace.id)
    await pass(server(), scene.workspace, '3h')
    assert.equal((await scene.sandbox.sent()).length, 0)
    const [broadcast] = await scene.list()
    assert.deepEqual([broadcast.status, broadcast.waiting?.reason], ['scheduled', 'stopped'])
    const { problem } = (await scene.person('jobs_get', { job_id: broadcast.job_id })).body
    assert.match(problem.detail, /not what the approver was shown/)
  })
})
