import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { duplicateSteps } from '../../server/domains/contacts/duplicates.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Scene } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'

type Row = {
  contact_id: string
  other_contact_id: string
  contact: { name: string | null; phone: string | null }
  reasons: { kind: string; value: string; channel_ids?: string[] }[]
}

const toLine = ({ contact_id: id, other_contact_id: other, reasons }: Row) => [
  id,
  other,
  ...reasons.map(({ kind, value }) => `${kind} ${value}`),
]

/** Reads all pages. */
const listAll = async (call: Scene['call'], limit: number): Promise<Row[]> => {
  const rows: Row[] = []
  let cursor: string | null = null
  do {
    const { body, status, text } = await call('crm_find_duplicates', { limit, ...(cursor ? { cursor } : {}) })
    assert.equal(status, 200, text)
    assert.ok(body.data.length <= limit)
    rows.push(...body.data)
    cursor = body.next_cursor
  } while (cursor !== null)
  return rows
}

const makeTwins = async ({ server, workspace }: Pick<Scene, 'server' | 'workspace'>) => {
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', { key: 'mobile', label: 'Mobile', type: 'phone' })
  const secret = { key: 'secret_mail', label: 'Secret', type: 'email', visibility: 'manager_only' }
  await run('crm_create_custom_field', secret)
  let n = 0
  const make = async (input: Record<string, unknown>): Promise<string> =>
    (await run('crm_upsert_contact', { phone: `+1555010${4000 + n++}`, ...input })).contact.id
  const setUserId = (ids: readonly string[], userId: string) =>
    sql`update contacts set chatapp_user_id = ${userId}
      where workspace_id = ${workspace.id} and id = any(${ids}::bigint[])`.execute(server.db)
  const write = (contactId: string, channelId?: string) =>
    plantConversation(server, workspace.id, { contactId, ...(channelId ? { channelId } : {}) })
  return { run, make, setUserId, write }
}

everyDoor('Contacts that may be one person', (test) => {
  test('are listed in pairs, the strongest reason first, which a merge takes', async (scene) => {
    const { call } = scene
    const { make, setUserId, write } = await makeTwins(scene)
    const zoe = await make({ name: 'ZOË  Ray' })
    const zoe2 = await make({ name: 'zoë  ray', attributes: { mobile: '+1 555 020 0001' } })
    for (const id of [zoe, zoe2]) await write(id)
    await make({ name: 'Zoë  Ray' }) // Wrote on no channel.
    const ada = await make({ email: 'Ada@Example.com', name: 'Ada' })
    const ada2 = await make({ email: 'ada@example.COM', name: 'Ada L.' })
    const ada3 = await make({ attributes: { email: 'ADA@example.com' } })
    const mail = await make({ attributes: { secret_mail: 'eve@example.com' } })
    const mail2 = await make({ attributes: { secret_mail: 'eve@example.com' } })
    // The same line in the two spellings of Mexico.
    const mexican = await make({ phone: '+52 55 1234 5678' })
    const mexican2 = await make({ attributes: { mobile: '+52 1 55 1234 5678' } })
    const mobile = await make({ attributes: { mobile: '+1 555 020 0002' } })
    const mobile2 = await make({ attributes: { mobile: '+1 555 020 0002' } })
    const crossed = await make({ phone: '+1 555 020 0101', attributes: { mobile: '+1 555 020 0102' } })
    const crossed2 = await make({ phone: '+1 555 020 0102', attributes: { mobile: '+1 555 020 0101' } })
    const [known, known2] = [await make({}), await make({ email: 'bea@example.com' })]
    const known3 = await make({ email: 'bea@example.com' })
    await setUserId([known, known2, known3], 'US.1')
    // A contact with its own number in a field is no other.
    await make({ phone: '+1 555 020 0009', attributes: { mobile: '+1 555 020 0009' } })
    const rows = await listAll(call, 100)
    const expected = [
      [known, known2, 'user_id US.1'],
      [known, known3, 'user_id US.1'],
      [mobile, mobile2, 'phone 15550200002'],
      [crossed, crossed2, 'phone 15550200102'],
      [mexican, mexican2, 'phone'],
      [ada, ada2, 'email Ada@Example.com'],
      [ada, ada3, 'email Ada@Example.com'],
      [mail, mail2, 'email eve@example.com'],
      [zoe, zoe2, 'name ZOË  Ray'],
    ]
    assert.deepEqual(
      rows.map(toLine).map((line) => [...line.slice(0, 2), line[2]!.replace(/ 52\d+$/, '')]),
      expected,
    )
    assert.equal(rows.at(-1)!.reasons[0]!.channel_ids!.length, 1)
    assert.deepEqual([rows[2]!.contact.name, rows[5]!.contact.name], [null, 'Ada'])
    for (const limit of [1, 3]) assert.deepEqual(await listAll(call, limit), rows, `pages of ${limit}`)
    const pair = { contact_id: rows[0]!.contact_id, other_contact_id: rows[0]!.other_contact_id }
    const rehearsed = await call('crm_merge_contacts', { ...pair, dry_run: true })
    assert.equal(rehearsed.status, 200, rehearsed.text)
  })

  test('what somebody may not see makes no pair, and is no reason of one', async (scene) => {
    const { server, workspace, as } = scene
    const { make, setUserId, write } = await makeTwins(scene)
    const hidden = await createChannel(
      server.db,
      workspace.id,
      { type: 'web', name: 'Hidden', status: 'connected' },
      server.app.now(),
    )
    const secret = { secret_mail: 'eve@example.com' }
    await make({ attributes: secret })
    await make({ attributes: secret })
    const both = await make({
      email: 'ada@example.com',
      attributes: { ...secret, mobile: '+1 555 020 0001' },
    })
    const both2 = await make({ phone: '+1 555 020 0001', email: 'ada@example.com' })
    await make({ phone: '+1 555 020 0003' })
    await make({ attributes: { mobile: '+1 555 020 0003' } })
    const [name, name2] = [await make({ name: 'Zoë' }), await make({ name: 'zoë' })]
    const [numbered, numbered2] = [
      await make({ name: 'Call 15550200077' }),
      await make({ name: 'call 15550200077' }),
    ]
    for (const id of [name, name2]) await write(id, hidden.id)
    for (const id of [numbered, numbered2]) await write(id)
    const [known, known2] = [await make({}), await make({})]
    await setUserId([known, known2], '15550200088')
    const see = async (fields: Parameters<typeof workspace.staff>[0]) =>
      (await listAll(as((await workspace.staff(fields)).key), 100)).map(toLine)
    const userId = [known, known2, 'user_id 15550200088']
    const number = [numbered, numbered2, 'name Call 15550200077']
    const zoe = [name, name2, 'name Zoë']
    const all = await see({ role: 'admin' })
    assert.equal(all.length, 7)
    assert.deepEqual(
      all.find(([id]) => id === both),
      [both, both2, 'phone 15550200001', 'email ada@example.com'],
    )
    const agent = await see({ role: 'agent' })
    assert.ok(!JSON.stringify(agent).includes('eve@example.com'))
    assert.equal(agent.length, 5)
    const blind = await see({ role: 'agent', hide_phone_numbers: true })
    assert.deepEqual(blind, [[both, both2, 'email ada@example.com'], zoe])
    const { data } = await doAs(server, workspace.owner.key)('workspace_channels', {})
    const main = data.find((one: { id: string }) => one.id !== hidden.id).id
    const limited = await see({ role: 'agent', channel_ids: [main] })
    assert.ok(!limited.some(([id]) => id === name))
    assert.deepEqual([limited[0], limited.at(-1)], [userId, number])
  })

  test('values that very many have are ignored', async (scene) => {
    const { make } = await makeTwins(scene)
    const ids: string[] = []
    for (let n = 0; n < 20; n++) ids.push(await make({ email: 'info@example.com' }))
    const rows = await listAll(scene.call, 100)
    assert.deepEqual(
      rows.map((row) => [row.contact_id, row.other_contact_id]),
      ids.slice(1).map((id) => [ids[0], id]),
    )
    await make({ email: 'info@example.com' })
    assert.deepEqual(await listAll(scene.call, 100), [])
  })
})

const few = (...values: string[]) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 })
/** The contacts have the phones 15550300000 to 15550300011. */
const person = fc.record({
  userId: few('US.1', 'US.2', 'US.3', 'US.4', 'US.5', 'US.6'),
  mobile: few('15550200001', '15550200002', '15550300000', '15550300001', '15550300002', '15550300003'),
  email: few('a@example.com', 'b@example.com', 'c@example.com', 'd@example.com', 'e@example.com'),
  name: few('Ada', 'Bea', 'Cleo', 'Dora', 'Eve', 'Fay'),
})
type Person = {
  id: string
  phone: string
  userId: string | undefined
  mobile: string | undefined
  email: string | undefined
  name: string | undefined
}

/** The values of each kind by which two are found, as the older one and the other have them. */
const sharedValues: Readonly<Record<string, (a: Person, b: Person) => string | undefined>> = {
  user_id: (a, b) => (a.userId === b.userId ? a.userId : undefined),
  phone: (a, b) =>
    a.mobile !== undefined && (a.mobile === b.mobile || a.mobile === b.phone)
      ? a.mobile
      : b.mobile === a.phone
        ? b.mobile
        : undefined,
  email: (a, b) => (a.email === b.email ? a.email : undefined),
  name: (a, b) => (a.name === b.name ? a.name : undefined),
}

/** By comparing all: each contact with the oldest that has a value of it, unless something stronger finds both. */
const listExpected = (people: readonly Person[]): string[] => {
  const kinds = Object.entries(sharedValues)
  return kinds.flatMap(([kind, shared], rank) =>
    people.flatMap((other, n) => {
      const older = people.slice(0, n)
      const values = new Set(older.flatMap((one) => shared(one, other) ?? []))
      const firsts = new Set(
        Array.from(values, (value) => older.find((one) => shared(one, other) === value)!),
      )
      return [...firsts]
        .filter((first) => !kinds.slice(0, rank).some(([, stronger]) => stronger(first, other) !== undefined))
        .map((first) => `${kind} ${first.id} ${other.id}`)
    }),
  )
}

everyDatabase(
  'Pages of contacts that may be one person',
  (server) => {
    it('have each pair once, at its strongest reason, however little is read at a time', async () => {
      const { rows, keys, perPage } = duplicateSteps
      let counted = 0
      try {
        await fc.assert(
          fc.asyncProperty(
            fc.array(person, { minLength: 4, maxLength: 12 }),
            fc.integer({ min: 2, max: 5 }),
            fc.integer({ min: 1, max: 3 }),
            async (people, step, limit) => {
              const read = { user_id: step, phone: step, email: step, name: step }
              Object.assign(duplicateSteps, { rows: read, keys: step, perPage: 1 })
              const workspace = await makeWorkspace(server())
              const scene = { server: server(), workspace }
              const { run, make, setUserId, write } = await makeTwins(scene)
              const made: Person[] = []
              for (const [n, { userId, mobile, email, name }] of people.entries()) {
                const phone = String(15550300000 + n)
                const attributes = mobile ? { attributes: { mobile } } : {}
                const id = await make({
                  phone: `+${phone}`,
                  email: email ?? '',
                  ...(name ? { name } : {}),
                  ...attributes,
                })
                if (userId) await setUserId([id], userId)
                await write(id)
                made.push({ id, phone, userId, mobile, email, name })
              }
              const call = async (name: string, input: object) => ({
                status: 200,
                body: await run(name, input as Record<string, unknown>),
                text: '',
              })
              const found = await listAll(call as unknown as Scene['call'], limit)
              const lines = found.map(
                (row) => `${row.reasons[0]!.kind} ${row.contact_id} ${row.other_contact_id}`,
              )
              const kinds = lines.map((line) => line.split(' ')[0]!)
              const order = ['user_id', 'phone', 'email', 'name']
              assert.deepEqual(
                kinds,
                kinds.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)),
              )
              assert.deepEqual(lines.toSorted(), listExpected(made).toSorted())
              counted += lines.length
            },
          ),
          { numRuns: runs(15, 60) },
        )
      } finally {
        Object.assign(duplicateSteps, { rows, keys, perPage })
      }
      assert.ok(counted > 5, `${counted} pairs`)
    })
  },
  { dedicated: true },
)
