import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import {
  serverOptions,
  insertSavedFilter,
  listErrorFields,
  loadRows,
  NAME_CONTAINS_ADA,
  toRefusal,
} from './saved-filter-fixtures.ts'

everyDoor(
  'Saved filters: ownership and references',
  (test) => {
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
