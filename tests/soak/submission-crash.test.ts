import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { createChannel } from '../../storage/workspace/admin.ts'
import type { Location } from '../../storage/open.ts'
import { createOwner } from '../http/owner-key.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { type ServerProcess, startCommand, startProcess } from '../process.ts'
import { orderDraft } from '../templates/drafts.ts'

type SandboxTemplate = { name: string; status: string }
type SandboxSettings = { token: string; app_secret: string; verify_token: string }
type Stoppable = { kill: (signal: NodeJS.Signals) => Promise<void> }

/**
 * Starts a proxy between a server and the provider. After `hold`, the next POST is never answered: it stops
 * `before` it is forwarded, or `after` the provider has responded. `hold` resolves when it reaches that point.
 */
const startProxy = async (target: string) => {
  let pendingHold: { when: 'before' | 'after'; reached: () => void } | undefined
  const server: Server = createServer(
    (request, reply) =>
      void (async () => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk as Buffer)
        const hold = request.method === 'POST' ? pendingHold : undefined
        if (hold) pendingHold = undefined
        if (hold?.when === 'before') return hold.reached()
        const response = await fetch(target + request.url!, {
          method: request.method!,
          headers: {
            Authorization: request.headers.authorization ?? '',
            'Content-Type': request.headers['content-type'] ?? 'application/json',
          },
          ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
        })
        const text = await response.text()
        if (hold) return hold.reached()
        reply.writeHead(response.status, { 'Content-Type': 'application/json' }).end(text)
      })(),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: (when: 'before' | 'after') =>
      new Promise<void>((reached) => {
        pendingHold = { when, reached }
      }),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const ACCOUNT_ID = '77'

/** Creates a workspace with a channel and a key. */
const createTestWorkspace = (location: Location) =>
  withStorage(location, async ({ db }) => {
    const { key, workspaceId } = await createOwner(db)
    const now = new Date().toISOString()
    await createChannel(
      db,
      workspaceId,
      {
        type: 'chatapp',
        name: 'Line',
        identifier: '15550100001',
        status: 'connected',
        is_default: true,
        account_id: ACCOUNT_ID,
        provider_phone_number_id: '8801',
      },
      now,
    )
    return { key, workspaceId }
  })

const startSandboxProcess = (dataDir: string) =>
  startCommand<SandboxSettings>(['sandbox', 'serve', '--port', '0', '--data', dataDir, '--json'])

/** Returns the templates of this name that the sandbox has. */
const listSandboxTemplates = async (url: string, token: string, name: string): Promise<SandboxTemplate[]> => {
  const response = await fetch(`${url}/control/templates`, { headers: { Authorization: `Bearer ${token}` } })
  return ((await response.json()) as { data: SandboxTemplate[] }).data.filter(
    (template) => template.name === name,
  )
}

/** Starts a server whose provider is at `providerUrl`. */
const startServerProcess = async (
  flags: string[],
  providerUrl: string,
  { token, app_secret, verify_token }: SandboxSettings,
  key: string,
): Promise<ServerProcess> => {
  const server = await startProcess(flags, {
    WCRM_PROVIDER_URL: providerUrl,
    WCRM_PROVIDER_TOKEN: token,
    WCRM_PROVIDER_APP_SECRET: app_secret,
    WCRM_PROVIDER_VERIFY_TOKEN: verify_token,
  })
  // Any sandbox request registers the phone number of the server with the sandbox.
  const response = await fetch(`${server.url}/sandbox/templates`, {
    headers: { Authorization: `Bearer ${key}` },
  })
  assert.equal(response.status, 200)
  return server
}

/** Submits the order template under another name. The name determines the idempotency key. */
const submitTemplate = async (url: string, key: string, name: string) => {
  const response = await fetch(`${url}/v1/templates`, {
    method: 'POST',
    body: JSON.stringify({ template: { ...orderDraft, name } }),
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      'Api-Confirm': 'submit',
      'Idempotency-Key': `killed-at-${name}`,
    },
  })
  return { status: response.status, body: (await response.json()) as { id: string } }
}

/** Ends the leases of running calls, as if the half minute of the killed server's lease had passed. */
const expireLeases = (location: Location, workspaceId: string) =>
  withStorage(location, async ({ db }) => {
    await sql`
      update idempotency set lease_until = clock_timestamp()
      where workspace_id = ${workspaceId} and state = 'running'`.execute(db)
  })

const assertSubmittedOnce = (location: Location, workspaceId: string) =>
  withStorage(location, async ({ db }) => {
    const rows = await db
      .selectFrom('templates')
      .select(['name', 'provider_id'])
      .where('workspace_id', '=', workspaceId)
      .orderBy('id')
      .execute()
    assert.deepEqual(
      rows.map(({ name, provider_id }) => [name, provider_id !== null]),
      [
        ['after', true],
        ['before', true],
      ],
    )
    const events = await db
      .selectFrom('events')
      .select('type')
      .where('workspace_id', '=', workspaceId)
      .where('type', '=', 'template.submitted/1')
      .execute()
    assert.equal(events.length, 2)
  })

describe('Template submission: server killed during the call', { concurrency: true }, () => {
  for (const databaseName of databases)
    it(`each template is submitted once (${databaseName})`, { timeout: 200_000 }, async () => {
      const database = await createDatabase(databaseName)
      const sandboxDir = mkdtempSync(join(tmpdir(), 'wcrm-sandbox-'))
      const processes: Stoppable[] = []
      let proxy: Awaited<ReturnType<typeof startProxy>> | undefined
      try {
        const { key, workspaceId } = await createTestWorkspace(database.location)
        const sandbox = await startSandboxProcess(sandboxDir)
        processes.push(sandbox)
        const { url: proxyUrl, hold } = (proxy = await startProxy(sandbox.url))
        const start = async () => {
          const started = await startServerProcess(database.flags, proxyUrl, sandbox.said, key)
          processes.push(started)
          return started
        }
        const countAtProvider = async (name: string) =>
          (await listSandboxTemplates(sandbox.url, sandbox.said.token, name)).length
        let server = await start()
        for (const when of ['after', 'before'] as const) {
          const reached = hold(when)
          const interrupted = submitTemplate(server.url, key, when).catch(() => 'connection lost')
          await reached
          assert.equal(await countAtProvider(when), when === 'after' ? 1 : 0)
          await server.kill('SIGKILL')
          assert.equal(await interrupted, 'connection lost')
          await expireLeases(database.location, workspaceId)
          server = await start()
          let reply = await submitTemplate(server.url, key, when)
          // 409: a background job of the new server is completing the call.
          while (reply.status === 409) {
            await sleep(100)
            reply = await submitTemplate(server.url, key, when)
          }
          assert.equal(reply.status, 201, JSON.stringify(reply.body))
          assert.equal(await countAtProvider(when), 1)
          assert.equal((await submitTemplate(server.url, key, when)).body.id, reply.body.id)
        }
        await server.kill('SIGTERM')
        await assertSubmittedOnce(database.location, workspaceId)
      } finally {
        for (const process of processes) await process.kill('SIGKILL')
        await proxy?.close()
        await database.remove()
        rmSync(sandboxDir, { recursive: true, force: true })
      }
    })
})
