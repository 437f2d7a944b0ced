import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { BROADCASTS_NOW, insertBroadcastRow, insertRecipients } from './broadcasts.ts'

const clock = { now: () => BROADCASTS_NOW }

/** A change of recipients; `broadcasts` are indexes. */
const step = fc.record({
  change: fc.constantFrom('upsert', 'update', 'update', 'delete', 'move'),
  contacts: fc.uniqueArray(fc.nat(14), { minLength: 1, maxLength: 8 }),
  broadcasts: fc.subarray([0, 1], { minLength: 1 }),
  status: fc.constantFrom('pending', 'sent', 'delivered', 'read', 'failed'),
  responded: fc.boolean(),
  optedOut: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Changes recipients with one statement. `move` gives those of the second broadcast to the first. */
const changeRecipients = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  { change, contacts, broadcasts, status, responded, optedOut }: Step,
): Promise<void> => {
  const broadcastIds = broadcasts.map((index) => ids[index]!)
  const where = sql`workspace_id = ${workspaceId} and contact_id = any(${contacts}::bigint[])
    and broadcast_id = any(${broadcastIds}::bigint[])`
  const set = sql`status = ${status}, responded = ${responded}, opted_out = ${optedOut}`
  const statements = {
    upsert: sql`
      insert into broadcast_recipients (
        workspace_id, broadcast_id, contact_id, status, responded, opted_out)
      select ${workspaceId}::bigint, b, c, ${status}, ${responded}, ${optedOut}
      from unnest(${broadcastIds}::bigint[]) b, unnest(${contacts}::bigint[]) c
      on conflict (workspace_id, broadcast_id, contact_id) do update set ${set}`,
    update: sql`update broadcast_recipients set ${set} where ${where}`,
    delete: sql`delete from broadcast_recipients where ${where}`,
    move: sql`
      update broadcast_recipients
      set broadcast_id = ${ids[0]!}::bigint, contact_id = contact_id + 100
      where ${where} and contact_id < 100 and broadcast_id = ${ids[1]!}::bigint and not exists (
        select 1 from broadcast_recipients x
        where x.workspace_id = broadcast_recipients.workspace_id and x.broadcast_id = ${ids[0]!}::bigint
          and x.contact_id = broadcast_recipients.contact_id + 100)`,
  }
  await statements[change].execute(db)
}

const countRecipients = async (db: Db, workspaceId: string, broadcastId: string): Promise<object> => {
  const { rows } = await sql<object>`
    select count(*)::int as recipients,
      count(*) filter (where status in ('sent', 'delivered', 'read'))::int as sent,
      count(*) filter (where status in ('delivered', 'read'))::int as delivered,
      count(*) filter (where status = 'read')::int as read,
      count(*) filter (where status = 'failed')::int as failed,
      count(*) filter (where responded)::int as responded,
      count(*) filter (where opted_out)::int as opted_out
    from broadcast_recipients
    where workspace_id = ${workspaceId} and broadcast_id = ${broadcastId}`.execute(db)
  return { ...rows[0]! }
}

everyDatabase(
  'Counters of broadcasts',
  (server) => {
    const createScene = async () => {
      const workspace = await makeWorkspace(server())
      return { workspace, run: doAs(server(), workspace.owner.key) }
    }

    it('counters match the recipients after any sequence of changes', async () => {
      const { db } = server()
      const { workspace, run } = await createScene()
      const ids = [await insertBroadcastRow(db, workspace.id), await insertBroadcastRow(db, workspace.id)]
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
          await sql`delete from broadcast_recipients where workspace_id = ${workspace.id}`.execute(db)
          for (const change of steps) await changeRecipients(db, workspace.id, ids, change)
          for (const id of ids)
            assert.deepEqual(
              (await run('messaging_get_broadcast', { broadcast_id: id })).totals,
              await countRecipients(db, workspace.id, id),
            )
        }),
        { numRuns: runs(20, 80) },
      )
    })

    it('counters stay exact with concurrent writers', async () => {
      const { workspace, run } = await createScene()
      const ids = [
        await insertBroadcastRow(server().db, workspace.id),
        await insertBroadcastRow(server().db, workspace.id),
      ]
      const contactIds = Array.from({ length: 40 }, (_, i) => String(i + 1))
      for (const id of ids)
        await insertRecipients(
          server().db,
          workspace.id,
          id,
          contactIds.map((contact_id) => ({ contact_id, status: 'pending' as const })),
        )
      // Each writer updates both broadcasts with one statement, in different orders.
      await Promise.all(
        contactIds.map((contact, i) =>
          sql`
            update broadcast_recipients r set status = ${i % 4 === 0 ? 'failed' : 'sent'}
            from (select * from unnest(${i % 2 === 0 ? ids : ids.toReversed()}::bigint[]) as b) as o
            where r.workspace_id = ${workspace.id} and r.contact_id = ${contact}::bigint
              and r.broadcast_id = o.b`.execute(server().db),
        ),
      )
      for (const id of ids)
        assert.deepEqual((await run('messaging_get_broadcast', { broadcast_id: id })).totals, {
          recipients: 40,
          sent: 30,
          delivered: 0,
          read: 0,
          failed: 10,
          responded: 0,
          opted_out: 0,
        })
    })
  },
  clock,
)
