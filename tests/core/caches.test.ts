import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doorsOf, everyDatabase } from '../doors.ts'
import { makeWorkspace, serveStorage } from '../servers.ts'

// Servers cache custom fields and the names of tags and groups. Each read here hits a warm cache, on a server
// that did not make the change.
everyDatabase('Caches', (server) => {
  it('custom fields, tags and groups are never stale on another server', async () => {
    const { db, app, database } = server()
    const workspace = await makeWorkspace(server())
    const other = await serveStorage(
      {
        db,
        heavy: db,
        heavyReads: 1,
        embedded: app.embedded,
        access: { pooled: false, prepare: true },
        poolStats: () => ({}),
        isDiskFull: () => false,
        close: async () => {},
      },
      database,
    )
    try {
      const call = doorsOf(server().url, workspace.owner.key)[1]!.call
      const read = async () =>
        (await doorsOf(other.url, workspace.owner.key)[1]!.call('crm_get_contact', { contact_id: id })).body
      const field = (await call('crm_create_custom_field', { key: 'plan', type: 'text' })).body.id
      const group = (await call('crm_create_group', { name: 'Before' })).body.group.id
      const { id } = (
        await call('crm_upsert_contact', {
          phone: '+15550100042',
          attributes: { plan: 'pro' },
          tags: ['Before'],
          group_ids: [group],
        })
      ).body
      const before = await read()
      assert.deepEqual(
        [before.attributes[0].label, before.tags[0].name, before.groups[0].name],
        ['plan', 'Before', 'Before'],
      )

      await call('crm_update_custom_field', { custom_field_id: field, label: 'Plan' })
      assert.equal((await read()).attributes[0].label, 'Plan')
      await call('crm_rename_tag', { tag_id: before.tags[0].id, name: 'After' })
      assert.equal((await read()).tags[0].name, 'After')
      await call('crm_update_group', { group_id: group, name: 'After' })
      assert.equal((await read()).groups[0].name, 'After')
      await call('crm_delete_custom_field', { custom_field_id: field }, { confirm: 'delete' })
      assert.deepEqual((await read()).attributes, [])
      await call('crm_delete_group', { group_id: group }, { confirm: 'delete' })
      assert.deepEqual((await read()).groups, [])
    } finally {
      await other.close()
    }
  })
})
