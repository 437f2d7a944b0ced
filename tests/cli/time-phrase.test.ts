import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseTimePhrase } from '../../cli/time-phrase.ts'

const BERLIN = 'Europe/Berlin'
/** A Sunday, 21:00 in Berlin. */
const now = Date.parse('2026-11-22T20:00:00Z')
const at = (phrase: string, zone = BERLIN, from = now): string | undefined => {
  const instant = parseTimePhrase(phrase, { now: from, zone })
  return instant === undefined ? undefined : new Date(instant).toISOString().replace('.000Z', 'Z')
}

describe('Phrases for times', () => {
  for (const [phrase, expected] of [
    ['now', '2026-11-22T20:00:00Z'],
    ['+1d', '2026-11-23T20:00:00Z'],
    ['-2h', '2026-11-22T18:00:00Z'],
    ['+1d12h', '2026-11-24T08:00:00Z'],
    ['-1w', '2026-11-15T20:00:00Z'],
    ['+90m', '2026-11-22T21:30:00Z'],
    ['today', '2026-11-21T23:00:00Z'],
    ['tomorrow 9:00', '2026-11-23T08:00:00Z'],
    ['Tomorrow at 9am', '2026-11-23T08:00:00Z'],
    ['yesterday 14:30', '2026-11-21T13:30:00Z'],
    ['monday 14:30', '2026-11-23T13:30:00Z'],
    ['mon 14:30', '2026-11-23T13:30:00Z'],
    ['sunday 22:00', '2026-11-22T21:00:00Z'],
    ['sunday 20:00', '2026-11-29T19:00:00Z'],
    ['last sunday', '2026-11-14T23:00:00Z'],
    ['last monday 9:00', '2026-11-16T08:00:00Z'],
    ['2026-11-30 9:00', '2026-11-30T08:00:00Z'],
    ['2026-11-30T09:00:15', '2026-11-30T08:00:15Z'],
    ['2026-11-30', '2026-11-29T23:00:00Z'],
    ['23:15', '2026-11-22T22:15:00Z'],
    ['12am', '2026-11-21T23:00:00Z'],
    ['12:30 pm', '2026-11-22T11:30:00Z'],
  ] as const)
    it(`${phrase} is ${expected}`, () => assert.equal(at(phrase), expected))

  for (const phrase of [
    '',
    'soon',
    '+1',
    '+1y',
    '9',
    '25:00',
    '13pm',
    '2026-02-30',
    'tomorrow 9',
    'monday monday',
  ])
    it(`"${phrase}" is no time`, () => assert.equal(at(phrase), undefined))

  it('a time that the clocks left out is as long after the change; of two, the first counts', () => {
    assert.equal(at('2027-03-28 2:30'), '2027-03-28T01:30:00Z')
    assert.equal(at('2026-10-25 2:30'), '2026-10-25T00:30:00Z')
    assert.equal(at('2026-10-04 2:15', 'Australia/Lord_Howe'), '2026-10-03T15:45:00Z')
  })

  it('a day later it is as late, across a change of the clocks; 24 hours later it is not', () => {
    const before = Date.parse('2026-10-24T10:00:00Z')
    assert.equal(at('+1d', BERLIN, before), '2026-10-25T11:00:00Z')
    assert.equal(at('+24h', BERLIN, before), '2026-10-25T10:00:00Z')
  })

  const { Temporal } = globalThis as { Temporal?: any }
  it('dates and days ahead agree with Temporal in every zone', { skip: !Temporal }, () => {
    const zones = [
      'UTC',
      BERLIN,
      'America/St_Johns',
      'Australia/Lord_Howe',
      'Africa/Casablanca',
      'Asia/Kathmandu',
    ]
    const instant = fc.date({ min: new Date('1975-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        instant,
        fc.integer({ min: -400, max: 400 }),
        (zone, date, days) => {
          const wall = date.toISOString().slice(0, 16)
          const expected = Temporal.PlainDateTime.from(wall).toZonedDateTime(zone).epochMilliseconds
          assert.equal(parseTimePhrase(wall.replace('T', ' '), { now, zone }), expected, wall)
          const start = Math.floor(date.getTime() / 1000) * 1000
          const ahead = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(zone).add({ days })
          const phrase = `${days < 0 ? '-' : '+'}${Math.abs(days)}d`
          // Of a time that clocks show twice, Temporal keeps the second where it began there.
          const found = parseTimePhrase(phrase, { now: start, zone })!
          if (days !== 0)
            assert.ok(
              found === ahead.epochMilliseconds ||
                Temporal.Instant.fromEpochMilliseconds(found)
                  .toZonedDateTimeISO(zone)
                  .toPlainDateTime()
                  .equals(ahead.toPlainDateTime()),
              phrase,
            )
        },
      ),
      { numRuns: 300 },
    )
  })
})
