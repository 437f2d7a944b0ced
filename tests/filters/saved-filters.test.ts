import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { callAs, doAs } from '../calls.ts'
import { assertRefused, createFilterOfSize, type Json, NAME_IS_X, setUp } from './grammar-fixtures.ts'

/** The time of the test server. */
const SAVED_FILTERS_NOW = '2026-10-01T09:30:00.000Z'
/** Options of the test server. */
const serverOptions = { now: () => SAVED_FILTERS_NOW }
const toPhone = (n: number) => `+1555010004${n}`
const NAME_CONTAINS_ADA = { name: { contains: 'ada' } }

/** Returns the status, code and reason of a refusal. */
const toRefusal = ({ status, body }: Reply) => [status, body.code, body.reason]
/** Lists the names of the fields that errors are about. */
const listErrorFields = ({ body }: Reply): string[] =>
  body.errors.map((e: { pointer?: string; parameter?: string }) =>
    (e.pointer ?? e.parameter)!.split('/').at(-1),
  )

/**
 * Inserts a row that no operation creates: of another kind, without an owner, or with a filter that
 * today's rules refuse. Returns its id.
 */
const insertSavedFilter = async (
  server: TestServer,
  workspace: TestWorkspace,
  row: { kind?: string; owner?: string | null; filter?: unknown; name?: string },
): Promise<string> => {
  const {
    kind = 'contact',
    owner = workspace.owner.staffId,
    filter = NAME_CONTAINS_ADA,
    name = 'Inserted',
  } = row
  const { rows } = await sql<{ id: string }>`
    insert into saved_filters (workspace_id, kind, name, name_key, owner_staff_id, filter,
      created_at, updated_at)
    values (${workspace.id}, ${kind}, ${name}, ${name.toLowerCase()}, ${owner},
      ${JSON.stringify(filter)}::jsonb, ${SAVED_FILTERS_NOW}, ${SAVED_FILTERS_NOW})
    returning id`.execute(server.db)
  return rows[0]!.id
}

/** Loads the saved filters of a workspace from the table. */
const loadRows = async (server: TestServer, workspace: TestWorkspace): Promise<unknown[]> =>
  (
    await sql`
      select id, name, description, filter, updated_at from saved_filters
      where workspace_id = ${workspace.id} order by id`.execute(server.db)
  ).rows.map((row) => ({ ...(row as object) }))

everyDoor(
  'Saved filters',
  (test) => {
    test('can be created, read, listed and updated', async ({ call, workspace }) => {
      const filter = { createdAt: { gte: '-7d' }, name: { contains: 'ada' } }
      const created = await call('crm_create_saved_filter', {
        name: '  New leads ',
        description: 'Of the week',
        filter,
      })
      assert.equal(created.status, 201)
      const saved = {
        id: created.body.saved_filter.id,
        kind: 'contact',
        name: 'New leads',
        description: 'Of the week',
        owner_staff_id: workspace.owner.staffId,
        filter: { createdAt: { gte: '2026-09-24T09:30:00.000Z' }, name: { contains: 'ada' } },
        updated_at: SAVED_FILTERS_NOW,
        version: created.body.saved_filter.version,
      }
      assert.deepEqual(created.body, {
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
        saved_filter: { ...saved, name: 'Leads', version: renamed.body.saved_filter.version },
        changes: ['name'],
        resolved_dates: [],
        warnings: [],
      })
      assert.deepEqual((await call('crm_get_saved_filter', { saved_filter_id: saved.id })).body, {
        ...saved,
        name: 'Leads',
        version: renamed.body.saved_filter.version,
      })
    })

    test('select contacts; a change takes effect at once', async ({ call }) => {
      for (const [n, name] of ['Ada', 'Adam', 'Bob'].entries())
        await call('crm_upsert_contact', { phone: toPhone(n), name })
      const { id } = (await call('crm_create_saved_filter', { name: 'A', filter: NAME_CONTAINS_ADA })).body
        .saved_filter
      const count = async () => (await call('crm_count_contacts', { saved_filter_id: id })).body.count
      assert.equal(await count(), 2)
      await call('crm_update_saved_filter', { saved_filter_id: id, filter: { name: { contains: 'b' } } })
      assert.equal(await count(), 1)
    })

    test('an update reports the changed fields, and writes nothing when there are none', async ({
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
      const before = await loadRows(server, workspace)
      const update = async (input: Record<string, unknown>) =>
        (await call('crm_update_saved_filter', { saved_filter_id: id, ...input })).body
      for (const same of [
        {},
        { name: 'One' },
        { name: ' One ' },
        { description: null },
        { filter: { dnd: { eq: true }, name: { isNull: false, contains: 'ada' } } },
      ]) {
        assert.deepEqual((await update(same)).changes, [], JSON.stringify(same))
      }
      assert.deepEqual(await loadRows(server, workspace), before)
      assert.deepEqual(
        (await update({ name: 'Two', description: 'What for', filter: NAME_CONTAINS_ADA })).changes,
        ['name', 'description', 'filter'],
      )
      assert.deepEqual(
        (await update({ name: 'Two', description: '', filter: { name: { contains: 'Ada' } } })).changes,
        ['description', 'filter'],
      )
      const { changes, saved_filter: cleared } = await update({ description: null })
      assert.deepEqual(
        [changes, cleared.description, cleared.name, cleared.filter],
        [['description'], null, 'Two', { name: { contains: 'Ada' } }],
      )
    })

    test('deletion requires a confirmation and is final', async ({ call, door, server, workspace }) => {
      const { id } = (await call('crm_create_saved_filter', { name: 'Gone', filter: NAME_CONTAINS_ADA })).body
        .saved_filter
      assert.deepEqual((await call('crm_delete_saved_filter', { saved_filter_id: id, dry_run: true })).body, {
        id,
        deleted: true,
        saved_filters: [],
        dry_run: true,
      })
      assert.equal((await call('crm_delete_saved_filter', { saved_filter_id: id })).status, 428)
      assert.equal((await loadRows(server, workspace)).length, 1)
      if (!door.confirms) return
      assert.deepEqual(
        (await call('crm_delete_saved_filter', { saved_filter_id: id }, { confirm: 'delete' })).body,
        { id, deleted: true, saved_filters: [] },
      )
      for (const reply of [
        await call('crm_get_saved_filter', { saved_filter_id: id }),
        await call('crm_update_saved_filter', { saved_filter_id: id, name: 'x' }),
        await call('crm_delete_saved_filter', { saved_filter_id: id }, { confirm: 'delete' }),
        await call('crm_count_contacts', { saved_filter_id: id }),
      ])
        assert.deepEqual(toRefusal(reply), [404, 'not_found', 'saved_filter_not_found'])
    })

    test('are listed and searched by name, ignoring case', async ({ call }) => {
      for (const name of ['beta 10%', 'Alpha', 'alpha', 'Straße', 'Beta 100'])
        await call('crm_create_saved_filter', { name, filter: NAME_CONTAINS_ADA })
      const listNames = async (input: Record<string, unknown>) =>
        (await call('crm_list_saved_filters', input)).body.data.map((f: { name: string }) => f.name)
      assert.deepEqual(await listNames({}), ['Alpha', 'alpha', 'beta 10%', 'Beta 100', 'Straße'])
      assert.deepEqual(await listNames({ search: 'STRASSE' }), ['Straße'])
      assert.deepEqual(await listNames({ search: '0%' }), ['beta 10%'])
      assert.deepEqual(await listNames({ search: '_' }), [])
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

    test('field limits are enforced, and errors name the field', async ({ call, server, workspace }) => {
      const { id } = (
        await call('crm_create_saved_filter', {
          name: 'N'.repeat(255),
          description: 'd'.repeat(1000),
          filter: NAME_CONTAINS_ADA,
        })
      ).body.saved_filter
      for (const [field, wrong] of [
        ['name', ''],
        ['name', ' '],
        ['name', 'n'.repeat(256)],
        ['description', 'd'.repeat(1001)],
      ] as const) {
        const created = await call('crm_create_saved_filter', {
          name: 'Fine',
          filter: NAME_CONTAINS_ADA,
          [field]: wrong,
        })
        assert.deepEqual(
          [...toRefusal(created), listErrorFields(created)],
          [400, 'invalid_input', undefined, [field]],
        )
        const changed = await call('crm_update_saved_filter', { saved_filter_id: id, [field]: wrong })
        assert.deepEqual(
          [...toRefusal(changed), listErrorFields(changed)],
          [400, 'invalid_input', undefined, [field]],
        )
      }
      assert.deepEqual(
        toRefusal(
          await call('crm_create_saved_filter', { name: 'Odd', filter: { nmae: { eq: 'x' } } }),
        ).slice(0, 2),
        [400, 'invalid_input'],
      )
      for (const unknown of ['999999999', '9999999999999999999']) {
        assert.deepEqual(toRefusal(await call('crm_get_saved_filter', { saved_filter_id: unknown })), [
          404,
          'not_found',
          'saved_filter_not_found',
        ])
      }
      // A stored filter that exceeds today's limits cannot be kept, but it can be replaced.
      const large = await insertSavedFilter(server, workspace, {
        filter: { name: { in: Array.from({ length: 70 }, (_, n) => `${n}${'x'.repeat(470)}`) } },
      })
      assert.deepEqual(
        toRefusal(await call('crm_update_saved_filter', { saved_filter_id: large, name: 'Large' })),
        [400, 'invalid_input', 'filter_too_large'],
      )
      assert.deepEqual(
        (
          await call('crm_update_saved_filter', {
            saved_filter_id: large,
            name: 'Small',
            filter: NAME_CONTAINS_ADA,
          })
        ).body.changes,
        ['name', 'filter'],
      )
    })

    test('only the owner may update or delete one, whatever the role of others', async ({
      call,
      as,
      workspace,
      door,
      server,
    }) => {
      const agent = await workspace.staff({ role: 'agent' })
      const { id } = (
        await as(agent.key)('crm_create_saved_filter', { name: 'Mine', filter: NAME_CONTAINS_ADA })
      ).body.saved_filter
      const before = await loadRows(server, workspace)
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
          [...toRefusal(reply), reply.body.owner_staff_id],
          [403, 'forbidden', 'not_owner', agent.staffId],
        )
      }
      const unowned = await insertSavedFilter(server, workspace, { owner: null })
      const reply = await call('crm_update_saved_filter', { saved_filter_id: unowned, name: 'x' })
      assert.deepEqual(
        [...toRefusal(reply), reply.body.owner_staff_id],
        [403, 'forbidden', 'not_owner', null],
      )
      assert.deepEqual((await loadRows(server, workspace)).slice(0, 1), before)
      assert.equal(
        (await call('crm_get_saved_filter', { saved_filter_id: id })).body.owner_staff_id,
        agent.staffId,
      )
      // Another key of the same staff member is accepted.
      const second = as((await workspace.key(agent.staffId)).key)
      assert.deepEqual(
        (await second('crm_update_saved_filter', { saved_filter_id: id, name: 'Still mine' })).body.changes,
        ['name'],
      )
    })

    test('a conversation filter is not accepted as a contact filter, nor the reverse', async ({
      call,
      server,
      workspace,
    }) => {
      const id = await insertSavedFilter(server, workspace, {
        kind: 'conversation',
        filter: { state: { eq: 'open' } },
      })
      const refused = await call('crm_update_saved_filter', {
        saved_filter_id: id,
        filter: NAME_CONTAINS_ADA,
      })
      assert.deepEqual(
        [...toRefusal(refused), listErrorFields(refused)],
        [400, 'invalid_input', undefined, ['filter']],
      )
      assert.deepEqual(
        (await call('crm_update_saved_filter', { saved_filter_id: id, name: 'Renamed' })).body.changes,
        ['name'],
      )
      assert.equal((await call('crm_get_saved_filter', { saved_filter_id: id })).body.kind, 'conversation')
      assert.deepEqual(
        toRefusal(
          await call('crm_create_saved_filter', { name: 'Uses it', filter: { savedFilter: { eq: id } } }),
        ).slice(0, 2),
        [400, 'invalid_input'],
      )
    })

    test('a dry run counts matches on request', async ({ call }) => {
      for (const [n, name] of ['Ada', 'Adam', 'Bob'].entries())
        await call('crm_upsert_contact', { phone: toPhone(n), name })
      const { saved_filter: stored } = (
        await call('crm_create_saved_filter', { name: 'Kept', filter: NAME_CONTAINS_ADA })
      ).body
      const created = await call('crm_create_saved_filter', {
        name: 'New',
        filter: { name: { eq: 'Bob' } },
        dry_run: true,
        count: true,
      })
      assert.equal(created.status, 201)
      assert.deepEqual(created.body, {
        saved_filter: {
          ...stored,
          id: null,
          name: 'New',
          filter: { name: { eq: 'Bob' } },
          updated_at: null,
          version: null,
        },
        resolved_dates: [],
        warnings: [],
        count: 1,
        approximate: false,
        dry_run: true,
      })
      const dryRunUpdate = async (input: Record<string, unknown>) =>
        (await call('crm_update_saved_filter', { saved_filter_id: stored.id, dry_run: true, ...input })).body
      const preview = {
        saved_filter: { ...stored, updated_at: null, version: null },
        resolved_dates: [],
        warnings: [],
        dry_run: true,
      }
      assert.deepEqual(await dryRunUpdate({ filter: { not: NAME_CONTAINS_ADA }, count: true }), {
        ...preview,
        saved_filter: { ...preview.saved_filter, filter: { not: NAME_CONTAINS_ADA } },
        changes: ['filter'],
        count: 1,
        approximate: false,
      })
      assert.deepEqual(await dryRunUpdate({ count: true }), {
        ...preview,
        changes: [],
        count: 2,
        approximate: false,
      })
      assert.deepEqual(await dryRunUpdate({ name: 'Kept', count: false }), { ...preview, changes: [] })
    })

    test('count is accepted in dry runs only; a test key always runs dry', async ({
      call,
      as,
      workspace,
    }) => {
      const { id } = (await call('crm_create_saved_filter', { name: 'Kept', filter: NAME_CONTAINS_ADA })).body
        .saved_filter
      for (const [op, input] of [
        ['crm_create_saved_filter', { name: 'New', filter: NAME_CONTAINS_ADA }],
        ['crm_update_saved_filter', { saved_filter_id: id, name: 'New' }],
      ] as const) {
        const refused = await call(op, { ...input, count: true })
        assert.deepEqual(
          [...toRefusal(refused), listErrorFields(refused)],
          [400, 'invalid_input', undefined, ['count']],
        )
        const { body } = await as((await workspace.key(workspace.owner.staffId, { test: true })).key)(op, {
          ...input,
          count: true,
        })
        assert.deepEqual([body.dry_run, body.count, body.saved_filter.updated_at], [true, 0, null])
        assert.equal((await call(op, { ...input, count: false, dry_run: true })).body.count, undefined)
      }
    })

    test('a dry run whose count fails returns count_error', async ({ call, server, workspace }) => {
      const dangling = await insertSavedFilter(server, workspace, {
        filter: { savedFilter: { eq: '999999999' } },
        name: 'Gone',
      })
      const invalid = await insertSavedFilter(server, workspace, {
        filter: { name: { regex: '(' } },
        name: 'Odd',
      })
      const other = await insertSavedFilter(server, workspace, {
        kind: 'conversation',
        filter: { state: { eq: 'open' } },
        name: 'Other',
      })
      for (const [id, code] of [
        [dangling, 'not_found'],
        [invalid, 'invalid_input'],
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
  },
  serverOptions,
)

everyDatabase(
  'Saved filters: visibility and concurrency',
  (server) => {
    it('phone numbers in a filter are masked for staff who may not see them', async () => {
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
      const asAgent = doAs(server(), agent.key)
      const masked = {
        or: [
          { phoneNumber: { eq: '********042' } },
          { not: { phoneNumber: { in: ['********043', '********044'] } } },
          { phoneNumber: { contains: '****' } },
          { phoneNumber: { regex: '^****[*-*]+**$' } },
          { chatappUserId: { startsWith: '***********@c' } },
          { name: { eq: 'Agent ******78' } },
          {
            attributes: {
              some: { attributeName: { eq: 'email' }, stringValue: { eq: '********046@example.com' } },
            },
          },
        ],
      }
      assert.deepEqual((await asAgent('crm_get_saved_filter', { saved_filter_id: id })).filter, masked)
      assert.deepEqual((await asAgent('crm_list_saved_filters')).data[0].filter, masked)
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
      assert.deepEqual(toRefusal(refused), [403, 'forbidden', 'phone_hidden'])
      const created = (await asAgent('crm_create_saved_filter', { name: 'Own', filter: own })).saved_filter
      assert.deepEqual(created.filter, own)
    })

    it('one of another workspace does not exist, within a filter either', async () => {
      const other = await makeWorkspace(server())
      const { id } = (
        await doAs(server(), other.owner.key)('crm_create_saved_filter', {
          name: 'Theirs',
          filter: NAME_CONTAINS_ADA,
        })
      ).saved_filter
      const call = callAs(server(), (await makeWorkspace(server())).owner.key)
      const reference = { savedFilter: { eq: id } }
      for (const [op, input] of [
        ['crm_get_saved_filter', { saved_filter_id: id }],
        ['crm_update_saved_filter', { saved_filter_id: id, name: 'Ours' }],
        ['crm_search_contacts', { saved_filter_id: id }],
        ['crm_create_saved_filter', { name: 'Ours', filter: reference }],
        ['crm_check_filter', { filter: { not: reference } }],
        ['crm_count_contacts', { filter: reference }],
      ] as const)
        assert.deepEqual(toRefusal(await call(op, input)), [404, 'not_found', 'saved_filter_not_found'], op)
      assert.deepEqual((await call('crm_list_saved_filters')).body, { data: [], total: 0, next_cursor: null })
    })

    it('concurrent updates cannot create a cycle', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      for (let round = 0; round < 5; round++) {
        const ids: string[] = []
        for (const name of ['A', 'B', 'C', 'D'])
          ids.push(
            (await run('crm_create_saved_filter', { name, filter: NAME_CONTAINS_ADA })).saved_filter.id,
          )
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
  serverOptions,
)

everyDatabase(
  'Saved filters: advanced filters disabled',
  (server) => {
    it('can be read and renamed, but not created or given a new filter', async () => {
      const workspace = await makeWorkspace(server())
      const call = callAs(server(), workspace.owner.key)
      const id = await insertSavedFilter(server(), workspace, {})
      assert.equal((await call('crm_list_saved_filters')).body.total, 1)
      assert.deepEqual(
        (await call('crm_update_saved_filter', { saved_filter_id: id, name: 'Renamed' })).body.changes,
        ['name'],
      )
      for (const [op, input] of [
        ['crm_create_saved_filter', { name: 'New', filter: NAME_CONTAINS_ADA }],
        ['crm_update_saved_filter', { saved_filter_id: id, filter: NAME_CONTAINS_ADA }],
      ] as const) {
        assert.deepEqual(toRefusal(await call(op, input)), [
          503,
          'service_unconfigured',
          'advanced_filter_disabled',
        ])
      }
    })
  },
  { advancedFilters: 'off' },
)

everyDatabase('Saved filters within filters', (server) => {
  it('may refer to each other but not to themselves', async () => {
    const { run, call, check } = await setUp(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const first = await save('first', NAME_IS_X)
    const second = await save('second', { not: { savedFilter: { eq: first } } })
    const third = await save('third', {
      or: [{ savedFilter: { eq: first } }, { savedFilter: { eq: second } }],
    })
    assert.equal((await check({ savedFilter: { eq: third } })).status, 200)
    for (const id of [first, second, third]) {
      assertRefused(
        await call('crm_update_saved_filter', {
          saved_filter_id: first,
          filter: { and: [NAME_IS_X, { savedFilter: { eq: id } }] },
        }),
        { reason: 'saved_filter_cycle', pointer: '#/filter/and/1/savedFilter/eq' },
      )
    }
    // A cycle that is already stored is detected too.
    await server()
      .db.updateTable('saved_filters')
      .set({ filter: JSON.stringify({ savedFilter: { eq: third } }) })
      .where('id', '=', first)
      .execute()
    assertRefused(await check({ savedFilter: { eq: second } }), {
      reason: 'saved_filter_cycle',
      pointer: '#/filter/savedFilter/eq',
    })
  })

  it('count towards the condition limit with all their conditions', async () => {
    const { run, check } = await setUp(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const ten = await save('ten', { and: Array.from({ length: 9 }, () => NAME_IS_X) })
    const createReferences = (times: number, id = ten, more = 0) => ({
      and: [
        ...Array.from({ length: times }, () => ({ savedFilter: { eq: id } })),
        ...Array.from({ length: more }, () => NAME_IS_X),
      ],
    })
    // Each reference is a condition itself: 59 references to nine conditions count 590.
    assert.equal((await check(createReferences(59, ten, 1))).status, 200)
    assert.equal((await check(createReferences(60))).status, 200)
    const eleven = await save('eleven', { and: Array.from({ length: 10 }, () => NAME_IS_X) })
    assertRefused(await check(createReferences(60, eleven)), {
      reason: 'filter_too_many_conditions',
      pointer: '#/filter',
    })
    let last = ten
    for (let n = 0; n < 30; n++)
      last = await save(`chain ${n}`, { not: { not: { savedFilter: { eq: last } } } })
    assert.equal((await check({ savedFilter: { eq: last } })).status, 200)
    for (let n = 0; n < 3; n++)
      last = await save(`more ${n}`, n === 2 ? {} : { not: { savedFilter: { eq: last } } })
    let doubled = ten
    for (let n = 0; n < 5; n++) doubled = await save(`doubled ${n}`, createReferences(2, doubled))
    assertRefused(await check(createReferences(2, doubled)), {
      reason: 'filter_too_many_conditions',
      pointer: '#/filter',
    })
  })

  it('may exceed the size limit by their resolved dates', async () => {
    const { run, check } = await setUp(server())
    const filter = {
      ...createFilterOfSize(16_384 - ',"createdAt":{"gte":"-7d"}'.length),
      createdAt: { gte: '-7d' },
    }
    const { saved_filter: saved } = await run('crm_create_saved_filter', { name: 'long', filter })
    assertRefused(await check(saved.filter), { reason: 'filter_too_large', pointer: '#/filter' })
    assert.equal((await run('crm_count_contacts', { saved_filter_id: saved.id })).count, 0)
    assert.equal(
      (
        await run('crm_update_saved_filter', {
          saved_filter_id: saved.id,
          name: 'longer',
          dry_run: true,
          count: true,
        })
      ).count,
      0,
    )
  })

  it('that are no longer valid are refused by name', async () => {
    const { run, check } = await setUp(server())
    const field = await run('crm_create_custom_field', { key: 'plan', type: 'text' })
    const { saved_filter: saved } = await run('crm_create_saved_filter', {
      name: 'By plan',
      filter: { and: [NAME_IS_X, { attributes: { some: { attributeName: { eq: 'plan' } } } }] },
    })
    await run('crm_delete_custom_field', { custom_field_id: field.id })
    const reply = await check({ or: [NAME_IS_X, { savedFilter: { eq: saved.id } }] })
    assertRefused(reply, { pointer: '#/filter/or/1/savedFilter/eq', code: 'saved_filter_broken' })
    assert.match(reply.body.detail, /"By plan".*#\/and\/1\/attributes\/some\/attributeName\/eq/)
  })
})
