import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { insertField } from '../../storage/contacts/custom-fields.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const phone = '+15550100042'
type Attribute = { key: string; value: unknown; typed_value: unknown }
type ContactView = { attributes: Attribute[] }
const toValues = (contact: ContactView): Record<string, unknown> =>
  Object.fromEntries(contact.attributes.map((a) => [a.key, a.value]))

everyDatabase('The number of custom fields', (server) => {
  it('is at most 200, however many are created at once', async () => {
    const workspace = await makeWorkspace(server())
    // With the field of the email, which each workspace has, 197.
    await sql`
      insert into custom_fields (workspace_id, key, label, type, created_at)
      select ${workspace.id}::bigint, 'field_' || n, 'Field', 'text', now()
      from generate_series(1, 196) as n`.execute(server().db)
    const create = (_: unknown, n: number) =>
      callAs(server(), workspace.owner.key)('crm_create_custom_field', { key: `new_${n}`, type: 'text' })
    const replies = await Promise.all(Array.from({ length: 8 }, create))
    assert.equal(replies.filter(({ status }) => status === 201).length, 3)
    const refused = replies.filter(({ status }) => status !== 201)
    assert.ok(refused.every(({ body }) => body.reason === 'too_many_fields'))
  })
})

everyDoor('Custom fields', (test) => {
  test('managers create, list, update and delete fields', async ({ call, door, workspace, as }) => {
    const created = await call('crm_create_custom_field', {
      key: 'plan',
      label: 'Plan',
      type: 'select',
      options: [{ label: 'Pro', value: 'pro' }],
    })
    assert.equal(created.status, 201)
    const { id } = created.body
    assert.equal(created.body.in_use, false)
    assert.deepEqual(
      (await call('crm_create_custom_field', { key: 'plan', type: 'text' })).body.code,
      'conflict',
    )
    assert.equal(
      (await call('crm_create_custom_field', { key: 'email', type: 'text' })).body.code,
      'conflict',
    )
    await call('crm_upsert_contact', { phone, attributes: { plan: 'Pro' } })
    const listed = await call('crm_list_custom_fields', { search: 'PLA' })
    assert.deepEqual(listed.body.data, [{ ...created.body, in_use: true }])
    assert.equal(listed.body.total, 1)
    assert.deepEqual(
      (await call('crm_list_custom_fields', { type: 'email' })).body.data.map((f: { key: string }) => f.key),
      ['email'],
    )
    const changed = await call('crm_update_custom_field', { custom_field_id: id, label: 'Tariff' })
    assert.deepEqual(changed.body, { ...created.body, label: 'Tariff', in_use: true })
    await call('crm_upsert_contact', { phone, attributes: { plan: null } })
    const unused = await call('crm_list_custom_fields', { search: 'plan' })
    assert.equal(unused.body.data[0].in_use, false)

    const agent = as((await workspace.staff({ role: 'agent' })).key)
    for (const [op, input] of [
      ['crm_create_custom_field', { key: 'mine', type: 'text' }],
      ['crm_update_custom_field', { custom_field_id: id, label: 'x' }],
      ['crm_delete_custom_field', { custom_field_id: id }],
    ] as const) {
      const rejected = await agent(op, { ...input, dry_run: true })
      assert.deepEqual(
        [rejected.status, rejected.body.code, rejected.body.reason],
        [403, 'forbidden', 'manager_only'],
        op,
      )
    }
    if (!door.confirms) return
    assert.deepEqual(
      (await call('crm_delete_custom_field', { custom_field_id: id }, { confirm: 'delete' })).body,
      { id, deleted: true, saved_filters: [] },
    )
    assert.equal((await call('crm_update_custom_field', { custom_field_id: id, label: 'x' })).status, 404)
  })

  test('agents can neither see nor set manager-only fields', async ({ call, workspace, as }) => {
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const hiddenField = (
      await call('crm_create_custom_field', {
        key: 'credit',
        label: 'Credit',
        type: 'int',
        visibility: 'manager_only',
      })
    ).body
    await call('crm_create_custom_field', { key: 'plan', type: 'text' })
    const { id, contact } = (
      await call('crm_upsert_contact', { phone, attributes: { credit: 7, plan: 'pro' } })
    ).body
    assert.deepEqual(toValues(contact), { credit: 7, plan: 'pro' })

    assert.deepEqual(
      (await agent('crm_list_custom_fields')).body.data.map((f: { key: string }) => f.key),
      ['email', 'plan'],
    )
    assert.equal((await agent('crm_list_custom_fields')).body.total, 2)
    assert.equal((await agent('crm_list_custom_fields', { search: 'credit' })).body.total, 0)
    assert.deepEqual(toValues((await agent('crm_get_contact', { contact_id: id })).body), { plan: 'pro' })
    for (const detail of ['summary', 'full'])
      assert.deepEqual(toValues((await agent('crm_search_contacts', { detail })).body.data[0]), {
        plan: 'pro',
      })
    assert.deepEqual(toValues((await agent('crm_upsert_contact', { phone, name: 'Ada' })).body.contact), {
      plan: 'pro',
    })
    assert.deepEqual(
      toValues((await agent('crm_update_contact', { contact_id: id, attributes: { plan: 'max' } })).body),
      { plan: 'max' },
    )

    // The response equals that for a key that does not exist.
    for (const key of ['credit', 'nothing']) {
      for (const [op, input] of [
        ['crm_upsert_contact', { phone }],
        ['crm_update_contact', { contact_id: id }],
      ] as const) {
        const { status, body } = await agent(op, { ...input, attributes: { [key]: 9 } })
        assert.equal(status, 400)
        assert.deepEqual(body.errors, [
          {
            pointer: `#/attributes/${key}`,
            code: 'unknown_attribute',
            detail: 'is not a custom field',
            allowed: ['email', 'plan'],
            fix: 'Use one of the listed keys, or create the field first.',
          },
        ])
      }
    }
    const hiddenUpdate = await agent('crm_update_custom_field', {
      custom_field_id: hiddenField.id,
      label: 'x',
    })
    assert.equal(hiddenUpdate.status, 404)
    assert.deepEqual(toValues((await call('crm_get_contact', { contact_id: id })).body), {
      credit: 7,
      plan: 'max',
    })
  })

  test('email and the attribute email are the same value', async ({ call }) => {
    const loadEmails = async (id: string) => {
      const { email, attributes } = (await call('crm_get_contact', { contact_id: id })).body
      return [email, attributes.find((a: { key: string }) => a.key === 'email')?.typed_value ?? null]
    }
    const { id } = (await call('crm_upsert_contact', { phone, email: 'ada@example.com' })).body
    assert.deepEqual(await loadEmails(id), ['ada@example.com', 'ada@example.com'])
    await call('crm_upsert_contact', { phone, attributes: { email: 'king@example.com' } })
    assert.deepEqual(await loadEmails(id), ['king@example.com', 'king@example.com'])
    await call('crm_upsert_contact', { phone, attributes: { email: '' } })
    assert.deepEqual(await loadEmails(id), [null, null])
    await call('crm_update_contact', { contact_id: id, email: 'ada@example.com' })
    await call('crm_upsert_contact', { phone, email: '' })
    assert.deepEqual(await loadEmails(id), [null, null])
    const summary = (await call('crm_search_contacts')).body.data[0]
    assert.ok(!('email' in summary))
    for (const email of ['ada', `${'a'.repeat(250)}@example.com`]) {
      const { status, body } = await call('crm_upsert_contact', { phone, email })
      assert.equal(status, 400)
      assert.deepEqual(
        body.errors.map((e: { pointer: string }) => e.pointer),
        ['#/email'],
      )
    }
    const field = (await call('crm_list_custom_fields', { search: 'email' })).body.data[0]
    assert.equal(
      (await call('crm_delete_custom_field', { custom_field_id: field.id, dry_run: true })).body.reason,
      'built_in',
    )
  })
})

everyDatabase('Custom field values of contacts', (server) => {
  const createScene = async () => {
    const workspace = await makeWorkspace(server())
    return {
      workspace,
      run: doAs(server(), workspace.owner.key),
      call: callAs(server(), workspace.owner.key),
    }
  }

  it('a manager-only email field hides the email of the contact from agents', async () => {
    const { workspace, run } = await createScene()
    const field = (await run('crm_list_custom_fields')).data[0]
    const { id } = await run('crm_upsert_contact', { phone, email: 'ada@example.com' })
    await run('crm_update_custom_field', { custom_field_id: field.id, visibility: 'manager_only' })
    const { key } = await workspace.staff({ role: 'agent' })
    const agent = doAs(server(), key)
    for (const contact of [
      await agent('crm_get_contact', { contact_id: id }),
      (await agent('crm_search_contacts', { detail: 'full' })).data[0],
      (await agent('crm_upsert_contact', { phone })).contact,
    ]) {
      assert.equal(contact.email, null)
      assert.deepEqual(contact.attributes, [])
    }
    const { status, body } = await callAs(server(), key)('crm_upsert_contact', {
      phone,
      email: 'eve@example.com',
    })
    assert.equal(status, 400)
    assert.deepEqual(
      [body.errors[0].pointer, body.errors[0].code, body.errors[0].allowed],
      ['#/email', 'unknown_attribute', []],
    )
    assert.equal((await run('crm_get_contact', { contact_id: id })).email, 'ada@example.com')
  })

  it('values of a deleted field are not shown, even under a new field with the same key', async () => {
    const { run, call } = await createScene()
    const old = await run('crm_create_custom_field', { key: 'plan', type: 'text' })
    const { id } = await run('crm_upsert_contact', { phone, attributes: { plan: 'old' } })
    await run('crm_delete_custom_field', { custom_field_id: old.id })
    assert.deepEqual((await run('crm_get_contact', { contact_id: id })).attributes, [])
    assert.equal((await call('crm_upsert_contact', { phone, attributes: { plan: 'x' } })).status, 400)
    const recreated = await run('crm_create_custom_field', { key: 'plan', type: 'int' })
    assert.notEqual(recreated.id, old.id)
    assert.equal(recreated.in_use, false)
    assert.deepEqual((await run('crm_get_contact', { contact_id: id })).attributes, [])
    assert.deepEqual(
      toValues((await run('crm_upsert_contact', { phone, attributes: { plan: 3 } })).contact),
      { plan: 3 },
    )
    assert.deepEqual(
      (await run('crm_list_custom_fields')).data.map((f: { key: string }) => f.key),
      ['email', 'plan'],
    )
  })

  it('at most 100 attributes are shown, those of the oldest fields', async () => {
    const { workspace, run } = await createScene()
    const keys = Array.from({ length: 120 }, (_, i) => `field_${i}`)
    for (const key of keys)
      await insertField(
        server().db,
        workspace.id,
        { key, label: key, type: 'int', options: null, visibility: 'visible_to_all' },
        server().app.now(),
      )
    const { contact } = await run('crm_upsert_contact', {
      phone,
      attributes: Object.fromEntries(keys.toReversed().map((key, i) => [key, i])),
    })
    assert.deepEqual(
      contact.attributes.map((a: Attribute) => a.key),
      keys.slice(0, 100),
    )
    const after = await run('crm_upsert_contact', { phone, attributes: { field_0: null } })
    assert.deepEqual(
      after.contact.attributes.map((a: Attribute) => a.key),
      keys.slice(1, 101),
    )
  })

  it('keys such as __proto__ are unknown attributes', async () => {
    const { workspace } = await createScene()
    for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
      const response = await fetch(`${server().url}/v1/contacts`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
        body: `{"phone":"${phone}","attributes":{"${key}":"x"}}`,
      })
      const body = (await response.json()) as { errors: { pointer: string }[] }
      assert.equal(response.status, 400, key)
      assert.deepEqual(
        body.errors.map((e) => e.pointer),
        [`#/attributes/${key}`],
      )
    }
  })

  it('read-only fields are shown and cannot be set', async () => {
    const { workspace, run, call } = await createScene()
    const field = (await insertField(
      server().db,
      workspace.id,
      { key: 'source', label: 'Source', type: 'text', options: null, visibility: 'visible_to_all' },
      server().app.now(),
    ))!
    const { id } = await run('crm_upsert_contact', { phone, attributes: { source: 'ad' } })
    // No operation can set read_only yet.
    await sql`
      update custom_fields set read_only = true
      where workspace_id = ${workspace.id} and id = ${field.id}`.execute(server().db)
    const { status, body } = await call('crm_upsert_contact', { phone, attributes: { source: 'me' } })
    assert.deepEqual([status, body.errors[0].code], [400, 'read_only'])
    assert.deepEqual(toValues(await run('crm_get_contact', { contact_id: id })), { source: 'ad' })
  })
})
