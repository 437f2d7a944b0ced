import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalog, currentVersion, listRoutes } from '../../catalog/index.ts'
import { doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { buildExampleInputs, listIdFields, getIdValue, seedWorld } from '../world.ts'

const noon = '2026-10-05T12:00:00.000Z'

type Send = (
  path: string,
  init?: { method?: string; headers?: Record<string, string>; body?: unknown; raw?: string },
) => Promise<Reply>

const createSender =
  (server: TestServer, workspace: TestWorkspace): Send =>
  async (path, { method, headers = {}, body, raw } = {}) => {
    const text = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(server.url + path, {
      method: method ?? (text === undefined ? 'GET' : 'POST'),
      ...(text === undefined ? {} : { body: text }),
      headers: {
        Authorization: `Bearer ${workspace.owner.key}`,
        ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
    })
    const responseText = await response.text()
    return {
      status: response.status,
      text: responseText,
      body: responseText === '' ? undefined : JSON.parse(responseText),
      headers: Object.fromEntries(response.headers),
    }
  }

/** Checks the headers of every response, and the rate limit headers of those to a known key. */
const assertHeaders = (reply: Reply, kind: 'read' | 'write' | undefined, limit: number): void => {
  const { headers } = reply
  assert.match(headers['request-id'] ?? '', /^req_[0-9A-HJKMNP-TV-Z]{26}$/, reply.text)
  assert.equal(headers['api-version'], currentVersion)
  if (kind === undefined) assert.equal(headers['ratelimit'], undefined)
  else {
    assert.equal(headers['ratelimit-policy'], `"${kind}";q=${limit};w=60`, reply.text)
    assert.match(headers['ratelimit'] ?? '', new RegExp(`^"${kind}";r=\\d+;t=\\d+$`), reply.text)
  }
  if (reply.status < 400) assert.match(headers['content-type'] ?? '', /^application\/json/)
}

everyDatabase(
  'Responses',
  (server) => {
    it('every response has its headers, and every error is a complete problem', async () => {
      const workspace = await makeWorkspace(server())
      const send = createSender(server(), workspace)
      const noScope = (await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })).key
      const group = await send('/v1/groups', {
        body: { name: 'One' },
        headers: { 'Idempotency-Key': 'first-group' },
      })
      const { id } = group.body.group
      const cases: [string, Reply, number, 'read' | 'write' | undefined][] = [
        ['read', await send('/v1/me'), 200, 'read'],
        ['search by POST', await send('/v1/contacts/search', { body: {} }), 200, 'read'],
        ['change', group, 200, 'write'],
        [
          'replay',
          await send('/v1/groups', { body: { name: 'One' }, headers: { 'Idempotency-Key': 'first-group' } }),
          200,
          'write',
        ],
        ['creation', await send('/v1/custom-fields', { body: { key: 'size', type: 'int' } }), 201, 'write'],
        ['dry run', await send('/v1/groups?dry_run=true', { body: { name: 'Two' } }), 200, 'write'],
        ['wrong field', await send('/v1/groups', { body: { name: 1 } }), 400, 'write'],
        ['unknown version', await send('/v1/me', { headers: { 'Api-Version': '2000-01-01' } }), 400, 'read'],
        ['no key', await send('/v1/me', { headers: { Authorization: '' } }), 401, undefined],
        [
          'no scope',
          await send('/v1/groups', {
            body: { name: 'Two' },
            headers: { Authorization: `Bearer ${noScope}` },
          }),
          403,
          'write',
        ],
        ['no route', await send('/v1/nowhere'), 404, 'read'],
        ['no operation', await send('/v1/ops/nothing', { body: {} }), 404, 'read'],
        [
          'absent',
          await send('/v1/groups/99999999', { method: 'DELETE', headers: { 'Api-Confirm': 'delete' } }),
          404,
          'write',
        ],
        ['conflict', await send('/v1/custom-fields', { body: { key: 'size', type: 'int' } }), 409, 'write'],
        ['no confirmation', await send(`/v1/groups/${id}`, { method: 'DELETE' }), 428, 'write'],
        ['no such method', await send('/v1/groups', { method: 'PUT', body: {} }), 405, undefined],
        ['too large', await send('/v1/groups', { raw: ' '.repeat(1024 * 1024 + 1) }), 413, undefined],
        [
          'no JSON',
          await send('/v1/groups', { body: {}, headers: { 'Content-Type': 'text/csv' } }),
          415,
          undefined,
        ],
      ]
      for (const [name, reply, status, kind] of cases) {
        assert.equal(reply.status, status, `${name}: ${reply.text}`)
        assertHeaders(
          reply,
          kind,
          kind === 'read' ? server().app.config.limits.read.key : server().app.config.limits.write.key,
        )
        if (status >= 400) assertProblem(reply, server().url)
        assert.equal(reply.headers['idempotent-replayed'], name === 'replay' ? 'true' : undefined, name)
      }
      assert.equal(new Set(cases.map(([, reply]) => reply.headers['request-id'])).size, cases.length)
      assert.equal(cases[2]![1].headers['idempotency-key'], 'first-group')
      assert.equal(cases[3]![1].text, cases[2]![1].text)
      const created = cases[4]![1]
      const generated = created.headers['idempotency-key']!
      assert.match(generated, /^[\w-]{36}$/, 'a generated key is returned')
      const again = await send('/v1/custom-fields', {
        body: { key: 'size', type: 'int' },
        headers: { 'Idempotency-Key': generated },
      })
      assert.deepEqual(
        [again.status, again.text, again.headers['idempotent-replayed']],
        [201, created.text, 'true'],
      )
    })

    it('REST and /v1/ops return the same body, byte for byte', async () => {
      const workspace = await makeWorkspace(server())
      const world = await seedWorld(server(), workspace, 'Same', '0123')
      const [rest, ops] = doorsOf(server().url, workspace.owner.key)
      let succeeded = 0
      for (const op of catalog) {
        const inputs = [
          ...buildExampleInputs(world, op),
          ...listIdFields(op).map((f) => ({
            ...buildExampleInputs(world, op)[0],
            [f]: getIdValue(world, op, f),
          })),
          {},
        ]
        for (const input of inputs.map((i) => (op.dryRun ? { ...i, dry_run: true } : i))) {
          // A path needs its fields.
          const isEmpty = Object.keys(input).every((name) => name === 'dry_run')
          if (isEmpty && listRoutes(op)[0]!.pathFields.length > 0) continue
          const [one, other] = [await rest!.call(op.name, input), await ops!.call(op.name, input)]
          // Each REST route takes some of the fields, /v1/ops takes all.
          if (one.body.errors?.[0]?.code === 'misplaced_field') continue
          assert.equal(other.status, one.status, `${op.name} ${one.text} ${other.text}`)
          if (one.status >= 300) continue
          succeeded++
          // These differ from call to call: remaining limits, cursors, file URLs and times that depend on
          // the real clock.
          const normalize = (text: string) =>
            text
              .replaceAll(/"remaining":\d+/g, '"remaining":0')
              .replaceAll(/"next_cursor":"[^"]+"/g, '"next_cursor":"…"')
              .replaceAll(/"url":"[^"]+\/media\/[^"]+","expires_at":"[^"]+"/g, '"url":"…"')
              .replaceAll(/"(old_secret_valid_until|next_attempt_at)":"[^"]+"/g, '"$1":"…"')
              .replaceAll(/"old_secrets_valid_until":\["[^"]+"\]/g, '"old_secrets_valid_until":["…"]')
          assert.equal(normalize(other.text), normalize(one.text), op.name)
        }
      }
      assert.ok(succeeded >= catalog.length, `${succeeded} responses were compared`)
    })
  },
  { now: () => noon },
)
