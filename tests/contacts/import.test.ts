import assert from 'node:assert/strict'
import { type Door, everyDoor } from '../doors.ts'
import { loadWorkspaceRows } from '../world.ts'
import { formatPhone, listImportEvents, toActions } from './imports.ts'

const createRows = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    phone: `+${formatPhone(2_000_000 + i)}`,
    name: `Person ${i}`,
  }))

/** Returns 14 rows of two contacts; ten of the rows are invalid. */
const createMixedRows = (groupId: string): unknown[] => [
  {
    phone: '+1 555 010 0042',
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    attributes: { plan: 'Pro' },
    tags: ['VIP', 'math'],
    group_ids: [groupId],
  },
  { phone: '030 1234567' },
  { phone: '0015550100001', name: 'Bob', tags: ['OLD'] },
  { phone: '(+1) 5550100042', name: 'Ada King' },
  { phone: '+15550100003', nmae: 'Eve' },
  { phone: '+15550100003', attributes: { pla: 'pro' } },
  { phone: '+15550100003', attributes: { plan: 'gold' }, email: 'nobody' },
  { phone: '+15550100003', group_ids: ['987654321'] },
  { phone: '+15550100003', tags: ['never created', 987654321] },
  { name: 'no phone' },
  'not a row',
  { phone: '+15550100003', name: 'half a pair \uD800' },
  { phone: '*******0042', name: 'masked' },
  { phone: '15550100042' },
]

/** Row, pointer and code of each error of the mixed rows. */
const MIXED_ROW_ERRORS = [
  [1, '#/rows/1/phone', 'invalid_phone'],
  [4, '#/rows/4/nmae', 'unknown_field'],
  [5, '#/rows/5/attributes/pla', 'unknown_attribute'],
  [6, '#/rows/6/email', 'invalid_format'],
  [7, '#/rows/7/group_ids/0', 'unknown_group'],
  [8, '#/rows/8/tags/1', 'unknown_tag'],
  [9, '#/rows/9/phone', 'required'],
  [10, '#/rows/10', 'invalid_type'],
  [11, '#/rows/11/name', 'invalid_text'],
  [12, '#/rows/12/phone', 'invalid_phone'],
]

const assertImportedContact = async (call: Door['call'], contactId: string): Promise<void> => {
  const ada = (await call('crm_get_contact', { contact_id: contactId })).body
  assert.deepEqual(
    [
      ada.name,
      ada.phone,
      ada.email,
      ada.tags.map((t: { name: string }) => t.name),
      ada.groups.map((g: { name: string }) => g.name),
    ],
    ['Ada King', '15550100042', 'ada@example.com', ['math', 'VIP'], ['Friends']],
  )
  assert.deepEqual(
    ada.attributes.map((a: { key: string; value: string }) => [a.key, a.value]),
    [
      ['email', 'ada@example.com'],
      ['plan', 'pro'],
    ],
  )
}

everyDoor('Contact import', (test) => {
  test('creates and updates contacts, and reports the errors of the other rows', async ({ call }) => {
    await call('crm_create_custom_field', {
      key: 'plan',
      type: 'select',
      options: [{ label: 'Pro', value: 'pro' }],
    })
    const { group } = (await call('crm_create_group', { name: 'Friends' })).body
    const existing = (await call('crm_upsert_contact', { phone: '+15550100001', name: 'Bob', tags: ['old'] }))
      .body
    const { status, body } = await call('crm_import_contacts', { rows: createMixedRows(group.id) })
    assert.equal(status, 200)
    const { results, failures, ...counts } = body
    assert.deepEqual(counts, {
      requested: 14,
      succeeded: 4,
      failed: 10,
      created: 1,
      updated: 1,
      unchanged: 2,
    })
    assert.deepEqual(toActions(body), [
      'created',
      'failed',
      'unchanged',
      'updated',
      ...Array.from({ length: 9 }, () => 'failed'),
      'unchanged',
    ])
    assert.deepEqual(
      [results[2].id, results[3].id, results[13].id, results[1].id],
      [existing.id, results[0].id, results[0].id, null],
    )
    assert.deepEqual(
      failures.flatMap((f: { row: number; errors: { pointer: string; code: string }[] }) =>
        f.errors.map((e) => [f.row, e.pointer, e.code]),
      ),
      MIXED_ROW_ERRORS,
    )
    assert.match(failures[1].errors[0].fix, /Did you mean name\?/)
    assert.deepEqual(failures[2].errors[0].allowed, ['email', 'plan'])
    assert.match(failures.at(-1).message, /masked/)
    await assertImportedContact(call, results[0].id)
    assert.equal((await call('crm_search_contacts')).body.total, 2)
    assert.deepEqual(
      (await call('crm_list_tags')).body.data.map((t: { name: string; contacts_count: number }) => [
        t.name,
        t.contacts_count,
      ]),
      [
        ['math', 1],
        ['old', 1],
        ['VIP', 1],
      ],
    )
    assert.equal((await call('crm_list_groups')).body.data[0].contacts_count, 1)
  })

  test('accepts 1 to 500 rows', async ({ call }) => {
    for (const rows of [[], createRows(501)]) {
      const { status, body } = await call('crm_import_contacts', { rows })
      assert.equal(status, 400)
      assert.match(JSON.stringify(body.errors), /rows/)
    }
    const { body } = await call('crm_import_contacts', { rows: createRows(500) })
    assert.equal(body.created, 500)
    assert.equal(new Set(body.results.map((r: { id: string }) => r.id)).size, 500)
    assert.equal((await call('crm_search_contacts')).body.total, 500)
  })

  test('a dry run changes nothing', async ({ call, server, workspace }) => {
    await call('crm_upsert_contact', { phone: '+15550100001' })
    const before = await loadWorkspaceRows(server.db, workspace.id)
    const rows = [
      { phone: '+15550100001', name: 'Bob' },
      { phone: '+15550100002', tags: ['new'] },
      { phone: '+15550100002', name: 'Eve' },
      { phone: '0123' },
    ]
    const { body } = await call('crm_import_contacts', { rows, dry_run: true })
    assert.equal(body.dry_run, true)
    assert.deepEqual(toActions(body), ['updated', 'created', 'updated', 'failed'])
    assert.notEqual(body.results[0].id, null)
    assert.deepEqual(
      body.results.slice(1).map((r: { id: string | null }) => r.id),
      [null, null, null],
    )
    assert.deepEqual(await loadWorkspaceRows(server.db, workspace.id), before)
  })

  test('a repeated idempotency key returns the first response and imports nothing twice', async ({
    call,
    server,
    workspace,
  }) => {
    const rows = [{ phone: '+15550100001', tags: ['a'] }, { phone: '12' }]
    const first = await call('crm_import_contacts', { rows }, { idempotencyKey: 'import-batch-1' })
    assert.deepEqual(toActions(first.body), ['created', 'failed'])
    const events = await listImportEvents(server, workspace.id)
    assert.deepEqual(
      (await call('crm_import_contacts', { rows }, { idempotencyKey: 'import-batch-1' })).body,
      first.body,
    )
    assert.equal(
      (await call('crm_import_contacts', { rows: rows.slice(0, 1) }, { idempotencyKey: 'import-batch-1' }))
        .status,
      400,
    )
    assert.deepEqual(await listImportEvents(server, workspace.id), events)
  })

  test('agents see and set no more than with an upsert', async ({ call, workspace, as }) => {
    await call('crm_create_custom_field', { key: 'credit', type: 'int', visibility: 'manager_only' })
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const { body } = await agent('crm_import_contacts', {
      rows: [
        { phone: '+15550100042', name: 'Ada' },
        { phone: '+15550100043', attributes: { credit: 5 } },
      ],
    })
    assert.deepEqual(toActions(body), ['created', 'failed'])
    assert.deepEqual(body.failures[0].errors[0].allowed, ['email'])
  })
})
