import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createSandboxRequest } from '../messaging/fixtures.ts'
import { type BulkScene, createBulkScene, endWaits, goOn, phoneOf, runSends } from './scene.ts'

const addMany = async ({ workspace, add }: BulkScene, count: number, prefix?: string): Promise<string[]> => {
  const phones = Array.from({ length: count }, (_, n) => phoneOf(workspace.id, n, prefix))
  for (const [n, phone] of phones.entries()) await add({ phone: `+${phone}`, name: `Ada ${n}` })
  return phones
}

const getState = async (
  { run }: BulkScene,
  { job, broadcast }: { job: { id: string }; broadcast: { id: string } },
) => {
  const { state, done, changed, failed, problem } = await run('jobs_get', { job_id: job.id })
  const { status, totals, waiting } = await run('messaging_get_broadcast', { broadcast_id: broadcast.id })
  return { state, done, changed, failed, problem, status, totals, waiting: waiting?.reason ?? null }
}

everyDatabase('A broadcast and the provider', (server) => {
  it('waits where the provider takes no more, and fails nobody for it', async () => {
    const scene = await createBulkScene(server())
    const phones = await addMany(scene, 3)
    await scene.sandbox.fault({ code: 130429 })
    await scene.sandbox.fault({ code: 131056, to: `+${phones[1]}` })
    const { body } = await scene.send()
    await runSends(server())
    const waiting = await getState(scene, body)
    assert.deepEqual([waiting.state, waiting.failed, waiting.waiting], ['running', 0, 'provider'])
    await goOn(server(), scene.workspace.id)
    await goOn(server(), scene.workspace.id)
    await goOn(server(), scene.workspace.id)
    const { state, totals } = await getState(scene, body)
    assert.deepEqual([state, totals.sent, totals.failed], ['done', 3, 0])
    assert.equal((await scene.sandbox.sent()).length, 3)
  })

  it('lets a recipient wait to whom it sent too many messages', async () => {
    const scene = await createBulkScene(server())
    const [phone] = await addMany(scene, 1)
    await scene.sandbox.fault({ code: 131056, to: `+${phone}` })
    const { body } = await scene.send()
    await runSends(server())
    const waiting = await getState(scene, body)
    assert.deepEqual([waiting.state, waiting.done, waiting.waiting], ['running', 0, 'provider'])
    await goOn(server(), scene.workspace.id)
    assert.deepEqual((await getState(scene, body)).totals.sent, 1)
  })

  it('lets nobody wait for a time of before the clock was set back', async () => {
    const scene = await createBulkScene(server())
    const [phone] = await addMany(scene, 1)
    await scene.sandbox.advance('300h')
    await scene.sandbox.fault({ code: 131056, to: `+${phone}` })
    const { body } = await scene.send()
    await runSends(server())
    await createSandboxRequest(server(), scene.workspace)('DELETE', 'clock')
    await endWaits(server(), scene.workspace.id)
    await runSends(server())
    await server().settle()
    assert.equal((await getState(scene, body)).totals.sent, 1)
  })

  it('stops when too many fail, says why, and goes on when it is resumed', async () => {
    const scene = await createBulkScene(server())
    await addMany(scene, 40)
    await scene.sandbox.fault({ code: 131026, times: 25 })
    const { body } = await scene.send()
    await runSends(server())
    const stopped = await getState(scene, body)
    assert.deepEqual(
      [stopped.state, stopped.problem?.code, stopped.status, stopped.waiting],
      ['failed', 'upstream_error', 'running', 'stopped'],
    )
    assert.match(stopped.problem.detail, /\d+ of the last \d+ messages failed/)
    const { data } = await scene.run('messaging_list_broadcast_recipients', {
      broadcast_id: body.broadcast.id,
      message_status: 'failed',
    })
    assert.match(data[0].error, /does not deliver/)
    for (let n = 0; n < 3 && (await getState(scene, body)).state !== 'done'; n++) {
      await scene.run('jobs_resume', { job_id: body.job.id })
      await runSends(server())
      await server().settle()
    }
    const { state, totals } = await getState(scene, body)
    assert.deepEqual([state, totals.sent, totals.failed], ['done', 15, 25])
    assert.equal((await scene.sandbox.sent()).length, 15)
  })

  it('stops at once for what would concern everybody', async () => {
    const scene = await createBulkScene(server())
    await addMany(scene, 5)
    const { body } = await scene.send()
    await sql`update templates set status = 'PAUSED' where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )
    await runSends(server())
    const stopped = await getState(scene, body)
    assert.deepEqual([stopped.state, stopped.totals.failed, stopped.changed], ['failed', 0, 0])
    assert.match(stopped.problem.detail, /PAUSED/)
    await sql`update templates set status = 'APPROVED' where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )
    await scene.run('jobs_resume', { job_id: body.job.id })
    await runSends(server())
    assert.equal((await getState(scene, body)).totals.sent, 5)
  })

  it('never sends again what may have been sent', async () => {
    const scene = await createBulkScene(server())
    await addMany(scene, 3)
    await scene.sandbox.fault({ drop_answer: true, times: 3 })
    const { body } = await scene.send({ stop_at_error_percent: 100 })
    await runSends(server())
    await goOn(server(), scene.workspace.id)
    await server().app.jobs.job('provider-call-reconciliation').runOnce()
    await server().settle()
    const { totals } = await getState(scene, body)
    assert.deepEqual([totals.sent, (await scene.sandbox.sent()).length], [3, 3])
  })

  it('writes to as many customers as the number may in a day', async () => {
    const scene = await createBulkScene(server())
    await addMany(scene, 4)
    const { db } = server()
    const setLimit = (limit: string) =>
      sql`insert into channel_health (workspace_id, channel_id, messaging_limit)
        select workspace_id, id, ${limit} from channels where workspace_id = ${scene.workspace.id}
        on conflict (workspace_id, channel_id) do update set messaging_limit = excluded.messaging_limit`.execute(
        db,
      )
    await setLimit('TIER_3')
    const { body } = await scene.send()
    await runSends(server())
    const waiting = await getState(scene, body)
    assert.deepEqual([waiting.done, waiting.state, waiting.waiting], [3, 'running', 'messaging_limit'])
    await scene.sandbox.advance('25h')
    await goOn(server(), scene.workspace.id)
    assert.deepEqual((await getState(scene, body)).state, 'done')
  })
})
