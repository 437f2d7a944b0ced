import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { checkNode } from '../../cli/doctor.ts'
import { readManifest } from '../../cli/manifest.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

type Finding = { check: string; about: string | null; status: string; detail: string; fix?: string }

const runDoctor = async (env: Record<string, string>, ...flags: string[]) => {
  const { exit, stdout, stderr } = await runCli(['doctor', ...flags, '--json'], {
    HOME: '/nonexistent',
    XDG_CONFIG_HOME: '/nonexistent',
    WCRM_KEYCHAIN: 'off',
    ...env,
  })
  const report = JSON.parse(stdout) as { ok: boolean; key_source: string | null; findings: Finding[] }
  return {
    exit,
    stderr,
    ...report,
    of: (check: string) => report.findings.filter((finding) => finding.check === check),
  }
}

everyDatabase('wcrm doctor', (server) => {
  it('a server in order: every check is ok, exit 0', async () => {
    const workspace = await makeWorkspace(server())
    const {
      exit,
      ok,
      key_source: source,
      findings,
      of,
    } = await runDoctor({
      WCRM_URL: server().url,
      WCRM_API_KEY: workspace.owner.key,
    })
    assert.deepEqual([exit, ok, source], [0, true, 'WCRM_API_KEY'])
    assert.deepEqual(
      findings.map(({ check, status }) => [check, status]),
      [
        ['node', 'ok'],
        ['keychain', 'ok'],
        ['server', 'ok'],
        ['database', 'ok'],
        ['clock', 'ok'],
        ['key', 'ok'],
        ['channel', 'ok'],
      ],
    )
    assert.match(
      of('server')[0]!.detail,
      new RegExp(`version ${readManifest().version.replaceAll('.', '\\.')};`),
    )
    assert.match(of('key')[0]!.detail, /from WCRM_API_KEY is of Owner \(owner\) in workspace Test/)
    assert.ok(!JSON.stringify(findings).includes(workspace.owner.key))
  })

  it('disconnected channels and failing endpoints are problems, exit 1, and each says what to do', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const ids: string[] = []
    for (let n = 0; n < 4; n++)
      ids.push((await run('webhooks_create_endpoint', { url: `https://example.com/${n}` })).endpoint.id)
    const update = (id: string, set: object) =>
      server().db.updateTable('webhook_endpoints').set(set).where('id', '=', id).execute()
    await update(ids[0]!, { status: 'paused', consecutive_failures: 12 })
    await update(ids[1]!, { status: 'disabled', disabled_reason: 'manual' })
    await update(ids[3]!, { consecutive_failures: 1 })
    await server()
      .db.updateTable('channels')
      .set({ status: 'disconnected' })
      .where('workspace_id', '=', workspace.id)
      .execute()
    const { exit, ok, of } = await runDoctor({ WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key })
    assert.deepEqual([exit, ok], [1, false])
    assert.deepEqual(Object.fromEntries(of('webhook').map(({ about, status }) => [about, status])), {
      [ids[0]!]: 'problem',
      [ids[1]!]: 'warning',
      [ids[2]!]: 'ok',
      [ids[3]!]: 'warning',
    })
    const detailOf = (id: string) => of('webhook').find(({ about }) => about === id)!.detail
    assert.match(detailOf(ids[0]!), /its last 12 deliveries failed\.$/)
    assert.match(detailOf(ids[3]!), /its last delivery failed\.$/)
    assert.match(of('webhook').find(({ about }) => about === ids[0])!.fix!, /wcrm webhooks deliveries/)
    assert.deepEqual(
      [of('channel')[0]!.status, of('channel')[0]!.detail.includes('disconnected')],
      ['problem', true],
    )
    const { exit: plain, stdout } = await runCli(['doctor', '--url', server().url], {
      WCRM_API_KEY: workspace.owner.key,
      XDG_CONFIG_HOME: '/nonexistent',
    })
    assert.equal(plain, 1)
    assert.match(stdout, /^PROBLEM {2}channel \d+: Main line, 15550100001: disconnected; default channel\.$/m)
  })

  it('a key that is missing, wrong, or may not see webhooks', async () => {
    const workspace = await makeWorkspace(server())
    const none = await runDoctor({ WCRM_URL: server().url })
    assert.deepEqual([none.exit, none.key_source, none.of('key')[0]!.status], [1, null, 'problem'])
    assert.match(none.of('key')[0]!.fix!, /wcrm login/)
    const wrong = await runDoctor({ WCRM_URL: server().url, WCRM_API_KEY: `wc_live_${'0'.repeat(40)}` })
    assert.deepEqual([wrong.exit, wrong.of('key')[0]!.status, wrong.of('channel')], [1, 'problem', []])
    const limited = await workspace.staff({ role: 'agent', channel_ids: [] })
    const agent = await runDoctor({ WCRM_URL: server().url, WCRM_API_KEY: limited.key })
    assert.deepEqual([agent.exit, agent.of('channel')], [0, []])
    const expiring = await workspace.key(workspace.owner.staffId, {
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    })
    const soon = await runDoctor({ WCRM_URL: server().url, WCRM_API_KEY: expiring.key })
    assert.deepEqual([soon.exit, soon.of('key')[0]!.status], [0, 'warning'])
  })
})

describe('wcrm doctor: this machine', () => {
  it('Node that is too old; a keychain that is not there is a warning', async () => {
    assert.deepEqual(
      ['18.20.4', '22.0.0', '26.1.0'].map((version) => checkNode(version).status),
      ['problem', 'ok', 'ok'],
    )
    const away = { WCRM_KEYCHAIN: '', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' }
    const { of } = await runDoctor({ WCRM_URL: 'http://127.0.0.1:9', ...away })
    assert.match(of('keychain')[0]!.status, /^(?:ok|warning)$/)
    if (of('keychain')[0]!.status === 'warning') assert.match(of('keychain')[0]!.fix!, /WCRM_KEYCHAIN=off/)
  })

  it('completion scripts of another version are told, with the command that renews them', async () => {
    const home = mkdtempSync(join(tmpdir(), 'wcrm-doctor-'))
    try {
      const env = { WCRM_URL: 'http://127.0.0.1:9', HOME: home, XDG_CONFIG_HOME: join(home, 'config') }
      const paths = {
        bash: join(home, '.local/share/bash-completion/completions/wcrm'),
        zsh: join(home, '.zfunc/_wcrm'),
        fish: join(home, 'config/fish/completions/wcrm.fish'),
      }
      const read = async () =>
        (await runDoctor(env)).of('completion').filter(({ detail }) => detail.startsWith(home))
      assert.deepEqual(await read(), [])
      for (const [shell, path] of Object.entries(paths)) {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, (await runCli(['completion', shell], {})).stdout)
      }
      assert.deepEqual(
        (await read()).map(({ about, status }) => [about, status]),
        [
          ['bash', 'ok'],
          ['zsh', 'ok'],
          ['fish', 'ok'],
        ],
      )
      appendFileSync(paths.zsh, '# an older one\n')
      const [stale] = (await read()).filter(({ status }) => status !== 'ok')
      assert.deepEqual(
        [stale!.about, stale!.status, stale!.fix],
        ['zsh', 'warning', `Renew it: wcrm completion zsh > ${paths.zsh}`],
      )
    } finally {
      rmSync(home, { recursive: true })
    }
  })
})

describe('wcrm doctor without a server', () => {
  const serve = async (date: string, body: object) => {
    const server: Server = createServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', Date: date }).end(JSON.stringify(body))
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      close: () => server.close(),
    }
  }

  const ofServer = (findings: Finding[]) =>
    findings.filter(({ check }) => !['node', 'keychain'].includes(check)).map(({ check }) => check)

  it('a server that cannot be reached, or is something else, is the only finding beside this machine', async () => {
    const missing = await runDoctor({ WCRM_URL: 'http://127.0.0.1:9' })
    assert.deepEqual(
      [missing.exit, ofServer(missing.findings), missing.of('server')[0]!.status],
      [1, ['server'], 'problem'],
    )
    const other = await serve(new Date().toUTCString(), { hello: 'world' })
    const { exit, findings } = await runDoctor({ WCRM_URL: other.url })
    assert.deepEqual([exit, ofServer(findings)], [1, ['server']])
    other.close()
  })

  it('clocks that differ are told, with their difference', async () => {
    for (const [seconds, status, words] of [
      [10, 'ok', /agree/],
      [60, 'warning', /60 seconds ahead of/],
      [-400, 'problem', /(?:399|400) seconds behind/],
    ] as const) {
      const server = await serve(new Date(Date.now() + seconds * 1000).toUTCString(), {
        status: 'ok',
        version: '9.9.9',
      })
      const { of } = await runDoctor({ WCRM_URL: server.url })
      assert.equal(of('clock')[0]!.status, status)
      assert.match(of('clock')[0]!.detail.replace('59 seconds', '60 seconds'), words)
      assert.equal(of('server')[0]!.status, 'warning', 'another version')
      server.close()
    }
  })
})
