import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { revokeKey } from '../../storage/access/admin-keys.ts'
import type { Reply } from '../doors.ts'
import { type FakeProvider, startFakeProvider, createThingOperations } from './fake-provider.ts'
import {
  makeWorkspace,
  startServer,
  startSharedServers,
  type TestServer,
  type TestWorkspace,
} from '../servers.ts'
import { databases } from '../databases.ts'

// The provider has no idempotency keys: whatever fails, the thing must be created once (docs/provider.md).
for (const database of databases) {
  describe(`External calls (${database})`, () => {
    let servers: TestServer[]
    let provider: FakeProvider
    let workspace: TestWorkspace
    let close: () => Promise<void>
    before(async () => {
      provider = await startFakeProvider()
      const options = { extra: createThingOperations(provider) }
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
      for (const list of [provider.outcomes, provider.createCalls, provider.lookupCalls]) list.length = 0
    })

    const callOperation = async (
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
    const summarize = (reply: Reply) => [
      reply.status,
      reply.status < 400 ? reply.body.name : reply.body.code,
      reply.headers['idempotent-replayed'] === 'true',
    ]
    const countEvents = async () =>
      (
        await servers[0]!.db
          .selectFrom('events')
          .select('type')
          .where('workspace_id', '=', workspace.id)
          .execute()
      ).length
    const buildName = () => `thing ${workspace.id}`
    /** Expires the leases of the workspace, as if a caller had stalled for longer than its lease. */
    const expireLeases = async () => {
      await sql`
        update idempotency set lease_until = clock_timestamp()
        where workspace_id = ${workspace.id}`.execute(servers[0]!.db)
    }

    it('a retry replays the response without another call', async () => {
      const name = buildName()
      const first = await callOperation(name, 'calls-once-only')
      assert.deepEqual(summarize(first), [201, name, false])
      const replay = await callOperation(name, 'calls-once-only')
      assert.deepEqual([...summarize(replay), replay.text], [201, name, true, first.text])
      assert.deepEqual([provider.createCalls, provider.lookupCalls, await countEvents()], [[name], [], 1])
    })

    it('a lost response: the retry finds the result and does not repeat the call', async () => {
      const name = buildName()
      provider.outcomes.push('make and drop')
      const lost = await callOperation(name, 'answer-was-lost')
      assert.deepEqual([...summarize(lost), lost.body.reason], [504, 'timeout', false, 'outcome_unknown'])
      assert.equal(lost.body.idempotency_key, 'answer-was-lost')
      assert.deepEqual(
        summarize(await callOperation('another', 'answer-was-lost')),
        [400, 'invalid_input', false],
        'the idempotency key stays bound to the first input',
      )
      assert.deepEqual(summarize(await callOperation(name, 'answer-was-lost')), [201, name, false])
      assert.deepEqual(summarize(await callOperation(name, 'answer-was-lost')), [201, name, true])
      assert.deepEqual([provider.createCalls, provider.lookupCalls, await countEvents()], [[name], [name], 1])
    })

    it('a call that never arrived: the retry makes it', async () => {
      const name = buildName()
      provider.outcomes.push('drop', 'drop')
      assert.deepEqual(summarize(await callOperation(name, 'never-arrived')), [504, 'timeout', false])
      assert.deepEqual(summarize(await callOperation(name, 'never-arrived')), [504, 'timeout', false])
      assert.deepEqual(summarize(await callOperation(name, 'never-arrived')), [201, name, false])
      assert.deepEqual(
        [provider.createCalls.length, provider.lookupCalls.length, await countEvents()],
        [3, 2, 1],
      )
    })

    it('throttled: nothing is created, and the idempotency key is released', async () => {
      provider.outcomes.push('throttle')
      assert.deepEqual(summarize(await callOperation(buildName(), 'put-off-at-once')), [
        503,
        'upstream_unavailable',
        false,
      ])
      const other = `other ${buildName()}`
      assert.deepEqual(summarize(await callOperation(other, 'put-off-at-once')), [201, other, false])
      assert.deepEqual([provider.lookupCalls, await countEvents()], [[], 1])
    })

    it('throttled after a lost response: the outcome stays open until a repeat makes the call', async () => {
      const name = buildName()
      provider.outcomes.push('drop', 'throttle')
      assert.deepEqual(summarize(await callOperation(name, 'lost-then-put-off')), [504, 'timeout', false])
      const throttled = await callOperation(name, 'lost-then-put-off')
      assert.deepEqual(summarize(throttled), [503, 'upstream_unavailable', false])
      assert.equal(throttled.body.idempotency_key, 'lost-then-put-off')
      assert.deepEqual(
        summarize(await callOperation('another', 'lost-then-put-off')),
        [400, 'invalid_input', false],
        'the idempotency key stays bound to the first input',
      )
      await expireLeases()
      await reconcileProviderCalls(servers[0]!.app)
      assert.equal(provider.createCalls.length, 2, 'the background job only looks')
      assert.deepEqual(summarize(await callOperation(name, 'lost-then-put-off')), [201, name, false])
      assert.deepEqual([provider.createCalls.length, await countEvents()], [3, 1])
    })

    it('rejected by the provider: the retry calls again', async () => {
      const name = buildName()
      provider.outcomes.push('refuse')
      assert.deepEqual(summarize(await callOperation(name, 'refused-at-first')), [
        502,
        'upstream_error',
        false,
      ])
      assert.equal(await countEvents(), 0)
      assert.deepEqual(summarize(await callOperation(name, 'refused-at-first')), [201, name, false])
      assert.deepEqual(
        [provider.createCalls.length, provider.lookupCalls.length, await countEvents()],
        [2, 0, 1],
      )
    })

    it('rejected in preparation: no call is made, and the error is replayed', async () => {
      assert.deepEqual(summarize(await callOperation('taken', 'refused-by-us')), [409, 'conflict', false])
      assert.deepEqual(summarize(await callOperation('taken', 'refused-by-us')), [409, 'conflict', true])
      assert.deepEqual(provider.createCalls, [])
    })

    it('dry run and test key: no call is made', async () => {
      const test = (await workspace.key(workspace.owner.staffId, { test: true })).key
      for (const reply of [
        await callOperation('dry run', 'a-dry-run-key', { body: { dry_run: true } }),
        await callOperation('dry run', 'a-dry-run-key', { key: test }),
      ]) {
        assert.deepEqual([reply.status, reply.body], [201, { id: null, name: 'dry run', dry_run: true }])
      }
      assert.deepEqual([provider.createCalls, provider.lookupCalls, await countEvents()], [[], [], 0])
    })

    it('a retry during a running call returns still_running and makes no call', async () => {
      const name = buildName()
      provider.outcomes.push('make and wait')
      const first = callOperation(name, 'while-it-waits')
      await provider.waitForCall()
      for (const server of servers) {
        const retry = await callOperation(name, 'while-it-waits', { server })
        assert.deepEqual([...summarize(retry), retry.body.reason], [409, 'conflict', false, 'still_running'])
      }
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 0, 'a running call is not taken over')
      provider.release()
      let isFinished = false
      void first.finally(() => {
        isFinished = true
      })
      while (!isFinished)
        await Promise.all(servers.map((server) => callOperation(name, 'while-it-waits', { server })))
      assert.deepEqual(summarize(await first), [201, name, false], 'retries do not affect the first call')
      for (const server of servers)
        assert.deepEqual(summarize(await callOperation(name, 'while-it-waits', { server })), [
          201,
          name,
          true,
        ])
      assert.deepEqual([provider.createCalls, provider.lookupCalls, await countEvents()], [[name], [], 1])
    })

    it('without a retry, the background job completes the call', async () => {
      const name = buildName()
      provider.outcomes.push('make and drop')
      assert.equal((await callOperation(name, 'nobody-retries')).status, 504)
      const { signal } = new AbortController()
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app, AbortSignal.abort()), 0, 'it stops')
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app, signal), 1)
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 0)
      assert.equal(await countEvents(), 1)
      assert.deepEqual(summarize(await callOperation(name, 'nobody-retries')), [201, name, true])
      assert.deepEqual([provider.createCalls, provider.lookupCalls], [[name], [name]])
    })

    it('the background job completes the call of a revoked API key', async () => {
      const { key, keyId } = await workspace.key(workspace.owner.staffId)
      const name = buildName()
      provider.outcomes.push('make and drop')
      assert.equal((await callOperation(name, 'revoked-meanwhile', { key })).status, 504)
      await revokeKey(servers[0]!.db, workspace.id, keyId, servers[0]!.app.now())
      await reconcileProviderCalls(servers.at(-1)!.app)
      assert.deepEqual(summarize(await callOperation(name, 'revoked-meanwhile')), [201, name, true])
      assert.equal(await countEvents(), 1)
    })

    it('a caller that resumes after its lease expired does not complete the call twice', async () => {
      const name = buildName()
      provider.outcomes.push('make and wait')
      const first = callOperation(name, 'slept-too-long')
      await provider.waitForCall()
      await expireLeases()
      assert.equal(await reconcileProviderCalls(servers.at(-1)!.app), 1)
      assert.equal(await countEvents(), 1)
      provider.release()
      assert.equal((await first).status, 201)
      assert.deepEqual([provider.createCalls, provider.lookupCalls, await countEvents()], [[name], [name], 1])
      assert.deepEqual(summarize(await callOperation(name, 'slept-too-long')), [201, name, true])
    })
  })
}
