import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { addBusinessTime, BusinessHours, weekdays } from '../../server/inbox/hours.ts'
import { toSla } from '../../server/inbox/sla.ts'
import { createChannel } from '../../storage/admin.ts'
import { insertSlaPolicy, deleteSlaPolicy, type SlaPolicyFields, updateSlaPolicy } from '../../storage/sla.ts'
import { doAs } from '../calls.ts'
import { customerWrites, plantConversation, staffReplies } from './conversations.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const MINUTE = 60_000
type Zoned = BusinessHours & { timezone: string }

/**
 * The same by walking: each minute counts whose beginning the clock on the wall shows within a span.
 * Undefined when that takes too long.
 */
const walk = (start: string, seconds: number, hours: Zoned, most: number): string | undefined => {
  let left = seconds
  for (let at = Date.parse(start), n = 0; n < most; at += MINUTE, n++) {
    const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(hours.timezone)
    const time = local.toPlainTime().toString({ smallestUnit: 'minute' })
    const spans = hours.holidays?.includes(local.toPlainDate().toString())
      ? []
      : (hours.days[weekdays[local.dayOfWeek - 1]!] ?? [])
    if (!spans.some(([from, to]) => time >= from && time < to)) continue
    if (left <= 60) return new Date(at + left * 1000).toISOString()
    left -= 60
  }
  return undefined
}

const timeOf = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

/** Spans that do not overlap: the times of a sorted list in pairs. */
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
 * Zones with the moment of a change of their clocks: by an hour, by half an hour, one minute past midnight,
 * at midnight, over a whole day, out of Ramadan.
 */
const changes = [
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
] as const

const cases = fc.record({
  change: fc.constantFrom(...changes),
  before: fc.integer({ min: -2 * 1440, max: 2 * 1440 }),
  seconds: fc.integer({ min: 1, max: 20 * 3600 }),
  days: fc.tuple(day, day, day, day, day, day, day),
  holiday: fc.integer({ min: -2, max: 3 }),
})

describe('Business time', () => {
  it('is what a clock on the wall shows, minute by minute, whatever the clocks do', () => {
    let compared = 0
    fc.assert(
      fc.property(cases, ({ change: [timezone, moment], before, seconds, days, holiday }) => {
        const start = new Date(Date.parse(moment) - before * MINUTE).toISOString()
        const holidays = [new Date(Date.parse(moment) + holiday * 86_400_000).toISOString().slice(0, 10)]
        const hours: Zoned = {
          timezone,
          days: Object.fromEntries(weekdays.map((name, n) => [name, days[n]!])),
          holidays,
        }
        const expected = walk(start, seconds, hours, 5 * 1440)
        if (expected === undefined) return
        compared++
        assert.equal(addBusinessTime(start, seconds, hours), expected)
      }),
      { numRuns: 300 },
    )
    assert.ok(compared > 100, `${compared} compared`)
  })

  const office: Zoned = {
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

  it('an hour that is skipped does not count, one that is repeated counts twice', () => {
    const early: Zoned = {
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

  it('ends, however seldom there is some', () => {
    assert.equal(
      addBusinessTime('2026-01-01T00:00:00.000Z', 86_400 * 90, {
        timezone: 'UTC',
        days: { mon: [['09:00', '09:01']] },
      }),
      '2036-01-09T00:00:00.000Z',
    )
  })

  it('hours are refused that mean nothing', () => {
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
    ])
      assert.equal(BusinessHours.safeParse(hours).success, false, JSON.stringify(hours))
    for (const hours of [
      day([['00:00', '24:00']]),
      day([
        ['12:00', '13:00'],
        ['09:00', '12:00'],
      ]),
      { ...day([['09:00', '18:00']]), timezone: 'Europe/Berlin', holidays: ['2028-02-29'] },
    ]) {
      assert.equal(BusinessHours.safeParse(hours).success, true, JSON.stringify(hours))
    }
  })
})

describe('A service level is shown', () => {
  const none = {
    sla_policy_name: 'Standard',
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
    sla_breached: false,
  }
  const now = '2026-11-02T10:00:00.000Z'
  it('as what its clocks say', () => {
    assert.equal(toSla({ ...none, sla_policy_name: null, resolution_due_at: now }, now), null)
    assert.deepEqual(toSla(none, now), {
      status: 'met',
      next_due_at: null,
      next_due_metric: null,
      policy: 'Standard',
    })
    assert.deepEqual(toSla({ ...none, sla_breached: true }, now)!.status, 'breached')
    const first = { ...none, first_response_due_at: now, resolution_due_at: '2026-11-02T18:00:00.000Z' }
    assert.deepEqual(toSla(first, now), {
      status: 'running',
      next_due_at: now,
      next_due_metric: 'first_response',
      policy: 'Standard',
    })
    assert.deepEqual(toSla(first, '2026-11-02T10:00:00.001Z')!.status, 'breached')
    assert.deepEqual(
      toSla({ ...first, first_response_due_at: null, next_response_due_at: '2026-11-02T19:00:00.000Z' }, now)!
        .next_due_metric,
      'resolution',
    )
  })
})

let time = '2026-11-02T10:00:00.000Z'
const day1 = (clock: string): string => `2026-11-02T${clock}.000Z`

everyDatabase(
  'Service levels',
  (server) => {
    const start = async (policy: Partial<SlaPolicyFields> = {}, timezone = 'UTC') => {
      time = day1('10:00:00')
      const workspace = await makeWorkspace(server(), { timezone })
      const run = doAs(server(), workspace.owner.key)
      const add = (fields: Partial<SlaPolicyFields>) =>
        insertSlaPolicy(
          server().db,
          workspace.id,
          {
            name: 'Standard',
            enabled: true,
            channel_ids: null,
            first_response_seconds: 1800,
            next_response_seconds: 600,
            resolution_seconds: 8 * 3600,
            hours: null,
            ...fields,
          },
          time,
        )
      const first = await add(policy)
      /** What the conversation shows at this time. */
      const sla = async (id: string, at: string) => {
        time = at
        const { sla: shown } = await run('inbox_get_conversation', { conversation_id: id })
        return shown && [shown.status, shown.next_due_metric, shown.next_due_at, shown.policy]
      }
      const act = async (op: string, id: string, at: string) => {
        time = at
        await run(op, { conversation_id: id })
      }
      return { workspace, add, policy: first, sla, act }
    }

    it('the first response, each next one and the end are waited for', async () => {
      const { workspace, sla, act } = await start()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      assert.deepEqual(await sla(id, day1('10:00:00')), [
        'running',
        'first_response',
        day1('10:30:00'),
        'Standard',
      ])
      await customerWrites(server(), workspace.id, id, { at: day1('10:05:00') })
      assert.deepEqual(
        await sla(id, day1('10:30:00')),
        ['running', 'first_response', day1('10:30:00'), 'Standard'],
        'a second message moves nothing',
      )
      await staffReplies(server(), workspace.id, id, { at: day1('10:30:00') })
      assert.deepEqual(await sla(id, day1('10:31:00')), [
        'running',
        'resolution',
        day1('18:00:00'),
        'Standard',
      ])
      await customerWrites(server(), workspace.id, id, { at: day1('11:00:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('11:09:00') })
      assert.deepEqual(await sla(id, day1('11:09:30')), [
        'running',
        'next_response',
        day1('11:10:00'),
        'Standard',
      ])
      await staffReplies(server(), workspace.id, id, { at: day1('11:10:00') })
      await act('inbox_close_conversation', id, day1('18:00:00'))
      assert.deepEqual(await sla(id, day1('23:00:00')), ['met', null, null, 'Standard'])
    })

    it('late once is late for the episode', async () => {
      const { workspace, sla, act } = await start()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      assert.deepEqual(await sla(id, day1('10:30:01')), [
        'breached',
        'first_response',
        day1('10:30:00'),
        'Standard',
      ])
      await staffReplies(server(), workspace.id, id, { at: day1('10:31:00') })
      assert.deepEqual(await sla(id, day1('10:32:00')), [
        'breached',
        'resolution',
        day1('18:00:00'),
        'Standard',
      ])
      await act('inbox_close_conversation', id, day1('11:00:00'))
      assert.deepEqual(await sla(id, day1('11:01:00')), ['breached', null, null, 'Standard'])
      await customerWrites(server(), workspace.id, id, { at: day1('12:00:00') })
      assert.deepEqual(
        await sla(id, day1('12:01:00')),
        ['running', 'first_response', day1('12:30:00'), 'Standard'],
        'a new episode begins anew',
      )
    })

    for (const [name, closes, status] of [
      ['in time', '18:00:00', 'met'],
      ['too late', '18:00:01', 'breached'],
    ] as const) {
      it(`closed ${name}`, async () => {
        const { workspace, sla, act } = await start()
        const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
        await staffReplies(server(), workspace.id, id, { at: day1('10:01:00') })
        await act('inbox_close_conversation', id, day1(closes))
        assert.deepEqual(await sla(id, day1('20:00:00')), [status, null, null, 'Standard'])
      })
    }

    it('opened again by staff, the end is waited for anew, and the answer where there was none', async () => {
      const { workspace, sla, act } = await start()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      await act('inbox_close_conversation', id, day1('10:10:00'))
      await act('inbox_reopen_conversation', id, day1('12:00:00'))
      assert.deepEqual(await sla(id, day1('12:00:00')), [
        'running',
        'next_response',
        day1('12:10:00'),
        'Standard',
      ])
      await staffReplies(server(), workspace.id, id, { at: day1('12:05:00') })
      assert.deepEqual(await sla(id, day1('12:06:00')), [
        'running',
        'resolution',
        day1('20:00:00'),
        'Standard',
      ])
    })

    it('what staff opened owes no first response', async () => {
      const { workspace, sla } = await start()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: null })
      assert.deepEqual(await sla(id, day1('10:00:00')), [
        'running',
        'resolution',
        day1('18:00:00'),
        'Standard',
      ])
      await staffReplies(server(), workspace.id, id, { at: day1('10:00:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('11:00:00') })
      assert.deepEqual(await sla(id, day1('11:00:00')), [
        'running',
        'next_response',
        day1('11:10:00'),
        'Standard',
      ])
    })

    it('a reply that a message overtook answers what came before', async () => {
      const { workspace, sla } = await start()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('10:20:01') })
      await staffReplies(server(), workspace.id, id, { at: day1('10:20:00') })
      assert.deepEqual(await sla(id, day1('10:20:02')), [
        'running',
        'next_response',
        day1('10:30:00'),
        'Standard',
      ])
    })

    it('the policy for the fewest channels applies, and none that is disabled', async () => {
      const { workspace, add, sla } = await start({ name: 'All' })
      const channel = async (n: number) =>
        (
          await createChannel(
            server().db,
            workspace.id,
            { type: 'custom', name: `Line ${n}`, identifier: `line-${n}`, status: 'connected' },
            time,
          )
        ).id
      const [one, two, three] = [await channel(1), await channel(2), await channel(3)]
      await add({ name: 'Two', channel_ids: [one, two] })
      await add({ name: 'One', channel_ids: [one], resolution_seconds: null, first_response_seconds: 60 })
      await add({ name: 'Later', channel_ids: [one] })
      await add({ name: 'Off', channel_ids: [two], enabled: false })
      const names = []
      for (const channelId of [one, two, three])
        names.push(
          await sla(
            (await plantConversation(server(), workspace.id, { channelId, inboundAt: time })).id,
            time,
          ),
        )
      assert.deepEqual(names, [
        ['running', 'first_response', day1('10:01:00'), 'One'],
        ['running', 'first_response', day1('10:30:00'), 'Two'],
        ['running', 'first_response', day1('10:30:00'), 'All'],
      ])
    })

    it("clocks run in business hours, in the workspace's time zone unless the policy has its own", async () => {
      const days = { mon: [['09:00', '11:15']], tue: [['09:00', '17:00']] }
      const { workspace, add, sla } = await start({ name: 'Berlin', hours: { days } }, 'Europe/Berlin')
      const own = (
        await createChannel(
          server().db,
          workspace.id,
          { type: 'custom', name: 'Own', identifier: 'own', status: 'connected' },
          time,
        )
      ).id
      await add({ name: 'New York', channel_ids: [own], hours: { days, timezone: 'America/New_York' } })
      const berlin = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      assert.deepEqual(await sla(berlin.id, day1('10:00:00')), [
        'running',
        'first_response',
        '2026-11-03T08:15:00.000Z',
        'Berlin',
      ])
      const york = await plantConversation(server(), workspace.id, {
        channelId: own,
        inboundAt: day1('10:00:00'),
      })
      assert.deepEqual(await sla(york.id, day1('10:00:00')), [
        'running',
        'first_response',
        day1('14:30:00'),
        'New York',
      ])
    })

    it('a policy without a target, taken out of use or deleted starts no clock', async () => {
      const { workspace, policy, sla } = await start({
        resolution_seconds: null,
        next_response_seconds: null,
      })
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: day1('10:00:00') })
      await staffReplies(server(), workspace.id, id, { at: day1('10:01:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('10:02:00') })
      assert.deepEqual(await sla(id, day1('10:03:00')), ['met', null, null, 'Standard'])
      await updateSlaPolicy(server().db, workspace.id, policy.id, { enabled: false, next_response_seconds: 60 })
      await staffReplies(server(), workspace.id, id, { at: day1('10:04:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('10:05:00') })
      assert.deepEqual(await sla(id, day1('10:06:00')), ['met', null, null, 'Standard'])
      assert.equal(
        await sla((await plantConversation(server(), workspace.id, { inboundAt: time })).id, time),
        null,
      )
      assert.equal(await deleteSlaPolicy(server().db, workspace.id, policy.id), true)
      assert.equal(await sla(id, day1('10:07:00')), null)
      await staffReplies(server(), workspace.id, id, { at: day1('10:08:00') })
      await customerWrites(server(), workspace.id, id, { at: day1('10:09:00') })
      assert.equal(await sla(id, day1('10:10:00')), null)
    })
  },
  { now: () => time },
)
