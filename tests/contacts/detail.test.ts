import assert from 'node:assert/strict'
import { FULL_FIELDS } from '../../cli/row-detail.ts'
import { everyDoor } from '../doors.ts'
import { doAs } from '../calls.ts'

everyDoor('How much of a contact is read', (test) => {
  test('ids, compact with custom fields by key, and full say the same', async ({
    server,
    workspace,
    call,
    as,
  }) => {
    const setUp = doAs(server, workspace.owner.key)
    const options = [{ label: 'Pro plan', value: 'pro' }]
    await setUp('crm_create_custom_field', { key: 'plan', label: 'Plan', type: 'select', options })
    await setUp('crm_create_custom_field', { key: 'seats', label: 'Seats', type: 'int' })
    await setUp('crm_create_custom_field', { key: 'mobile', label: 'Mobile', type: 'phone' })
    await setUp('crm_create_custom_field', {
      key: 'margin',
      label: 'Margin',
      type: 'text',
      visibility: 'manager_only',
    })
    const { group } = await setUp('crm_create_group', { name: 'Wholesale' })
    const { contact } = await setUp('crm_upsert_contact', {
      phone: '+15550100042',
      name: 'Ada',
      email: 'ada@example.com',
      tags: ['VIP'],
      group_ids: [group.id],
      attributes: { plan: 'pro', seats: 3, mobile: '+15550100099', margin: 'thin' },
    })
    const id: string = contact.id
    const get = async (detail: string, run = call) =>
      (await run('crm_get_contact', { contact_id: id, detail })).body
    const list = async (detail: string, run = call) =>
      (await run('crm_search_contacts', { detail, limit: 1 })).body.data[0]
    const full = await get('full')
    // Where the command line names one of these, it asks for full rows.
    const summaryNames = new Set(Object.keys(await list('summary')))
    const lacking = Object.keys(await list('full')).filter((name) => !summaryNames.has(name))
    assert.deepEqual(lacking.toSorted(), FULL_FIELDS['crm_search_contacts']!.toSorted())
    const compact = await get('compact')
    assert.deepEqual(compact.attributes_map, {
      email: 'ada@example.com',
      plan: 'pro',
      seats: 3,
      mobile: '15550100099',
      margin: 'thin',
    })
    for (const field of [
      'id',
      'name',
      'phone',
      'dnd',
      'starred',
      'email',
      'tags',
      'groups',
      'last_activity_at',
    ])
      assert.deepEqual(compact[field], full[field], field)
    assert.deepEqual(await list('compact'), compact)
    assert.equal(compact.attributes, undefined)
    for (const read of [get, list]) assert.deepEqual(await read('ids'), { id })
    // A map shows no more than the list does.
    const clerk = as((await workspace.staff({ hide_phone_numbers: true, channel_ids: [] })).key)
    const seen = await get('compact', clerk)
    const { margin: _hidden, ...rest } = compact.attributes_map
    assert.deepEqual(seen.attributes_map, { ...rest, mobile: seen.attributes_map.mobile })
    assert.match(seen.attributes_map.mobile, /^\*+\d{3,4}$/)
    assert.match(seen.phone, /^\*+\d{3,4}$/)
    assert.deepEqual(await list('compact', clerk), seen)
  })

  test('tags and groups can be named; the nearest name of an unknown one is told', async ({
    server,
    workspace,
    call,
  }) => {
    const setUp = doAs(server, workspace.owner.key)
    const { group } = await setUp('crm_create_group', { name: 'Großhandel' })
    const { contact } = await setUp('crm_upsert_contact', {
      phone: '+15550100042',
      tags: ['VIP'],
      group_ids: [group.id],
    })
    const { contact: other } = await setUp('crm_upsert_contact', { phone: '+15550100043', tags: ['Lead'] })
    const tag = other.tags[0].id as string
    for (const [input, expected] of [
      [{ tag_ids: ['vip'] }, [contact.id]],
      [{ tag_ids: ['VIP', tag] }, [other.id, contact.id]],
      [{ group_ids: ['GROSSHANDEL'] }, [contact.id]],
      [{ tag_ids: ['999999'] }, []],
    ] as const) {
      const { body } = await call('crm_search_contacts', { ...input, limit: 10 })
      assert.deepEqual(
        body.data.map((row: { id: string }) => row.id),
        expected,
        JSON.stringify(input),
      )
    }
    const { status, body } = await call('crm_search_contacts', { tag_ids: [tag, 'VIPs'] })
    assert.equal(status, 400)
    assert.equal(body.errors[0].code, 'unknown_tag')
    assert.equal(body.errors[0].fix, 'Did you mean "VIP"?')
  })
})
