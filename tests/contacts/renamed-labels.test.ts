import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

everyDoor('Names of tags and groups', (test) => {
  test('a tag is renamed, and stays on its contacts', async ({ call }) => {
    const { body: ada } = await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP', 'Press'] })
    const { body: list } = await call('crm_list_tags')
    const [press, vip] = list.data as [{ id: string }, { id: string }]
    const rehearsed = await call('crm_rename_tag', { tag_id: vip.id, name: 'Gold', dry_run: true })
    assert.deepEqual(rehearsed.body, { tag: { id: vip.id, name: 'Gold' }, changed: true, dry_run: true })
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: ' Gold ' })).body.changed, true)
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: 'Gold' })).body.changed, false)
    // Only the case differs.
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: 'GOLD' })).body.changed, true)
    const { tags } = (await call('crm_get_contact', { contact_id: ada.id })).body
    assert.deepEqual(
      tags.map(({ id, name }: { id: string; name: string }) => [id, name]),
      [
        [vip.id, 'GOLD'],
        [press.id, 'Press'],
      ],
    )
    const taken = await call('crm_rename_tag', { tag_id: vip.id, name: 'press' })
    assert.deepEqual([taken.status, taken.body.reason], [409, 'name_taken'])
    assert.equal((await call('crm_rename_tag', { tag_id: '999999999', name: 'X' })).status, 404)
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: ' ' })).status, 400)
    // The old name is free.
    const again = await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
    assert.equal(again.body.contact.tags.length, 3)
  })

  test('a deleted tag is gone from contacts and conversations', async ({ call, door: { confirms } }) => {
    const phone = '+15550100043'
    const { body: ada } = await call('crm_upsert_contact', { phone, tags: ['VIP', 'Press'] })
    const { data } = (await call('crm_list_tags')).body
    const vip = data.find(({ name }: { name: string }) => name === 'VIP')
    const remove = (input: Record<string, unknown> = {}) =>
      call('crm_delete_tag', { tag_id: vip.id, ...input }, { confirm: 'delete' })
    assert.deepEqual((await remove({ dry_run: true })).body, { id: vip.id, deleted: true, dry_run: true })
    assert.equal((await call('crm_delete_tag', { tag_id: vip.id })).status, 428)
    if (!confirms) return
    assert.deepEqual((await remove()).body, { id: vip.id, deleted: true })
    assert.equal((await remove()).status, 404)
    const namesOf = async () =>
      (await call('crm_get_contact', { contact_id: ada.id })).body.tags.map(
        ({ name }: { name: string }) => name,
      )
    assert.deepEqual(await namesOf(), ['Press'])
    const byId = await call('crm_tag_contacts', { tags: [Number(vip.id)], contact_ids: [ada.id] })
    assert.deepEqual([byId.status, byId.body.errors[0].code], [400, 'unknown_tag'])
    // The name is free, for a tag that no contact has.
    const again = await call('crm_upsert_contact', { phone: '+15550100044', tags: ['vip'] })
    assert.notEqual(again.body.contact.tags[0].id, vip.id)
    assert.deepEqual(await namesOf(), ['Press'])
    const counts = (await call('crm_list_tags')).body.data
    assert.deepEqual(
      counts.map((tag: { name: string; contacts_count: number }) => [tag.name, tag.contacts_count]),
      [
        ['Press', 1],
        ['vip', 1],
      ],
    )
  })

  test('a group changes its name and emoji', async ({ call }) => {
    const { group } = (await call('crm_create_group', { name: 'Friends', emoji: '⭐' })).body
    await call('crm_create_group', { name: 'Foes' })
    const update = async (input: Record<string, unknown>) => {
      const { status, body } = await call('crm_update_group', { group_id: group.id, ...input })
      return [status, body.group ?? body.reason, body.changes]
    }
    assert.deepEqual(await update({ name: 'Regulars' }), [200, { ...group, name: 'Regulars' }, ['name']])
    assert.deepEqual(await update({ name: 'Regulars', emoji: '⭐' }), [
      200,
      { ...group, name: 'Regulars' },
      [],
    ])
    assert.deepEqual(await update({ emoji: null }), [
      200,
      { id: group.id, name: 'Regulars', emoji: null },
      ['emoji'],
    ])
    assert.deepEqual((await update({ name: 'FOES' })).slice(0, 2), [409, 'name_taken'])
    assert.equal((await update({ emoji: 'no emoji' }))[0], 400)
    assert.equal((await call('crm_update_group', { group_id: '999999999', name: 'X' })).status, 404)
  })
})

everyDatabase('Names of tags and groups', (server, database) => {
  it('each change writes one event, with what was before', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
    const [{ id: tag_id }] = (await run('crm_list_tags')).data
    const { group } = await run('crm_create_group', { name: 'Friends' })
    for (const name of ['Gold', 'Gold']) await run('crm_rename_tag', { tag_id, name })
    for (const emoji of ['⭐', '⭐']) await run('crm_update_group', { group_id: group.id, emoji })
    const { data } = await run('events_list', { types: ['tag.renamed', 'group.updated'] })
    assert.deepEqual(
      data.map(({ type, data: { tag, group: changed, previous } }: any) => [type, tag ?? changed, previous]),
      [
        ['tag.renamed/1', { id: tag_id, name: 'Gold', previous_name: 'VIP' }, undefined],
        ['group.updated/1', { ...group, emoji: '⭐' }, { name: 'Friends', emoji: null }],
      ],
    )
  })

  it('deleting a tag while contacts get it leaves it on none', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042' })
    for (let round = 0; round < (database === 'embedded' ? 2 : 10); round++) {
      const name = `Short-lived ${round}`
      const old = { phone: `+155502${String(round).padStart(2, '0')}000`, tags: [name] }
      const { id: from } = await run('crm_upsert_contact', old)
      const tag = Number((await run('crm_list_tags', { search: name })).data[0].id)
      const upserts = Array.from({ length: 6 }, (_, i) =>
        call('crm_upsert_contact', { phone: `+155501${String(round).padStart(2, '0')}00${i}`, tags: [tag] }),
      )
      const [deleted, tagged, ...replies] = await Promise.all([
        call('crm_delete_tag', { tag_id: String(tag) }, { confirm: 'delete' }),
        call('crm_tag_contacts', { tags: [tag], contact_ids: [id, from] }),
        ...upserts,
      ])
      assert.equal(deleted.status, 200)
      for (const { status } of [tagged!, ...replies])
        assert.ok(status === 200 || status === 400, String(status))
      const left = server().db.selectFrom('contact_tags').select('contact_id')
      assert.deepEqual(await left.where('tag_id', '=', String(tag)).execute(), [])
    }
  })

  it('of two who take a name at the same time one gets it', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_upsert_contact', { phone: '+15550100042', tags: ['A', 'B', 'C', 'D'] })
    const call = callAs(server(), workspace.owner.key)
    const statuses = await Promise.all(
      (await run('crm_list_tags')).data.map(
        async ({ id }: { id: string }) => (await call('crm_rename_tag', { tag_id: id, name: 'Same' })).status,
      ),
    )
    assert.deepEqual(statuses.toSorted(), [200, 409, 409, 409])
  })
})
