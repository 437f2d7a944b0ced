import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import { perform } from '../../server/core/perform.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

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
