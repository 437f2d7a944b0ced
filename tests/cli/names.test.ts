import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { readManifest } from '../../cli/manifest.ts'
import { useFakeServer } from './fake-server.ts'

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
