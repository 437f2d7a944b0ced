import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'
import {
  serverOptions,
  insertSavedFilter,
  listErrorFields,
  loadRows,
  NAME_CONTAINS_ADA,
  SAVED_FILTERS_NOW,
  toPhone,
  toRefusal,
} from './saved-filter-fixtures.ts'

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
        dry_run: true,
      })
      assert.equal((await call('crm_delete_saved_filter', { saved_filter_id: id })).status, 428)
      assert.equal((await loadRows(server, workspace)).length, 1)
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
  },
  serverOptions,
)
