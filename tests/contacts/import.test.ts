import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { rowsOf } from '../world.ts'
import { runs } from '../level.ts'

const phoneOf = (n: number): string => `1555${String(n).padStart(7, '0')}`
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({
    phone: `+${phoneOf(2_000_000 + from + i)}`,
    name: `Person ${from + i}`,
  }))

type Event = { type: string; data: Record<string, unknown> }
const eventsOf = async (server: TestServer, workspace: TestWorkspace): Promise<Event[]> =>
  (await server.db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspace.id)
    .orderBy('xid')
    .orderBy('id')
    .execute()) as Event[]

const actions = (body: { results: { action: string }[] }): string[] =>
  body.results.map((result) => result.action)

everyDoor('Contact import', (test) => {
  test('creates and updates contacts, and reports the errors of the other rows', async ({ call }) => {
    await call('crm_create_custom_field', {
      key: 'plan',
      type: 'select',
      options: [{ label: 'Pro', value: 'pro' }],
    })
    const { group } = (await call('crm_create_group', { name: 'Friends' })).body
    const old = (await call('crm_upsert_contact', { phone: '+15550100001', name: 'Bob', tags: ['old'] })).body
    const { status, body } = await call('crm_import_contacts', {
      rows: [
        {
          phone: '+1 555 010 0042',
          name: 'Ada Lovelace',
          email: 'ada@example.com',
          attributes: { plan: 'Pro' },
          tags: ['VIP', 'math'],
          group_ids: [group.id],
        },
        { phone: '030 1234567' },
        { phone: '0015550100001', name: 'Bob', tags: ['OLD'] },
        { phone: '(+1) 5550100042', name: 'Ada King' },
        { phone: '+15550100003', nmae: 'Eve' },
        { phone: '+15550100003', attributes: { pla: 'pro' } },
        { phone: '+15550100003', attributes: { plan: 'gold' }, email: 'nobody' },
        { phone: '+15550100003', group_ids: ['77'] },
        { phone: '+15550100003', tags: ['never made', 77] },
        { name: 'no phone' },
        'not a row',
        { phone: '+15550100003', name: 'half a pair \uD800' },
        { phone: '*******0042', name: 'masked' },
        { phone: '15550100042' },
      ],
    })
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
    assert.deepEqual(actions(body), [
      'created',
      'failed',
      'unchanged',
      'updated',
      ...Array.from({ length: 9 }, () => 'failed'),
      'unchanged',
    ])
    assert.deepEqual(
      [results[2].id, results[3].id, results[13].id, results[1].id],
      [old.id, results[0].id, results[0].id, null],
    )
    assert.deepEqual(
      failures.flatMap((f: { row: number; errors: { pointer: string; code: string }[] }) =>
        f.errors.map((e) => [f.row, e.pointer, e.code]),
      ),
      [
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
      ],
    )
    assert.match(failures[1].errors[0].fix, /Did you mean name\?/)
    assert.deepEqual(failures[2].errors[0].allowed, ['email', 'plan'])
    assert.match(failures.at(-1).message, /masked/)
    const ada = (await call('crm_get_contact', { contact_id: results[0].id })).body
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
    for (const rows of [[], many(501)]) {
      const { status, body } = await call('crm_import_contacts', { rows })
      assert.equal(status, 400)
      assert.match(JSON.stringify(body.errors), /rows/)
    }
    const { body } = await call('crm_import_contacts', { rows: many(500) })
    assert.equal(body.created, 500)
    assert.equal(new Set(body.results.map((r: { id: string }) => r.id)).size, 500)
    assert.equal((await call('crm_search_contacts')).body.total, 500)
  })

  test('a dry run changes nothing', async ({ call, server, workspace }) => {
    await call('crm_upsert_contact', { phone: '+15550100001' })
    const before = await rowsOf(server.db, workspace.id)
    const rows = [
      { phone: '+15550100001', name: 'Bob' },
      { phone: '+15550100002', tags: ['new'] },
      { phone: '+15550100002', name: 'Eve' },
      { phone: '0123' },
    ]
    const { body } = await call('crm_import_contacts', { rows, dry_run: true })
    assert.equal(body.dry_run, true)
    assert.deepEqual(actions(body), ['updated', 'created', 'updated', 'failed'])
    assert.notEqual(body.results[0].id, null)
    assert.deepEqual(
      body.results.slice(1).map((r: { id: string | null }) => r.id),
      [null, null, null],
    )
    assert.deepEqual(await rowsOf(server.db, workspace.id), before)
  })

  test('a repeated idempotency key returns the first response and imports nothing twice', async ({
    call,
    server,
    workspace,
  }) => {
    const rows = [{ phone: '+15550100001', tags: ['a'] }, { phone: '12' }]
    const first = await call('crm_import_contacts', { rows }, { idempotencyKey: 'import-batch-1' })
    assert.deepEqual(actions(first.body), ['created', 'failed'])
    const events = await eventsOf(server, workspace)
    assert.deepEqual(
      (await call('crm_import_contacts', { rows }, { idempotencyKey: 'import-batch-1' })).body,
      first.body,
    )
    assert.equal(
      (await call('crm_import_contacts', { rows: rows.slice(0, 1) }, { idempotencyKey: 'import-batch-1' }))
        .status,
      400,
    )
    assert.deepEqual(await eventsOf(server, workspace), events)
  })

  test('agents see and set no more than with an upsert', async ({ call, workspace, as }) => {
    await call('crm_create_custom_field', { key: 'credit', type: 'int', visibility: 'manager_only' })
    const agent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const { body, text } = await agent('crm_import_contacts', {
      rows: [
        { phone: '+15550100042', name: 'Ada' },
        { phone: '+15550100043', attributes: { credit: 5 } },
      ],
    })
    assert.deepEqual(actions(body), ['created', 'failed'])
    assert.deepEqual(body.failures[0].errors[0].allowed, ['email'])
    assert.doesNotMatch(text, /1555010/)
  })
})

everyDatabase('Contact import against upserts', (server) => {
  const scene = async (fields: Parameters<typeof makeWorkspace>[1] = {}) => {
    const workspace = await makeWorkspace(server(), fields)
    return {
      workspace,
      run: doAs(server(), workspace.owner.key),
      call: callAs(server(), workspace.owner.key),
    }
  }

  it('has the same result as upserts of its rows in order', async () => {
    const worlds = await Promise.all([scene(), scene()])
    const groups = new Map<string, string[]>()
    for (const { run, workspace } of worlds) {
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
      groups.set(workspace.id, [
        (await run('crm_create_group', { name: 'One' })).group.id,
        (await run('crm_create_group', { name: 'Two' })).group.id,
      ])
    }
    const value = {
      note: fc.constantFrom('', 'Straße', '𝕏 \u0001', 'a "quoted" \\ {text}, null'),
      size: fc.constantFrom<unknown>(0, -7, '12'),
      when: fc.constant('2026-10-01T09:30:00+02:00'),
      yes: fc.boolean(),
      many: fc.constantFrom<unknown>(['a', 'c'], 'b', []),
    }
    const phone = fc.constantFrom(...Array.from({ length: 4 }, (_, n) => `+${phoneOf(n)}`))
    const row = fc.oneof(
      { weight: 3, arbitrary: fc.record({ phone, name: fc.constantFrom('Ada', 'Ünal') }) },
      {
        weight: 5,
        arbitrary: fc.record(
          {
            phone,
            name: fc.constantFrom('Ada', 'Ünal', 'İ', ' Eve '),
            email: fc.constantFrom('Ada@Example.com', 'b@example.com', ''),
            attributes: fc.record(
              Object.fromEntries(Object.entries(value).map(([key, of]) => [key, fc.option(of, { freq: 5 })])),
              { requiredKeys: [] },
            ),
            tags: fc.uniqueArray(fc.constantFrom('VIP', 'vip', 'Straße', 'STRASSE', '12'), { maxLength: 3 }),
            group_ids: fc.subarray([0, 1]),
          },
          { requiredKeys: ['phone'] },
        ),
      },
      {
        weight: 2,
        arbitrary: fc
          .tuple(
            phone,
            fc.constantFrom(
              { phone: '0123' },
              { name: '' },
              { attributes: { note: 'kept?', never: 'x' } },
              { attributes: { size: 'many' } },
              { tags: ['left out', 999999999] },
              { group_ids: [0, 2] },
            ),
          )
          .map(([one, fault]) => ({ phone: one, ...fault })),
      },
    )
    // Ids and times differ between the two; all else must not.
    const plain = async ({ run, workspace }: (typeof worlds)[number]) => {
      const label = (of: { name: string }[]) => of.map(({ name }) => name)
      const contacts = (
        await run('crm_search_contacts', { detail: 'full', sort: { field: 'phoneNumber', direction: 'asc' } })
      ).data
      const events = (await eventsOf(server(), workspace))
        .filter((e) => e.type.startsWith('contact.'))
        .map(({ type, data }) => {
          const {
            contact,
            changes,
            tags,
            groups: into,
          } = data as {
            contact?: { name: string; phone: string }
            changes?: string[]
            tags?: { name: string }[]
            groups?: { name: string }[]
          }
          return [type, contact?.name, contact?.phone, changes, tags && label(tags), into && label(into)]
        })
      const counts = async (op: string) =>
        (await run(op)).data.map((l: { name: string; contacts_count: number }) => [l.name, l.contacts_count])
      const values = await server()
        .db.selectFrom('contact_attributes as a')
        .innerJoin('contacts as c', (on) =>
          on.onRef('c.workspace_id', '=', 'a.workspace_id').onRef('c.id', '=', 'a.contact_id'),
        )
        .innerJoin('custom_fields as f', (on) =>
          on.onRef('f.workspace_id', '=', 'a.workspace_id').onRef('f.id', '=', 'a.field_id'),
        )
        .select([
          'c.phone',
          'f.key',
          'a.n',
          'a.text_key',
          'a.free',
          'a.number_value',
          'a.bool_value',
          'a.time_value',
        ])
        .where('a.workspace_id', '=', workspace.id)
        .orderBy('c.phone')
        .orderBy('f.key')
        .orderBy('a.n')
        .execute()
      const people = contacts.map(
        ({
          id: _,
          created_at: _c,
          updated_at: _u,
          tags,
          groups: into,
          ...rest
        }: {
          id: string
          created_at: string
          updated_at: string
          tags: { name: string }[]
          groups: { name: string }[]
        }) => ({ ...rest, tags: label(tags), groups: label(into) }),
      )
      return {
        people,
        events,
        values,
        tags: await counts('crm_list_tags'),
        groups: await counts('crm_list_groups'),
        fields: (await run('crm_list_custom_fields')).data.map((f: { key: string; in_use: boolean }) => [
          f.key,
          f.in_use,
        ]),
      }
    }
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 12 }), async (rows) => {
        const rowsFor = ({ workspace }: (typeof worlds)[number]) =>
          (rows as { group_ids?: number[] }[]).map((r) => ({
            ...r,
            ...(r.group_ids
              ? { group_ids: r.group_ids.map((n) => groups.get(workspace.id)![n] ?? '999999999') }
              : {}),
          }))
        const [alone, together] = worlds
        const singles = []
        for (const one of rowsFor(alone!)) {
          const { status, body } = await alone!.call('crm_upsert_contact', one)
          singles.push(
            status === 200
              ? body.action
              : [
                  body.code,
                  body.detail,
                  body.errors.map((e: { pointer: string; code: string; detail: string; fix: string }) => [
                    e.pointer,
                    e.code,
                    e.detail,
                    e.fix,
                  ]),
                ],
          )
        }
        const imported = await together!.run('crm_import_contacts', { rows: rowsFor(together!) })
        const failures = new Map(imported.failures.map((f: { row: number }) => [f.row, f]))
        const asSingles = imported.results.map(({ row: n, action }: { row: number; action: string }) => {
          const failure = failures.get(n) as
            | {
                code: string
                message: string
                errors: { pointer: string; code: string; detail: string; fix: string }[]
              }
            | undefined
          return failure
            ? [
                failure.code,
                failure.message,
                failure.errors.map((e) => [e.pointer.replace(`#/rows/${n}`, '#'), e.code, e.detail, e.fix]),
              ]
            : action
        })
        assert.deepEqual(asSingles, singles)
        for (const single of singles) seen.add(typeof single === 'string' ? single : single[2][0][1])
        assert.deepEqual(await plain(together!), await plain(alone!))
      }),
      { numRuns: runs(15, 80) },
    )
    for (const kind of [
      'created',
      'updated',
      'unchanged',
      'invalid_phone',
      'unknown_attribute',
      'unknown_group',
      'unknown_tag',
    ])
      assert.ok(seen.has(kind), kind)
  })

  it('emits each event once, in the order of the rows', async () => {
    const { run, workspace } = await scene()
    await run('crm_import_contacts', {
      rows: [
        { phone: phoneOf(1), name: 'Ada', tags: ['x'] },
        { phone: phoneOf(2), name: 'Bob', tags: ['x', 'y'] },
        { phone: phoneOf(1), name: 'Eve', tags: ['x', 'y'] },
        { phone: phoneOf(2), name: 'Bob', tags: ['y'] },
      ],
    })
    const told = (await eventsOf(server(), workspace)).map(({ type, data }) => {
      const { contact, tags } = data as { contact?: { name: string }; tags?: { name: string }[] }
      return [type, contact?.name ?? tags!.map((tag) => tag.name).join()]
    })
    assert.deepEqual(told, [
      ['contact.created/1', 'Ada'],
      ['contact.tags_added/1', 'x'],
      ['contact.created/1', 'Bob'],
      ['contact.tags_added/1', 'x,y'],
      ['contact.updated/1', 'Eve'],
      ['contact.tags_added/1', 'y'],
    ])
  })

  it('rows beyond the contact limit fail, and their new tags are not created', async () => {
    const { run } = await scene({ contact_limit: 3 })
    await run('crm_upsert_contact', { phone: phoneOf(1) })
    const body = await run('crm_import_contacts', {
      rows: [
        { phone: phoneOf(2), tags: ['in'] },
        { phone: '0' },
        { phone: phoneOf(3) },
        { phone: phoneOf(4), tags: ['out'] },
        { phone: phoneOf(1), name: 'Ada' },
        { phone: phoneOf(4) },
        { phone: phoneOf(2), name: 'Eve' },
      ],
    })
    assert.deepEqual(actions(body), [
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
    const { call, run, workspace } = await scene()
    const phones = Array.from({ length: 40 }, (_, n) => phoneOf(n))
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
    const all = replies.flatMap((r) => (r.body.results ? actions(r.body) : [r.body.action]))
    assert.equal(all.filter((action) => action === 'created').length, 40)
    assert.equal(all.filter((action) => action === 'failed').length, 0)
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
    const events = await eventsOf(server(), workspace)
    assert.equal(events.filter((e) => e.type === 'contact.created/1').length, 40)
    // Each contact gained each of its tags once: 7 of the imports, and one more of ten upserts.
    const gained = events
      .filter((e) => e.type === 'contact.tags_added/1')
      .flatMap(({ data }) =>
        (data.tags as { id: string }[]).map((tag) => `${(data.contact_ids as string[]).join()} ${tag.id}`),
      )
    assert.equal(gained.length, 40 * 7 + 10)
    assert.equal(new Set(gained).size, gained.length)
    for (const contact of (await run('crm_search_contacts', { detail: 'full', limit: 100 })).data)
      assert.equal(contact.email, `e${contact.name.slice(-1)}@example.com`)
  })

  it('the response stays small, however many errors there are', async () => {
    const { run, call } = await scene()
    const keys = Array.from({ length: 100 }, (_, n) => `field_${n}`)
    for (const key of keys) await run('crm_create_custom_field', { key, type: 'text' })
    const attributes = Object.fromEntries(keys.map((key) => [`${key}${'x'.repeat(2000)}`, 'value']))
    const { status, body, text } = await call('crm_import_contacts', {
      rows: Array.from({ length: 80 }, (_, n) => ({ phone: phoneOf(n), attributes })),
    })
    assert.equal(status, 200)
    assert.equal(body.failed, 80)
    assert.ok(body.failures.every((f: { errors: unknown[] }) => f.errors.length === 5))
    assert.ok(text.length < 500_000, String(text.length))
  })

  it('accepts rows with the longest custom values, more than a megabyte in total', async () => {
    const { run } = await scene()
    for (let n = 0; n < 3; n++) await run('crm_create_custom_field', { key: `text_${n}`, type: 'textarea' })
    const text = 'Übergröße 👩‍👩‍👧 "x" \\ '.repeat(400).slice(0, 10_000)
    const attributes = { text_0: text, text_1: text, text_2: text }
    const body = await run('crm_import_contacts', {
      rows: Array.from({ length: 60 }, (_, n) => ({ phone: phoneOf(n), attributes })),
    })
    assert.equal(body.created, 60)
    const contact = await run('crm_get_contact', { contact_id: body.results[59].id })
    assert.equal(contact.attributes.length, 3)
  })

  it('input that is nested too deep or too large is refused as a whole', async () => {
    const { workspace } = await scene()
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
    const [one, other] = [await scene(), await scene()]
    const { group } = await other.run('crm_create_group', { name: 'Theirs' })
    const there = await other.run('crm_upsert_contact', {
      phone: phoneOf(1),
      name: 'Theirs',
      tags: ['theirs'],
    })
    const before = await rowsOf(server().db, other.workspace.id)
    const body = await one.run('crm_import_contacts', {
      rows: [
        { phone: phoneOf(1), name: 'Ours' },
        { phone: phoneOf(2), group_ids: [group.id] },
        { phone: phoneOf(2), tags: [Number(there.contact.tags[0].id)] },
        { phone: phoneOf(2), tags: [there.contact.tags[0].id] },
      ],
    })
    assert.deepEqual(actions(body), ['created', 'failed', 'failed', 'created'])
    assert.deepEqual(await rowsOf(server().db, other.workspace.id), before)
  })
})
