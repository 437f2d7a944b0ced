import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { renderSandboxManPage } from '../../scripts/man-sandbox.ts'
import { doAs } from '../calls.ts'
import { processEnvironment, startProcess } from '../process.ts'
import { createSandboxCli } from './cli-fixture.ts'
import { makeWorkspace, startServer } from '../servers.ts'
import { measureStaleness } from '../staleness.ts'
import { waitUntil } from '../wait-until.ts'

/** Starts `wcrm sandbox serve`. `stop` ends it and returns its exit code. */
const startSandbox = async (dataDir: string) => {
  const child = spawn(
    process.execPath,
    ['bin/wcrm.js', 'sandbox', 'serve', '--port', '0', '--data', dataDir, '--json'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...processEnvironment, WCRM_LOG_LEVEL: 'error' },
    },
  )
  const exited = once(child, 'exit')
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    settings: JSON.parse(line) as { url: string; token: string; app_secret: string; verify_token: string },
    stop: async () => {
      child.kill('SIGTERM')
      return (await exited)[0] as number
    },
  }
}

const requiresPostgres = process.env.WCRM_TEST_POSTGRES_URL
  ? {}
  : { skip: 'WCRM_TEST_POSTGRES_URL is not set' }

it(
  'Sandbox clock: an advance on one server reaches every other server within two seconds',
  requiresPostgres,
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-clock-'))
    const server = await startServer('postgresql')
    const { databaseUrl } = server.location as { databaseUrl: string }
    const other = await startProcess(['--database-url', databaseUrl, '--data', dataDir], {
      WCRM_SECRET: 'a secret of at least sixteen',
    })
    try {
      const workspace = await makeWorkspace(server)
      const { output } = await createSandboxCli(server, workspace.owner.key)('clock', 'advance', '3d')
      const getOtherOffset = async () =>
        (
          (await (
            await fetch(`${other.url}/sandbox/clock`, {
              headers: { Authorization: `Bearer ${workspace.owner.key}` },
            })
          ).json()) as { offset_ms: number }
        ).offset_ms
      const staleMs = await measureStaleness(async () => (await getOtherOffset()) === output.offset_ms)
      assert.ok(staleMs < 2000, `the clock of the other server was not advanced for ${staleMs} ms`)
      assert.equal(output.offset_ms, 3 * 86_400_000)
    } finally {
      await other.kill('SIGTERM')
      await server.close()
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
)

describe('Sandbox in a separate process', () => {
  it('is controlled like the built-in one, keeps its secrets over a restart, and exits with 0', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-sandbox-'))
    const sandbox = await startSandbox(dataDir)
    const { url, token, app_secret: appSecret, verify_token: verifyToken } = sandbox.settings
    const server = await startServer('embedded', {
      provider: {
        providerUrl: url,
        providerToken: token,
        providerAppSecret: appSecret,
        providerVerifyToken: verifyToken,
      },
    })
    try {
      const workspace = await makeWorkspace(server)
      const [cli, run] = [createSandboxCli(server, workspace.owner.key), doAs(server, workspace.owner.key)]
      assert.equal((await cli('say', '--from', '+1 555 010 0050', 'Hello')).exit, 0)
      let conversations: { id: string }[] = []
      await waitUntil('the message is there', async () => {
        ;({ data: conversations } = await run('inbox_search_conversations', {}))
        return conversations.length > 0
      })
      await run('messaging_send_reply', { conversation_id: conversations[0]!.id, text: 'Hi' })
      assert.equal((await cli('messages')).output.data.length, 1)
      assert.equal((await cli('clock', 'advance', '2d')).exit, 0)
      const late = await fetch(`${url}/v23.0/88${workspace.id}/messages`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({
          messaging_product: 'whatsapp',
          to: '15550100050',
          type: 'text',
          text: { body: 'Late' },
        }),
      })
      const { error } = (await late.json()) as { error: { code: number } }
      assert.equal(error.code, 131047, 'the clock of its number follows the clock of the workspace')
    } finally {
      await server.close()
      assert.equal(await sandbox.stop(), 0)
    }
    const restarted = await startSandbox(dataDir)
    assert.deepEqual([restarted.settings.token, restarted.settings.app_secret], [token, appSecret])
    assert.equal(await restarted.stop(), 0)
    rmSync(dataDir, { recursive: true, force: true })
  })
})

it('man/wcrm-sandbox.1 is up to date', () => {
  assert.equal(
    readFileSync(new URL('../../man/wcrm-sandbox.1', import.meta.url), 'utf8'),
    renderSandboxManPage(),
  )
})
