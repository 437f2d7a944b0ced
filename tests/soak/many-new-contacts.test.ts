import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

/** Inserts contacts in statements that stay within the server's statement timeout. */
const insertNewContacts = async ({ db, app }: TestServer, workspaceId: string, count: number) => {
  for (let done = 0; done < count; done += 10_000)
    await sql`
      insert into contacts (workspace_id, created_at, updated_at)
      select ${workspaceId}::bigint, ${app.now()}::timestamptz, ${app.now()}::timestamptz
      from generate_series(1, ${Math.min(10_000, count - done)}::int)`.execute(db)
}

everyDatabase(
  'Workspace summary: bound of new contacts',
  (server) => {
    it('new contacts are counted up to a bound, and reported as a lower bound', async () => {
      const workspace = await makeWorkspace(server())
      const loadSummary = () =>
        doAs(server(), workspace.owner.key)('reports_workspace_summary', { preset: 'today' })
      await insertNewContacts(server(), workspace.id, 100_000)
      assert.deepEqual((await loadSummary()).contacts, { new: 100_000, new_is_lower_bound: false })
      await insertNewContacts(server(), workspace.id, 1)
      const { contacts, notes } = await loadSummary()
      assert.deepEqual(contacts, { new: 100_000, new_is_lower_bound: true })
      assert.ok(notes.some((note: string) => note.startsWith('contacts.new was counted up to 100000')))
    })
  },
  { dedicated: true },
)
