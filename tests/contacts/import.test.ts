import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { type Door, doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { loadWorkspaceRows } from '../world.ts'
import { findOperation } from '../../catalog/index.ts'
import { perform } from '../../server/kernel/perform.ts'
import { runs } from '../level.ts'

/** Returns the phone number with this number as its last seven digits. */
const formatPhone = (n: number): string => `1555${String(n).padStart(7, '0')}`

type ContactImportScene = Awaited<ReturnType<typeof createImportScene>>

/** Creates a workspace for import tests. */
const createImportScene = async (server: TestServer, fields: Parameters<typeof makeWorkspace>[1] = {}) => {
  const workspace = await makeWorkspace(server, fields)
  return {
    workspace,
    run: doAs(server, workspace.owner.key),
    call: callAs(server, workspace.owner.key),
  }
}

type ImportEvent = { type: string; data: Record<string, unknown> }

/** Returns the events of a workspace in the order in which they were emitted. */
const listImportEvents = async (
  { db }: Pick<TestServer, 'db'>,
  workspaceId: string,
): Promise<ImportEvent[]> =>
  (await db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('xid')
    .orderBy('id')
    .execute()) as ImportEvent[]

/** Returns the action of each row, in the order of the rows. */
const toActions = (body: { results: { action: string }[] }): string[] =>
  body.results.map((result) => result.action)

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

const ADA = '+15550100042'
const EVE = '+15550100043'

/** Forty keys of metadata: two such rows have too many for one contact. */
const manyKeys = (prefix: string) =>
  Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`${prefix}${n}`, 'x']))

everyDoor('Rows of an import that fail', (test) => {
  test('write nothing, to a new contact as little as to one that exists', async ({ call }) => {
    const wrong = { name: 'Wrong', email: 'wrong@example.com', external_id: 'W-1', metadata: manyKeys('b') }
    const rows = [
      { phone: ADA, metadata: manyKeys('a'), external_id: 'C-1' },
      { phone: ADA, ...wrong, external_id: 'C-1' },
      { phone: EVE, metadata: manyKeys('a') },
      { phone: EVE, ...wrong },
      { external_id: 'W-1', name: 'Wrong too' },
      { external_id: 'C-1', starred: 'perhaps' },
      { external_id: 'C-1', email: 'ada@example.com' },
    ]
    await call('crm_upsert_contact', { phone: ADA, name: 'Ada' })
    for (const dry_run of [true, false]) {
      const { body } = await call('crm_import_contacts', { rows, dry_run })
      assert.deepEqual(
        body.results.map(({ action }: { action: string }) => action),
        ['updated', 'failed', 'created', 'failed', 'failed', 'failed', 'updated'],
      )
      assert.equal(body.results[2].id === null, dry_run)
      assert.deepEqual(
        body.failures.map(({ row, code }: any) => [row, code]),
        [
          [1, 'invalid_input'],
          [3, 'invalid_input'],
          [4, 'not_found'],
          [5, 'invalid_input'],
        ],
      )
    }
    const { data, total } = (
      await call('crm_search_contacts', {
        detail: 'full',
        sort: { field: 'phoneNumber', direction: 'asc' },
      })
    ).body
    assert.equal(total, 2)
    assert.deepEqual(
      data.map((row: any) => [row.name, row.email, row.external_id, Object.keys(row.metadata).length]),
      [
        ['Ada', 'ada@example.com', 'C-1', 40],
        [null, null, null, 40],
      ],
    )
    assert.equal((await call('crm_search_contacts', { query: 'Wrong' })).body.total, 0)
    // The id that a failed row named is free.
    const late = await call('crm_upsert_contact', { phone: '+15550100044', external_id: 'W-1' })
    assert.equal(late.body.action, 'created')
  })
})

everyDatabase('A cancelled import', (server) => {
  it('is rolled back, whichever step it reached, and runs when it is repeated', async () => {
    const { owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const importRows = async (cancelAt?: number) => {
      const abort = new AbortController()
      const steps: number[] = []
      const { status, problem } = await perform(server().app, {
        transport: 'mcp',
        operation: findOperation('crm_import_contacts'),
        input: { rows: [{ phone: '+15550100047', tags: ['Cancelled'] }, { phone: '+15550100048' }] },
        requestId: 'req_cancelled',
        authorization: `Bearer ${owner.key}`,
        idempotencyKey: 'cancelled-import',
        address: '127.0.0.1',
        watch: {
          signal: abort.signal,
          reached: (share) => {
            steps.push(share)
            if (share === cancelAt) abort.abort()
          },
        },
      })
      return { status, reason: problem?.reason, steps }
    }
    for (const [index, cancelAt] of [0, 0.25, 0.5].entries()) {
      const { status, reason, steps } = await importRows(cancelAt)
      assert.deepEqual([status, reason, steps], [503, 'call_cancelled', [0, 0.25, 0.5].slice(0, index + 1)])
      assert.equal((await run('crm_count_contacts', {})).count, 0)
      assert.equal((await run('crm_list_tags', {})).data.length, 0)
    }
    const done = await importRows()
    assert.deepEqual([done.status, done.steps], [200, [0, 0.25, 0.5, 0.75]])
    assert.equal((await run('crm_count_contacts', {})).count, 2)
  })
})

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

type Named = { name: string }
type FieldError = { pointer: string; code: string; detail: string; fix: string }
type RowFailure = { row: number; code: string; message: string; errors: FieldError[] }
/** The action of a row that succeeded, or the code, detail and field errors of one that failed. */
type RowOutcome = string | [code: string, detail: string, errors: string[][]]

const toNames = (rows: readonly Named[]): string[] => rows.map(({ name }) => name)

/** Creates the custom fields and the two groups that rows refer to; returns the ids of the groups. */
const createReferences = async ({ run }: ContactImportScene): Promise<string[]> => {
  for (const [key, type] of [
    ['note', 'text'],
    ['size', 'int'],
    ['when', 'datetime'],
    ['yes', 'boolean'],
  ])
    await run('crm_create_custom_field', { key, type })
  await run('crm_create_custom_field', {
    key: 'many',
    type: 'multiselect',
    options: ['a', 'b', 'c'].map((value) => ({ label: value.toUpperCase(), value })),
  })
  return [
    (await run('crm_create_group', { name: 'One' })).group.id,
    (await run('crm_create_group', { name: 'Two' })).group.id,
  ]
}

const attributeValues = {
  note: fc.constantFrom('', 'Straße', '𝕏 \u0001', 'a "quoted" \\ {text}, null'),
  size: fc.constantFrom<unknown>(0, -7, '12'),
  when: fc.constant('2026-10-01T09:30:00+02:00'),
  yes: fc.boolean(),
  many: fc.constantFrom<unknown>(['a', 'c'], 'b', []),
}
const attributes = fc.record(
  Object.fromEntries(
    Object.entries(attributeValues).map(([key, value]) => [key, fc.option(value, { freq: 5 })]),
  ),
  { requiredKeys: [] },
)
const phone = fc.constantFrom(...Array.from({ length: 4 }, (_, n) => `+${formatPhone(n)}`))
/** A tag's name of digits, which is the id of no tag. */
const DIGITS = '90071992547'
const minimalRow = fc.record({ phone, name: fc.constantFrom('Ada', 'Ünal') })
/** `group_ids` holds indexes into the groups of the workspace. */
const fullRow = fc.record(
  {
    phone,
    name: fc.constantFrom('Ada', 'Ünal', 'İ', ' Eve '),
    email: fc.constantFrom('Ada@Example.com', 'b@example.com', ''),
    attributes,
    tags: fc.uniqueArray(fc.constantFrom('VIP', 'vip', 'Straße', 'STRASSE', DIGITS), { maxLength: 3 }),
    group_ids: fc.subarray([0, 1]),
  },
  { requiredKeys: ['phone'] },
)
const invalidRow = fc
  .tuple(
    phone,
    fc.constantFrom(
      { phone: '0123' },
      { name: '' },
      { attributes: { note: 'discarded', never: 'x' } },
      { attributes: { size: 'many' } },
      { tags: ['discarded', 999999999] },
      { group_ids: [0, 2] },
    ),
  )
  .map(([validPhone, invalid]) => ({ phone: validPhone, ...invalid }))
const row = fc.oneof(
  { weight: 3, arbitrary: minimalRow },
  { weight: 5, arbitrary: fullRow },
  { weight: 2, arbitrary: invalidRow },
)

/** Rows with each outcome, so that no run depends on what is generated. */
const EVERY_OUTCOME = [
  { phone: '+15550000001', name: 'Ada' },
  { phone: '+15550000001', name: 'Ada' },
  { phone: '+15550000001', name: 'Ünal' },
  { phone: '0123' },
  { phone: '+15550000002', attributes: { never: 'x' } },
  { phone: '+15550000002', group_ids: [0, 2] },
  { phone: '+15550000002', tags: ['discarded', 999999999] },
]

const toErrorRows = (errors: readonly FieldError[], prefix: string): string[][] =>
  errors.map((e) => [e.pointer.replace(prefix, '#'), e.code, e.detail, e.fix])

/** Upserts the rows one after another. */
const upsertEach = async ({ call }: ContactImportScene, rows: readonly object[]): Promise<RowOutcome[]> => {
  const outcomes: RowOutcome[] = []
  for (const input of rows) {
    const { status, body } = await call('crm_upsert_contact', { ...input })
    outcomes.push(status === 200 ? body.action : [body.code, body.detail, toErrorRows(body.errors, '#')])
  }
  return outcomes
}

/** Imports the rows with one call. */
const importAll = async ({ run }: ContactImportScene, rows: readonly object[]): Promise<RowOutcome[]> => {
  const { results, failures } = await run('crm_import_contacts', { rows })
  const failureByRow = new Map((failures as RowFailure[]).map((f) => [f.row, f]))
  return results.map(({ row: n, action }: { row: number; action: string }) => {
    const failure = failureByRow.get(n)
    return failure ? [failure.code, failure.message, toErrorRows(failure.errors, `#/rows/${n}`)] : action
  })
}

const listContacts = async ({ run }: ContactImportScene): Promise<object[]> => {
  const { data } = await run('crm_search_contacts', {
    detail: 'full',
    sort: { field: 'phoneNumber', direction: 'asc' },
  })
  return data.map(
    ({
      id: _id,
      created_at: _createdAt,
      updated_at: _updatedAt,
      version: _version,
      tags,
      groups,
      ...contact
    }: {
      id: string
      created_at: string
      updated_at: string
      version: string
      tags: Named[]
      groups: Named[]
    }) => ({ ...contact, tags: toNames(tags), groups: toNames(groups) }),
  )
}

const listContactEvents = async (
  server: TestServer,
  { workspace }: ContactImportScene,
): Promise<unknown[][]> =>
  (await listImportEvents(server, workspace.id))
    .filter((e) => e.type.startsWith('contact.'))
    .map(({ type, data }) => {
      const { contact, changes, tags, groups } = data as {
        contact?: { name: string; phone: string }
        changes?: string[]
        tags?: Named[]
        groups?: Named[]
      }
      return [type, contact?.name, contact?.phone, changes, tags && toNames(tags), groups && toNames(groups)]
    })

const listAttributeRows = ({ db }: TestServer, { workspace }: ContactImportScene) =>
  db
    .selectFrom('contact_attributes as a')
    .innerJoin('contacts as c', (on) =>
      on.onRef('c.workspace_id', '=', 'a.workspace_id').onRef('c.id', '=', 'a.contact_id'),
    )
    .innerJoin('custom_fields as f', (on) =>
      on.onRef('f.workspace_id', '=', 'a.workspace_id').onRef('f.id', '=', 'a.field_id'),
    )
    .select(['c.phone', 'f.key', 'a.n', 'a.text_key', 'a.free'])
    .select(['a.number_value', 'a.bool_value', 'a.time_value'])
    .where('a.workspace_id', '=', workspace.id)
    .orderBy('c.phone')
    .orderBy('f.key')
    .orderBy('a.n')
    .execute()

/** Returns all that an import writes, without ids and times, which differ between two workspaces. */
const loadSnapshot = async (server: TestServer, scene: ContactImportScene) => {
  const { run } = scene
  const listCounts = async (op: string) =>
    (await run(op)).data.map((r: Named & { contacts_count: number }) => [r.name, r.contacts_count])
  return {
    contacts: await listContacts(scene),
    events: await listContactEvents(server, scene),
    values: await listAttributeRows(server, scene),
    tags: await listCounts('crm_list_tags'),
    groups: await listCounts('crm_list_groups'),
    fields: (await run('crm_list_custom_fields')).data.map((f: { key: string; in_use: boolean }) => [
      f.key,
      f.in_use,
    ]),
  }
}

everyDatabase('Contact import against upserts', (server) => {
  it('has the same result as upserts of its rows in order', async () => {
    const [single, bulk] = [await createImportScene(server()), await createImportScene(server())]
    const groupIds = { single: await createReferences(single), bulk: await createReferences(bulk) }
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.array<object>(row, { minLength: 1, maxLength: 12 }), async (rows) => {
        const withGroups = (groups: readonly string[]) =>
          (rows as { group_ids?: number[] }[]).map((r) => ({
            ...r,
            ...(r.group_ids ? { group_ids: r.group_ids.map((n) => groups[n] ?? '999999999') } : {}),
          }))
        const expected = await upsertEach(single, withGroups(groupIds.single))
        assert.deepEqual(await importAll(bulk, withGroups(groupIds.bulk)), expected)
        for (const outcome of expected) seen.add(typeof outcome === 'string' ? outcome : outcome[2][0]![1]!)
        assert.deepEqual(await loadSnapshot(server(), bulk), await loadSnapshot(server(), single))
      }),
      { numRuns: runs(15, 80), examples: [[EVERY_OUTCOME]] },
    )
    for (const outcome of [
      'created',
      'updated',
      'unchanged',
      'invalid_phone',
      'unknown_attribute',
      'unknown_group',
      'unknown_tag',
    ])
      assert.ok(seen.has(outcome), outcome)
  })
})
