import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { findOpening, listZones } from '../../server/domains/bulk-messages/hours.ts'
import { everyDatabase } from '../doors.ts'
import { createBulkScene, endWaits, phoneOf, runSends } from './scene.ts'

const QUARTER_MS = 15 * 60_000
const WEEK_MS = 7 * 24 * 60 * 60_000

/** Reference implementation of `findOpening`: walks from quarter to quarter for a week. */
const findByWalking = (
  { from, to }: { from: string; to: string },
  now: string,
  zones: readonly string[],
): string | undefined => {
  for (let ms = Date.parse(now); ms < Date.parse(now) + WEEK_MS; ms += QUARTER_MS) {
    const instant = Temporal.Instant.fromEpochMilliseconds(ms)
    const isOpen = zones.every((zone) => {
      const time = instant.toZonedDateTimeISO(zone).toPlainTime().toString({ smallestUnit: 'minute' })
      return time >= from && time < to
    })
    if (isOpen) return new Date(ms).toISOString()
  }
  return undefined
}

/** Countries with the instant of a clock change: in one zone or some of several, by half an hour, at midnight. */
const changes: readonly (readonly [country: string, moment: string])[] = [
  ['DE', '2026-03-29T01:00:00Z'],
  ['DE', '2026-10-25T01:00:00Z'],
  ['US', '2026-03-08T07:00:00Z'],
  ['AU', '2026-04-04T15:00:00Z'],
  ['AU', '2026-10-03T15:30:00Z'],
  ['CL', '2026-04-05T03:00:00Z'],
  ['CL', '2026-09-06T04:00:00Z'],
  ['CU', '2026-03-08T05:00:00Z'],
  ['EG', '2026-04-23T22:00:00Z'],
  ['MA', '2026-03-22T02:00:00Z'],
  ['MX', '2026-03-08T10:00:00Z'],
]

const quarter = fc
  .integer({ min: 0, max: 24 * 4 - 1 })
  .map((n) => `${String(Math.floor(n / 4)).padStart(2, '0')}:${String((n % 4) * 15).padStart(2, '0')}`)

const cases = fc.record({
  change: fc.constantFrom(...changes),
  quartersBefore: fc.integer({ min: -8, max: 3 * 24 * 4 }),
  times: fc.uniqueArray(quarter, { minLength: 2, maxLength: 2 }).map((times) => times.toSorted()),
})

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

  it('open when a walk through the clocks of all zones finds them open, also where clocks change', () => {
    fc.assert(
      fc.property(cases, ({ change: [country, moment], quartersBefore, times: [from, to] }) => {
        const now = new Date(Date.parse(moment) - quartersBefore * QUARTER_MS).toISOString()
        const hours = { from: from!, to: to! }
        const zones = listZones(country, 'UTC')
        const expected = findByWalking(hours, now, zones)
        if (expected !== undefined) assert.equal(findOpening(hours, now, zones), expected)
      }),
      { numRuns: 200 },
    )
    // Hours over which the clocks are set back come twice in a night.
    const repeated = { from: '02:30', to: '02:45' }
    for (const [now, next] of [
      ['2026-10-24T23:00:00.000Z', '2026-10-25T00:30:00.000Z'],
      ['2026-10-25T00:50:00.000Z', '2026-10-25T01:30:00.000Z'],
      ['2026-10-25T01:50:00.000Z', '2026-10-26T01:30:00.000Z'],
    ] as const)
      assert.equal(findOpening(repeated, now, ['Europe/Berlin']), next)
    // Two zones have one time until the clocks of one of them change.
    const zones = ['America/Denver', 'America/Phoenix']
    for (const both of [zones, zones.toReversed()]) {
      const find = (to: string) => findOpening({ from: '09:00', to }, '2026-03-07T18:00:00.000Z', both)
      assert.deepEqual([find('10:00'), find('11:00')], [null, '2026-03-08T16:00:00.000Z'])
    }
    // Hours that a change skips come again a week later.
    const skipped = { from: '02:00', to: '03:00', days: ['sun'] as 'sun'[] }
    assert.equal(
      findOpening(skipped, '2026-03-24T00:00:00.000Z', ['Europe/Berlin']),
      '2026-04-05T00:00:00.000Z',
    )
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
      const user = { workspace_id: workspace.id, name: 'Ada', chatapp_user_id: 'US.1' }
      const { id } = await server()
        .db.insertInto('contacts')
        .values({ ...user, created_at: '2026-07-01', updated_at: '2026-07-01' } as never)
        .returning('id')
        .executeTakeFirstOrThrow()
      const short = await rehearse({ hours: { from: '10:00', to: '12:00' } })
      assert.deepEqual(short.left_out, [{ reason: 'no_common_hour', count: 2 }])
      await run('crm_update_contact', { contact_id: id, dnd: true })
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
