import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createSandboxRequest } from '../messaging/fixtures.ts'
import { makeWorkspace } from '../servers.ts'

everyDatabase(
  'Sandbox: very many templates',
  (server) => {
    it('it learns of all that were written into the database', async () => {
      const { db } = server()
      const workspace = await makeWorkspace(server())
      // More than one request may name.
      await sql`
        insert into templates
          (workspace_id, account_id, name, language, category, status, components, created_at, updated_at)
        select ${workspace.id}, ${`77${workspace.id}`}, 'update_' || n, 'en_US', 'UTILITY', 'APPROVED',
          json_build_array(json_build_object('type', 'BODY', 'text', repeat('Hello. ', 40))), now(), now()
        from generate_series(1, 10001) n`.execute(db)
      await server().sync()
      const { rows } = await sql`
        select t.name from templates t left join sandbox_templates s
          on s.id = t.provider_id and s.account_id = t.account_id and s.name = t.name
          and s.components::jsonb = t.components::jsonb
        where t.workspace_id = ${workspace.id} and s.id is null limit 10`.execute(db)
      assert.deepEqual(rows, [])
      const last = await db
        .selectFrom('templates')
        .select('id')
        .where('workspace_id', '=', workspace.id)
        .where('name', '=', 'update_10001')
        .executeTakeFirstOrThrow()
      const request = createSandboxRequest(server(), workspace)
      await request('POST', 'review', { template_id: last.id, decision: 'pause' })
      await server().settle()
      const { status } = await db
        .selectFrom('templates')
        .select('status')
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', last.id)
        .executeTakeFirstOrThrow()
      assert.equal(status, 'PAUSED')
    })
  },
  { dedicated: true },
)
