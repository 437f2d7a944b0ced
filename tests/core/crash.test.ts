import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { createKey, createStaff, createWorkspace } from '../../storage/admin.ts'
import { type Location, migrate } from '../../storage/open.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { createEmptyDatabase, databases, withStorage } from '../databases.ts'
import { runs } from '../level.ts'

const CONTACTS = 240
const AT_ONCE = 8
const KILLS = runs(1, 3)

const prepare = (location: Location) =>
  withStorage(location, async ({ db }) => {
    await migrate(db)
    const now = new Date().toISOString()
    const workspace = await createWorkspace(db, { name: 'Crash' }, now)
    const staff = await createStaff(db, workspace.id, { name: 'Owner', role: 'owner' }, [], now)
    const key = createApiKey(false)
    await createKey(
      db,
      workspace.id,
      hashApiKey(key),
      { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
      now,
    )
    return { key, workspaceId: workspace.id }
  })

type Answered = { id: string; action: string; replayed: boolean }

/**
 * Sends what is still owed, some at once, until the server is gone or all is answered. `after` is told of
 * every answer.
 */
const sendAll = async (
  url: string,
  key: string,
  owed: Set<number>,
  after: (n: number, answer: Answered) => void,
): Promise<void> => {
  const queue = [...owed]
  const worker = async () => {
    for (let n = queue.shift(); n !== undefined; n = queue.shift()) {
      let response: Response
      let body: { id: string; action: string }
      try {
        response = await fetch(`${url}/v1/contacts`, {
          method: 'POST',
          headers: {
            Authorization: `Bearer ${key}`,
            'Content-Type': 'application/json',
            'Idempotency-Key': `crash-contact-${n}`,
          },
          body: JSON.stringify({ phone: `+1555010${1000 + n}`, name: `Contact ${n}`, tags: ['crash'] }),
        })
        body = (await response.json()) as typeof body
      } catch {
        return
      }
      assert.equal(response.status, 200, JSON.stringify(body))
      owed.delete(n)
      after(n, { ...body, replayed: response.headers.get('idempotent-replayed') === 'true' })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

for (const database of databases) {
  describe(`A server killed at work (${database})`, () => {
    it('has done each acknowledged change, and does none of them twice', async () => {
      const place = await createEmptyDatabase(database)
      let server: ServerProcess | undefined
      try {
        const { key, workspaceId } = await prepare(place.location)
        const owed = new Set(Array.from({ length: CONTACTS }, (_, n) => n))
        const ids = new Map<number, string>()
        const killedAt: number[] = []
        for (let round = 0; round <= KILLS; round++) {
          server = await startProcess(place.flags)
          // Killed in the midst of other calls, after a number of answers that nobody foresees.
          let left = round < KILLS ? randomInt(5, 60) : Infinity
          let killed: Promise<void> | undefined
          await sendAll(server.url, key, owed, (n, answer) => {
            ids.set(n, answer.id)
            if (--left === 0) killed = server!.kill('SIGKILL')
          })
          if (killed) {
            await killed
            killedAt.push(ids.size)
          }
        }
        const told = `killed after ${killedAt.join(', ')} answers`
        assert.equal(killedAt.length, KILLS, told)
        assert.equal(owed.size, 0, told)
        const again = new Set(ids.keys())
        await sendAll(server!.url, key, again, (n, answer) =>
          assert.deepEqual([answer.id, answer.action, answer.replayed], [ids.get(n), 'created', true], told),
        )
        assert.equal(again.size, 0, told)
        await server!.kill('SIGTERM')
        server = undefined
        await withStorage(place.location, async ({ db }) => {
          const contacts = await db
            .selectFrom('contacts')
            .select(['id', 'phone'])
            .where('workspace_id', '=', workspaceId)
            .execute()
          assert.deepEqual(contacts.map((c) => c.id).toSorted(), [...ids.values()].toSorted(), told)
          assert.equal(new Set(contacts.map((c) => c.phone)).size, CONTACTS)
          const events = await db
            .selectFrom('events')
            .select(['type', 'data'])
            .where('workspace_id', '=', workspaceId)
            .execute()
          const created = events
            .filter((e) => e.type === 'contact.created/1')
            .map((e) => (e.data as { contact: { id: string } }).contact.id)
          assert.deepEqual(created.toSorted(), [...ids.values()].toSorted(), told)
          const { rows: audited } = await sql<{
            id: string
            outcome: string
          }>`select target_id as id, outcome from audit_log where workspace_id = ${workspaceId}`.execute(db)
          assert.deepEqual(
            audited.map(({ id, outcome }) => `${id} ${outcome}`).toSorted(),
            [...ids.values()].map((id) => `${id} done`).toSorted(),
            'each change is in the audit trail, and once',
          )
          const counted = await db
            .selectFrom('counters')
            .select((eb) => eb.fn.sum<string>('n').as('n'))
            .where('workspace_id', '=', workspaceId)
            .where('subject', '=', 'contacts')
            .executeTakeFirstOrThrow()
          assert.equal(Number(counted.n), CONTACTS, told)
        })
      } finally {
        await server?.kill('SIGKILL')
        await place.remove()
      }
    })
  })
}
