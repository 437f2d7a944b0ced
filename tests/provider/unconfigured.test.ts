import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import type { AnyHandler } from '../../server/kernel/handler.ts'
import { handlers } from '../../server/handlers.ts'
import type { Db } from '../../storage/database.ts'
import { everyDatabase, everyDoor, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createSandboxCli } from '../sandbox/cli-fixture.ts'

/** The operations that call the provider, with the input of an example: what it is about need not exist. */
const operations = Object.entries<AnyHandler>(handlers).flatMap(([name, handler]) => {
  const op = findOperation(name)!
  return typeof handler === 'function' ? [] : [{ name, verb: op.confirm, input: op.examples[0]!.input }]
})

const TABLES = [
  'idempotency',
  'messages',
  'conversations',
  'contacts',
  'templates',
  'short_links',
  'events',
] as const

const countRows = async (db: Db, workspaceId: string): Promise<number> => {
  let count = 0
  for (const table of TABLES)
    count += (
      await db.selectFrom(table).select('workspace_id').where('workspace_id', '=', workspaceId).execute()
    ).length
  return count
}

everyDoor(
  'Without a provider',
  (test) => {
    test('operations that call it are a 503 before anything is written', async (scene) => {
      const { call, door, server, workspace } = scene
      assert.ok(operations.length >= 8)
      const before = await countRows(server.db, workspace.id)
      for (const { name, verb, input } of operations) {
        const runs = [await call(name, { ...input, dry_run: true })]
        // Through MCP, only dry runs need no confirmation.
        if (verb === undefined || door.confirms)
          runs.push(
            await call(name, input, {
              idempotencyKey: `without-provider-${name}`,
              ...(verb === undefined ? {} : { confirm: verb }),
            }),
          )
        for (const { status, body, text } of runs) {
          const problem = [status, body.code, body.reason]
          assert.deepEqual(problem, [503, 'service_unconfigured', 'provider_unconfigured'], `${name} ${text}`)
          assert.match(body.detail, /WCRM_PROVIDER_URL.*WCRM_PROVIDER=sandbox/)
        }
      }
      assert.equal(await countRows(server.db, workspace.id), before)
    })
  },
  { provider: { provider: 'none' } },
)

everyDatabase(
  'Without a provider',
  (server) => {
    it('there is no sandbox, and nothing is received', async () => {
      const workspace = await makeWorkspace(server())
      const { exit, problem } = await createSandboxCli(server(), workspace.owner.key)('clock', 'show')
      assert.deepEqual([exit, problem.reason], [3, 'no_sandbox'])
      assert.match(problem.detail, /WCRM_PROVIDER=sandbox/)
      for (const path of ['', '/say', '/provider/v23.0/88/messages', '/provider/control'])
        assert.equal((await fetch(`${server().url}/sandbox${path}`, { method: 'POST' })).status, 404, path)
      const webhook = await fetch(`${server().url}/provider/webhook`, { method: 'POST', body: '{}' })
      assert.equal(webhook.status, 503)
      for (const job of ['media-downloads', 'provider-call-reconciliation', 'provider-updates'] as const)
        assert.equal(await server().app.jobs.job(job).runOnce(), 0, job)
    })
  },
  // Its own database: updates that tests of other servers left are due there.
  { provider: { provider: 'none' }, dedicated: true },
)

everyDatabase(
  'Without any setting',
  (server, database) => {
    it('the sandbox plays the provider on the embedded database alone', async () => {
      const workspace = await makeWorkspace(server())
      const { exit } = await createSandboxCli(server(), workspace.owner.key)('clock', 'show')
      assert.equal(exit, database === 'embedded' ? 0 : 3)
    })
  },
  { provider: {} },
)

describe('wcrm serve', () => {
  it('refuses the sandbox, or no provider, beside the URL of one', async () => {
    for (const provider of ['sandbox', 'none']) {
      const { exit, stderr } = await runCli(['serve'], {
        WCRM_PROVIDER: provider,
        WCRM_PROVIDER_URL: 'https://graph.facebook.com',
        WCRM_PROVIDER_TOKEN: 't',
        WCRM_PROVIDER_APP_SECRET: 's',
        WCRM_PROVIDER_VERIFY_TOKEN: 'v',
      })
      assert.equal(exit, 2)
      assert.match(
        stderr,
        new RegExp(`WCRM_PROVIDER: is ${provider}, but WCRM_PROVIDER_URL .* unset one of them`),
      )
    }
  })
})
