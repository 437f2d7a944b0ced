import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { addBusinessTime, BusinessHours, weekdays } from '../../server/domains/inbox/hours.ts'

const MINUTE = 60_000

type ZonedHours = BusinessHours & { timezone: string }

/**
 * Reference implementation of `addBusinessTime`: walks minute by minute and counts those whose start is
 * within a span in local time. Undefined after `maxMinutes`.
 */
const addByWalking = (
  start: string,
  seconds: number,
  hours: ZonedHours,
  maxMinutes: number,
): string | undefined => {
  let remaining = seconds
  for (let at = Date.parse(start), n = 0; n < maxMinutes; at += MINUTE, n++) {
    const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(hours.timezone)
    const time = local.toPlainTime().toString({ smallestUnit: 'minute' })
    const spans = hours.holidays?.includes(local.toPlainDate().toString())
      ? []
      : (hours.days[weekdays[local.dayOfWeek - 1]!] ?? [])
    if (!spans.some(([from, to]) => time >= from && time < to)) continue
    if (remaining <= 60) return new Date(at + remaining * 1000).toISOString()
    remaining -= 60
  }
  return undefined
}

const timeOf = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

/** Spans of a day that do not overlap: the times of a sorted list in pairs. */
const day = fc
  .uniqueArray(
    fc.oneof(fc.integer({ min: 0, max: 1440 }), fc.constantFrom(0, 60, 120, 150, 180, 1380, 1439, 1440)),
    { maxLength: 6 },
  )
  .map((minutes) => minutes.toSorted((a, b) => a - b))
  .map((minutes) =>
    Array.from(
      { length: Math.floor(minutes.length / 2) },
      (_, n) => [timeOf(minutes[2 * n]!), timeOf(minutes[2 * n + 1]!)] as [string, string],
    ),
  )

/**
 * Time zones with the instant of a clock change: by an hour, by half an hour, one minute past midnight, at
 * midnight, over a whole day, at the end of Ramadan.
 */
const changes: readonly (readonly [timezone: string, moment: string])[] = [
  ['Europe/Berlin', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-10-25T01:00:00Z'],
  ['America/New_York', '2026-03-08T07:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
  ['America/St_Johns', '2006-10-29T02:31:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['America/Sao_Paulo', '2018-02-18T02:00:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00:00Z'],
  ['Africa/Casablanca', '2026-03-22T02:00:00Z'],
  ['Asia/Kolkata', '2026-06-01T00:00:00Z'],
  ['UTC', '2026-02-28T00:00:00Z'],
]

const cases = fc.record({
  change: fc.constantFrom(...changes),
  before: fc.integer({ min: -2 * 1440, max: 2 * 1440 }),
  seconds: fc.integer({ min: 1, max: 20 * 3600 }),
  days: fc.tuple(day, day, day, day, day, day, day),
  holiday: fc.integer({ min: -2, max: 3 }),
})

describe('Business time', () => {
  it('is local time across clock changes, as a walk minute by minute counts it', () => {
    let compared = 0
    fc.assert(
      fc.property(cases, ({ change: [timezone, moment], before, seconds, days, holiday }) => {
        const start = new Date(Date.parse(moment) - before * MINUTE).toISOString()
        const holidays = [new Date(Date.parse(moment) + holiday * 86_400_000).toISOString().slice(0, 10)]
        const hours: ZonedHours = {
          timezone,
          days: Object.fromEntries(weekdays.map((name, n) => [name, days[n]!])),
          holidays,
        }
        const expected = addByWalking(start, seconds, hours, 5 * 1440)
        if (expected === undefined) return
        compared++
        assert.equal(addBusinessTime(start, seconds, hours), expected)
      }),
      { numRuns: 300 },
    )
    assert.ok(compared > 100, `${compared} compared`)
  })

  const office: ZonedHours = {
    timezone: 'Europe/Berlin',
    days: {
      mon: [
        ['13:00', '18:00'],
        ['09:00', '12:00'],
      ],
      tue: [['09:00', '18:00']],
      fri: [['09:00', '18:00']],
      sat: [['20:00', '24:00']],
      sun: [['00:00', '02:00']],
    },
    holidays: ['2026-12-25'],
  }
  const table = [
    ['within a span', '2026-11-03T09:00:00.000Z', 1800, '2026-11-03T09:30:00.000Z'],
    ['to the end of a span', '2026-11-02T10:00:00.000Z', 3600, '2026-11-02T11:00:00.000Z'],
    ['over a break', '2026-11-02T10:30:00.000Z', 3600, '2026-11-02T12:30:00.000Z'],
    ['from before the opening', '2026-11-02T00:00:00.000Z', 60, '2026-11-02T08:01:00.000Z'],
    ['over closed days', '2026-11-03T16:59:00.500Z', 120, '2026-11-06T08:01:00.500Z'],
    ['over midnight', '2026-11-07T22:00:00.000Z', 2 * 3600, '2026-11-08T00:00:00.000Z'],
    ['over a holiday', '2026-12-22T16:30:00.000Z', 3600, '2026-12-26T19:30:00.000Z'],
    ['over the winter time', '2026-10-24T21:00:00.000Z', 2 * 3600, '2026-10-24T23:00:00.000Z'],
  ] as const
  for (const [name, start, seconds, expected] of table)
    it(name, () => assert.equal(addBusinessTime(start, seconds, office), expected))

  it('a skipped hour does not count, a repeated hour counts twice', () => {
    const early: ZonedHours = {
      timezone: 'Europe/Berlin',
      days: { sun: [['01:00', '04:00']], mon: [['09:00', '10:00']] },
    }
    assert.equal(
      addBusinessTime('2026-03-29T00:00:00.000Z', 3 * 3600, early),
      '2026-03-30T08:00:00.000Z',
      'two hours on Sunday, the third on Monday',
    )
    assert.equal(
      addBusinessTime('2026-10-24T22:00:00.000Z', 4 * 3600, early),
      '2026-10-25T03:00:00.000Z',
      'four hours on Sunday',
    )
  })

  it('terminates when there is one minute per week', () => {
    assert.equal(
      addBusinessTime('2026-01-01T00:00:00.000Z', 86_400 * 90, {
        timezone: 'UTC',
        days: { mon: [['09:00', '09:01']] },
      }),
      '2036-01-09T00:00:00.000Z',
    )
  })

  it('invalid business hours are rejected', () => {
    const day = (mon: unknown) => ({ days: { mon } })
    for (const hours of [
      {},
      { days: {} },
      day([]),
      day([['09:00', '09:00']]),
      day([['18:00', '09:00']]),
      day([['9:00', '18:00']]),
      day([['09:00', '24:01']]),
      day([['09:00']]),
      day([
        ['09:00', '12:00'],
        ['11:00', '13:00'],
      ]),
      { days: { monday: [['09:00', '18:00']] } },
      { ...day([['09:00', '18:00']]), timezone: 'Mars/Olympus' },
      { ...day([['09:00', '18:00']]), timezone: '+02:00' },
      { ...day([['09:00', '18:00']]), holidays: ['2026-02-30'] },
      { ...day([['09:00', '18:00']]), holiday: [] },
      day(Array.from({ length: 25 }, (_, n) => [timeOf(2 * n), timeOf(2 * n + 1)])),
      { ...day([['09:00', '18:00']]), holidays: Array.from({ length: 1001 }, () => '2028-02-29') },
    ])
      assert.equal(BusinessHours.safeParse(hours).success, false, JSON.stringify(hours))
    for (const hours of [
      day([['00:00', '24:00']]),
      day([
        ['12:00', '13:00'],
        ['09:00', '12:00'],
      ]),
      { ...day([['09:00', '18:00']]), timezone: 'Europe/Berlin', holidays: ['2028-02-29'] },
      day(Array.from({ length: 24 }, (_, n) => [timeOf(2 * n), timeOf(2 * n + 1)])),
    ]) {
      assert.equal(BusinessHours.safeParse(hours).success, true, JSON.stringify(hours))
    }
  })
})
