import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createClient } from '../../client/index.ts'
import {
  apiVersions,
  catalog,
  currentVersion,
  getInputSchema,
  getOutputSchema,
  type Operation,
  versions,
} from '../../catalog/index.ts'
import { createPastOperation } from '../../catalog/past-operation.ts'
import type { ApiVersion } from '../../catalog/versions.ts'
import { renderApiVersions } from '../../scripts/api-versions.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { doorsOf, everyDatabase, type Reply, runCli } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import {
  createEndpoint,
  createGroups,
  listDeliveries,
  setDeliveryStatus,
} from '../webhooks/delivery-log-fixture.ts'
import { listBreaks, parseShapes } from './api-versions/shape.ts'

const operations: readonly Operation[] = catalog
const first = '2026-10-01'

describe('Declarations of API versions', () => {
  it('are in order, and announced 180 days before they may end', () => {
    assert.deepEqual([...apiVersions], [...apiVersions].toSorted())
    assert.equal(currentVersion, apiVersions.at(-1))
    for (const [index, { id, deprecatedAt, sunsetAt }] of (versions as readonly ApiVersion[]).entries()) {
      if (id === currentVersion) assert.deepEqual([deprecatedAt, sunsetAt], [undefined, undefined])
      else {
        assert.ok(deprecatedAt! >= apiVersions[index + 1]!, id)
        assert.ok(Date.parse(sunsetAt!) - Date.parse(deprecatedAt!) >= 180 * 86_400_000, id)
      }
    }
  })

  it('fit the operations: examples of each version are valid in it, and change back and forth', () => {
    for (const op of operations)
      for (const { id } of versions) {
        const past = createPastOperation(op, id)
        assert.equal(
          past !== undefined,
          (op.changes ?? []).some(({ version }) => version > id),
          op.name,
        )
        if (!past) continue
        assert.equal(op.bytes, undefined)
        for (const [index, example] of past.operation.examples.entries()) {
          getInputSchema(past.operation).parse(example.input)
          getOutputSchema(past.operation).strict().parse(example.output)
          assert.deepEqual(past.toCurrentInput(example.input as never), op.examples[index]!.input)
        }
      }
  })

  it('a version never breaks those who knew it on its first day', () => {
    for (const { id } of versions.filter((version) => version.id !== currentVersion)) {
      const known = parseShapes(readFileSync(new URL(`./api-versions/${id}.txt`, import.meta.url), 'utf8'))
      const breaks = [...known].flatMap(([name, places]) => {
        const op = operations.find((each) => each.name === name)
        return op ? listBreaks(createPastOperation(op, id)?.operation ?? op, places) : [`${name} is gone`]
      })
      assert.deepEqual(breaks, [])
      // The current version does: what it changed is why there is one.
      const changed = operations.filter((op) => op.changes?.some(({ version }) => version > id))
      assert.deepEqual(
        changed.filter((op) => listBreaks(op, known.get(op.name)!).length === 0).map(({ name }) => name),
        [],
      )
    }
  })

  it('the page of the changes is as it is generated', () => {
    assert.equal(
      readFileSync(new URL('../../docs/api-versions.md', import.meta.url), 'utf8'),
      renderApiVersions(),
    )
  })
})

everyDatabase('API versions', (server) => {
  const makePinnedKey = async (
    { db }: TestServer,
    { id, owner }: TestWorkspace,
    version: string,
  ): Promise<string> => {
    const key = createApiKey(false)
    const fields = {
      staff_id: owner.staffId,
      scopes: ['mcp:read' as const, 'webhooks:write' as const],
      api_version: version,
    }
    await createKey(db, id, hashApiKey(key), fields, new Date().toISOString())
    return key
  }

  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const old = await makePinnedKey(server(), workspace, first)
    const doors = doorsOf(server().url, workspace.owner.key)
    const [rest, ops, mcp, cli] = doors.map(({ call }) => call) as [
      (typeof doors)[0]['call'],
      (typeof doors)[0]['call'],
      (typeof doors)[0]['call'],
      (typeof doors)[0]['call'],
    ]
    return { workspace, old, rest, ops, mcp, cli }
  }

  const announces = ({ headers }: Reply): boolean[] =>
    ['deprecation', 'sunset', 'link'].map((name) => headers[name] !== undefined)

  it('a key has the version it is pinned to, unless the header asks for another', async () => {
    const { rest, ops, old } = await setUp()
    for (const call of [rest, ops])
      for (const [options, version] of [
        [{}, currentVersion],
        [{ version: first }, first],
        [{ key: old }, first],
        [{ key: old, version: currentVersion }, currentVersion],
      ] as const) {
        const reply = await call('workspace_channels', {}, options)
        assert.equal(reply.headers['api-version'], version)
        const isOld = version === first
        assert.deepEqual(announces(reply), [isOld, isOld, isOld])
        const { health, quality_rating: quality } = reply.body.data[0]
        if (health !== null) assert.equal(health.quality, isOld ? quality : undefined)
        // Errors announce it too.
        const missing = await call('crm_get_contact', { contact_id: '999999999' }, options)
        assert.deepEqual([missing.status, ...announces(missing)], [404, isOld, isOld, isOld])
      }
  })

  it('the announcement is in the forms of RFC 9745 and RFC 8594', async () => {
    const { rest } = await setUp()
    const { headers } = await rest('workspace_whoami', {}, { version: first })
    assert.match(headers['deprecation']!, /^@\d{10}$/)
    assert.equal(headers['sunset'], new Date(headers['sunset']!).toUTCString())
    assert.match(headers['link']!, /^<http[^>]+\/docs\/api-versions>; rel="deprecation"/)
  })

  it('an input field has its name of the version, in errors too', async () => {
    const { rest, ops } = await setUp()
    for (const call of [rest, ops]) {
      const at = (error: Record<string, string>): string => error['parameter'] ?? error['pointer']!.slice(2)
      for (const [version, known, unknown] of [
        [first, 'waiting_minutes', 'min_waiting_minutes'],
        [currentVersion, 'min_waiting_minutes', 'waiting_minutes'],
      ] as const) {
        assert.equal((await call('inbox_queue', { [known]: 5 }, { version })).status, 200)
        const invalid = await call('inbox_queue', { [known]: 0 }, { version })
        assert.deepEqual([invalid.status, at(invalid.body.errors[0])], [400, known])
        const refused = await call('inbox_queue', { [unknown]: 5 }, { version })
        assert.deepEqual(
          [refused.status, at(refused.body.errors[0]), refused.body.errors[0].code],
          [400, unknown, 'unknown_field'],
        )
        assert.match(refused.body.errors[0].fix, new RegExp(`\\b${known}\\?`))
      }
    }
  })

  it('a field that a version requires is required at each door, and may be left out before', async () => {
    const { workspace, rest, ops, mcp, cli } = await setUp()
    const endpoint_id = await createEndpoint({ server: server(), workspace }, '*')
    const input = { endpoint_id, dry_run: true }
    for (const call of [rest, ops, mcp, cli]) {
      const { status, body } = await call('webhooks_send_test', input)
      assert.deepEqual([status, body.code], [400, 'invalid_input'])
      const given = await call('webhooks_send_test', { ...input, event_type_id: 'group.created/1' })
      assert.deepEqual([given.status, given.body.event_type_id], [202, 'group.created/1'])
    }
    for (const call of [rest, ops])
      assert.equal((await call('webhooks_send_test', input, { version: first })).status, 202)
  })

  it('every answer that a version changed is valid in each version, whatever the other has', async () => {
    const { workspace, rest, ops } = await setUp()
    const scene = { server: server(), workspace }
    const endpoint = await createEndpoint(scene, '*')
    await createGroups(scene, 'A')
    const [delivery] = await listDeliveries(scene, endpoint)
    await setDeliveryStatus(scene, delivery!.id, 'dead')
    const inputs: Record<string, Record<string, unknown>> = {
      workspace_channels: {},
      inbox_queue: {},
      webhooks_get_delivery: { delivery_id: delivery!.id },
      webhooks_send_test: { endpoint_id: endpoint, event_type_id: 'group.created/1', dry_run: true },
    }
    for (const op of operations.filter(({ changes }) => changes))
      for (const { id } of versions) {
        const past = createPastOperation(op, id)
        const schema = getOutputSchema(past?.operation ?? op).strict()
        const [one, two] = [
          await rest(op.name, inputs[op.name], { version: id }),
          await ops(op.name, inputs[op.name], { version: id }),
        ]
        schema.parse(one.body)
        assert.equal(one.text, two.text)
      }
  })

  it('MCP and the command line have the version that they describe, whatever the key is pinned to', async () => {
    const { mcp, cli, old } = await setUp()
    for (const call of [mcp, cli]) {
      assert.equal((await call('inbox_queue', { min_waiting_minutes: 5 }, { key: old })).status, 200)
      const { body } = await call('workspace_channels', {}, { key: old })
      assert.ok(body.data.every((row: any) => row.health === null || !('quality' in row.health)))
    }
    // A raw request is as the key is, and as one asks.
    const env = { WCRM_URL: server().url, WCRM_API_KEY: old, XDG_CONFIG_HOME: '/nonexistent' }
    const path = '/v1/inbox/queue?waiting_minutes=5'
    assert.equal((await runCli(['api', 'GET', path], env)).exit, 0)
    assert.equal((await runCli(['api', 'GET', path], { ...env, WCRM_API_VERSION: currentVersion })).exit, 2)
  })

  it('the client library asks for the version of its types', async () => {
    const { old } = await setUp()
    const client = createClient({ url: server().url, apiKey: old })
    await client.conversations.queue({ min_waiting_minutes: 5 })
    const past = createClient({ url: server().url, apiKey: old, apiVersion: first })
    await assert.rejects(async () => await past.conversations.queue({ min_waiting_minutes: 5 }), {
      code: 'invalid_input',
    })
  })

  it('each version has its documents', async () => {
    const read = async (path: string): Promise<any> => (await fetch(`${server().url}${path}`)).json()
    const names = async (path: string) => {
      const { info, components } = await read(path)
      return [info.version, Object.keys(components.schemas['WebhooksGetDeliveryAnswer'].properties).at(-1)]
    }
    for (const kind of ['openapi', 'openapi-ops']) {
      assert.deepEqual(await names(`/${kind}.json`), [currentVersion, 'attempt_history'])
      assert.deepEqual(await names(`/${kind}-${first}.json`), [first, 'attempts_made'])
    }
    assert.equal((await fetch(`${server().url}/openapi-2026-10-02.json`)).status, 404)
    const load = async (name: string) => await (await fetch(`${server().url}/${name}.json`)).text()
    assert.equal(await load('openapi-2026-11-23'), await load('openapi'))
  })
})
