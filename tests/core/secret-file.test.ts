import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createDatabase, databases } from '../databases.ts'
import { startProcess } from '../process.ts'

const NO_SPACE = ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh']

describe('The secret in the data folder', { skip: !databases.includes('postgresql') }, () => {
  it('is there as a whole or not at all, so that a start without space leaves nothing for the next', async () => {
    const database = await createDatabase('postgresql')
    const { databaseUrl } = database.location as { databaseUrl: string }
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-secret-'))
    const env = { WCRM_DATABASE_URL: databaseUrl, WCRM_DATA: folder }
    try {
      await assert.rejects(startProcess([], env, NO_SPACE), /cannot write the secret to .*secret \(EFBIG\)/)
      assert.deepEqual(readdirSync(folder), [])
      const both = await Promise.all([startProcess([], env), startProcess([], env)])
      assert.match(readFileSync(join(folder, 'secret'), 'utf8'), /^[\w-]{43}\n$/)
      assert.deepEqual(readdirSync(folder), ['secret'])
      for (const server of both) assert.equal(await server.stop(), 0)
    } finally {
      rmSync(folder, { recursive: true })
      await database.remove()
    }
  })
})
