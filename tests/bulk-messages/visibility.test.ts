import assert from 'node:assert/strict'
import { it } from 'node:test'
import { weekdays } from '../../catalog/policy.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createBulkScene, phoneOf, runSends, TEMPLATE } from './scene.ts'

everyDatabase('A template to many, by those from whom something is hidden', (server) => {
  it('tells and sends no phone where phones are hidden', async () => {
    const { workspace, add, run } = await createBulkScene(server())
    const phone = phoneOf(workspace.id, 1)
    const ids = [await add({ phone: `+${phone}`, name: 'Ada' })]
    ids.push(await add({ phone: `+${phoneOf(workspace.id, 2)}`, name: `Bob ${phone}` }))
    await run('crm_create_custom_field', { key: 'mobile', label: 'Mobile', type: 'phone' })
    const { key } = await workspace.staff({ name: 'Hid', role: 'agent', hide_phone_numbers: true })
    const call = callAs(server(), key)
    const rehearse = (body: unknown) =>
      call('messaging_send_bulk', { contact_ids: ids, template: { ...TEMPLATE, body }, dry_run: true })
    const { body, text } = await rehearse([{ field: 'name', fallback: 'you' }, { text: 'x' }])
    assert.deepEqual([body.countries, body.values[0].missing], [undefined, 1], text)
    assert.ok(!text.includes(phone), text)
    for (const value of [{ field: 'phone' }, { attribute: 'mobile', fallback: 'none' }]) {
      const refused = await rehearse([value, { text: 'x' }])
      assert.deepEqual([refused.status, refused.body.reason], [403, 'phone_hidden'], refused.text)
    }
    const sent = await call(
      'messaging_send_bulk',
      {
        contact_ids: ids,
        template: { ...TEMPLATE, body: [{ field: 'name', fallback: 'you' }, { text: 'x' }] },
      },
      { confirm: 'send' },
    )
    assert.equal(sent.status, 202, sent.text)
    await runSends(server())
    const { rows } = await server()
      .db.selectFrom('messages')
      .select('text')
      .where('workspace_id', '=', workspace.id)
      .where('direction', '=', 'outbound')
      .execute()
      .then((all) => ({ rows: all.map((row) => row.text?.split(',')[0]).toSorted() }))
    assert.deepEqual(rows, ['Hello Ada', 'Hello you'])
  })

  it('tells no country by hours where phones are hidden', async () => {
    const { workspace, add, send, run, rehearse } = await createBulkScene(server())
    const id = await add({ phone: `+${phoneOf(workspace.id, 1)}`, name: 'Ada' })
    const { key } = await workspace.staff({ name: 'Hid', role: 'agent', hide_phone_numbers: true })
    const call = callAs(server(), key)
    const hours = { from: '09:00', to: '10:00' }
    const input = { contact_ids: [id], template: { ...TEMPLATE, body: [{ text: 'a' }, { text: 'x' }] } }
    const refused = await call('messaging_send_bulk', { ...input, hours, dry_run: true })
    assert.deepEqual(
      [refused.status, refused.body.reason, refused.body.errors?.[0].pointer],
      [403, 'phone_hidden', '#/hours'],
      refused.text,
    )
    assert.deepEqual((await rehearse({ hours })).left_out, [{ reason: 'no_common_hour', count: 1 }])
    // A broadcast of somebody else waits for its hours, on another day.
    const later = new Date(Date.now() + 3 * 24 * 60 * 60_000).getUTCDay()
    const days = [weekdays[(later + 6) % 7]]
    const { job, broadcast } = (await send({ hours: { from: '09:00', to: '20:00', days } })).body
    await runSends(server())
    const read = { broadcast_id: broadcast.id }
    assert.match((await run('messaging_get_broadcast', read)).waiting.until, /T/)
    const hidden = (await call('messaging_get_broadcast', read)).body
    assert.deepEqual(hidden.waiting, { reason: 'hours', until: null })
    assert.deepEqual((await call('messaging_list_broadcasts')).body.data[0].waiting, hidden.waiting)
    await run('jobs_pause', { job_id: job.id })
    const paused = await run('messaging_get_broadcast', read)
    assert.deepEqual(paused.waiting, { reason: 'stopped', until: null })
  })

  it('needs the right to read, also for contacts that are named', async () => {
    const { workspace, add } = await createBulkScene(server())
    const id = await add({ phone: `+${phoneOf(workspace.id, 1)}`, name: 'Ada' })
    const { key } = await workspace.key(workspace.owner.staffId, { scopes: ['messaging:write'] })
    const input = { contact_ids: [id], template: TEMPLATE, dry_run: true }
    const { status, body, text } = await callAs(server(), key)('messaging_send_bulk', input)
    assert.deepEqual([status, body.code, body.scope], [403, 'insufficient_scope', 'mcp:read'], text)
    assert.ok(!text.includes('Ada'))
  })

  it('uses no manager-only field of an agent', async () => {
    const { workspace, add, run } = await createBulkScene(server())
    await run('crm_create_custom_field', {
      key: 'level',
      label: 'Level',
      type: 'text',
      visibility: 'manager_only',
    })
    const id = await add({ phone: `+${phoneOf(workspace.id, 1)}`, attributes: { level: 'gold' } })
    const { key } = await workspace.staff({ name: 'Agent', role: 'agent' })
    const input = {
      contact_ids: [id],
      template: { ...TEMPLATE, body: [{ attribute: 'level' }, { text: 'x' }] },
    }
    const refused = await callAs(server(), key)('messaging_send_bulk', { ...input, dry_run: true })
    const unknown = { ...input, template: { ...TEMPLATE, body: [{ attribute: 'levee' }, { text: 'x' }] } }
    const missing = await callAs(server(), key)('messaging_send_bulk', { ...unknown, dry_run: true })
    assert.equal(refused.status, 400)
    assert.ok(!missing.text.includes('level'), missing.text)
  })

  it('is on no hidden channel, nor are its broadcasts and jobs told', async () => {
    const { workspace, add, send, run } = await createBulkScene(server())
    const id = await add({ phone: `+${phoneOf(workspace.id, 1)}`, name: 'Ada' })
    const { job, broadcast } = (await send()).body
    const other = await createChannel(
      server().db,
      workspace.id,
      { type: 'web', name: 'Web', status: 'connected', url: 'https://example.com/hook' },
      server().app.now(),
    )
    const fields = { name: 'Lim', role: 'manager' as const, channel_ids: [other.id] }
    const { key } = await workspace.staff(fields)
    const call = callAs(server(), key)
    const channelId = (await run('jobs_get', { job_id: job.id })).input.channel_id
    const input = { contact_ids: [id], template: TEMPLATE, channel_id: channelId }
    assert.equal((await call('messaging_send_bulk', { ...input, dry_run: true })).status, 404)
    assert.equal((await call('jobs_get', { job_id: job.id })).status, 404)
    assert.equal((await call('jobs_pause', { job_id: job.id })).status, 404)
    assert.deepEqual((await call('jobs_list')).body.data, [])
    assert.equal((await call('messaging_get_broadcast', { broadcast_id: broadcast.id })).status, 404)
  })
})
