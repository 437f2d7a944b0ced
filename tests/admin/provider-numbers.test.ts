import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { listClockOffsets } from '../../storage/clock.ts'
import { migrate } from '../../storage/migrate.ts'
import { loadSandboxSettings } from '../../storage/sandbox/settings.ts'
import {
  createDatabase,
  createEmptyDatabase,
  databases,
  type TestDatabase,
  withStorage,
} from '../databases.ts'
import { fail, runAdmin, succeed } from './admin-commands.ts'

const flagsOf = ({ location }: TestDatabase): string[] =>
  'databaseUrl' in location ? ['--database-url', location.databaseUrl] : ['--data', location.dataDir]

const NUMBER = '106540352242922'

for (const database of databases)
  describe(`Numbers and accounts at the provider (${database})`, () => {
    it('belong to one channel and to one workspace', async () => {
      const created = await createDatabase(database)
      try {
        // Open, so that the commands need not open an embedded database each.
        await withStorage(created.location, async () => {
          const flags = flagsOf(created)
          const create = (workspace: string, name: string, ...more: string[]) => [
            'channels',
            'create',
            '--type',
            'chatapp',
            '--name',
            name,
            '--identifier',
            name,
            '--workspace',
            workspace,
            ...more,
            ...flags,
          ]
          const [a, b] = [
            await succeed('workspaces', 'create', '--name', 'A', ...flags),
            await succeed('workspaces', 'create', '--name', 'B', ...flags),
          ]
          const number = ['--provider-phone-number-id', NUMBER]
          const account = ['--account', '77:Main']
          const first = await succeed(...create(a.id, 'First', ...number, ...account))
          const taken = new RegExp(
            `number ${NUMBER} .* belongs to channel ${first.id} of workspace ${a.id}\\.`,
          )
          await fail(2, taken, ...create(b.id, 'Second', ...number))
          await fail(2, taken, ...create(a.id, 'Second', ...number))
          const takenAccount = new RegExp(
            `account 77 .* belongs to channel ${first.id} of workspace ${a.id}\\.`,
          )
          await fail(2, takenAccount, ...create(b.id, 'Second', ...account))
          // Another channel of the workspace may share its account.
          await succeed(...create(a.id, 'Third', ...account))
          const second = await succeed(...create(b.id, 'Second'))
          const update = (id: string, workspace: string, ...more: string[]) => [
            'channels',
            'update',
            id,
            '--workspace',
            workspace,
            ...more,
            ...flags,
          ]
          await fail(2, taken, ...update(second.id, b.id, ...number))
          await fail(2, takenAccount, ...update(second.id, b.id, ...account))
          const { err } = await runAdmin(...update(second.id, b.id, ...number, '--json'))
          assert.equal(
            JSON.parse(err).errors[0].fix,
            'Give it another number, or free this one first: wcrm admin channels update ' +
              `${first.id} --workspace ${a.id} --provider-phone-number-id none`,
          )
          // What it says works, and saying again what a channel has is no conflict.
          await succeed(...update(first.id, a.id, ...number))
          const freed = await succeed(...update(first.id, a.id, '--provider-phone-number-id', 'none'))
          assert.equal(freed.provider_phone_number_id, null)
          const moved = await succeed(...update(second.id, b.id, ...number))
          assert.equal(moved.provider_phone_number_id, NUMBER)
        })
      } finally {
        await created.remove()
      }
    })

    it('of two channels stop the migration with a fix that works before it', async () => {
      const created = await createEmptyDatabase(database)
      try {
        await withStorage(created.location, async ({ db }) => {
          await migrate(db, { to: '0008-reports' })
          await sql`
            insert into workspaces (name, features, created_at) values
              ('A', '{api_access}', now()), ('B', '{api_access}', now())`.execute(db)
          await sql`
            insert into channels (workspace_id, type, name, provider_phone_number_id, created_at) values
              (1, 'chatapp', 'First', ${NUMBER}, '2026-10-01'), (2, 'chatapp', 'Second', ${NUMBER}, '2026-10-02'),
              (2, 'chatapp', 'None', null, '2026-10-03')`.execute(db)
          await sql`insert into settings (key, value) values ('clock_offset_ms', '90000000')`.execute(db)
          await sql`insert into sandbox_settings (value) values ('{"duplicates": 1}')`.execute(db)
          const flags = flagsOf(created)
          const described = new RegExp(`${NUMBER}: channel 1 of workspace 1, channel 2 of workspace 2`)
          const rename = ['workspaces', 'update', '--workspace', '1', '--name', 'Acme', ...flags]
          await fail(1, described, ...rename)
          const { err } = await runAdmin(...rename)
          const [fix] = /wcrm admin channels update .*/.exec(err) ?? []
          assert.equal(fix, 'wcrm admin channels update 2 --workspace 2 --provider-phone-number-id none')
          const listed = await succeed('channels', 'list', '--workspace', '2', ...flags)
          assert.equal(listed.data[0].provider_phone_number_id, NUMBER)
          await succeed(...fix!.split(' ').slice(2), ...flags)
          assert.equal((await succeed(...rename)).name, 'Acme')
          const { rows } = await sql<{ n: string }>`
            select count(*) as n from channels where provider_phone_number_id = ${NUMBER}`.execute(db)
          assert.equal(rows[0]!.n, '1')
          // What the one clock and the one sandbox of the database had is every workspace's.
          assert.deepEqual([...(await listClockOffsets(db))].toSorted(), [
            ['1', 90_000_000],
            ['2', 90_000_000],
          ])
          assert.equal((await loadSandboxSettings(db, 'workspace1')).duplicates, 1)
        })
      } finally {
        await created.remove()
      }
    })
  })
