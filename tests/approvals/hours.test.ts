import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { defaultPolicy, weekdays } from '../../catalog/policy.ts'
import { changeKey } from '../../storage/access/admin-keys.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'

const DAY = 1440
const WEEK = 7 * DAY
const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/St_Johns', 'Pacific/Chatham']

const toTime = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

/** Minutes of a local time since Monday. */
const minuteOfWeek = ({ dayOfWeek, hour, minute }: Temporal.ZonedDateTime): number =>
  (dayOfWeek - 1) * DAY + hour * 60 + minute

type Hours = { days: readonly number[]; from: number; to: number }

/** Whether a span of the hours, each of which begins on its day, holds a minute of the week. */
const isWithin = ({ days, from, to }: Hours, minute: number): boolean => {
  const length = to > from ? to - from : DAY + to - from
  return days.some((day) => (minute - (day * DAY + from) + WEEK) % WEEK < length)
}

const minute = fc.oneof(fc.integer({ min: 0, max: DAY - 1 }), fc.constantFrom(0, 1, 540, DAY - 1))
const cases = fc.record({
  zone: fc.constantFrom(...ZONES),
  days: fc.subarray([0, 1, 2, 3, 4, 5, 6], { minLength: 1, maxLength: 6 }),
  from: minute,
  to: fc.oneof(minute, fc.constantFrom(540, DAY)),
  // The clocks change in Berlin on October 25.
  day: fc.integer({ min: 0, max: 13 }),
  other: minute,
})

let clock = '2026-10-20T00:00:00.000Z'
everyDatabase(
  "Hours of agents' keys",
  (server) => {
    it('begin on their days, may go over midnight, and end before the minute that they name', async () => {
      const seen = new Set<string>()
      const agents = new Map(
        await Promise.all(
          ZONES.map(async (timezone) => {
            const { id, key, owner } = await makeWorkspace(server(), { timezone })
            return [timezone, { workspaceId: id, ...(await key(owner.staffId, { agent: true })) }] as const
          }),
        ),
      )
      await fc.assert(
        fc.asyncProperty(cases, async ({ zone, days, from, to, day, other }) => {
          const { workspaceId, keyId, key } = agents.get(zone)!
          const hours = { days: days.map((n) => weekdays[n]!), from: toTime(from), to: toTime(to) }
          await changeKey(server().db, workspaceId, keyId, {
            policy: { ...structuredClone(defaultPolicy), verbs: { send: 'allow' }, bounds: { hours } },
          })
          server().app.keyCache.keys.clear()
          const date = Temporal.PlainDate.from('2026-10-19').add({ days: day })
          for (const at of [from, from - 1, to, to - 1, other]) {
            const local = date.toZonedDateTime(zone).add({ minutes: at })
            clock = local.toInstant().toString()
            const { headers } = await callAs(server(), key)('messaging_send_reply', {
              conversation_id: '1',
              text: 'Hi',
              dry_run: true,
            })
            const isAllowed = isWithin({ days, from, to }, minuteOfWeek(local))
            seen.add(`${isAllowed} ${from < to}`)
            assert.equal(headers['approval'], isAllowed ? undefined : 'required', `${local}`)
          }
        }),
        { numRuns: runs(40, 400) },
      )
      assert.equal(seen.size, 4)
    })
  },
  { now: () => clock },
)
