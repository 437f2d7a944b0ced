import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const now = '2026-10-01T09:30:00.000Z'
const clock = { now: () => now }
const phone = (n: number) => `+1555010004${n}`
const ada = { name: { contains: 'ada' } }

const refusal = ({ status, body }: Reply) => [status, body.code, body.reason]
const places = ({ body }: Reply): string[] =>
  body.errors.map((e: { pointer?: string; parameter?: string }) =>
    (e.pointer ?? e.parameter)!.split('/').at(-1),
  )

/**
 * A row that no door makes: of another kind, of nobody, or with a filter that was stored under other rules.
 * Answers its id.
 */
const plantRow = async (
  server: TestServer,
  workspace: TestWorkspace,
  row: { kind?: string; owner?: string | null; filter?: unknown; name?: string },
): Promise<string> => {
  const { kind = 'contact', owner = workspace.owner.staffId, filter = ada, name = 'Planted' } = row
  const { rows } = await sql<{ id: string }>`
    insert into saved_filters (workspace_id, kind, name, name_key, owner_staff_id, filter, created_at, updated_at)
    values (${workspace.id}, ${kind}, ${name}, ${name.toLowerCase()}, ${owner}, ${JSON.stringify(filter)}::jsonb, ${now}, ${now}) returning id`.execute(
    server.db,
  )
  return rows[0]!.id
}

const rowsOf = async (server: TestServer, workspace: TestWorkspace): Promise<unknown[]> =>
  (
    await sql`select id, name, description, filter, updated_at from saved_filters where workspace_id = ${workspace.id} order by id`.execute(
      server.db,
    )
  ).rows.map((row) => ({ ...(row as object) }))

everyDoor(
  'Saved filters',
  (test) => {
    test('are made, read, listed and changed', async ({ call, workspace }) => {
      const filter = { createdAt: { gte: '-7d' }, name: { contains: 'ada' } }
      const made = await call('crm_create_saved_filter', {
        name: '  New leads ',
        description: 'Of the week',
        filter,
      })
      assert.equal(made.status, 201)
      const saved = {
        id: made.body.saved_filter.id,
        kind: 'contact',
        name: 'New leads',
        description: 'Of the week',
        owner_staff_id: workspace.owner.staffId,
        filter: { createdAt: { gte: '2026-09-24T09:30:00.000Z' }, name: { contains: 'ada' } },
        updated_at: now,
      }
      assert.deepEqual(made.body, {
        saved_filter: saved,
        resolved_dates: [{ path: '#/filter/createdAt/gte', input: '-7d', value: '2026-09-24T09:30:00.000Z' }],
        warnings: [],
      })
      assert.deepEqual((await call('crm_get_saved_filter', { saved_filter_id: saved.id })).body, saved)
      assert.deepEqual((await call('crm_list_saved_filters')).body, {
        data: [saved],
        total: 1,
        next_cursor: null,
      })
      const renamed = await call('crm_update_saved_filter', { saved_filter_id: saved.id, name: 'Leads' })
      assert.deepEqual(renamed.body, {
        saved_filter: { ...saved, name: 'Leads' },
        changes: ['name'],
        resolved_dates: [],
        warnings: [],
      })
      assert.deepEqual((await call('crm_get_saved_filter', { saved_filter_id: saved.id })).body, {
        ...saved,
        name: 'Leads',
      })
    })

    test('find contacts, and a change of them is seen at once', async ({ call }) => {
      for (const [n, name] of ['Ada', 'Adam', 'Bob'].entries())
        await call('crm_upsert_contact', { phone: phone(n), name })
      const { id } = (await call('crm_create_saved_filter', { name: 'A', filter: ada })).body.saved_filter
      const count = async () => (await call('crm_count_contacts', { saved_filter_id: id })).body.count
      assert.equal(await count(), 2)
      await call('crm_update_saved_filter', { saved_filter_id: id, filter: { name: { contains: 'b' } } })
      assert.equal(await count(), 1)
    })

    test('say which fields a change changes, and write nothing when none does', async ({
      call,
      server,
      workspace,
    }) => {
      const { id } = (
        await call('crm_create_saved_filter', {
          name: 'One',
          filter: { name: { contains: 'ada', isNull: false }, dnd: { eq: true } },
        })
      ).body.saved_filter
      const before = await rowsOf(server, workspace)
      const change = async (input: Record<string, unknown>) =>
        (await call('crm_update_saved_filter', { saved_filter_id: id, ...input })).body
      for (const same of [
        {},
        { name: 'One' },
        { name: ' One ' },
        { description: null },
        { filter: { dnd: { eq: true }, name: { isNull: false, contains: 'ada' } } },
      ]) {
        assert.deepEqual((await change(same)).changes, [], JSON.stringify(same))
      }
      assert.deepEqual(await rowsOf(server, workspace), before)
      assert.deepEqual((await change({ name: 'Two', description: 'What for', filter: ada })).changes, [
        'name',
        'description',
        'filter',
      ])
      assert.deepEqual(
        (await change({ name: 'Two', description: '', filter: { name: { contains: 'Ada' } } })).changes,
        ['description', 'filter'],
      )
      const { changes, saved_filter: cleared } = await change({ description: null })
      assert.deepEqual(
        [changes, cleared.description, cleared.name, cleared.filter],
        [['description'], null, 'Two', { name: { contains: 'Ada' } }],
      )
    })

    test('belong to whoever saved them, whatever the role of others', async ({
      call,
      as,
      workspace,
      door,
      server,
    }) => {
      const agent = await workspace.staff({ role: 'agent' })
      const { id } = (await as(agent.key)('crm_create_saved_filter', { name: 'Mine', filter: ada })).body
        .saved_filter
      const before = await rowsOf(server, workspace)
      for (const reply of [
        await call('crm_update_saved_filter', { saved_filter_id: id, name: 'Ours' }),
        await call('crm_update_saved_filter', { saved_filter_id: id, dry_run: true }),
        await call('crm_update_saved_filter', { saved_filter_id: id, filter: { nonsense: 1 } }),
        await call('crm_delete_saved_filter', { saved_filter_id: id, dry_run: true }),
        ...(door.confirms
          ? [await call('crm_delete_saved_filter', { saved_filter_id: id }, { confirm: 'delete' })]
          : []),
      ]) {
        assert.deepEqual(
          [...refusal(reply), reply.body.owner_staff_id],
          [403, 'forbidden', 'not_owner', agent.staffId],
        )
      }
      const nobodys = await plantRow(server, workspace, { owner: null })
      const reply = await call('crm_update_saved_filter', { saved_filter_id: nobodys, name: 'x' })
      assert.deepEqual([...refusal(reply), reply.body.owner_staff_id], [403, 'forbidden', 'not_owner', null])
      assert.deepEqual((await rowsOf(server, workspace)).slice(0, 1), before)
      assert.equal(
        (await call('crm_get_saved_filter', { saved_filter_id: id })).body.owner_staff_id,
        agent.staffId,
      )
      // Another key of the same person.
      const second = as((await workspace.key(agent.staffId)).key)
      assert.deepEqual(
        (await second('crm_update_saved_filter', { saved_filter_id: id, name: 'Still mine' })).body.changes,
        ['name'],
      )
    })

    test('are rehearsed without a trace, and counted when asked', async ({ call, server, workspace }) => {
      for (const [n, name] of ['Ada', 'Adam', 'Bob'].entries())
        await call('crm_upsert_contact', { phone: phone(n), name })
      const { saved_filter: made } = (await call('crm_create_saved_filter', { name: 'Kept', filter: ada }))
        .body
      const before = await rowsOf(server, workspace)
      const created = await call('crm_create_saved_filter', {
        name: 'New',
        filter: { name: { eq: 'Bob' } },
        dry_run: true,
        count: true,
      })
      assert.equal(created.status, 201)
      assert.deepEqual(created.body, {
        saved_filter: { ...made, id: null, name: 'New', filter: { name: { eq: 'Bob' } }, updated_at: null },
        resolved_dates: [],
        warnings: [],
        count: 1,
        approximate: false,
        dry_run: true,
      })
      const preview = async (input: Record<string, unknown>) =>
        (await call('crm_update_saved_filter', { saved_filter_id: made.id, dry_run: true, ...input })).body
      const shown = {
        saved_filter: { ...made, updated_at: null },
        resolved_dates: [],
        warnings: [],
        dry_run: true,
      }
      assert.deepEqual(await preview({ filter: { not: ada }, count: true }), {
        ...shown,
        saved_filter: { ...shown.saved_filter, filter: { not: ada } },
        changes: ['filter'],
        count: 1,
        approximate: false,
      })
      assert.deepEqual(await preview({ count: true }), {
        ...shown,
        changes: [],
        count: 2,
        approximate: false,
      })
      assert.deepEqual(await preview({ name: 'Kept', count: false }), { ...shown, changes: [] })
      assert.deepEqual(await rowsOf(server, workspace), before)
    })

    test('count in rehearsals alone; a test key rehearses always', async ({
      call,
      as,
      workspace,
      server,
    }) => {
      const { id } = (await call('crm_create_saved_filter', { name: 'Kept', filter: ada })).body.saved_filter
      for (const [op, input] of [
        ['crm_create_saved_filter', { name: 'New', filter: ada }],
        ['crm_update_saved_filter', { saved_filter_id: id, name: 'New' }],
      ] as const) {
        const refused = await call(op, { ...input, count: true })
        assert.deepEqual([...refusal(refused), places(refused)], [400, 'invalid_input', undefined, ['count']])
        const { body } = await as((await workspace.key(workspace.owner.staffId, { test: true })).key)(op, {
          ...input,
          count: true,
        })
        assert.deepEqual([body.dry_run, body.count, body.saved_filter.updated_at], [true, 0, null])
        assert.equal((await call(op, { ...input, count: false, dry_run: true })).body.count, undefined)
      }
      assert.equal((await rowsOf(server, workspace)).length, 1)
    })

    test('answer a rehearsal whose count fails all the same', async ({ call, server, workspace }) => {
      const gone = await plantRow(server, workspace, {
        filter: { savedFilter: { eq: '999999999' } },
        name: 'Gone',
      })
      const odd = await plantRow(server, workspace, { filter: { name: { regex: '(' } }, name: 'Odd' })
      const other = await plantRow(server, workspace, {
        kind: 'conversation',
        filter: { state: { eq: 'open' } },
        name: 'Other',
      })
      for (const [id, code] of [
        [gone, 'not_found'],
        [odd, 'invalid_input'],
        [other, 'invalid_input'],
      ] as const) {
        const { status, body } = await call('crm_update_saved_filter', {
          saved_filter_id: id,
          description: 'Looked at',
          count: true,
          dry_run: true,
        })
        assert.deepEqual(
          [
            status,
            body.saved_filter.description,
            body.changes,
            body.count,
            body.count_error.code,
            body.approximate,
          ],
          [200, 'Looked at', ['description'], null, code, undefined],
        )
        assert.ok(body.count_error.message.length > 0)
      }
    })

    test('of conversations take no contact filter, nor is one of them used as such', async ({
      call,
      server,
      workspace,
    }) => {
      const id = await plantRow(server, workspace, {
        kind: 'conversation',
        filter: { state: { eq: 'open' } },
      })
      const refused = await call('crm_update_saved_filter', { saved_filter_id: id, filter: ada })
      assert.deepEqual([...refusal(refused), places(refused)], [400, 'invalid_input', undefined, ['filter']])
      assert.deepEqual(
        (await call('crm_update_saved_filter', { saved_filter_id: id, name: 'Renamed' })).body.changes,
        ['name'],
      )
      assert.equal((await call('crm_get_saved_filter', { saved_filter_id: id })).body.kind, 'conversation')
      assert.deepEqual(
        refusal(
          await call('crm_create_saved_filter', { name: 'Uses it', filter: { savedFilter: { eq: id } } }),
        ).slice(0, 2),
        [400, 'invalid_input'],
      )
    })

    test('never lead back to themselves', async ({ call }) => {
      const make = async (name: string, filter: unknown): Promise<string> =>
        (await call('crm_create_saved_filter', { name, filter })).body.saved_filter.id
      const first = await make('First', ada)
      const second = await make('Second', { savedFilter: { eq: first } })
      const third = await make('Third', { or: [{ savedFilter: { eq: second } }, { dnd: { eq: true } }] })
      for (const id of [first, second, third]) {
        const refused = await call('crm_update_saved_filter', {
          saved_filter_id: first,
          filter: { not: { savedFilter: { eq: id } } },
        })
        assert.deepEqual(refusal(refused), [400, 'invalid_input', 'saved_filter_cycle'])
      }
      assert.deepEqual(
        (
          await call('crm_update_saved_filter', {
            saved_filter_id: third,
            filter: { savedFilter: { eq: first } },
          })
        ).body.changes,
        ['filter'],
      )
      assert.deepEqual(
        refusal(
          await call('crm_create_saved_filter', {
            name: 'None',
            filter: { savedFilter: { eq: '999999999' } },
          }),
        ),
        [404, 'not_found', 'saved_filter_not_found'],
      )
    })

    test('are deleted for good, with a confirmation', async ({ call, door, server, workspace }) => {
      const { id } = (await call('crm_create_saved_filter', { name: 'Gone', filter: ada })).body.saved_filter
      assert.deepEqual((await call('crm_delete_saved_filter', { saved_filter_id: id, dry_run: true })).body, {
        id,
        deleted: true,
        dry_run: true,
      })
      assert.equal((await call('crm_delete_saved_filter', { saved_filter_id: id })).status, 428)
      assert.equal((await rowsOf(server, workspace)).length, 1)
      if (!door.confirms) return
      assert.deepEqual(
        (await call('crm_delete_saved_filter', { saved_filter_id: id }, { confirm: 'delete' })).body,
        { id, deleted: true },
      )
      for (const reply of [
        await call('crm_get_saved_filter', { saved_filter_id: id }),
        await call('crm_update_saved_filter', { saved_filter_id: id, name: 'x' }),
        await call('crm_delete_saved_filter', { saved_filter_id: id }, { confirm: 'delete' }),
        await call('crm_count_contacts', { saved_filter_id: id }),
      ])
        assert.deepEqual(refusal(reply), [404, 'not_found', 'saved_filter_not_found'])
    })

    test('are paged by name and searched in it, ignoring case', async ({ call }) => {
      for (const name of ['beta 10%', 'Alpha', 'alpha', 'Straße', 'Beta 100'])
        await call('crm_create_saved_filter', { name, filter: ada })
      const names = async (input: Record<string, unknown>) =>
        (await call('crm_list_saved_filters', input)).body.data.map((f: { name: string }) => f.name)
      assert.deepEqual(await names({}), ['Alpha', 'alpha', 'beta 10%', 'Beta 100', 'Straße'])
      assert.deepEqual(await names({ search: 'STRASSE' }), ['Straße'])
      assert.deepEqual(await names({ search: '0%' }), ['beta 10%'])
      assert.deepEqual(await names({ search: '_' }), [])
      const pages = []
      let cursor: string | undefined
      do {
        const { body } = await call('crm_list_saved_filters', {
          search: 'A',
          limit: 2,
          ...(cursor ? { cursor } : {}),
        })
        pages.push({ names: body.data.map((f: { name: string }) => f.name), total: body.total })
        cursor = body.next_cursor ?? undefined
      } while (cursor)
      assert.deepEqual(pages, [
        { names: ['Alpha', 'alpha'], total: 5 },
        { names: ['beta 10%', 'Beta 100'], total: null },
        { names: ['Straße'], total: null },
      ])
    })

    test('keep their bounds, and name what breaks them', async ({ call, server, workspace }) => {
      const { id } = (
        await call('crm_create_saved_filter', {
          name: 'N'.repeat(255),
          description: 'd'.repeat(1000),
          filter: ada,
        })
      ).body.saved_filter
      for (const [field, wrong] of [
        ['name', ''],
        ['name', ' '],
        ['name', 'n'.repeat(256)],
        ['description', 'd'.repeat(1001)],
      ] as const) {
        const made = await call('crm_create_saved_filter', { name: 'Fine', filter: ada, [field]: wrong })
        assert.deepEqual([...refusal(made), places(made)], [400, 'invalid_input', undefined, [field]])
        const changed = await call('crm_update_saved_filter', { saved_filter_id: id, [field]: wrong })
        assert.deepEqual([...refusal(changed), places(changed)], [400, 'invalid_input', undefined, [field]])
      }
      assert.deepEqual(
        refusal(await call('crm_create_saved_filter', { name: 'Odd', filter: { nmae: { eq: 'x' } } })).slice(
          0,
          2,
        ),
        [400, 'invalid_input'],
      )
      for (const unknown of ['999999999', '9999999999999999999']) {
        assert.deepEqual(refusal(await call('crm_get_saved_filter', { saved_filter_id: unknown })), [
          404,
          'not_found',
          'saved_filter_not_found',
        ])
      }
      // What was stored under other rules cannot be kept, but can be replaced.
      const large = await plantRow(server, workspace, {
        filter: { name: { in: Array.from({ length: 70 }, (_, n) => `${n}${'x'.repeat(470)}`) } },
      })
      assert.deepEqual(
        refusal(await call('crm_update_saved_filter', { saved_filter_id: large, name: 'Large' })),
        [400, 'invalid_input', 'filter_too_large'],
      )
      assert.deepEqual(
        (await call('crm_update_saved_filter', { saved_filter_id: large, name: 'Small', filter: ada })).body
          .changes,
        ['name', 'filter'],
      )
    })
  },
  clock,
)

everyDatabase(
  'Saved filters',
  (server) => {
    it('show the phones in them to those alone who may see phones', async () => {
      const workspace = await makeWorkspace(server())
      const owner = doAs(server(), workspace.owner.key)
      const filter = {
        or: [
          { phoneNumber: { eq: '15550100042' } },
          { not: { phoneNumber: { in: ['15550100043', '15550100044'] } } },
          { phoneNumber: { contains: '5550' } },
          { phoneNumber: { regex: '^1555[0-9]+44$' } },
          { chatappUserId: { startsWith: '15550100045@c' } },
          { name: { eq: 'Agent 12345678' } },
          {
            attributes: {
              some: { attributeName: { eq: 'email' }, stringValue: { eq: '15550100046@example.com' } },
            },
          },
        ],
      }
      const { id } = (await owner('crm_create_saved_filter', { name: 'Phones', filter })).saved_filter
      const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
      const seen = doAs(server(), agent.key)
      const masked = {
        or: [
          { phoneNumber: { eq: '********042' } },
          { not: { phoneNumber: { in: ['********043', '********044'] } } },
          { phoneNumber: { contains: '****' } },
          { phoneNumber: { regex: '^****[*-*]+**$' } },
          { chatappUserId: { startsWith: '***********@c' } },
          { name: { eq: 'Agent 12345678' } },
          {
            attributes: {
              some: { attributeName: { eq: 'email' }, stringValue: { eq: '********046@example.com' } },
            },
          },
        ],
      }
      assert.deepEqual((await seen('crm_get_saved_filter', { saved_filter_id: id })).filter, masked)
      assert.deepEqual((await seen('crm_list_saved_filters')).data[0].filter, masked)
      for (const fields of [{ role: 'agent' }, { role: 'manager', hide_phone_numbers: true }] as const) {
        assert.deepEqual(
          (
            await doAs(server(), (await workspace.staff(fields)).key)('crm_get_saved_filter', {
              saved_filter_id: id,
            })
          ).filter,
          filter,
        )
      }
      assert.deepEqual((await owner('crm_get_saved_filter', { saved_filter_id: id })).filter, filter)
      const own = {
        attributes: { some: { attributeName: { eq: 'email' }, stringValue: { contains: '123456' } } },
      }
      const refused = await callAs(server(), agent.key)('crm_create_saved_filter', {
        name: 'Digits',
        filter: { phoneNumber: { contains: '5' } },
      })
      assert.deepEqual(refusal(refused), [403, 'forbidden', 'phone_hidden'])
      const made = (await seen('crm_create_saved_filter', { name: 'Own', filter: own })).saved_filter
      assert.deepEqual(made.filter, own)
    })

    it('of another workspace are unknown, also within a filter', async () => {
      const other = await makeWorkspace(server())
      const { id } = (
        await doAs(server(), other.owner.key)('crm_create_saved_filter', { name: 'Theirs', filter: ada })
      ).saved_filter
      const call = callAs(server(), (await makeWorkspace(server())).owner.key)
      const naming = { savedFilter: { eq: id } }
      for (const [op, input] of [
        ['crm_get_saved_filter', { saved_filter_id: id }],
        ['crm_update_saved_filter', { saved_filter_id: id, name: 'Ours' }],
        ['crm_search_contacts', { saved_filter_id: id }],
        ['crm_create_saved_filter', { name: 'Ours', filter: naming }],
        ['crm_check_filter', { filter: { not: naming } }],
        ['crm_count_contacts', { filter: naming }],
      ] as const)
        assert.deepEqual(refusal(await call(op, input)), [404, 'not_found', 'saved_filter_not_found'], op)
      assert.deepEqual((await call('crm_list_saved_filters')).body, { data: [], total: 0, next_cursor: null })
    })

    it('close no circle when two are changed at once', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      for (let round = 0; round < 5; round++) {
        const ids: string[] = []
        for (const name of ['A', 'B', 'C', 'D'])
          ids.push((await run('crm_create_saved_filter', { name, filter: ada })).saved_filter.id)
        const replies = await Promise.all(
          ids.map((id, n) =>
            callAs(server(), workspace.owner.key)('crm_update_saved_filter', {
              saved_filter_id: id,
              filter: { savedFilter: { eq: ids[(n + 1) % ids.length] } },
            }),
          ),
        )
        assert.deepEqual(
          replies.map((r) => r.body.reason ?? r.status).toSorted(),
          [200, 200, 200, 'saved_filter_cycle'].toSorted(),
        )
      }
    })
  },
  clock,
)

everyDatabase(
  'Saved filters where contact filters are switched off',
  (server) => {
    it('are read and renamed, but neither made nor given another filter', async () => {
      const workspace = await makeWorkspace(server())
      const call = callAs(server(), workspace.owner.key)
      const id = await plantRow(server(), workspace, {})
      assert.equal((await call('crm_list_saved_filters')).body.total, 1)
      assert.deepEqual(
        (await call('crm_update_saved_filter', { saved_filter_id: id, name: 'Renamed' })).body.changes,
        ['name'],
      )
      for (const [op, input] of [
        ['crm_create_saved_filter', { name: 'New', filter: ada }],
        ['crm_update_saved_filter', { saved_filter_id: id, filter: ada }],
      ] as const) {
        assert.deepEqual(refusal(await call(op, input)), [
          503,
          'service_unconfigured',
          'advanced_filter_disabled',
        ])
      }
    })
  },
  { advancedFilters: 'off' },
)
