import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doorsOf, everyDatabase } from '../doors.ts'
import { loadWorkspaceRows } from '../world.ts'
import { createImportScene, formatPhone, listImportEvents, toActions } from './imports.ts'

everyDatabase('Contact import: events, limits and concurrency', (server) => {
  it('emits each event once, in the order of the rows', async () => {
    const { run, workspace } = await createImportScene(server())
    await run('crm_import_contacts', {
      rows: [
        { phone: formatPhone(1), name: 'Ada', tags: ['x'] },
        { phone: formatPhone(2), name: 'Bob', tags: ['x', 'y'] },
        { phone: formatPhone(1), name: 'Eve', tags: ['x', 'y'] },
        { phone: formatPhone(2), name: 'Bob', tags: ['y'] },
      ],
    })
    const emitted = (await listImportEvents(server(), workspace.id)).map(({ type, data }) => {
      const { contact, tags } = data as { contact?: { name: string }; tags?: { name: string }[] }
      return [type, contact?.name ?? tags!.map((tag) => tag.name).join()]
    })
    assert.deepEqual(emitted, [
      ['contact.created/1', 'Ada'],
      ['contact.tags_added/1', 'x'],
      ['contact.created/1', 'Bob'],
      ['contact.tags_added/1', 'x,y'],
      ['contact.updated/1', 'Eve'],
      ['contact.tags_added/1', 'y'],
    ])
  })

  it('rows beyond the contact limit fail, and their new tags are not created', async () => {
    const { run } = await createImportScene(server(), { contact_limit: 3 })
    await run('crm_upsert_contact', { phone: formatPhone(1) })
    const body = await run('crm_import_contacts', {
      rows: [
        { phone: formatPhone(2), tags: ['in'] },
        { phone: '0' },
        { phone: formatPhone(3) },
        { phone: formatPhone(4), tags: ['out'] },
        { phone: formatPhone(1), name: 'Ada' },
        { phone: formatPhone(4) },
        { phone: formatPhone(2), name: 'Eve' },
      ],
    })
    assert.deepEqual(toActions(body), [
      'created',
      'failed',
      'created',
      'failed',
      'updated',
      'failed',
      'updated',
    ])
    assert.deepEqual(body.failures[1], {
      row: 3,
      code: 'forbidden',
      message: 'The plan allows 3 contacts, and the workspace already has that many.',
      errors: [],
    })
    assert.deepEqual(
      (await run('crm_list_tags')).data.map((tag: { name: string }) => tag.name),
      ['in'],
    )
    assert.equal((await run('crm_search_contacts')).total, 3)
  })

  it('concurrent imports and upserts of the same phones lose and duplicate nothing', async () => {
    const { call, run, workspace } = await createImportScene(server())
    const phones = Array.from({ length: 40 }, (_, n) => formatPhone(n))
    const imports = Array.from({ length: 6 }, (_, i) =>
      call('crm_import_contacts', {
        rows: (i % 2 === 0 ? phones : phones.toReversed()).map((phone) => ({
          phone,
          name: `Name ${i}`,
          attributes: { email: `e${i}@example.com` },
          tags: [`tag ${i}`, 'all'],
        })),
      }),
    )
    const upserts = phones
      .filter((_, n) => n % 4 === 0)
      .map((phone, i) => call('crm_upsert_contact', { phone, tags: ['all', `tag ${i % 6}`, 'single'] }))
    const replies = await Promise.all([...imports, ...upserts])
    assert.deepEqual(
      replies.map((r) => r.status),
      replies.map(() => 200),
      replies.find((r) => r.status !== 200)?.text ?? '',
    )
    const allActions = replies.flatMap((r) => (r.body.results ? toActions(r.body) : [r.body.action]))
    assert.equal(allActions.filter((action) => action === 'created').length, 40)
    assert.equal(allActions.filter((action) => action === 'failed').length, 0)
    const counts = Object.fromEntries(
      (await run('crm_list_tags')).data.map((t: { name: string; contacts_count: number }) => [
        t.name,
        t.contacts_count,
      ]),
    )
    assert.deepEqual(counts, {
      all: 40,
      single: 10,
      ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`tag ${i}`, 40])),
    })
    assert.equal((await run('crm_search_contacts')).total, 40)
    const events = await listImportEvents(server(), workspace.id)
    assert.equal(events.filter((e) => e.type === 'contact.created/1').length, 40)
    // Each contact gets each of its tags once: 7 from the imports, and ten contacts one more from upserts.
    const addedTags = events
      .filter((e) => e.type === 'contact.tags_added/1')
      .flatMap(({ data }) =>
        (data.tags as { id: string }[]).map((tag) => `${(data.contact_ids as string[]).join()} ${tag.id}`),
      )
    assert.equal(addedTags.length, 40 * 7 + 10)
    assert.equal(new Set(addedTags).size, addedTags.length)
    for (const contact of (await run('crm_search_contacts', { detail: 'full', limit: 100 })).data)
      assert.equal(contact.email, `e${contact.name.slice(-1)}@example.com`)
  })

  it('the response stays small, however many errors there are', async () => {
    const { run, call } = await createImportScene(server())
    const keys = Array.from({ length: 100 }, (_, n) => `field_${n}`)
    for (const key of keys) await run('crm_create_custom_field', { key, type: 'text' })
    const attributes = Object.fromEntries(keys.map((key) => [`${key}${'x'.repeat(2000)}`, 'value']))
    const { status, body, text } = await call('crm_import_contacts', {
      rows: Array.from({ length: 80 }, (_, n) => ({ phone: formatPhone(n), attributes })),
    })
    assert.equal(status, 200)
    assert.equal(body.failed, 80)
    assert.ok(body.failures.every((f: { errors: unknown[] }) => f.errors.length === 5))
    assert.ok(text.length < 500_000, String(text.length))
  })

  it('accepts rows with the longest custom values, more than a megabyte in total', async () => {
    const { run } = await createImportScene(server())
    for (let n = 0; n < 3; n++) await run('crm_create_custom_field', { key: `text_${n}`, type: 'textarea' })
    const text = 'Übergröße 👩‍👩‍👧 "x" \\ '.repeat(400).slice(0, 10_000)
    const attributes = { text_0: text, text_1: text, text_2: text }
    const body = await run('crm_import_contacts', {
      rows: Array.from({ length: 60 }, (_, n) => ({ phone: formatPhone(n), attributes })),
    })
    assert.equal(body.created, 60)
    const contact = await run('crm_get_contact', { contact_id: body.results[59].id })
    assert.equal(contact.attributes.length, 3)
  })

  it('input that is nested too deep or too large is rejected as a whole', async () => {
    const { workspace } = await createImportScene(server())
    const rest = doorsOf(server().url, workspace.owner.key)[0]!
    const send = (body: string) =>
      fetch(`${server().url}/v1/contacts/import`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
        body,
      })
    const deep = await send(
      `{"rows":[{"phone":"+15550100042","attributes":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`,
    )
    assert.equal(deep.status, 400)
    assert.equal(((await deep.json()) as { errors: { code: string }[] }).errors[0]!.code, 'too_deep')
    const large = await send(`{"rows":[{"phone":"+15550100042","name":"${'x'.repeat(25 * 1024 * 1024)}"}]}`)
    assert.equal(large.status, 413)
    await large.body?.cancel()
    const shadowed = await send('{"rows":[{"phone":"+15550100042","attributes":{"__proto__":"x"}}]}')
    assert.deepEqual(
      ((await shadowed.json()) as { failures: { errors: { code: string }[] }[] }).failures[0]!.errors[0]!
        .code,
      'unknown_field',
    )
    assert.equal((await rest.call('crm_search_contacts')).body.total, 0)
  })

  it('does not change other workspaces', async () => {
    const [first, other] = [await createImportScene(server()), await createImportScene(server())]
    const { group } = await other.run('crm_create_group', { name: 'Theirs' })
    const existing = await other.run('crm_upsert_contact', {
      phone: formatPhone(1),
      name: 'Theirs',
      tags: ['theirs'],
    })
    const before = await loadWorkspaceRows(server().db, other.workspace.id)
    const body = await first.run('crm_import_contacts', {
      rows: [
        { phone: formatPhone(1), name: 'Ours' },
        { phone: formatPhone(2), group_ids: [group.id] },
        { phone: formatPhone(2), tags: [Number(existing.contact.tags[0].id)] },
        { phone: formatPhone(2), tags: [existing.contact.tags[0].id] },
      ],
    })
    assert.deepEqual(toActions(body), ['created', 'failed', 'failed', 'created'])
    assert.deepEqual(await loadWorkspaceRows(server().db, other.workspace.id), before)
  })
})
