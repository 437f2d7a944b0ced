import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'

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
