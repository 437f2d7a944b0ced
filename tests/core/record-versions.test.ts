import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { catalog, type Operation, showsVersion, takesVersion } from '../../catalog/index.ts'
import { createClient, isWcrmError } from '../../client/index.ts'
import { createAgentScene, markApproved } from '../approvals/scene.ts'
import { type Door, doorsOf, everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld, type World } from '../world.ts'

type Kind = NonNullable<Operation['versioned']>['kind']

/** What deletes a record comes last, and after it what leaves work to a job, which changes rows meanwhile. */
const orderOf = ({ name }: Operation): number =>
  name.includes('_erase_') ? 2 : Number(name.includes('_delete_'))
const guarded = catalog.filter(takesVersion).toSorted((a, b) => orderOf(a) - orderOf(b))

/** A change of a record of each kind that another client makes, and how it is read. */
const kinds: Readonly<Record<Kind, { operation: string; change: (n: number) => object; read: string }>> = {
  contact: {
    operation: 'crm_update_contact',
    change: (n) => ({ name: `Ada ${n}` }),
    read: 'crm_get_contact',
  },
  template: { operation: '', change: () => ({}), read: 'messaging_get_template' },
  quick_message: {
    operation: 'messaging_update_quick_message',
    change: (n) => ({ title: `Title ${n}` }),
    read: 'messaging_list_quick_messages',
  },
  saved_filter: {
    operation: 'crm_update_saved_filter',
    change: (n) => ({ description: `Why ${n}` }),
    read: 'crm_get_saved_filter',
  },
  endpoint: {
    operation: 'webhooks_update_endpoint',
    change: (n) => ({ description: `Orders ${n}` }),
    read: 'webhooks_get_endpoint',
  },
}

let n = 0

/** Changes a record as another client would. */
const changeElsewhere = async (server: TestServer, call: Door['call'], op: Operation, id: string) => {
  const { operation, change } = kinds[op.versioned!.kind]
  if (operation === '') {
    await server.db
      .updateTable('templates')
      .set({ rejection_reason: `Reason ${++n}`, updated_at: server.app.now() })
      .where('id', '=', id)
      .execute()
    return
  }
  const reply = await call(operation, { [op.versioned!.by!]: id, ...change(++n) })
  assert.equal(reply.status, 200, reply.text)
}

const readVersion = async (call: Door['call'], op: Operation, id: string): Promise<string> => {
  const { kind, by } = op.versioned!
  const { body } = await call(kinds[kind].read, kind === 'quick_message' ? { limit: 100 } : { [by!]: id })
  const record = kind === 'quick_message' ? body.data.find((row: { id: string }) => row.id === id) : body
  assert.match(record?.version ?? JSON.stringify(body), /^\d+$/)
  return record.version
}

const inputOf = (world: World, op: Operation): { input: Record<string, unknown>; id: string } => {
  const [input = {}] = buildExampleInputs(world, op)
  return { input, id: String(input[op.versioned!.by!]) }
}

const assertRefused = (reply: Reply, op: Operation, current: string): void => {
  assert.deepEqual([reply.status, reply.body.code], [412, 'precondition_failed'], `${op.name}: ${reply.text}`)
  assert.equal(reply.body.current_version, current, op.name)
}

everyDoor('if_version of every operation that changes one record', (test) => {
  test('refuses what was changed since, and lets the current version through', async (scene) => {
    const { server, workspace, call, door } = scene
    const world = await seedWorld(server, workspace, 'Versions', '0177')
    const rest = doorsOf(server.url, workspace.owner.key)[0]!
    assert.ok(guarded.length >= 13)
    for (const op of guarded) {
      const { input, id } = inputOf(world, op)
      const isReal = op.confirm === undefined || door.confirms
      const send = (more: object, idempotencyKey: string = randomUUID()): Promise<Reply> =>
        call(
          op.name,
          { ...input, ...more, ...(isReal ? {} : { dry_run: true }) },
          { idempotencyKey, ...(op.confirm && isReal ? { confirm: op.confirm } : {}) },
        )
      const stale = await readVersion(rest.call, op, id)
      await changeElsewhere(server, rest.call, op, id)
      const current = await readVersion(rest.call, op, id)
      assert.notEqual(current, stale)
      const before = await loadWorkspaceRows(server.db, workspace.id)
      assertRefused(await send({ if_version: stale }), op, current)
      assertRefused(await send({ if_version: stale, dry_run: true }), op, current)
      for (const never of ['0', '01', '999999']) {
        const reply = await send({ if_version: never })
        assert.equal(reply.status, 412, `${op.name}: ${reply.text}`)
        assert.match(reply.body.detail, /names no version that the .* has had/, op.name)
        assert.equal(reply.body.current_version, current)
      }
      const { idempotency: _, ...rows } = await loadWorkspaceRows(server.db, workspace.id)
      const { idempotency: __, ...was } = before
      assert.deepEqual(rows, was, op.name)

      const idempotencyKey = randomUUID()
      const done = await send({ if_version: current }, idempotencyKey)
      assert.ok(done.status < 300, `${op.name}: ${done.text}`)
      if (!isReal) continue
      // A repeat of what succeeded is no second change, whatever version the record has by now.
      assert.deepEqual((await send({ if_version: current }, idempotencyKey)).body, done.body, op.name)
      if (!showsVersion(op)) continue
      const { at } = op.versioned!
      const shown = at === undefined ? done.body : done.body[at]
      assert.equal(shown.version, await readVersion(rest.call, op, id), op.name)
    }
  })
})

everyDatabase('Versions of records', (server) => {
  const prepare = async () => {
    const workspace = await makeWorkspace(server())
    const request = (method: string, path: string, headers: object = {}, body?: object) =>
      fetch(`${server().url}/v1${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${workspace.owner.key}`,
          ...(body ? { 'Content-Type': 'application/json' } : {}),
          ...headers,
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
    const created = (await (
      await request('POST', '/contacts', {}, { phone: '+15550100177', name: 'Ada', tags: ['VIP'] })
    ).json()) as any
    const path = `/contacts/${created.id}`
    const readEtag = async () => (await request('GET', path)).headers.get('etag')!
    return { workspace, request, path, id: created.id as string, created, readEtag }
  }

  it('a read has a strong ETag, and is 304 where the client has it', async () => {
    const { request, path, readEtag } = await prepare()
    const etag = await readEtag()
    assert.match(etag, /^"1\.[\w-]{16}"$/)
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const same = await request('GET', path, { 'If-None-Match': header })
      assert.deepEqual([same.status, await same.text(), same.headers.get('etag')], [304, '', etag], header)
    }
    assert.equal((await request('GET', path, { 'If-None-Match': '"3.other"' })).status, 200)
    assert.equal((await request('HEAD', path, { 'If-None-Match': etag })).status, 304)
    const compact = await request('GET', `${path}?detail=compact`, { 'If-None-Match': etag })
    assert.equal(compact.status, 200)
    assert.notEqual(compact.headers.get('etag'), etag)
    assert.equal((await request('GET', '/contacts')).headers.get('etag'), null)
  })

  it('what is shown otherwise at the same version is no 304, and no obstacle to a change', async () => {
    const { workspace, request, path, created, readEtag } = await prepare()
    const etag = await readEtag()
    const { key } = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const masked = { Authorization: `Bearer ${key}`, 'If-None-Match': etag }
    assert.equal((await request('GET', path, masked)).status, 200)
    await request('PATCH', `/tags/${created.contact.tags[0].id}`, {}, { name: 'Gold' })
    const renamed = await request('GET', path, { 'If-None-Match': etag })
    const { version, tags } = (await renamed.json()) as any
    assert.deepEqual([renamed.status, version, tags[0].name], [200, created.contact.version, 'Gold'])
    assert.equal((await request('PATCH', path, { 'If-Match': etag }, { name: 'Grace' })).status, 200)
  })

  it('a change answers the ETag that a read has then; If-Match takes lists, and no weak tags', async () => {
    const { request, path, readEtag } = await prepare()
    const first = await readEtag()
    const changed = await request('PATCH', path, { 'If-Match': `"9.x", ${first}` }, { name: 'Grace' })
    assert.equal(changed.status, 200)
    assert.equal(changed.headers.get('etag'), await readEtag())
    const current = await readEtag()
    for (const refused of [first, `W/${current}`, '"unknown"', '"0"'])
      assert.equal(
        (await request('PATCH', path, { 'If-Match': refused }, { name: 'X' })).status,
        412,
        refused,
      )
    for (const given of [`W/${current}`, '"garbage"', '"0"', `W/"1", "garbage"`, '"*"']) {
      const reply = await request('PATCH', path, { 'If-Match': given }, { name: 'X' })
      assert.match(((await reply.json()) as any).detail, /names no version .* a weak tag/, given)
    }
    const stale = await request('PATCH', path, { 'If-Match': `"garbage", ${first}` }, { name: 'X' })
    assert.match(((await stale.json()) as any).detail, /was changed since/)
    const stars = [`*, ${current}`, `${current}, *`, 'W/*', '*, *', 'garbage']
    for (const malformed of [
      '',
      '"open',
      'a"b"',
      ',',
      ...stars,
      Array.from({ length: 11 }, () => '"1"').join(),
    ])
      assert.equal(
        (await request('PATCH', path, { 'If-Match': malformed }, { name: 'X' })).status,
        400,
        malformed,
      )
    assert.equal((await request('PATCH', path, { 'If-Match': '*' }, { name: 'X' })).status, 200)
    assert.equal((await request('PATCH', path, { 'If-Match': '"9.x", 3, 4' }, { name: 'Y' })).status, 200)
    assert.equal((await request('PATCH', '/contacts/999999', { 'If-Match': '*' }, { name: 'X' })).status, 404)
    assert.equal((await request('PATCH', '/contacts/999999', { 'If-Match': current }, {})).status, 404)
  })

  it('a condition that would be ignored is refused, and so is one in the wrong place', async () => {
    const { request, path, id, workspace, readEtag } = await prepare()
    const etag = await readEtag()
    const ignored = await request(
      'POST',
      '/contacts/tag',
      { 'If-Match': etag },
      { contact_ids: [id], tags: ['a'] },
    )
    const problem = (await ignored.json()) as any
    assert.deepEqual([ignored.status, problem.errors[0].header], [400, 'If-Match'])
    const misplaced = await request('PATCH', path, {}, { name: 'X', if_version: '1' })
    assert.equal(((await misplaced.json()) as any).errors[0].code, 'misplaced_field')
    const both = await fetch(`${server().url}/v1/ops/crm_update_contact`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${workspace.owner.key}`,
        'Content-Type': 'application/json',
        'If-Match': etag,
      },
      body: JSON.stringify({ contact_id: id, if_version: '7' }),
    })
    assert.equal(((await both.json()) as any).reason, 'contradiction')
  })

  it('every change of a contact counts, whoever makes it; activity does not', async () => {
    const { workspace, request, path, id } = await prepare()
    const read = async () => Number(((await (await request('GET', path)).json()) as any).version)
    const group = (await (await request('POST', '/groups', {}, { name: 'G' })).json()) as any
    await request('POST', '/custom-fields', {}, { key: 'size', label: 'Size', type: 'text' })
    const changes: [string, string, object][] = [
      ['POST', '/contacts/tag', { contact_ids: [id], tags: ['New'] }],
      ['POST', '/contacts/untag', { contact_ids: [id], tags: ['New'] }],
      ['POST', `/groups/${group.group.id}/contacts`, { contact_ids: [id] }],
      ['POST', `/groups/${group.group.id}/contacts/remove`, { contact_ids: [id] }],
      ['POST', '/contacts', { phone: '+15550100177', name: 'Other' }],
      ['POST', '/contacts', { phone: '+15550100177', tags: ['Upserted'] }],
      ['POST', '/contacts', { phone: '+15550100177', group_ids: [group.group.id] }],
      ['POST', '/contacts', { phone: '+15550100177', attributes: { size: 'L' } }],
      ['POST', '/contacts', { phone: '+15550100177', email: 'ada@example.com' }],
      ['POST', '/contacts/import', { rows: [{ phone: '+15550100177', tags: ['Imported'] }] }],
      ['POST', '/contacts/import', { rows: [{ phone: '+15550100177', name: 'Imported' }] }],
      ['POST', '/contacts', { phone: '+15550100177', external_id: 'C-1' }],
      ['POST', '/contacts', { external_id: 'C-1', metadata: { synced: 'no' } }],
      ['POST', '/contacts/import', { rows: [{ external_id: 'C-1', metadata: { synced: 'yes' } }] }],
      ['PATCH', path, { external_id: 'C-2' }],
      ['PATCH', path, { metadata: { synced: 'again' } }],
      ['PATCH', path, { dnd: true }],
      ['PATCH', path, { starred: true }],
      ['PATCH', path, { attributes: { size: 'M' } }],
    ]
    let version = await read()
    for (const [method, to, body] of changes) {
      const reply = await request(method, to, {}, body)
      assert.ok(reply.status < 300, `${to} ${await reply.text()}`)
      const next = await read()
      assert.ok(next > version, `${method} ${to} ${JSON.stringify(body)}: ${version}, then ${next}`)
      version = next
      // The same again changes nothing.
      await request(method, to, {}, body)
      assert.equal(await read(), version, `${method} ${to} again`)
    }
    await server()
      .db.updateTable('contacts')
      .set({ last_activity_at: '2027-01-01T00:00:00.000Z' })
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.equal(await read(), version)
  })

  it('a dry run shows no version, which a later change could get', async () => {
    const { request, path, created } = await prepare()
    assert.equal(typeof created.contact.version, 'string')
    const dry = (await (await request('PATCH', `${path}?dry_run=true`, {}, { name: 'X' })).json()) as any
    assert.equal(dry.version, null)
    const upsert = await request('POST', '/contacts?dry_run=true', {}, { phone: '+15550100177', name: 'Y' })
    assert.equal(((await upsert.json()) as any).contact.version, null)
  })

  it('of writers at the same time, one with the version wins', async () => {
    const { request, path, readEtag } = await prepare()
    for (let round = 0; round < 5; round++) {
      const etag = await readEtag()
      const replies = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          request('PATCH', path, { 'If-Match': etag }, { name: `Writer ${round} ${i}` }),
        ),
      )
      const won = replies.filter(({ status }) => status === 200)
      assert.deepEqual([won.length, replies.filter(({ status }) => status === 412).length], [1, 5])
      const name = ((await won[0]!.json()) as any).name
      assert.equal(((await (await request('GET', path)).json()) as any).name, name)
    }
  })

  it('holds when a person decides later: what was changed meanwhile is not deleted', async () => {
    const scene = await createAgentScene(server())
    const { body: contact } = await scene.ask('crm_get_contact', { contact_id: scene.contactId })
    const asked = await scene.ask('crm_delete_contact', {
      contact_id: scene.contactId,
      if_version: contact.version,
    })
    assert.equal(asked.status, 202, asked.text)
    const { text } = await scene.person('approvals_get', { approval_id: asked.body.approval.id })
    assert.match(text, /Only if nobody has changed it/)
    await scene.person('crm_update_contact', { contact_id: scene.contactId, starred: true })
    // What the approver would run now is refused, as the dry run of the request would be.
    await markApproved({ ...server(), ...scene }, asked.body.approval.id)
    await scene.work()
    const { body: ended } = await scene.person('approvals_get', { approval_id: asked.body.approval.id })
    assert.deepEqual([ended.status, ended.outcome.code], ['failed', 'precondition_failed'])
    assert.equal((await scene.person('crm_get_contact', { contact_id: scene.contactId })).status, 200)
  })

  it('@wcrm/client takes it as an option, and has an error with the current version', async () => {
    const { workspace, id } = await prepare()
    const { contacts } = createClient({ url: server().url, apiKey: workspace.owner.key })
    const read = await contacts.get({ contact_id: id })
    await contacts.update({ contact_id: id, name: 'Grace', dnd: true }, { ifVersion: read.version! })
    await assert.rejects(
      contacts.delete({ contact_id: id }, { ifVersion: read.version!, confirm: 'delete' }),
      (error) => isWcrmError(error, 'precondition_failed') && error.currentVersion === '2',
    )
    const { data } = await contacts.search({})
    await contacts.delete({ contact_id: id }, { ifVersion: data[0]!.version!, confirm: 'delete' })
    // A dry run has no version: what has none is no condition, so it is refused instead of ignored.
    await assert.rejects(contacts.update({ contact_id: id }, { ifVersion: null }), (error) =>
      isWcrmError(error, 'invalid_input'),
    )
  })
})

describe('Versions of records, with two servers', () => {
  it('of writers at different servers, one with the version wins', async () => {
    const { servers, close } = await startSharedServers(2)
    try {
      const workspace = await makeWorkspace(servers[0]!)
      const doors = servers.map(({ url }) => doorsOf(url, workspace.owner.key)[1]!)
      const { body } = await doors[0]!.call('crm_upsert_contact', { phone: '+15550100179' })
      let { version } = body.contact as { version: string }
      for (let round = 0; round < 10; round++) {
        const replies = await Promise.all(
          [0, 1, 0, 1].map((at, i) =>
            doors[at]!.call('crm_update_contact', {
              contact_id: body.id,
              name: `Writer ${round} ${at} ${i}`,
              if_version: version,
            }),
          ),
        )
        assert.deepEqual(replies.map(({ status }) => status).toSorted(), [200, 412, 412, 412])
        version = replies.find(({ status }) => status === 200)!.body.version
      }
    } finally {
      await close()
    }
  })
})
