import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import { doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { exampleInputs, plant, type World } from '../world.ts'

const operations: readonly Operation[] = catalog
const middle = '7391'
/** Every planted phone begins so; what a mask leaves, the last four digits, never holds it. */
const tell = `1555${middle}`

/**
 * A world with phones wherever a phone can be: in contacts, in a phone field, and in the id at the
 * messaging app.
 */
const hiddenWorld = async (server: TestServer): Promise<World> => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
  const world = await plant(server, workspace, 'Zebra', middle)
  for (const n of [1, 2, 3])
    await run('crm_upsert_contact', { phone: `+${tell}10${n}`, attributes: { mobile: `+${tell}20${n}` } })
  // The provider fills these in.
  await sql`update contacts set chatapp_user_id = phone || '@c.example' where workspace_id = ${workspace.id}`.execute(
    server.db,
  )
  await sql`update contacts set chatapp_user_id = phone where workspace_id = ${workspace.id} and phone like '%101'`.execute(
    server.db,
  )
  return world
}

const assertHidden = (reply: Reply, what: string): void => {
  assert.ok(
    !JSON.stringify([reply.text, reply.body ?? null, reply.headers]).includes(tell),
    `${what} tells a phone: ${reply.text.slice(0, 600)}`,
  )
}

everyDatabase('Phones hidden from an agent', (server) => {
  it('are in no answer of any operation, be it a success or a refusal', async () => {
    const planted = await hiddenWorld(server())
    const { key } = await planted.workspace.staff({ role: 'agent', hide_phone_numbers: true, reports: true })
    const [rest, ops, mcp, cli] = doorsOf(server().url, key)
    // Nobody changes a saved filter of another, and no agent another's quick message.
    const { saved_filter: own } = await doAs(server(), key)('crm_create_saved_filter', {
      name: 'Own',
      filter: { name: { contains: planted.marker } },
    })
    const quick = await doAs(server(), key)('messaging_create_quick_message', { code: 'own', text: 'Own' })
    const world = {
      ...planted,
      ids: { ...planted.ids, saved_filters: [own.id as string], quick_messages: [quick.id as string] },
    }
    const succeeded = new Set<string>()
    const shows = async (
      op: Operation,
      door: typeof rest,
      input: Record<string, unknown>,
      confirm?: string,
    ) => {
      const reply = await door!.call(op.name, input, confirm ? { confirm } : {})
      assertHidden(reply, `${op.name} over ${door!.name}`)
      assert.notEqual(reply.status, 500, op.name)
      if (reply.status < 300) succeeded.add(op.name)
    }
    for (const op of operations)
      for (const input of exampleInputs(world, op)) {
        const rehearsed = op.dryRun ? { ...input, dry_run: true } : input
        for (const door of [rest, ops, mcp, cli]) await shows(op, door, rehearsed)
        for (const door of [rest, ops, mcp]) await shows(op, door, { ...rehearsed, nonsense: true })
        await shows(
          op,
          ops,
          Object.fromEntries(
            Object.entries(rehearsed).map(([name, value]) => [
              name,
              name.endsWith('_id') ? '999999999' : value,
            ]),
          ),
        )
      }
    // The world once more with the changes really made; what deletes comes last.
    for (const op of operations.toSorted(
      (a, b) => Number(a.confirm === 'delete') - Number(b.confirm === 'delete'),
    )) {
      for (const input of exampleInputs(world, op)) await shows(op, ops, input, op.confirm)
    }
    const refused = operations.filter((op) => !succeeded.has(op.name)).map((op) => op.name)
    // Agents may not change custom fields, nor read the audit trail, and who sees no phones has none sent
    // anywhere; all else was really seen.
    const settling = [
      'create_endpoint',
      'update_endpoint',
      'set_subscriptions',
      'rotate_secret',
      'enable_endpoint',
    ].map((name) => `webhooks_${name}`)
    assert.deepEqual(
      refused.filter((name) => !name.endsWith('custom_field') && name !== 'audit_list'),
      operations.map((op) => op.name).filter((name) => settling.includes(name)),
    )
  })

  it('are masked also in what the agent writes', async () => {
    const world = await hiddenWorld(server())
    const { key } = await world.workspace.staff({ role: 'agent', hide_phone_numbers: true })
    for (const door of doorsOf(server().url, key)) {
      for (const [op, input] of [
        ['crm_upsert_contact', { phone: `+${tell}101`, name: 'Known' }],
        ['crm_upsert_contact', { phone: `+${tell}102`, attributes: { mobile: `+${tell}209` } }],
        ['crm_upsert_contact', { phone: `+${tell}300`, dry_run: true }],
        ['crm_update_contact', { contact_id: world.ids['contacts']![0]!, starred: true }],
        ['crm_upsert_contact', { phone: `+${tell}1${'0'.repeat(12)}` }],
        ['crm_upsert_contact', { phone: `+${tell}101`, attributes: { mobile: `0${tell}` } }],
      ] as const) {
        const reply = await door.call(op, input)
        assertHidden(reply, `${op} over ${door.name}`)
        if (reply.status >= 300) continue
        const { contact = reply.body } = reply.body
        assert.equal(contact.phone_masked, true)
        assert.match(contact.phone, /^\*{6,}\d{3,4}$/)
      }
    }
  })

  it('are whole for managers, whatever their flag, and for agents without it', async () => {
    const world = await hiddenWorld(server())
    for (const fields of [{ role: 'owner' }, { role: 'admin' }, { role: 'manager' }] as const) {
      const { key } = await world.workspace.staff({ ...fields, hide_phone_numbers: true })
      await seesPhones(server(), key)
    }
    await seesPhones(server(), (await world.workspace.staff({ role: 'agent' })).key)
  })
})

const seesPhones = async (server: TestServer, key: string): Promise<void> => {
  const run = doAs(server, key)
  const found = await run('crm_search_contacts', {
    query: middle,
    sort: { field: 'phoneNumber', direction: 'asc' },
  })
  assert.deepEqual(
    found.data.map((c: { phone: string }) => c.phone),
    [`${tell}101`, `${tell}102`, `${tell}103`],
  )
  const contact = await run('crm_get_contact', { contact_id: found.data[1].id })
  assert.deepEqual(
    [contact.phone, contact.phone_masked, contact.chatapp_user_id],
    [`${tell}102`, false, `${tell}102@c.example`],
  )
  assert.equal(contact.attributes.find((a: { key: string }) => a.key === 'mobile').typed_value, `${tell}202`)
}

everyDoor('Search by a hidden phone', (test) => {
  test('is refused, by digits of any script and by order', async ({ call, as, workspace }) => {
    await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    const agent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const asked = [
      ...['1', '555', '+1 555', 'Ada 5', '٥', '５', '५', '৫', '𝟝', '²', '⑤', '½', '5️⃣'].map((query) => ({
        query,
      })),
      ...['asc', 'desc'].map((direction) => ({ sort: { field: 'phoneNumber', direction } })),
    ]
    for (const input of asked) {
      const { status, body } = await agent('crm_search_contacts', input)
      assert.deepEqual(
        [status, body.code, body.reason],
        [403, 'forbidden', 'phone_hidden'],
        JSON.stringify(input),
      )
      assert.equal((await call('crm_search_contacts', input)).status, 200)
    }
    for (const input of [
      { query: 'ada' },
      { query: '+' },
      { query: '(' },
      { query: '*' },
      { sort: { field: 'name', direction: 'asc' } },
    ]) {
      const { status, body } = await agent('crm_search_contacts', input)
      assert.equal(status, 200, JSON.stringify(input))
      for (const contact of body.data) assert.equal(contact.phone, '********042')
    }
    // What the mask shows is not searched either.
    assert.equal((await agent('crm_search_contacts', { query: '*******' })).body.total, 0)
  })
})
