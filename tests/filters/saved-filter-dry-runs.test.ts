import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'
import {
  serverOptions,
  insertSavedFilter,
  listErrorFields,
  loadRows,
  NAME_CONTAINS_ADA,
  toPhone,
  toRefusal,
} from './saved-filter-fixtures.ts'

everyDoor(
  'Saved filters: dry runs',
  (test) => {
    test('a dry run stores nothing, and counts matches on request', async ({ call, server, workspace }) => {
      for (const [n, name] of ['Ada', 'Adam', 'Bob'].entries())
        await call('crm_upsert_contact', { phone: toPhone(n), name })
      const { saved_filter: stored } = (
        await call('crm_create_saved_filter', { name: 'Kept', filter: NAME_CONTAINS_ADA })
      ).body
      const before = await loadRows(server, workspace)
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
      assert.deepEqual(await loadRows(server, workspace), before)
    })

    test('count is accepted in dry runs only; a test key always runs dry', async ({
      call,
      as,
      workspace,
      server,
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
      assert.equal((await loadRows(server, workspace)).length, 1)
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
