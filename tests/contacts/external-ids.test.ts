import assert from 'node:assert/strict'
import { doAs } from '../calls.ts'
import { everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const ADA = '+15550100042'
const EVE = '+15550100043'

everyDoor('External ids of contacts', (test) => {
  test('are set, found by, changed and cleared', async ({ call, server, workspace }) => {
    const created = (
      await call('crm_upsert_contact', { phone: ADA, external_id: '  C/1 ü.%2F ', name: 'Ada' })
    ).body
    assert.deepEqual([created.action, created.contact.external_id], ['created', 'C/1 ü.%2F'])
    const { id } = created
    for (const detail of ['full', 'compact']) {
      const read = await call('crm_get_contact', { external_id: 'C/1 ü.%2F', detail })
      assert.deepEqual([read.status, read.body.id, read.body.external_id], [200, id, 'C/1 ü.%2F'], read.text)
    }
    const find = async (input: object) =>
      (await call('crm_search_contacts', { detail: 'ids', ...input })).body.data.map(
        (row: { id: string }) => row.id,
      )
    assert.deepEqual(await find({ external_id: 'C/1 ü.%2F' }), [id])
    assert.deepEqual(await find({ external_id: 'c/1 ü.%2F' }), [])
    const without = (await call('crm_upsert_contact', { phone: EVE, name: 'Eve' })).body.id
    assert.deepEqual(await find({ filter: { externalId: { in: ['C/1 ü.%2F', 'C/2'] } } }), [id])
    assert.deepEqual(await find({ filter: { externalId: { isNull: true } } }), [without])
    assert.deepEqual(await find({ filter: { externalId: { ne: 'C/1 ü.%2F' } } }), [])

    const renamed = (await call('crm_upsert_contact', { external_id: 'C/1 ü.%2F', name: 'Ada King' })).body
    assert.deepEqual([renamed.id, renamed.action, renamed.contact.name], [id, 'updated', 'Ada King'])
    const same = (await call('crm_upsert_contact', { external_id: 'C/1 ü.%2F', phone: ADA })).body
    assert.deepEqual([same.id, same.action], [id, 'unchanged'])
    const changed = (await call('crm_update_contact', { contact_id: id, external_id: '7' })).body
    assert.equal(changed.external_id, '7')
    const cleared = (await call('crm_upsert_contact', { phone: ADA, external_id: null })).body
    assert.deepEqual([cleared.id, cleared.action, cleared.contact.external_id], [id, 'updated', null])
    assert.equal((await call('crm_get_contact', { external_id: '7' })).status, 404)
    const set = (await call('crm_upsert_contact', { phone: ADA, external_id: 8 })).body
    assert.deepEqual([set.id, set.contact.external_id], [id, '8'])
    const events = (await doAs(server, workspace.owner.key)('events_list', { types: ['contact.updated/1'] }))
      .data
    assert.deepEqual(
      events.map(({ data }: any) => [data.changes, data.contact.external_id]),
      [
        [['name'], 'C/1 ü.%2F'],
        [['external_id'], '7'],
        [['external_id'], null],
        [['external_id'], '8'],
      ],
    )
  })

  test('are refused where they do not belong to the phone, naming both', async ({ call }) => {
    const ada = (await call('crm_upsert_contact', { phone: ADA, external_id: 'C-1' })).body.id
    const eve = (await call('crm_upsert_contact', { phone: EVE, external_id: 'C-2' })).body.id
    const refuse = async (input: object, expected: object) => {
      for (const dry_run of [true, false]) {
        const { status, body } = await call('crm_upsert_contact', { ...input, dry_run })
        assert.deepEqual(
          {
            status,
            reason: body.reason,
            fields: body.errors?.map((e: { pointer: string }) => e.pointer),
            detail: body.detail,
          },
          expected,
        )
      }
    }
    const conflict = { status: 409, reason: 'identity_conflict', fields: ['#/external_id', '#/phone'] }
    await refuse(
      { phone: EVE, external_id: 'C-1' },
      {
        ...conflict,
        detail:
          `external_id is that of contact ${ada}, and phone that of contact ${eve}. Nothing was changed. ` +
          'Leave out the one that is wrong.',
      },
    )
    await refuse(
      { phone: '+15550100044', external_id: 'C-1' },
      {
        ...conflict,
        detail:
          `Contact ${ada} has this external_id and another phone, or none. An upsert changes no phones. ` +
          'Nothing was changed. Leave out the one that is wrong.',
      },
    )
    await refuse(
      { phone: ADA, external_id: 'C-3' },
      {
        ...conflict,
        detail:
          `Contact ${ada} has this phone and another external_id, which crm_update_contact changes. ` +
          'Nothing was changed. Leave out the one that is wrong.',
      },
    )
    const unknown = await call('crm_upsert_contact', { external_id: 'C-3', name: 'Nobody' })
    assert.equal(unknown.status, 404)
    assert.match(unknown.body.detail, /Send phone too/)
    assert.equal((await call('crm_upsert_contact', { name: 'Nobody' })).status, 400)
    const taken = await call('crm_update_contact', { contact_id: ada, external_id: 'C-2' })
    assert.deepEqual([taken.status, taken.body.reason], [409, 'external_id_taken'])
    for (const bad of ['', ' ', 'a\u0007b', 'a\nb', 'x'.repeat(256), true]) {
      const { status } = await call('crm_upsert_contact', { phone: ADA, external_id: bad })
      assert.equal(status, 400, JSON.stringify(bad))
    }
    assert.equal((await call('crm_search_contacts')).body.total, 2)
  })

  test('one of many upserts at the same time creates the contact', async ({ call }) => {
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        call('crm_upsert_contact', { phone: n % 2 ? ADA : EVE, external_id: 'C-1', tags: [`t${n}`] }),
      ),
    )
    const statuses = replies.map(({ status }) => status).toSorted()
    assert.deepEqual(statuses, [200, 200, 200, 409, 409, 409])
    assert.equal((await call('crm_search_contacts')).body.total, 1)
  })

  test('identify rows of an import', async ({ call }) => {
    const ada = (await call('crm_upsert_contact', { phone: ADA, external_id: 'C-1' })).body.id
    const rows = [
      { external_id: 'C-1', name: 'Ada' },
      { phone: EVE, external_id: 'C-2', name: 'Eve' },
      { external_id: 'C-2', name: 'Eva' },
      { phone: EVE, external_id: 'C-1' },
      { phone: '+15550100044', external_id: 'C-2' },
      { external_id: 'C-9' },
      { name: 'Nobody' },
      { phone: EVE, external_id: 'C-3' },
    ]
    for (const dry_run of [true, false]) {
      const { body } = await call('crm_import_contacts', { rows, dry_run })
      assert.deepEqual(
        body.results.map(({ action }: { action: string }) => action),
        ['updated', 'created', 'updated', ...Array(5).fill('failed')],
      )
      assert.deepEqual(
        body.failures.map(({ row, code, errors }: any) => [row, code, errors.map((e: any) => e.pointer)]),
        [
          [3, 'conflict', ['#/rows/3/external_id', '#/rows/3/phone']],
          [4, 'conflict', ['#/rows/4/external_id', '#/rows/4/phone']],
          [5, 'not_found', []],
          [6, 'invalid_input', ['#/rows/6/phone']],
          [7, 'conflict', ['#/rows/7/external_id', '#/rows/7/phone']],
        ],
      )
      assert.match(body.failures[0].message, new RegExp(`contact ${ada}, and phone that of contact of row 1`))
    }
    const named = async (external_id: string) => (await call('crm_get_contact', { external_id })).body.name
    assert.deepEqual([await named('C-1'), await named('C-2')], ['Ada', 'Eva'])
    const moved = await call('crm_import_contacts', { rows: [{ phone: ADA, external_id: null }] })
    assert.equal(moved.body.updated, 1)
    assert.equal((await call('crm_get_contact', { external_id: 'C-1' })).status, 404)
  })

  test('are those of a workspace', async ({ call, server }) => {
    await call('crm_upsert_contact', { phone: ADA, external_id: 'C-1' })
    const other = doAs(server, (await makeWorkspace(server)).owner.key)
    const { action } = await other('crm_upsert_contact', { phone: EVE, external_id: 'C-1' })
    assert.equal(action, 'created')
    assert.equal((await call('crm_get_contact', { external_id: 'C-1' })).body.phone, ADA.slice(1))
  })

  test('tell staff from whom phones are hidden nothing of them in a dry run', async ({
    call,
    as,
    workspace,
  }) => {
    await call('crm_upsert_contact', { phone: ADA, external_id: 'C-1', name: 'Ada' })
    await call('crm_upsert_contact', { phone: EVE, external_id: 'C-2', name: 'Eve' })
    const blind = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const answers = []
    for (const phone of [ADA, EVE, '+15550100099']) {
      const { status, body } = await blind('crm_upsert_contact', {
        phone,
        external_id: 'C-1',
        dry_run: true,
      })
      answers.push(JSON.stringify([status, body]))
      assert.equal(body.action, 'unchanged')
      assert.match(body.warnings[0], /does not show whether/)
    }
    assert.equal(new Set(answers).size, 1)
  })
})
