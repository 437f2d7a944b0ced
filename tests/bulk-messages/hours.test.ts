import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findOpening, listZones } from '../../server/bulk-messages/hours.ts'
import { everyDatabase } from '../doors.ts'
import { createBulkScene, endWaits, phoneOf, runSends } from './scene.ts'

const DAY = { from: '09:00', to: '20:00' }

describe('Hours of recipients', () => {
  it('are those of the only zone of a country', () => {
    const zones = listZones('DE', 'UTC')
    // Berlin is two hours ahead of UTC in summer, and one in winter.
    assert.equal(findOpening(DAY, '2026-07-01T07:00:00.000Z', zones), '2026-07-01T07:00:00.000Z')
    assert.equal(findOpening(DAY, '2026-07-01T06:59:00.000Z', zones), '2026-07-01T07:00:00.000Z')
    assert.equal(findOpening(DAY, '2026-12-01T07:30:00.000Z', zones), '2026-12-01T08:00:00.000Z')
    assert.equal(findOpening(DAY, '2026-07-01T18:00:00.000Z', zones), '2026-07-02T07:00:00.000Z')
  })

  it('meet in all zones of a country, or never', () => {
    const zones = listZones('US', 'UTC')
    assert.ok(zones.includes('America/New_York') && zones.includes('Pacific/Honolulu'))
    // 09:00 in Honolulu is 15:00 in New York in summer.
    assert.equal(findOpening(DAY, '2026-07-01T13:00:00.000Z', zones), '2026-07-01T19:00:00.000Z')
    assert.equal(findOpening(DAY, '2026-07-01T23:30:00.000Z', zones), '2026-07-01T23:30:00.000Z')
    assert.equal(findOpening(DAY, '2026-07-02T00:00:00.000Z', zones), '2026-07-02T19:00:00.000Z')
    assert.equal(findOpening({ from: '10:00', to: '12:00' }, '2026-07-01T13:00:00.000Z', zones), null)
  })

  it('are on days of the week', () => {
    const hours = { ...DAY, days: ['mon'] as ('mon' | 'tue')[] }
    // 2026-07-01 is a Wednesday.
    assert.equal(findOpening(hours, '2026-07-01T10:00:00.000Z', ['UTC']), '2026-07-06T09:00:00.000Z')
  })

  it('are those of the workspace where the country is unknown', () => {
    assert.deepEqual(listZones(null, 'Asia/Tokyo'), ['Asia/Tokyo'])
    assert.deepEqual(listZones('ZZ', 'Asia/Tokyo'), ['Asia/Tokyo'])
  })
})

let clock = Date.parse('2026-07-01T06:00:00.000Z')

everyDatabase(
  'A broadcast within hours',
  (server) => {
    it('sends to each country in its own', async () => {
      clock = Date.parse('2026-07-01T06:00:00.000Z')
      const scene = await createBulkScene(server())
      const { workspace, add, send, run, rehearse, sandbox } = scene
      // Half past two in the afternoon in Tokyo, eight in Berlin, and night in the United States.
      const [tokyo, berlin, us] = [
        phoneOf(workspace.id, 1, '8190'),
        phoneOf(workspace.id, 1, '4930'),
        phoneOf(workspace.id, 1),
      ]
      for (const phone of [tokyo, berlin, us]) await add({ phone: `+${phone}`, name: 'Ada' })
      const short = await rehearse({ hours: { from: '10:00', to: '12:00' } })
      assert.deepEqual(short.left_out, [{ reason: 'no_common_hour', count: 1 }])
      const { body } = await send({ hours: DAY })
      const sentAfter = async (at: string) => {
        // A run that began before would wait by the time of then.
        await runSends(server())
        clock = Date.parse(at)
        await endWaits(server(), workspace.id)
        await runSends(server())
        return (await sandbox.sent()).map(({ to }) => to)
      }
      assert.deepEqual(await sentAfter('2026-07-01T06:00:00.000Z'), [tokyo])
      const { waiting } = await run('messaging_get_broadcast', { broadcast_id: body.broadcast.id })
      assert.deepEqual(waiting, { reason: 'hours', until: '2026-07-01T07:00:00.000Z' })
      assert.deepEqual(await sentAfter('2026-07-01T08:00:00.000Z'), [tokyo, berlin])
      assert.deepEqual(await sentAfter('2026-07-01T18:59:00.000Z'), [tokyo, berlin])
      assert.deepEqual(await sentAfter('2026-07-01T19:30:00.000Z'), [tokyo, berlin, us])
      assert.equal((await run('jobs_get', { job_id: body.job.id })).state, 'done')
    })
  },
  // A server with another clock would take its broadcasts.
  { now: () => new Date(clock).toISOString(), dedicated: true },
)
