import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { catalog } from '../../catalog/index.ts'
import { readManifest } from '../../cli/manifest.ts'
import { useFakeServer } from './fake-server.ts'
import { parseTimePhrase } from '../../cli/time-phrase.ts'

const fake = useFakeServer()

const listed = (...rows: Record<string, unknown>[]) => ({ body: { data: rows, next_cursor: null } })
const mara = { id: '5', name: 'Mara Jensen', role: 'agent' }
const maria = { id: '6', name: 'Maria', role: 'admin' }

describe('CLI: names where ids are asked', () => {
  const search = ['conversations', 'search']

  it('a name becomes the id of the record that has it', async () => {
    fake.responses = [listed(mara), { body: { data: [], next_cursor: null } }]
    const { exit, stderr } = await fake.wcrm([...search, '--assignee', 'mara jensen '])
    assert.deepEqual([exit, stderr], [0, ''])
    assert.deepEqual(
      fake.requests.map(({ path, input }) => [path, input]),
      [
        ['/v1/ops/workspace_list_staff', { search: 'mara jensen', limit: 100 }],
        ['/v1/ops/inbox_search_conversations', { assigned_staff_id: '5' }],
      ],
    )
  })

  it('a whole name comes before the beginning of one, and the beginning must be that of one record', async () => {
    fake.responses = [listed({ ...mara, name: 'Maria Jensen' }, maria), listed()]
    await fake.wcrm([...search, '--assignee', 'MARIA'])
    assert.deepEqual(fake.requests[1]!.input, { assigned_staff_id: '6' })
    fake.responses = [listed(mara, { id: '7', name: 'Tamara' }), listed()]
    await fake.wcrm([...search, '--assignee', 'mar'])
    assert.deepEqual(fake.requests[3]!.input, { assigned_staff_id: '5' })
  })

  it('a name of several records exits 2 with the candidates', async () => {
    fake.responses = [listed(mara, maria)]
    const { exit, stdout, stderr } = await fake.wcrm([...search, '--assignee', 'mar', '--json'])
    assert.deepEqual([exit, stdout, fake.requests.length], [2, '', 1])
    assert.match((JSON.parse(stderr) as { detail: string }).detail, /5 Mara Jensen agent; 6 Maria admin/)
  })

  it('a name that nothing has exits 3', async () => {
    fake.responses = [listed()]
    const { exit, stderr } = await fake.wcrm(['conversations', 'assign', '77', '--team', 'Sales'])
    assert.deepEqual([exit, fake.requests.length], [3, 1])
    assert.match(stderr, /"Sales"[^]*wcrm teams list/)
  })

  it('digits, words that the server knows, and what --input holds are sent as they are', async () => {
    for (const words of [
      ['--assignee', '5'],
      ['--assignee', 'me'],
      ['--assigned-staff-id', 'none'],
    ])
      await fake.wcrm([...search, ...words])
    await fake.wcrm([...search, '--input', '{"assigned_staff_id":"mara"}'])
    assert.deepEqual(
      fake.requests.map(({ input }) => input['assigned_staff_id']),
      ['5', 'me', 'none', 'mara'],
    )
  })

  it('@me is the caller', async () => {
    fake.responses = [{ body: { staff: { id: '9' } } }, { body: { conversation: {} } }]
    await fake.wcrm(['conversations', 'assign', '77', '--staff', '@me'])
    assert.deepEqual(fake.requests[1]!.input, { conversation_id: '77', staff_id: '9' })
  })

  it('lists and arguments take names; a command that is confirmed takes whole ones alone', async () => {
    const vip = { id: '3', name: 'VIP' }
    fake.responses = [listed(vip), { body: {} }]
    await fake.wcrm(['contacts', 'upsert', '--phone', '+15550100042', '--group', 'vip', '--group-ids', '8'])
    assert.deepEqual(fake.requests[1]!.input['group_ids'], ['8', '3'])
    fake.responses = [listed(vip), { body: {} }]
    await fake.wcrm(['groups', 'delete', 'VIP', '--confirm', 'delete'])
    assert.deepEqual(fake.requests[3]!.input, { group_id: '3' })
    fake.responses = [listed(vip), { body: {} }]
    await fake.wcrm(['tags', 'rename', 'VIP', '--name', 'Gold'])
    assert.deepEqual(fake.requests[5]!.input, { tag_id: '3', name: 'Gold' })
    fake.responses = [listed(vip)]
    const { exit, stderr } = await fake.wcrm(['groups', 'delete', 'VI', '--confirm', 'delete'])
    assert.deepEqual([exit, fake.requests.length], [3, 7])
    assert.match(stderr, /whole name/)
  })

  it('each list that finds names has the fields that this reads', () => {
    const commands = readManifest().commands
    for (const { names, name } of catalog) {
      if (!names) continue
      const list = commands.find((c) => c.operation === name)!
      const rows = list.output.fields.map((field) => field.name)
      for (const field of ['id', ...names.by, ...(names.beside ? [names.beside] : [])])
        assert.ok(rows.includes(field), `${name}: ${field}`)
      assert.ok(
        list.fields.some((field) => field.name === (names.search ?? 'search')),
        name,
      )
      for (const field of Object.keys(names.fields))
        assert.ok(
          commands.some((c) => c.fields.some((f) => f.name === field && f.names)),
          `${name}: ${field}`,
        )
    }
  })
})

describe('CLI: phrases for times', () => {
  const clock = { 'Workspace-Time-Zone': 'Europe/Berlin', 'Workspace-Time': '2026-11-22T20:00:00.000Z' }

  it('become times in the zone of the workspace', async () => {
    fake.responses = [{ body: {}, headers: clock }, { body: { conversation: {}, changed: true } }]
    await fake.wcrm(['conversations', 'remind', '77', '--at', 'tomorrow 9:00'])
    assert.deepEqual(fake.requests[1]!.input, { conversation_id: '77', at: '2026-11-23T08:00:00.000Z' })
    fake.responses = [{ body: {}, headers: clock }, listed()]
    await fake.wcrm(['audit', 'list', '--from', '-2h', '--to', 'now'])
    assert.deepEqual(fake.requests[3]!.input, {
      from: '2026-11-22T18:00:00.000Z',
      to: '2026-11-22T20:00:00.000Z',
    })
    fake.responses = [{ body: {}, headers: clock }, { body: {} }]
    await fake.wcrm(['reports', 'summary', '--from', 'last monday', '--to', 'yesterday'])
    assert.deepEqual(fake.requests[5]!.input, { from: '2026-11-16', to: '2026-11-21' })
  })

  it('the command that repeats a change has the time, not the phrase', async () => {
    fake.responses = [
      { body: {}, headers: clock },
      { status: 504, body: '<html>' },
    ]
    for (const at of [['--at', '+1d'], ['--at=+1d']]) {
      const { exit, stderr } = await fake.wcrm(['conversations', 'remind', '77', ...at])
      assert.equal(exit, 8)
      assert.match(stderr, /wcrm conversations remind 77 --at[ =]2026-11-23T20:00:00\.000Z --idempotency-key/)
      fake.responses = [
        { body: {}, headers: clock },
        { status: 504, body: '<html>' },
      ]
    }
  })

  it('times with a zone are sent as they are, and other text exits 2', async () => {
    await fake.wcrm(['conversations', 'remind', '77', '--at', '2099-10-02T09:00:00+02:00'])
    assert.equal(fake.requests[0]!.input['at'], '2099-10-02T09:00:00+02:00')
    await fake.wcrm(['conversations', 'remind', '77', '--at', 'null'])
    assert.equal(fake.requests[1]!.input['at'], null)
    fake.responses = [{ body: {}, headers: clock }]
    const { exit, stderr } = await fake.wcrm(['conversations', 'remind', '77', '--at', 'soon'])
    assert.deepEqual([exit, fake.requests.length], [2, 3])
    assert.match(stderr, /--at is not a time: "soon"/)
  })

  for (const [words, message] of [
    [
      ['reports', 'summary', '--from', '2026-10-01T09:30:00Z'],
      /--from is not a day: "2026[^]*Fix: For example today, [^\n]*2026-11-30\.$/m,
    ],
    [['reports', 'summary', '--from', '-400000w'], /--from is too far away/],
    [['audit', 'list', '--from', '-999999d'], /--from is too far away/],
    [['conversations', 'remind', '77', '--at', '+999999w'], /--at is too far away/],
  ] as [string[], RegExp][]) {
    it(`${words.join(' ')} exits 2 with what to write instead`, async () => {
      fake.responses = [{ body: {}, headers: clock }]
      const { exit, stderr } = await fake.wcrm(words)
      assert.deepEqual([exit, fake.requests.length], [2, 1])
      assert.match(stderr, message)
    })
  }
})

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
