import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { TestServer } from '../servers.ts'

/** Runs the job until no export is being made. */
export const finishExports = async (server: TestServer): Promise<void> => {
  for (let n = 0; n < 60; n++) {
    await sql`update runs set run_after = clock_timestamp() where kind = 'exports'`.execute(server.db)
    await server.app.jobs.job('exports').runOnce()
    const { rows } = await sql`select from exports where state = 'running'`.execute(server.db)
    if (rows.length === 0) return
  }
  assert.fail('an export does not end')
}

export const download = async (url: string): Promise<Buffer> => {
  const answer = await fetch(url)
  assert.equal(answer.status, 200)
  return Buffer.from(await answer.arrayBuffer())
}
