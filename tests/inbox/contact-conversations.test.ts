import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { at, insertContact, insertConversation, insertChannel, idsOf } from './inbox-rows.ts'

everyDatabase('Conversations of a contact', (server) => {
  it('the ten newest of the channels that the reader may use', async () => {
    const { db } = server()
    const workspace = await makeWorkspace(server())
    const [one, two] = [
      await insertChannel(server(), workspace, 'One'),
      await insertChannel(server(), workspace, 'Two'),
    ]
    const contact = await insertContact(db, workspace.id, 'Ada', '15550100042')
    const conversations: { id: string; channel: string; created: string; last: string | null }[] = []
    for (let i = 0; i < 24; i++) {
      const [activity, withoutMessages, channel] = [at((i * 7) % 24), i % 3 === 0, i % 2 ? one : two]
      const id = await insertConversation(db, workspace.id, {
        contact_id: contact,
        channel_id: channel,
        assigned_staff_id: i % 2 ? workspace.owner.staffId : null,
        ...(withoutMessages ? { created_at: activity } : { created_at: at(-1), last_activity_at: activity }),
      })
      const created = withoutMessages ? activity : at(-1)
      conversations.push({ id, channel, created, last: withoutMessages ? null : activity })
    }
    await sql`
      update contacts set last_activity_at = ${at(23)}
      where workspace_id = ${workspace.id}`.execute(db)
    const newest = conversations.toSorted(
      (a, b) => b.created.localeCompare(a.created) || Number(b.id) - Number(a.id),
    )
    const agent = await workspace.staff({ channel_ids: [two] })
    for (const [key, visible] of [
      [workspace.owner.key, newest],
      [agent.key, newest.filter((t) => t.channel === two)],
    ] as const) {
      const run = doAs(server(), key)
      const found = await run('crm_get_contact', { contact_id: contact })
      assert.deepEqual(
        idsOf({ data: found.conversations }),
        visible.slice(0, 10).map((t) => t.id),
      )
      assert.equal(found.unavailable, undefined)
      for (const { channel_id, assigned, assigned_staff_id } of found.conversations)
        assert.deepEqual(
          [assigned, assigned_staff_id],
          channel_id === one ? [true, workspace.owner.staffId] : [false, null],
        )
      const {
        data: [listed],
      } = await run('crm_search_contacts', { query: 'ada' })
      assert.deepEqual(
        [listed.conversations, listed.last_activity_at],
        [found.conversations, found.last_activity_at],
      )
      assert.equal(
        found.last_activity_at,
        key === workspace.owner.key
          ? at(23)
          : visible
              .map((t) => t.last ?? '')
              .sort()
              .at(-1),
      )
    }
  })

  it('unavailable names conversations while their table is locked', async (t) => {
    if (server().database === 'embedded') return t.skip('its single session never waits for a lock')
    const { db } = server()
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const contact = await insertContact(db, workspace.id, 'Ada', '15550100042')
    await insertConversation(db, workspace.id, {
      contact_id: contact,
      channel_id: null,
      last_activity_at: at(1),
    })
    await db.transaction().execute(async (tx) => {
      await sql`lock table conversations in access exclusive mode`.execute(tx)
      const found = await run('crm_get_contact', { contact_id: contact })
      assert.deepEqual([found.name, found.conversations, found.unavailable], ['Ada', [], ['conversations']])
      const { data } = await run('crm_search_contacts', { query: 'ada' })
      assert.deepEqual([data.length, data[0].unavailable], [1, ['conversations']])
    })
    const found = await run('crm_get_contact', { contact_id: contact })
    assert.deepEqual([found.conversations.length, found.unavailable], [1, undefined])
  })
})
