import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { readQueues } from '../../storage/work/queues.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

everyDatabase(
  'Queues of background work',
  (server) => {
    it('are counted up to a limit, with the oldest entry of all endpoints and all kinds of jobs', async () => {
      const { db, url } = server()
      const { id } = await makeWorkspace(server())
      await sql`
        insert into webhook_endpoints
          (workspace_id, id, url, custom_headers, signing_secret, created_at, updated_at)
        select ${id}::bigint, endpoint, 'https://example.com/', '', '', now(), now()
        from unnest(array['ep_a', 'ep_b']) as endpoint`.execute(db)
      await sql`
        insert into webhook_deliveries
          (workspace_id, id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
        select ${id}::bigint, 'dlv_' || n, case when n <= 4 then 'ep_a' else 'ep_b' end, 'evt_' || n,
          'group.created/1', now() - n * interval '1 minute', now()
        from generate_series(1, 5) as n`.execute(db)
      await sql`
        insert into bulk_jobs
          (workspace_id, state, operation, input, staff_id, key_id, door, request_id, created_at, run_after, total)
        select ${id}::bigint, 'running', operation, '{}', 1, 1, 'rest', 'r', now(), now() - interval '1 minute', 1
        from unnest(array['messaging_send_bulk', 'crm_add_tags', 'crm_add_tags']) as operation`.execute(db)
      await sql`
        insert into exports (workspace_id, kind, staff_id, created_at, run_after)
        values (${id}, 'person', 1, now(), now() - interval '1 minute'),
          (${id}, 'person', 1, now(), now() + interval '1 hour')`.execute(db)
      await sql`
        insert into erasures (workspace_id, contact_id, staff_id, created_at, run_after)
        values (${id}, 1, 1, now(), now() - interval '1 minute')`.execute(db)
      const read = async (limit: number) =>
        Object.fromEntries(
          (await readQueues(db, limit)).map(({ queue, due, oldestSeconds }) => [
            queue,
            [due, Math.floor(oldestSeconds / 60)],
          ]),
        )
      const { webhook_deliveries: webhooks, broadcasts, bulk_jobs: jobs, exports, erasures } = await read(100)
      assert.deepEqual(
        { webhooks, broadcasts, jobs, exports, erasures },
        { webhooks: [5, 5], broadcasts: [1, 1], jobs: [2, 1], exports: [1, 1], erasures: [1, 1] },
      )
      assert.deepEqual((await read(2))['webhook_deliveries'], [2, 5])
      const metrics = await (await fetch(`${url}/metrics`)).text()
      assert.match(metrics, /^wcrm_queue_due\{queue="erasures"\} 1$/m)
    })
  },
  { dedicated: true },
)
