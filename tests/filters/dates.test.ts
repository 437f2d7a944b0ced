import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { doAs, everyPage, plantContact } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { GRAMMAR_NOW, setUp } from './grammar-fixtures.ts'
import { SEEDED_NOW } from './sample-values.ts'

let now = GRAMMAR_NOW

everyDatabase(
  'Filter dates',
  (server) => {
    /** Asserts the instants that dates mean in a time zone at a time. */
    const assertMeanings = async (timezone: string, time: string, dates: Record<string, string>) => {
      now = time
      const { check } = await setUp(server(), timezone)
      for (const [date, expected] of Object.entries(dates)) {
        const { status, body, text } = await check({ createdAt: { gte: date } })
        assert.equal(status, 200, `${date}: ${text}`)
        assert.equal(body.filter.createdAt.gte, expected, `${date} in ${timezone} at ${time}`)
        const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(date) && date.length > 10
        assert.deepEqual(
          body.resolved_dates,
          hasZone ? [] : [{ path: '#/filter/createdAt/gte', input: date, value: expected }],
        )
      }
    }

    it("resolve every relative and absolute form, in the workspace's time zone", async () => {
      await assertMeanings('UTC', '2026-10-01T09:30:00.000Z', {
        now: '2026-10-01T09:30:00.000Z',
        today: '2026-10-01T00:00:00.000Z',
        yesterday: '2026-09-30T00:00:00.000Z',
        '-7d': '2026-09-24T09:30:00.000Z',
        '+3d': '2026-10-04T09:30:00.000Z',
        '-90m': '2026-10-01T08:00:00.000Z',
        '-25h': '2026-09-30T08:30:00.000Z',
        '+2w': '2026-10-15T09:30:00.000Z',
        '-1mo': '2026-09-01T09:30:00.000Z',
        '-1y': '2025-10-01T09:30:00.000Z',
        '-0d': '2026-10-01T09:30:00.000Z',
        start_of_day: '2026-10-01T00:00:00.000Z',
        end_of_day: '2026-10-01T23:59:59.999Z',
        start_of_week: '2026-09-28T00:00:00.000Z',
        end_of_week: '2026-10-04T23:59:59.999Z',
        start_of_month: '2026-10-01T00:00:00.000Z',
        end_of_month: '2026-10-31T23:59:59.999Z',
        start_of_quarter: '2026-10-01T00:00:00.000Z',
        end_of_quarter: '2026-12-31T23:59:59.999Z',
        start_of_year: '2026-01-01T00:00:00.000Z',
        end_of_year: '2026-12-31T23:59:59.999Z',
        '2026-10-01T09:30:00Z': '2026-10-01T09:30:00.000Z',
        '2026-10-01T09:30+02:00': '2026-10-01T07:30:00.000Z',
        '2026-10-01 09:30:15.1239-0530': '2026-10-01T15:00:15.123Z',
        '2026-10-01': '2026-10-01T00:00:00.000Z',
        '2026-10-01T09:30': '2026-10-01T09:30:00.000Z',
        '0001-01-01': '0001-01-01T00:00:00.000Z',
        '9999-12-31T23:59:59.999Z': '9999-12-31T23:59:59.999Z',
      })
      await assertMeanings('Asia/Kathmandu', '2026-09-30T18:30:00.000Z', {
        today: '2026-09-30T18:15:00.000Z',
        start_of_month: '2026-09-30T18:15:00.000Z',
        end_of_day: '2026-10-01T18:14:59.999Z',
        '2026-10-01T12:00': '2026-10-01T06:15:00.000Z',
        '-1d': '2026-09-29T18:30:00.000Z',
      })
    })

    it('clamp month arithmetic to the last day and follow the local calendar', async () => {
      await assertMeanings('UTC', '2028-03-31T12:00:00.000Z', {
        '-1mo': '2028-02-29T12:00:00.000Z',
        '+1mo': '2028-04-30T12:00:00.000Z',
        '-13mo': '2027-02-28T12:00:00.000Z',
        start_of_quarter: '2028-01-01T00:00:00.000Z',
      })
      await assertMeanings('UTC', '2028-02-29T12:00:00.000Z', {
        '-1y': '2027-02-28T12:00:00.000Z',
        end_of_month: '2028-02-29T23:59:59.999Z',
      })
      await assertMeanings('Pacific/Auckland', '2026-12-31T12:00:00.000Z', {
        start_of_year: '2026-12-31T11:00:00.000Z',
        yesterday: '2026-12-30T11:00:00.000Z',
      })
    })

    it('handle daylight saving transitions', async () => {
      // In Berlin 02:00 to 03:00 is skipped on 29 March 2026, and occurs twice on 25 October.
      await assertMeanings('Europe/Berlin', '2026-03-30T00:30:00.000Z', {
        '2026-03-29T02:30': '2026-03-29T01:30:00.000Z',
        '2026-03-29': '2026-03-28T23:00:00.000Z',
        '2026-03-30': '2026-03-29T22:00:00.000Z',
        '-1d': '2026-03-29T01:30:00.000Z',
        '-24h': '2026-03-29T00:30:00.000Z',
        start_of_week: '2026-03-29T22:00:00.000Z',
        yesterday: '2026-03-28T23:00:00.000Z',
      })
      await assertMeanings('Europe/Berlin', '2026-10-25T12:00:00.000Z', {
        '2026-10-25T02:30': '2026-10-25T00:30:00.000Z',
        start_of_day: '2026-10-24T22:00:00.000Z',
        end_of_day: '2026-10-25T22:59:59.999Z',
        '-1d': '2026-10-24T11:00:00.000Z',
        '-24h': '2026-10-24T12:00:00.000Z',
      })
      // The shift is half an hour at Lord Howe; in Santiago the skipped hour is the first hour of the day.
      await assertMeanings('Australia/Lord_Howe', '2026-10-04T12:00:00.000Z', {
        '2026-10-04T02:15': '2026-10-03T15:45:00.000Z',
        '-1d': '2026-10-03T12:30:00.000Z',
      })
      await assertMeanings('America/Santiago', '2026-09-06T12:00:00.000Z', {
        today: '2026-09-06T04:00:00.000Z',
        start_of_day: '2026-09-06T04:00:00.000Z',
        '2026-09-06': '2026-09-06T04:00:00.000Z',
      })
    })

    it("resolve to days of the workspace's calendar for date fields", async () => {
      now = '2026-10-01T22:30:00.000Z'
      const { check, call } = await setUp(server(), 'Europe/Berlin')
      await call('crm_create_custom_field', { key: 'due', type: 'date' })
      await call('crm_create_custom_field', { key: 'met', type: 'datetime' })
      const onDate = (key: string, date: string) => ({
        attributes: { some: { attributeName: { eq: key }, dateValue: { lte: date } } },
      })
      for (const [date, day] of Object.entries({
        today: '2026-10-02',
        '-1d': '2026-10-01',
        '2026-10-05': '2026-10-05',
        '2026-10-05T23:30:00Z': '2026-10-06',
        end_of_month: '2026-10-31',
      })) {
        const { body } = await check(onDate('due', date))
        assert.deepEqual(body.filter, onDate('due', day))
        assert.deepEqual((await check(body.filter)).body.warnings, [])
      }
      assert.deepEqual((await check(onDate('due', '2026-10-05'))).body.resolved_dates, [])
      assert.deepEqual(
        (await check(onDate('met', '2026-10-05'))).body.filter,
        onDate('met', '2026-10-04T22:00:00.000Z'),
      )
    })

    it('are stored resolved, so that a saved filter keeps its meaning', async () => {
      now = '2026-10-01T09:30:00.000Z'
      const { run, check } = await setUp(server(), 'Asia/Kolkata')
      const { saved_filter: saved, resolved_dates: resolved } = await run('crm_create_saved_filter', {
        name: 'New',
        filter: { createdAt: { between: ['-7d', 'end_of_day'] } },
      })
      assert.deepEqual(saved.filter, {
        createdAt: { between: ['2026-09-24T09:30:00.000Z', '2026-10-01T18:29:59.999Z'] },
      })
      assert.deepEqual(
        resolved.map((r: { path: string }) => r.path),
        ['#/filter/createdAt/between/0', '#/filter/createdAt/between/1'],
      )
      now = '2027-01-01T00:00:00.000Z'
      const { body } = await check(saved.filter)
      assert.deepEqual([body.filter, body.resolved_dates], [saved.filter, []])
    })
  },
  { now: () => now },
)

describe('Relative dates of a search', () => {
  let clock = Date.parse(SEEDED_NOW)
  everyDatabase(
    'relative to its first page',
    (server) => {
      it('later pages keep the instant of the first page, however late they are requested', async () => {
        const workspace = await makeWorkspace(server())
        const run = doAs(server(), workspace.owner.key)
        const contactIds: string[] = []
        for (let n = 0; n < 12; n++) {
          const at = new Date(clock - n * 600_000).toISOString()
          contactIds.push(
            await plantContact(
              server().db,
              workspace.id,
              {
                phone: `155501${String(n).padStart(5, '0')}`,
                name: `Person ${n}`,
                email: null,
                attrs: {},
                tagIds: [],
                groupIds: [],
              },
              at,
            ),
          )
        }
        const filter = { createdAt: { gte: '-1h', lte: 'now' } }
        const pages = await everyPage(run, 'crm_search_contacts', { filter }, [2], async () => {
          clock += 1_800_000
        })
        assert.deepEqual(
          pages.flatMap((page) => page.data.map((contact) => contact.id)),
          contactIds.slice(0, 7),
        )
      })
    },
    { now: () => new Date(clock).toISOString() },
  )
})
