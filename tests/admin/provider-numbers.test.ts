import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createDatabase, databases, type TestDatabase, withStorage } from '../databases.ts'
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
  })
