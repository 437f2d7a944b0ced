import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isAddressAllowed, parseSubnet } from '../../server/client-address.ts'
import { updateKey } from '../../storage/access/admin-keys.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { measureStaleness } from '../staleness.ts'

const json = { 'Content-Type': 'application/json' }

/** A request at each door that takes a key; all but the sandbox's are audited. */
const requests: Readonly<Record<string, [path: string, init: RequestInit]>> = {
  rest: ['/v1/me', {}],
  ops: ['/v1/ops/workspace_whoami', { method: 'POST', headers: json, body: '{}' }],
  mcp: [
    '/mcp',
    {
      method: 'POST',
      headers: { ...json, Accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    },
  ],
  stream: ['/v1/events', { headers: { Accept: 'text/event-stream' } }],
  sandbox: ['/sandbox/messages', {}],
}

const send = async (server: TestServer, key: string, address: string, door: string) => {
  const [path, init] = requests[door]!
  const response = await fetch(`${server.url}${path}`, {
    ...init,
    headers: { ...init.headers, Authorization: `Bearer ${key}`, 'X-Forwarded-For': address },
  })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (isStream) await response.body?.cancel()
  return { status: response.status, body: isStream ? undefined : ((await response.json()) as any) }
}

everyDatabase(
  'Allowed addresses of a key',
  (server) => {
    it('it is refused from any other, at every door, before its scopes are looked at', async () => {
      const workspace = await makeWorkspace(server())
      const { key, keyId } = await workspace.key(workspace.owner.staffId, { scopes: [] })
      const allow_from = ['203.0.113.0/24', '2001:db8::/32']
      await updateKey(server().db, workspace.id, keyId, { allow_from })
      const others = ['198.51.100.7', '2001:db9::1', '::ffff:198.51.100.7']
      for (const door of Object.keys(requests)) {
        for (const address of others) {
          const { status, body } = await send(server(), key, address, door)
          assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', 'address_not_allowed'], door)
          assert.match(body.detail, new RegExp(`admin keys update ${keyId} --allow-from`))
        }
        for (const address of [
          '203.0.113.99',
          '2001:db8:ffff::1',
          '::ffff:203.0.113.1',
          '::ffff:cb00:7101',
        ]) {
          const { status, body } = await send(server(), key, address, door)
          const isListed = door === 'mcp' ? status === 200 : body.code === 'insufficient_scope'
          assert.ok(isListed || body.reason === 'role', `${door} ${address} ${JSON.stringify(body)}`)
        }
      }
      const [, , , cli] = doorsOf(server().url, key)
      assert.equal((await cli!.call('workspace_whoami')).body.reason, 'address_not_allowed', 'from 127.0.0.1')
      const rows = await server()
        .db.selectFrom('audit_log')
        .select(['door', 'outcome', 'code'])
        .where('workspace_id', '=', workspace.id)
        .where('code', '=', 'forbidden')
        .execute()
      for (const door of ['rest', 'ops', 'mcp', 'cli'])
        assert.ok(
          rows.some((row) => row.door === door && row.outcome === 'refused'),
          `${door} is audited`,
        )
    })

    it('a changed list counts within a second', async () => {
      const workspace = await makeWorkspace(server())
      const { key, keyId } = await workspace.key(workspace.owner.staffId)
      const status = async () => (await send(server(), key, '198.51.100.7', 'rest')).status
      assert.equal(await status(), 200)
      await updateKey(server().db, workspace.id, keyId, { allow_from: ['203.0.113.7'] })
      assert.ok((await measureStaleness(async () => (await status()) !== 200)) < 1000)
      assert.equal(await status(), 403)
    })
  },
  { trustProxy: '127.0.0.1' },
)

it('addresses and CIDRs are normalized', () => {
  const cases: [string, string | undefined][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['10.0.0.0/33', undefined],
    ['fe80::1%eth0', undefined],
    ['example.com', undefined],
    ['10.0.0.1:80', undefined],
    ['', undefined],
  ]
  for (const [text, expected] of cases) assert.equal(parseSubnet(text), expected, text)
  assert.ok(!isAddressAllowed(['0.0.0.0/0', '::/0'], undefined), 'an unknown address is in no list')
  assert.ok(!isAddressAllowed(['0.0.0.0/0'], '2001:db8::1'))
})
