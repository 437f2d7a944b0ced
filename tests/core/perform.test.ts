import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { z } from 'zod'
import { currentVersion, defineOperation, type Scope, scopes } from '../../catalog/index.ts'
import type { LocalHandler } from '../../server/kernel/handler.ts'
import { notFound } from '../../server/kernel/problem.ts'
import { updateWorkspace } from '../../storage/workspace/admin.ts'
import type { Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'
import { databases } from '../databases.ts'

/** An operation that requires everything: a scope, a body, an idempotency key and a confirmation. */
const strictOperation = defineOperation({
  name: 'test_strict',
  cli: 'test strict',
  routes: ['POST /v1/test-strict'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Require everything',
  words: 'test',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'required',
  confirm: 'delete',
  repeatable: false,
  emits: [],
  input: z.object({ thing_id: z.string().max(20) }),
  output: z.object({ thing_id: z.string() }),
  errors: ['not_found'],
  examples: [],
})
const handler: LocalHandler<{ thing_id: string }> = async (_, { thing_id: id }) => {
  if (id === 'absent') throw notFound('thing', id)
  return { thing_id: id }
}
const paths = { rest: '/v1/test-strict', ops: '/v1/ops/test_strict' }

type Request = { path: string; headers: Record<string, string>; body: Record<string, unknown> }
type FaultContext = {
  server: TestServer
  workspace: TestWorkspace
  request: Request
  setKeyScopes: (scopes: Scope[]) => Promise<void>
}

const send = async (server: TestServer, { path, headers, body }: Request): Promise<Reply> => {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    body: JSON.parse(text),
    headers: Object.fromEntries(response.headers),
  }
}

const USED_KEY = 'a-key-used-before'
const WORKSPACE_WRITES = 4

/**
 * What can be wrong with a call, in the order of the checks (docs/design.md), with the expected error. `prepare`
 * sets up the workspace and `applyTo` the request, both in reverse order.
 */
const faults: {
  name: string
  expected: [number, string, string?]
  prepare?: (context: FaultContext) => Promise<void>
  applyTo?: (request: Request) => void
}[] = [
  {
    name: 'no key',
    expected: [401, 'unauthenticated'],
    applyTo: (r) => {
      delete r.headers['Authorization']
    },
  },
  {
    name: 'no API access',
    expected: [403, 'entitlement_required'],
    prepare: async ({ server, workspace }) => {
      await updateWorkspace(server.db, workspace.id, { features: [] })
    },
  },
  {
    name: 'unknown version',
    expected: [400, 'invalid_input', 'unknown_version'],
    applyTo: (r) => {
      r.headers['Api-Version'] = '1999-12-31'
    },
  },
  {
    name: 'no such route or operation',
    expected: [404, 'not_found'],
    applyTo: (r) => {
      r.path += '-not'
    },
  },
  {
    name: 'missing scope',
    expected: [403, 'insufficient_scope'],
    prepare: async ({ setKeyScopes }) => await setKeyScopes(['mcp:read', 'crm:write']),
  },
  {
    name: 'limit reached',
    expected: [429, 'rate_limited'],
    prepare: async ({ server, workspace, request }) => {
      const other = {
        ...request,
        headers: { Authorization: `Bearer ${workspace.owner.key}` },
        body: { thing_id: 'one', dry_run: true },
        path: paths.ops,
      }
      for (let i = 0; i < WORKSPACE_WRITES; i++) if ((await send(server, other)).status === 429) return
    },
  },
  {
    name: 'invalid input',
    expected: [400, 'invalid_input', undefined],
    applyTo: (r) => {
      r.body['thing'] = 1
    },
  },
  {
    name: 'missing Idempotency-Key',
    expected: [400, 'invalid_input', 'idempotency_key_required'],
    applyTo: (r) => {
      delete r.headers['Idempotency-Key']
    },
  },
  {
    name: 'missing confirmation',
    expected: [428, 'confirm_required'],
    applyTo: (r) => {
      delete r.headers['Api-Confirm']
    },
  },
  {
    name: 'key used for another request',
    expected: [400, 'invalid_input', 'idempotency_key_reused'],
    prepare: async ({ server, request }) => {
      const first = await send(server, {
        ...request,
        body: { thing_id: 'another' },
        headers: { ...request.headers, 'Idempotency-Key': USED_KEY },
        path: paths.rest,
      })
      assert.equal(first.status, 200, first.text)
    },
    applyTo: (r) => {
      if (r.headers['Idempotency-Key']) r.headers['Idempotency-Key'] = USED_KEY
    },
  },
  {
    name: 'record does not exist',
    expected: [404, 'not_found'],
    applyTo: (r) => {
      r.body['thing_id'] = 'absent'
    },
  },
]
const contradictory = ['missing Idempotency-Key', 'key used for another request']

const withFaults = async (server: TestServer, path: string, chosen: typeof faults): Promise<Reply> => {
  const workspace = await makeWorkspace(server)
  let key = (await workspace.key(workspace.owner.staffId)).key
  const request: Request = {
    path,
    headers: {
      Authorization: `Bearer ${key}`,
      'Idempotency-Key': 'a-key-of-its-own',
      'Api-Confirm': 'delete',
    },
    body: { thing_id: 'one' },
  }
  const setKeyScopes = async (only: Scope[]) => {
    key = (await workspace.key(workspace.owner.staffId, { scopes: only })).key
    request.headers['Authorization'] = `Bearer ${key}`
  }
  for (const fault of chosen.toReversed()) await fault.prepare?.({ server, workspace, request, setKeyScopes })
  // A server caches keys briefly; a fresh key is loaded with the current state of the workspace.
  if (chosen.some((f) => f.name === 'no API access') && !chosen.some((f) => f.name === 'missing scope'))
    await setKeyScopes([...scopes])
  for (const fault of chosen.toReversed()) fault.applyTo?.(request)
  return await send(server, request)
}

for (const database of databases) {
  describe(`perform: order of the checks (${database})`, () => {
    let server: TestServer
    before(async () => {
      server = await startServer(database, {
        limitWorkspaceWrite: WORKSPACE_WRITES,
        extra: [{ operation: strictOperation, handler: handler as never }],
      })
    })
    after(async () => {
      await server.close()
    })

    for (const [name, path] of Object.entries(paths)) {
      it(`a correct call succeeds [${name}]`, async () => {
        const reply = await withFaults(server, path, [])
        assert.deepEqual([reply.status, reply.body], [200, { thing_id: 'one' }])
      })
      for (const [i, first] of faults.entries()) {
        it(`${first.name} is reported before every later error [${name}]`, async () => {
          const later = faults
            .slice(i + 1)
            .filter((f) => !(contradictory.includes(first.name) && contradictory.includes(f.name)))
          for (const chosen of [[first], ...later.map((f) => [first, f])]) {
            const reply = await withFaults(server, path, chosen)
            assert.deepEqual(
              [reply.status, reply.body.code, reply.body.reason],
              [first.expected[0], first.expected[1], first.expected[2]],
              `${chosen.map((f) => f.name).join(' + ')}: ${reply.text}`,
            )
            assertProblem(reply, server.url)
          }
        })
      }
    }

    it('method, size and content type are checked before the key', async () => {
      const post = async (init: RequestInit) =>
        (await fetch(`${server.url}/v1/contacts`, { method: 'POST', ...init })).status
      assert.equal(await post({ method: 'PUT', body: '{}', headers: { 'Content-Type': 'text/plain' } }), 405)
      assert.equal(
        await post({ body: 'x'.repeat(1024 * 1024 + 1), headers: { 'Content-Type': 'text/plain' } }),
        413,
      )
      assert.equal(await post({ body: '{}', headers: { 'Content-Type': 'text/plain' } }), 415)
      assert.equal(await post({ body: '{}', headers: { 'Content-Type': 'application/json' } }), 401)
    })

    it('a dry run needs neither Idempotency-Key nor confirmation', async () => {
      const workspace = await makeWorkspace(server)
      for (const path of Object.values(paths)) {
        const target = path === paths.rest ? `${path}?dry_run=true` : path
        const body = path === paths.rest ? { thing_id: 'one' } : { thing_id: 'one', dry_run: true }
        const reply = await send(server, {
          path: target,
          headers: { Authorization: `Bearer ${workspace.owner.key}` },
          body,
        })
        assert.deepEqual([reply.status, reply.body], [200, { thing_id: 'one', dry_run: true }])
        assert.equal(reply.headers['idempotency-key'], undefined)
      }
      const { key } = await workspace.key(workspace.owner.staffId, { test: true })
      const reply = await send(server, {
        path: paths.rest,
        headers: { Authorization: `Bearer ${key}` },
        body: { thing_id: 'one' },
      })
      assert.deepEqual([reply.status, reply.body], [200, { thing_id: 'one', dry_run: true }])
    })

    it('another verb than that of the operation confirms nothing', async () => {
      const { owner } = await makeWorkspace(server)
      for (const path of Object.values(paths))
        for (const verb of ['send', 'deleted']) {
          const headers = {
            Authorization: `Bearer ${owner.key}`,
            'Idempotency-Key': 'another-verb',
            'Api-Confirm': verb,
          }
          const { status, body } = await send(server, { path, headers, body: { thing_id: 'one' } })
          assert.deepEqual([status, body.code, body.confirm], [428, 'confirm_required', 'delete'])
        }
    })

    it('the API version is accepted and returned', async () => {
      const workspace = await makeWorkspace(server)
      const response = await fetch(`${server.url}/v1/me`, {
        headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Api-Version': currentVersion },
      })
      assert.deepEqual([response.status, response.headers.get('api-version')], [200, currentVersion])
    })
  })
}
