import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { revokeKey } from '../../storage/admin.ts'
import type { Reply } from '../doors.ts'
import { type ProviderScript, startProvider, thingMaker } from './operations.ts'
import {
  makeWorkspace,
  startServer,
  startSharedServers,
  type TestServer,
  type TestWorkspace,
} from '../servers.ts'
import { databases } from '../databases.ts'

/**
 * A call to the provider has no idempotency of its own: whatever breaks, the thing is made once (contract
 * 8).
 */
for (const database of databases) {
  describe(`Calls to the provider (${database})`, () => {
    let servers: TestServer[]
    let provider: ProviderScript
    let workspace: TestWorkspace
    let close: () => Promise<void>
    before(async () => {
      provider = await startProvider()
      const options = { extra: thingMaker(provider) }
      if (database === 'postgresql') ({ servers, close } = await startSharedServers(2, options))
      else {
        const server = await startServer(database, options)
        servers = [server]
        close = server.close
      }
    })
    after(async () => {
      await close()
      await provider.close()
    })
    beforeEach(async () => {
      workspace = await makeWorkspace(servers[0]!)
      for (const list of [provider.fates, provider.made, provider.looked]) list.length = 0
    })

    const make = async (
      name: string,
      idempotencyKey: string,
      { server = servers[0]!, body = {}, key = workspace.owner.key } = {},
    ): Promise<Reply> => {
      const response = await fetch(`${server.url}/v1/ops/test_make_thing`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${key}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': idempotencyKey,
        },
        body: JSON.stringify({ name, ...body }),
      })
      const text = await response.text()
      return {
        status: response.status,
        text,
        body: JSON.parse(text),
        headers: Object.fromEntries(response.headers),
      }
    }
    const shown = (reply: Reply) => [
      reply.status,
      reply.status < 400 ? reply.body.name : reply.body.code,
      reply.headers['idempotent-replayed'] === 'true',
    ]
    const events = async () =>
      (
        await servers[0]!.db
          .selectFrom('events')
          .select('type')
          .where('workspace_id', '=', workspace.id)
          .execute()
      ).length
    const nameOf = () => `thing ${workspace.id}`
    /** As if the caller had been silent for longer than its lease. */
    const endLease = async () => {
      await sql`update idempotency set lease_until = clock_timestamp() where workspace_id = ${workspace.id}`.execute(
        servers[0]!.db,
      )
    }

    it('are made once and answered again', async () => {
      const name = nameOf()
      const first = await make(name, 'calls-once-only')
      assert.deepEqual(shown(first), [201, name, false])
      const again = await make(name, 'calls-once-only')
      assert.deepEqual([...shown(again), again.text], [201, name, true, first.text])
      assert.deepEqual([provider.made, provider.looked, await events()], [[name], [], 1])
    })

    it('whose answer was lost are found again, not made again', async () => {
      const name = nameOf()
      provider.fates.push('make and drop')
      const lost = await make(name, 'answer-was-lost')
      assert.deepEqual(shown(lost), [504, 'timeout', false])
      assert.deepEqual(
        shown(await make('another', 'answer-was-lost')),
        [400, 'invalid_input', false],
        'the key stays taken',
      )
      assert.deepEqual(shown(await make(name, 'answer-was-lost')), [201, name, false])
      assert.deepEqual(shown(await make(name, 'answer-was-lost')), [201, name, true])
      assert.deepEqual([provider.made, provider.looked, await events()], [[name], [name], 1])
    })

    it('that never arrived are made by the retry', async () => {
      const name = nameOf()
      provider.fates.push('drop', 'drop')
      assert.deepEqual(shown(await make(name, 'never-arrived')), [504, 'timeout', false])
      assert.deepEqual(shown(await make(name, 'never-arrived')), [504, 'timeout', false])
      assert.deepEqual(shown(await make(name, 'never-arrived')), [201, name, false])
      assert.deepEqual([provider.made.length, provider.looked.length, await events()], [3, 2, 1])
    })

    it('that are put off were not made, and the key is free again', async () => {
      provider.fates.push('throttle')
      assert.deepEqual(shown(await make(nameOf(), 'put-off-at-once')), [503, 'upstream_unavailable', false])
      const other = `other ${nameOf()}`
      assert.deepEqual(shown(await make(other, 'put-off-at-once')), [201, other, false])
      assert.deepEqual([provider.looked, await events()], [[], 1])
    })

    it('that are put off after an answer was lost are kept for a worker', async () => {
      const name = nameOf()
      provider.fates.push('drop', 'throttle')
      assert.deepEqual(shown(await make(name, 'lost-then-put-off')), [504, 'timeout', false])
      assert.deepEqual(shown(await make(name, 'lost-then-put-off')), [503, 'upstream_unavailable', false])
      assert.deepEqual(
        shown(await make('another', 'lost-then-put-off')),
        [400, 'invalid_input', false],
        'the key stays taken',
      )
      await endLease()
      await reconcileProviderCalls(servers[0]!.app)
      assert.deepEqual(shown(await make(name, 'lost-then-put-off')), [201, name, true])
      assert.equal(await events(), 1)
    })

    it('that are refused run anew', async () => {
      const name = nameOf()
      provider.fates.push('refuse')
      assert.deepEqual(shown(await make(name, 'refused-at-first')), [502, 'upstream_error', false])
      assert.equal(await events(), 0)
      assert.deepEqual(shown(await make(name, 'refused-at-first')), [201, name, false])
      assert.deepEqual([provider.made.length, provider.looked.length, await events()], [2, 0, 1])
    })

    it('are not made when the preparation refuses, and the refusal is kept', async () => {
      assert.deepEqual(shown(await make('taken', 'refused-by-us')), [409, 'conflict', false])
      assert.deepEqual(shown(await make('taken', 'refused-by-us')), [409, 'conflict', true])
      assert.deepEqual(provider.made, [])
    })

    it('are not made in a rehearsal', async () => {
      const test = (await workspace.key(workspace.owner.staffId, { test: true })).key
      for (const reply of [
        await make('rehearsed', 'a-rehearsal-key', { body: { dry_run: true } }),
        await make('rehearsed', 'a-rehearsal-key', { key: test }),
      ]) {
        assert.deepEqual([reply.status, reply.body], [201, { id: null, name: 'rehearsed', dry_run: true }])
      }
      assert.deepEqual([provider.made, provider.looked, await events()], [[], [], 0])
    })

    it('are not made by a retry while the first call waits', async () => {
      const name = nameOf()
      provider.fates.push('make and wait')
      const first = make(name, 'while-it-waits')
      await provider.waiting()
      for (const server of servers) {
        const retry = await make(name, 'while-it-waits', { server })
        assert.deepEqual([...shown(retry), retry.body.reason], [409, 'conflict', false, 'still_running'])
      }
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 0, 'a live call is left alone')
      provider.release()
      let settled = false
      void first.finally(() => {
        settled = true
      })
      while (!settled) await Promise.all(servers.map((server) => make(name, 'while-it-waits', { server })))
      assert.deepEqual(shown(await first), [201, name, false], 'retries do not stand in its way')
      for (const server of servers)
        assert.deepEqual(shown(await make(name, 'while-it-waits', { server })), [201, name, true])
      assert.deepEqual([provider.made, provider.looked, await events()], [[name], [], 1])
    })

    it('that nobody retries are finished by a worker', async () => {
      const name = nameOf()
      provider.fates.push('make and drop')
      assert.equal((await make(name, 'nobody-retries')).status, 504)
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 1)
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 0)
      assert.equal(await events(), 1)
      assert.deepEqual(shown(await make(name, 'nobody-retries')), [201, name, true])
      assert.deepEqual([provider.made, provider.looked], [[name], [name]])
    })

    it('are finished by a worker even when the key was revoked meanwhile', async () => {
      const { key, keyId } = await workspace.key(workspace.owner.staffId)
      const name = nameOf()
      provider.fates.push('make and drop')
      assert.equal((await make(name, 'revoked-meanwhile', { key })).status, 504)
      await revokeKey(servers[0]!.db, workspace.id, keyId, servers[0]!.app.now())
      await reconcileProviderCalls(servers.at(-1)!.app)
      assert.deepEqual(shown(await make(name, 'revoked-meanwhile')), [201, name, true])
      assert.equal(await events(), 1)
    })

    it('are settled once when a caller wakes after a worker took over', async () => {
      const name = nameOf()
      provider.fates.push('make and wait')
      const first = make(name, 'slept-too-long')
      await provider.waiting()
      await endLease()
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 1)
      assert.equal(await events(), 1)
      provider.release()
      assert.equal((await first).status, 201)
      assert.deepEqual([provider.made, provider.looked, await events()], [[name], [name], 1])
      assert.deepEqual(shown(await make(name, 'slept-too-long')), [201, name, true])
    })
  })
}
