import type { Context } from '../../server/handler.ts'
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { z } from 'zod'
import { defineOperation, type Operation } from '../../catalog/index.ts'
import { openStorage } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { makeWorkspace, startServer, type TestWorkspace } from '../servers.ts'
import { databases } from '../databases.ts'

const LIMIT_MS = 2000
/** PostgreSQL aborts one that waits as it does one that computes. The embedded database cannot wait. */
const waiting = sql`select pg_sleep(3600)`
const computing = sql`
  select count(*)
  from generate_series(1, 1000000) a, generate_series(1, 1000000) b, generate_series(1, 1000000) c`

const common = {
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Never end',
  words: 'test',
  output: z.object({}),
  errors: [],
  examples: [],
} as const
const search: Operation = defineOperation({
  ...common,
  name: 'test_endless_search',
  cli: 'test search',
  routes: ['GET /v1/test/search'],
  scope: 'mcp:read',
  input: z.object({}),
})
const change: Operation = defineOperation({
  ...common,
  name: 'test_endless_change',
  cli: 'test change',
  routes: ['POST /v1/test/change'],
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: false,
  emits: [],
  input: z.object({}),
})

const createOperations = (endless: typeof computing) => [
  { operation: search, handler: async ({ tx }: Context) => (await endless.execute(tx)).rows },
  {
    operation: change,
    handler: async ({ tx, actor, now }: Context) => {
      await sql`
        insert into groups (workspace_id, name, name_key, created_at)
        values (${actor.workspace.id}, 'Half done', 'half done', ${now})`.execute(tx)
      return (await endless.execute(tx)).rows
    },
  },
]

for (const database of databases) {
  describe(`A statement that never ends (${database})`, () => {
    let server: Awaited<ReturnType<typeof startServer>>
    before(async () => {
      const extra = createOperations(database === 'embedded' ? computing : waiting)
      server = await startServer(database, { statementTimeout: LIMIT_MS, extra: extra as never })
    })
    after(async () => {
      await server.close()
    })

    const ask = async (
      workspace: TestWorkspace,
      operationName: string,
      input: Record<string, unknown> = {},
    ) => {
      const response = await fetch(`${server.url}/v1/ops/${operationName}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(input),
      })
      return { status: response.status, body: (await response.json()) as { code: string } }
    }

    for (const [what, name, input] of [
      ['a read', search.name, {}],
      ['a change', change.name, {}],
      ['a dry run', change.name, { dry_run: true }],
    ] as const) {
      it(`is aborted in ${what}; committed changes remain, and later calls work`, async () => {
        const workspace = await makeWorkspace(server)
        const run = doAs(server, workspace.owner.key)
        await run('crm_upsert_contact', { phone: '+15550100042', name: 'Before', tags: ['kept'] })
        const { status, body } = await ask(workspace, name, input)
        assert.deepEqual([status, body.code], [504, 'timeout'])
        assert.deepEqual(
          (await run('crm_search_contacts')).data.map((c: { name: string }) => c.name),
          ['Before'],
        )
        assert.equal((await run('crm_upsert_contact', { phone: '+15550100042' })).action, 'unchanged')
        assert.equal(
          (await run('crm_upsert_contact', { phone: '+15550100043', tags: ['kept'] })).action,
          'created',
        )
        assert.deepEqual(
          (await run('crm_list_tags')).data.map((t: { contacts_count: number }) => t.contacts_count),
          [2],
        )
        assert.deepEqual((await run('crm_list_groups')).data, [])
      })
    }

    it('is aborted twice in a row, while other calls wait for it', async () => {
      const workspace = await makeWorkspace(server)
      const replies = await Promise.all([
        ask(workspace, search.name),
        ask(workspace, change.name),
        ask(workspace, 'workspace_whoami'),
        ask(workspace, 'crm_create_group', { name: 'Waits' }),
      ])
      assert.deepEqual(
        replies.slice(0, 2).map((r) => r.status),
        [504, 504],
      )
      // On the embedded database, waiting calls may be aborted too; their error says to retry.
      for (const { status } of replies.slice(2)) assert.ok([200, 503, 504].includes(status), String(status))
      assert.equal((await ask(workspace, 'workspace_whoami')).status, 200)
    })

    it('of administration has no time limit', async () => {
      const admin = await openStorage(server.location, { attach: true, noTimeout: true, connections: 1 })
      try {
        await sql`set application_name to 'patient'`.execute(admin.db)
        await sql`select pg_sleep(${(LIMIT_MS * 1.5) / 1000})`.execute(admin.db)
        // The same session: nothing was aborted.
        assert.equal(
          (await sql<{ application_name: string }>`show application_name`.execute(admin.db)).rows[0]!
            .application_name,
          'patient',
        )
      } finally {
        await admin.close()
      }
    })
  })
}
