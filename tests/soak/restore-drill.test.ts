import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { createDemo } from '../../server/demo/demo.ts'
import type { Location } from '../../storage/open.ts'
import { createDatabase, createEmptyDatabase, databases, withStorage } from '../databases.ts'

const isPossible = databases.includes('postgresql') ? {} : { skip: 'there is no PostgreSQL' }

describe('deploy/restore-drill.sh', () => {
  it('restores a backup and finds the same content; a full database fails it', isPossible, async () => {
    const source = await createDatabase('postgresql')
    const target = await createEmptyDatabase('postgresql')
    const urlOf = ({ location }: { location: Location }): string =>
      'databaseUrl' in location ? location.databaseUrl : ''
    await withStorage(source.location, async ({ db }) => {
      await createDemo(db, '2026-11-01T10:00:00.000Z', { publicUrl: 'https://crm.example.com' })
    })
    const drill = () =>
      spawnSync('sh', ['deploy/restore-drill.sh', urlOf(target)], {
        encoding: 'utf8',
        env: { ...process.env, NODE: process.execPath, WCRM_DATABASE_URL: urlOf(source) },
      })
    try {
      const first = drill()
      assert.equal(first.status, 0, first.stderr)
      assert.match(first.stdout, /^restore +[\d.]+ s$/m)
      assert.match(first.stdout, /tables, [\d,]+ rows, .*: the restored database is the same\n$/)
      const second = drill()
      assert.deepEqual([second.status, /not empty/.test(second.stderr)], [1, true])
    } finally {
      await source.remove()
      await target.remove()
    }
  })
})
