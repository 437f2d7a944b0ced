import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { listMigrations } from '../../storage/migrations/migrate.ts'
import { createEmptyDatabase, databases, withStorage } from '../databases.ts'
import { startProcess } from '../process.ts'
import { runAdmin } from './admin-commands.ts'

const all = listMigrations()
const NEWEST = all.at(-1)!

for (const database of databases)
  describe(`wcrm admin migrate (${database})`, () => {
    // Processes take a second each to start.
    const withServers = database === databases.at(-1)
    it('migrates and ends; a server that must not migrate, and an older one, are refused by name', async () => {
      const { location, flags, remove } = await createEmptyDatabase(database)
      const run = (...argv: string[]) => runAdmin(...argv, ...flags.slice(0, 2), '--json')
      try {
        const dry = await run('migrate', '--dry-run')
        assert.equal(dry.exit, 0, dry.err)
        const { data, ...rest } = JSON.parse(dry.out)
        assert.deepEqual(rest, { dry_run: true, state: 'none', schema: null })
        assert.deepEqual(
          data.map(({ name }: { name: string }) => name),
          all,
        )
        if (withServers)
          await assert.rejects(
            startProcess(['--no-migrate', ...flags]),
            /exited with 5: .*lacks 0001-baseline.*wcrm admin migrate/s,
          )
        const migrated = await run('migrate')
        assert.equal(migrated.exit, 0, migrated.err)
        assert.deepEqual(JSON.parse(migrated.out), { dry_run: false, state: 'same', schema: NEWEST, data })
        assert.deepEqual(JSON.parse((await run('migrate')).out).data, [])

        const setOldest = (name: string) =>
          withStorage(location, ({ db }) =>
            sql`update settings set value = ${name} where key = 'schema_oldest'`.execute(db),
          )
        await withStorage(location, ({ db }) =>
          sql`insert into migrations (name, timestamp) values ('9000-next', '2027-01-01T00:00:00.000Z')`.execute(
            db,
          ),
        )
        await setOldest('9000-next')
        for (const argv of [['migrate'], ['migrate', '--dry-run'], ['workspaces', 'list']]) {
          const { exit, out, err } = await run(...argv)
          assert.deepEqual([exit, out], [5, ''], argv.join(' '))
          assert.match(
            JSON.parse(err).detail,
            /does not know: 9000-next\. .*Start the version that migrated it/,
          )
        }
        if (!withServers) return
        await assert.rejects(startProcess(flags), /exited with 5: wcrm serve: .*does not know: 9000-next/s)
        await setOldest(NEWEST)
        const old = await startProcess(flags, { WCRM_MIGRATE: 'false' })
        assert.equal(await old.stop(), 0)
      } finally {
        await remove()
      }
    })
  })
