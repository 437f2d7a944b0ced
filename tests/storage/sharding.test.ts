import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { GLOBAL_KEYS, listObstacles, ONE_SERVER, UNDISTRIBUTED } from '../../tools/sharding/run.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

const known = Object.keys({ ...UNDISTRIBUTED, ...GLOBAL_KEYS, ...ONE_SERVER }).toSorted()

// The schema is the same on both databases.
describe('A division of the tables by workspace', () => {
  it('is hindered by the listed exceptions alone, and by what breaks the rule', async () => {
    await onMigratedDatabase(databases[0]!, async (db) => {
      const names = async (): Promise<string[]> =>
        (await listObstacles(db)).map(({ name }) => name).toSorted()
      assert.deepEqual(await names(), known)
      await sql`create table planted (id bigint primary key, workspace_id bigint not null)`.execute(db)
      await sql`create table planted_log (workspace_id bigint not null)`.execute(db)
      await sql`alter table tags add constraint planted_tag
        foreign key (workspace_id) references workspaces (id)`.execute(db)
      const planted = (await names()).filter((name) => !known.includes(name))
      assert.deepEqual(planted, ['planted_log', 'planted_pkey', 'planted_tag'])
    })
  })
})
