import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { currentVersion } from '../../catalog/index.ts'
import { createApiKey } from '../../server/api-keys.ts'
import { createSecretRing, loadSecrets, requireKnownSecret } from '../../server/secret.ts'
import type { Storage } from '../../storage/open.ts'
import { createGrantKey } from '../../storage/access/oauth.ts'
import { insertEndpoint } from '../../storage/webhooks/webhooks.ts'
import { processEnvironment } from '../process.ts'
import { serveStorage, type TestServer } from '../servers.ts'
import { createEndpoint } from '../webhooks/endpoint-fixture.ts'
import { doorsOf } from '../doors.ts'
import { sql } from 'kysely'
import { fail, runAdmin, succeed, useAdminDatabases } from './admin-commands.ts'
import { measureStaleness } from '../staleness.ts'

const databases = useAdminDatabases()

describe('wcrm admin keys and secret', () => {
  const folder = databases.newFolder()
  const dataFlags = ['--data', folder]
  let storage: Storage
  let server: TestServer
  before(async () => {
    storage = await databases.open(folder)
    const secrets = loadSecrets({ dataDir: folder })
    server = await serveStorage(storage, 'embedded', { secrets })
    await requireKnownSecret(storage, server.app.secrets)
    await succeed('workspaces', 'create', '--name', 'Acme', ...dataFlags)
    await succeed('staff', 'create', '--name', 'Ann', '--role', 'owner', ...dataFlags)
  })
  after(async () => {
    await server.close()
    await storage.close()
  })
  const status = async (key: string) =>
    (await fetch(`${server.url}/v1/me`, { headers: { Authorization: `Bearer ${key}` } })).status
  const createKey = (...flags: string[]) =>
    succeed('keys', 'create', '--staff', '1', '--scopes', 'all', ...flags, ...dataFlags)

  it('rotate: the new key has all that the old one had; the old one ends with the overlap', async () => {
    const old = await createKey('--name', 'ERP', '--agent', '--allow-from', '127.0.0.0/8,::1', '--test')
    const now = Date.now()
    const { key, replaces, ...rotated } = await succeed('keys', 'rotate', old.id, ...dataFlags)
    const { id: _, key: __, created_at: ___, ...before } = old
    const { id, created_at: ____, ...next } = rotated
    assert.deepEqual(next, before)
    assert.match(key, /^wc_test_/)
    assert.equal(replaces.id, old.id)
    const overlap = Date.parse(replaces.expires_at) - now
    assert.ok(Math.abs(overlap - 24 * 3_600_000) < 60_000, String(overlap))
    assert.deepEqual([await status(old.key), await status(key)], [200, 200])

    const again = await succeed('keys', 'rotate', id, '--overlap', '0', ...dataFlags)
    assert.ok((await measureStaleness(async () => (await status(key)) !== 200)) < 1000)
    assert.equal(await status(again.key), 200)
    const { data } = await succeed('keys', 'list', ...dataFlags)
    const states = Object.fromEntries(data.map((row: any) => [row.id, row.state]))
    assert.deepEqual([states[old.id], states[id], states[again.id]], ['active', 'expired', 'active'])
    const used = data.find((row: any) => row.id === again.id)
    assert.ok(Math.abs(Date.parse(used.last_used_at) - Date.now()) < 60_000)
    assert.ok(!JSON.stringify(data).includes('wc_'))
  })

  it('rotate keeps the limits of an AI agent, which are those of both keys from then on', async () => {
    const old = await createKey('--name', 'Budgeted', '--agent')
    await succeed('keys', 'policy', old.id, '--contacts-per-day', '7', ...dataFlags)
    const next = await succeed('keys', 'rotate', old.id, ...dataFlags)
    const limits = () =>
      Promise.all([old.id, next.id].map((id) => succeed('keys', 'policy', id, ...dataFlags)))
    assert.deepEqual(
      (await limits()).map((row) => row.contacts_per_day),
      [7, 7],
    )
    await succeed('keys', 'policy', next.id, '--deny', 'send', '--contacts-per-day', '5', ...dataFlags)
    assert.deepEqual(
      (await limits()).map((row) => [row.verbs.send, row.contacts_per_day]),
      [
        ['deny', 5],
        ['deny', 5],
      ],
    )
    for (const id of [old.id, next.id]) {
      await succeed('keys', 'pause', id, ...dataFlags)
      for (const { key } of [old, next])
        assert.ok((await measureStaleness(async () => (await status(key)) === 403)) < 1000)
      await succeed('keys', 'resume', id, ...dataFlags)
    }
  })

  it('changes of a policy at the same time are all kept', async () => {
    const { id } = await createKey('--agent')
    const { id: next } = await succeed('keys', 'rotate', id, ...dataFlags)
    const verbs = ['send', 'submit', 'delete', 'erase', 'archive', 'rotate']
    await Promise.all(
      verbs.map((verb, i) =>
        succeed('keys', 'policy', i % 2 === 0 ? id : next, '--deny', verb, ...dataFlags),
      ),
    )
    const policy = await succeed('keys', 'policy', id, ...dataFlags)
    assert.deepEqual(policy.verbs, Object.fromEntries(verbs.map((verb) => [verb, 'deny'])))
  })

  it('staff update says what goes on where the rights of somebody shrink', async () => {
    const update = async (...flags: string[]): Promise<string> =>
      (await runAdmin('staff', 'update', id, ...flags, ...dataFlags)).err
    const { id } = await succeed('staff', 'create', '--name', 'Ivo', '--role', 'admin', ...dataFlags)
    const shrinks = [['--disabled'], ['--role', 'agent', '--hide-phone-numbers'], ['--channels', '']]
    for (const flags of shrinks) assert.equal(await update(...flags), '', flags.join(' '))
    const fields = { url: 'https://example.com/hook', description: null, payload_format: 'envelope' } as const
    const secrets = { custom_headers: '', signing_secret: 'sealed' }
    const now = server.app.now()
    await insertEndpoint(storage.db, '1', 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0', { ...fields, ...secrets }, now)
    for (const flags of shrinks)
      assert.match(await update(...flags), /1 webhook endpoint gets the events of the whole/, flags.join(' '))
    for (const flags of [
      ['--enabled'],
      ['--role', 'admin', '--no-hide-phone-numbers'],
      ['--channels', 'all'],
    ])
      assert.equal(await update(...flags), '', flags.join(' '))
    await storage.db.deleteFrom('webhook_endpoints').execute()
  })

  it('revoke ends what the key could still sign in, and names what was signed in before', async () => {
    const { id: staffId } = await succeed('staff', 'create', '--name', 'Uma', '--role', 'admin', ...dataFlags)
    const make = (...flags: string[]) =>
      succeed('keys', 'create', '--staff', staffId, '--scopes', 'all', ...flags, ...dataFlags)
    const revoke = async (id: string): Promise<string> =>
      (await runAdmin('keys', 'revoke', id, ...dataFlags)).err
    const getCode = async ({ key }: { key: string }): Promise<string> => {
      const headers = { Authorization: `Bearer ${key}` }
      const response = await fetch(`${server.url}/oauth/login-codes`, { method: 'POST', headers })
      return ((await response.json()) as { code: string }).code
    }
    const signIn = async (code: string): Promise<number> => {
      const page = await fetch(`${server.url}/approvals/1`)
      const token = /name="token" value="([^"]+)"/.exec(await page.text())![1]!
      const headers = { Cookie: page.headers.getSetCookie()[0]!.split(';')[0]! }
      const body = new URLSearchParams({ token, code })
      return (await fetch(page.url, { method: 'POST', headers, body, redirect: 'manual' })).status
    }
    const [stolen, other, last, agent] = [await make(), await make(), await make(), await make('--agent')]
    const code = await getCode(stolen)
    assert.equal(await revoke(stolen.id), '')
    assert.equal(await signIn(code), 400)

    assert.equal(await signIn(await getCode(other)), 303)
    const end = new Date(Date.now() + 86_400_000).toISOString()
    const key = { staff_id: staffId, scopes: [], agent: true, api_version: currentVersion, expires_at: end }
    const grant = { grantHash: randomBytes(32), clientId: 'c', hash: randomBytes(32) }
    const name = 'OAuth: example.com'
    const grantKey = await createGrantKey(
      storage.db,
      '1',
      { ...grant, key: { ...key, name } },
      server.app.now(),
    )
    const { data } = await succeed('keys', 'list', ...dataFlags)
    const session = data.find((row: any) => row.staff_id === staffId && row.name === 'Approval page')
    assert.equal(await revoke(agent.id), '')
    const warning = await revoke(other.id)
    assert.ok(warning.includes(`go on: ${session.id} (Approval page), ${grantKey} (${name}). `), warning)
    await revoke(session.id)
    await revoke(grantKey)
    assert.equal(await revoke(last.id), '')
  })

  it('rotate keeps an earlier end of the old key, and refuses keys that are over', async () => {
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const old = await createKey('--expires', soon)
    const next = await succeed('keys', 'rotate', old.id, '--expires', 'never', ...dataFlags)
    assert.deepEqual([next.replaces.expires_at, next.expires_at], [soon, null])
    await succeed('keys', 'revoke', next.id, ...dataFlags)
    await fail(2, /is revoked/, 'keys', 'rotate', next.id, ...dataFlags)
    const expired = await createKey('--expires', '2026-01-01')
    await fail(2, /is expired/, 'keys', 'rotate', expired.id, ...dataFlags)
    const revived = await succeed('keys', 'rotate', expired.id, '--expires', 'never', ...dataFlags)
    assert.equal(await status(revived.key), 200)
    await fail(3, /no key 999/, 'keys', 'rotate', '999', ...dataFlags)
    for (const overlap of ['1 year', '-1h', '91d', ''])
      await fail(
        2,
        /--overlap does not accept/,
        'keys',
        'rotate',
        old.id,
        `--overlap=${overlap}`,
        ...dataFlags,
      )
  })

  it('update changes the name, the expiry and the addresses', async () => {
    const { id, key } = await createKey()
    const changed = await succeed(
      'keys',
      'update',
      id,
      '--name',
      'Till',
      '--allow-from',
      '::ffff:10.0.0.0/104',
      '--allow-from',
      '2001:DB8::/32',
      ...dataFlags,
    )
    assert.deepEqual([changed.name, changed.allow_from], ['Till', ['10.0.0.0/8', '2001:db8::/32']])
    assert.equal(await status(key), 403)
    const open = await succeed('keys', 'update', id, '--allow-from', 'anywhere', ...dataFlags)
    assert.equal(open.allow_from, null)
    const ended = await succeed('keys', 'update', id, '--expires', '2026-01-01', ...dataFlags)
    assert.equal(ended.state, 'expired')
    assert.equal((await succeed('keys', 'update', id, '--expires', 'never', ...dataFlags)).state, 'active')
    await succeed('staff', 'update', '1', '--disabled', ...dataFlags)
    const { data } = await succeed('keys', 'list', ...dataFlags)
    assert.equal(data.find((row: any) => row.id === id).state, 'disabled')
    await succeed('staff', 'update', '1', '--enabled', ...dataFlags)
    await fail(2, /Nothing to change/, 'keys', 'update', id, ...dataFlags)
    await fail(2, /--scopes does not accept "crm"/, 'keys', 'update', id, '--scopes', 'crm', ...dataFlags)
    const narrowed = await succeed('keys', 'update', id, '--scopes', 'approvals:write', ...dataFlags)
    assert.deepEqual(narrowed.scopes, ['approvals:write'])
    const other = await createKey()
    await succeed('keys', 'update', other.id, '--scopes', 'approvals:write', ...dataFlags)
    assert.equal(await status(other.key), 403)
    await fail(2, /--allow-from does not accept "x"/, 'keys', 'update', id, '--allow-from', 'x', ...dataFlags)
    await fail(2, /1 to 100/, 'keys', 'update', id, '--allow-from', '', ...dataFlags)
  })

  it('a key on the command line is refused and not repeated', async () => {
    const key = createApiKey(false)
    for (const words of [
      ['keys', 'create', '--staff', '1', '--scopes', 'all', '--name', key],
      ['keys', 'revoke', key],
      ['workspaces', 'create', '--name', `x ${key}`],
      [key],
    ]) {
      const { exit, out, err } = await runAdmin(...words, ...dataFlags)
      assert.deepEqual([exit, out], [2, ''])
      assert.match(err, /There is an API key on the command line/)
      assert.ok(!err.includes(key))
    }
  })

  it('the secret in the data folder rotates', async () => {
    const { key } = await createKey()
    await createEndpoint(doorsOf(server.url, key)[0]!.call)
    const file = join(folder, 'secret')
    const old = readFileSync(file, 'utf8').trim()
    const fresh = await succeed('secret', 'status', ...dataFlags)
    assert.deepEqual([fresh.previous_needed, fresh.stale, fresh.servers], [false, 0, 1])
    assert.equal(fresh.key, fresh.configured_key)

    const rotated = await succeed('secret', 'rotate', ...dataFlags)
    assert.deepEqual(rotated.previous_keys, [fresh.key])
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    assert.deepEqual([lines.length, lines[1]], [2, old])
    const waiting = await succeed('secret', 'status', ...dataFlags)
    assert.match(waiting.detail, /Running servers without the configured secret: 1/)
    await fail(2, /still needed/, 'secret', 'prune', ...dataFlags)

    // The restarted server.
    const secrets = loadSecrets({ dataDir: folder })
    const next = await serveStorage(storage, 'embedded', { secrets })
    await requireKnownSecret(storage, next.app.secrets)
    const during = await succeed('secret', 'status', ...dataFlags)
    assert.equal(during.key, rotated.key)
    assert.ok(during.stale > 0 && during.previous_needed)
    await next.app.jobs.job('secret-rotation').runOnce()
    await sql`
      update settings set value = (value::float8 - 3600)::text where key = 'secret_moved_at'`.execute(
      storage.db,
    )
    const resealed = await succeed('secret', 'status', ...dataFlags)
    assert.equal(resealed.stale, 0)
    assert.match(resealed.detail, /Cursors from before the rotation are valid until/)
    await sql`
      update settings set value = (value::float8 - 86400)::text where key = 'secret_moved_at'`.execute(
      storage.db,
    )
    assert.equal((await succeed('secret', 'status', ...dataFlags)).previous_needed, false)
    assert.deepEqual((await succeed('secret', 'prune', ...dataFlags)).previous_keys, [])
    assert.equal(readFileSync(file, 'utf8').trim(), lines[0])
    await next.close()
    const text = (await runAdmin('secret', 'status', ...dataFlags)).out
    assert.ok(!text.includes(lines[0]!) && !text.includes(old))
  })

  it('secrets of rotations at the same time are all kept', async () => {
    const rotations = 25
    const script = `
      import { runCommandLine } from ${JSON.stringify(new URL('../../cli/main.ts', import.meta.url).href)}
      const { stdin, stdout, stderr } = process
      const argv = ['admin', 'secret', 'rotate', '--data', ${JSON.stringify(folder)}, '--json']
      for (let i = 0; i < ${rotations}; i++)
        if ((await runCommandLine(argv, { stdin, stdout, stderr, env: {} })) !== 0) process.exit(1)`
    const run = promisify(execFile)
    const outputs = await Promise.all(
      [1, 2].map(() =>
        run(process.execPath, ['--input-type=module', '--eval', script], { env: processEnvironment }),
      ),
    )
    const stored = outputs.flatMap(({ stdout }) =>
      stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { key: string }).key),
    )
    assert.equal(stored.length, 2 * rotations)
    const { configured_key: current } = await succeed('secret', 'status', ...dataFlags)
    const { previous_keys: kept } = await succeed('secret', 'rotate', ...dataFlags)
    assert.equal(kept[0], current)
    assert.deepEqual(
      stored.filter((key) => !kept.includes(key)),
      [],
    )
  })

  it('a secret may be set by hand, with spaces and commas', () => {
    const previous = 'a secret, which has a comma,and another one of the old'
    const secrets = loadSecrets({ secret: 'the present secret', secretPrevious: previous, dataDir: folder })
    assert.ok(createSecretRing(secrets).secrets.some(({ secret }) => secret === previous))
    assert.ok(secrets.includes('and another one of the old'))
  })
})
