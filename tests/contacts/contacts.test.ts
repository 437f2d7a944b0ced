import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'

everyDoor('Contacts', (test) => {
  test('create, search, get, tag, update and delete', async ({ call, door }) => {
    const created = await call('crm_upsert_contact', {
      phone: '+1 555 010 0042',
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      tags: ['VIP', 'math'],
    })
    assert.equal(created.status, 200)
    assert.equal(created.body.action, 'created')
    assert.equal(created.body.contact.phone, '15550100042')
    assert.equal(created.body.contact.email, 'ada@example.com')
    assert.deepEqual(
      created.body.contact.tags.map((t: { name: string }) => t.name),
      ['math', 'VIP'],
    )
    const { id } = created.body

    const unchanged = await call('crm_upsert_contact', { phone: '(+1) 5550100042', name: 'Ada Lovelace' })
    assert.equal(unchanged.body.action, 'unchanged')
    assert.equal(unchanged.body.id, id)
    const updated = await call('crm_upsert_contact', { phone: '0015550100042', name: 'Ada King' })
    assert.equal(updated.body.action, 'updated')

    for (const query of ['KING', '555010', '+1 555 010']) {
      const found = await call('crm_search_contacts', { query })
      assert.deepEqual(
        found.body.data.map((c: { id: string }) => c.id),
        [id],
        query,
      )
      assert.equal(found.body.total, 1)
    }
    assert.deepEqual((await call('crm_search_contacts', { query: '%' })).body.data, [])

    const read = await call('crm_get_contact', { contact_id: id })
    assert.equal(read.status, 200)
    assert.equal(read.body.name, 'Ada King')

    const changed = await call('crm_update_contact', { contact_id: id, starred: true, name: null })
    assert.equal(changed.body.starred, true)
    assert.equal(changed.body.name, null)

    const phone = read.body.phone as string
    await call('crm_upsert_contact', { phone: `+${phone}`, dnd: true })
    const kept = await call('crm_upsert_contact', { phone: `+${phone}`, dnd: false })
    assert.deepEqual([kept.body.action, kept.body.contact.dnd], ['unchanged', true])
    assert.match(kept.body.warnings[0], /^dnd stays true/)

    const deleted = await call('crm_delete_contact', { contact_id: id }, { confirm: 'delete' })
    if (!door.confirms) {
      assert.equal(deleted.status, 428)
      return
    }
    assert.deepEqual(deleted.body, { id, deleted: true })
    assert.equal((await call('crm_get_contact', { contact_id: id })).status, 404)
    assert.equal((await call('crm_search_contacts')).body.total, 0)
  })

  test('concurrent upserts of one phone create one contact', async ({ call, server, workspace }) => {
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        call('crm_upsert_contact', { phone: '+1 555 010 0042', tags: [`tag ${i % 3}`] }),
      ),
    )
    assert.deepEqual(
      replies.map((r) => r.status),
      replies.map(() => 200),
    )
    assert.equal(replies.filter((r) => r.body.action === 'created').length, 1)
    assert.equal(new Set(replies.map((r) => r.body.id)).size, 1)
    assert.equal((await call('crm_search_contacts')).body.total, 1)
    const contact = await call('crm_get_contact', { contact_id: replies[0]!.body.id })
    assert.deepEqual(
      contact.body.tags.map((t: { name: string }) => t.name),
      ['tag 0', 'tag 1', 'tag 2'],
    )
    const events = await server.db
      .selectFrom('events')
      .select('type')
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.equal(events.filter((e) => e.type === 'contact.created/1').length, 1)
    assert.equal(events.filter((e) => e.type === 'contact.tags_added/1').length, 3)
  })

  test('bulk tagging reports a failure for each unknown contact id', async ({ call }) => {
    const ids: string[] = []
    for (let i = 0; i < 3; i++)
      ids.push((await call('crm_upsert_contact', { phone: `+1555010000${i}` })).body.id)
    const tagged = await call('crm_tag_contacts', {
      contact_ids: [...ids, ids[0], '999999999999'],
      tags: ['Gold', 'gold', 'Silver'],
    })
    assert.deepEqual(
      { ...tagged.body, failures: tagged.body.failures.length },
      { requested: 4, succeeded: 3, failed: 1, failures: 1, stopped_early: false, matched: 3 },
    )
    assert.deepEqual(tagged.body.failures[0].code, 'not_found')
    const tags = (await call('crm_list_tags')).body.data
    assert.deepEqual(
      tags.map((t: { name: string; contacts_count: number }) => [t.name, t.contacts_count]),
      [
        ['Gold', 3],
        ['Silver', 3],
      ],
    )
    const byTag = await call('crm_search_contacts', { tag_ids: [tags[0].id] })
    assert.equal(byTag.body.total, 3)
    await call('crm_untag_contacts', { contact_ids: [ids[0]], tags: ['GOLD', 'unknown tag'] })
    assert.equal((await call('crm_search_contacts', { tag_ids: [tags[0].id] })).body.total, 2)
    assert.equal((await call('crm_list_tags', { search: 'gol' })).body.data[0].contacts_count, 2)
  })
})
