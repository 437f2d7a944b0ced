import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { applyUpdates } from '../../server/inbound/apply-updates.ts'
import { claimUpdates } from '../../storage/channels/provider-updates.ts'
import { everyDatabase } from '../doors.ts'
import { createCustomerFixture, postWebhook } from '../provider/webhook-fixture.ts'

// On a database of its own: it claims the updates of all workspaces.
everyDatabase(
  'Template updates of two servers',
  (server, database) => {
    // The embedded database has one session: nothing is applied beside it.
    if (database === 'embedded') return
    it('template statuses are applied by their time, also where two servers apply them at once', async () => {
      const scene = await createCustomerFixture(server())
      const { db, app } = server()
      await sql`
        insert into templates (workspace_id, account_id, provider_id, name, language, category, status,
          components, created_at, updated_at)
        values (${scene.workspace.id}, ${scene.account}, '71', 'abandoned_cart', 'en', 'MARKETING', 'PENDING',
          '[]', ${app.now()}, ${app.now()})`.execute(db)
      await app.jobs.job('provider-updates').stop()
      const begin = async (time: number, event: string) => {
        const value = {
          event,
          message_template_id: 71,
          message_template_name: 'abandoned_cart',
          reason: 'NONE',
        }
        const changes = [
          { field: 'message_template_status_update', value: { ...value, message_template_language: 'en' } },
        ]
        const entry = [{ id: scene.account, time, changes }]
        await postWebhook(server(), JSON.stringify({ object: 'whatsapp_business_account', entry }))
        const tx = await db.startTransaction().execute()
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
        return {
          tx,
          pid: rows[0]!.pid,
          applied: claimUpdates(tx, 10).then((some) => applyUpdates(tx, some, app)),
        }
      }
      const isWaiting = async (pid: number): Promise<boolean> =>
        (await sql<{ waits: boolean }>`select cardinality(pg_blocking_pids(${pid})) > 0 as waits`.execute(db))
          .rows[0]!.waits
      const later = await begin(200, 'PAUSED')
      await later.applied
      const earlier = await begin(100, 'APPROVED')
      while (!(await isWaiting(earlier.pid))) await setImmediate()
      await later.tx.commit().execute()
      await earlier.applied
      await earlier.tx.commit().execute()
      const { rows } = await sql`select status from templates where provider_id = '71'`.execute(db)
      assert.deepEqual(rows, [{ status: 'PAUSED' }])
    })
  },
  { dedicated: true },
)
