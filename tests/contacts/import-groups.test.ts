import assert from 'node:assert/strict'
import { doAs } from '../calls.ts'
import { everyDoor } from '../doors.ts'

everyDoor('Groups of an import', (test) => {
  test('by name; unknown ones fail their row with the nearest, or are created when asked', async ({
    server,
    workspace,
    call,
  }) => {
    const run = doAs(server, workspace.owner.key)
    const { group } = await run('crm_create_group', { name: 'Großhandel' })
    const rows = [
      { phone: '+15550100001', group_names: ['GROSSHANDEL'], group_ids: [group.id] },
      { phone: '+15550100002', group_names: ['Grosshandl', 'Retail'] },
      { phone: '+15550100003', group_names: ['retail', 'Retail'] },
    ]
    const groupsOf = async (phone: string): Promise<string[]> => {
      const { data } = await run('crm_search_contacts', { query: phone, detail: 'full' })
      return data[0].groups.map(({ name }: { name: string }) => name)
    }
    const refused = await call('crm_import_contacts', { rows })
    assert.deepEqual([refused.body.created, refused.body.failed], [1, 2])
    const [first, second] = refused.body.failures
    assert.deepEqual(first.errors[0], {
      pointer: '#/rows/1/group_names/0',
      code: 'unknown_group',
      detail: 'is not the name of a group of this workspace',
      fix: 'Did you mean "Großhandel"?',
    })
    assert.equal(second.errors[0].pointer, '#/rows/2/group_names/0')
    assert.deepEqual(await groupsOf('15550100001'), ['Großhandel'])
    // A dry run creates none.
    const rehearsed = await call('crm_import_contacts', { rows, create_missing_groups: true, dry_run: true })
    assert.equal(rehearsed.body.failed, 0)
    assert.equal((await run('crm_list_groups')).total, 1)
    const { body } = await call('crm_import_contacts', { rows, create_missing_groups: true })
    assert.deepEqual([body.created, body.unchanged, body.failed], [2, 1, 0])
    assert.deepEqual(await groupsOf('15550100002'), ['Grosshandl', 'Retail'])
    assert.deepEqual(await groupsOf('15550100003'), ['Retail'])
    const { data } = await run('events_list', { types: ['group.created/1'] })
    assert.equal(data.length, 3)
  })
})
