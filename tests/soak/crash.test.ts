import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createOwner } from '../http/owner-key.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { runs } from '../level.ts'

const CONTACTS = 240
const CONCURRENCY = 8
const KILLS = runs(1, 3)

type UpsertResult = { id: string; action: string; replayed: boolean }

/**
 * Sends the pending contacts, `CONCURRENCY` at a time, until the server is gone or all have responses. Calls
 * `onResult` for each response.
 */
const sendAll = async (
  url: string,
  key: string,
  pending: Set<number>,
  onResult: (n: number, result: UpsertResult) => void,
): Promise<void> => {
  const queue = [...pending]
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
      pending.delete(n)
      onResult(n, { ...body, replayed: response.headers.get('idempotent-replayed') === 'true' })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
}

for (const database of databases) {
  describe(`Idempotency: server killed during changes (${database})`, () => {
    it('every acknowledged change is stored exactly once, and a retry replays it', async () => {
      const testDatabase = await createDatabase(database)
      let server: ServerProcess | undefined
      try {
        const { key, workspaceId } = await withStorage(testDatabase.location, ({ db }) => createOwner(db))
        const pending = new Set(Array.from({ length: CONTACTS }, (_, n) => n))
        const ids = new Map<number, string>()
        const killedAt: number[] = []
        for (let round = 0; round <= KILLS; round++) {
          server = await startProcess(testDatabase.flags)
          // Killed during other calls, after a random number of responses.
          let remaining = round < KILLS ? randomInt(5, 60) : Infinity
          let killed: Promise<void> | undefined
          await sendAll(server.url, key, pending, (n, result) => {
            ids.set(n, result.id)
            if (--remaining === 0) killed = server!.kill('SIGKILL')
          })
          if (killed) {
            await killed
            killedAt.push(ids.size)
          }
        }
        const message = `killed after ${killedAt.join(', ')} responses`
        assert.equal(killedAt.length, KILLS, message)
        assert.equal(pending.size, 0, message)
        const retries = new Set(ids.keys())
        await sendAll(server!.url, key, retries, (n, result) =>
          assert.deepEqual(
            [result.id, result.action, result.replayed],
            [ids.get(n), 'created', true],
            message,
          ),
        )
        assert.equal(retries.size, 0, message)
        await server!.kill('SIGTERM')
        server = undefined
        await withStorage(testDatabase.location, async ({ db }) => {
          const contacts = await db
            .selectFrom('contacts')
            .select(['id', 'phone'])
            .where('workspace_id', '=', workspaceId)
            .execute()
          assert.deepEqual(contacts.map((c) => c.id).toSorted(), [...ids.values()].toSorted(), message)
          assert.equal(new Set(contacts.map((c) => c.phone)).size, CONTACTS)
          const events = await db
            .selectFrom('events')
            .select(['type', 'data'])
            .where('workspace_id', '=', workspaceId)
            .execute()
          const created = events
            .filter((e) => e.type === 'contact.created/1')
            .map((e) => (e.data as { contact: { id: string } }).contact.id)
          assert.deepEqual(created.toSorted(), [...ids.values()].toSorted(), message)
          const { rows: audited } = await sql<{
            id: string
            outcome: string
          }>`select target_id as id, outcome from audit_log where workspace_id = ${workspaceId}`.execute(db)
          assert.deepEqual(
            audited.map(({ id, outcome }) => `${id} ${outcome}`).toSorted(),
            [...ids.values()].map((id) => `${id} done`).toSorted(),
            'each change has one audit row',
          )
          const counted = await db
            .selectFrom('counters')
            .select((eb) => eb.fn.sum<string>('n').as('n'))
            .where('workspace_id', '=', workspaceId)
            .where('subject', '=', 'contacts')
            .executeTakeFirstOrThrow()
          assert.equal(Number(counted.n), CONTACTS, message)
        })
      } finally {
        await server?.kill('SIGKILL')
        await testDatabase.remove()
      }
    })
  })
}
