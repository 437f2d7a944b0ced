import assert from 'node:assert/strict'
import type { Door } from '../doors.ts'
import type { TestServer } from '../servers.ts'

/** More than are changed at once. */
export const MANY = 620

export type Call = Door['call']

/** Imports so many contacts. */
export const importContacts = async (
  call: Call,
  count: number,
  of: (n: number) => Record<string, unknown>,
): Promise<void> => {
  const rows = Array.from({ length: count }, (_, n) => ({ phone: `+1555${String(1_000_000 + n)}`, ...of(n) }))
  for (let n = 0; n < rows.length; n += 500) {
    const { status, text } = await call('crm_import_contacts', { rows: rows.slice(n, n + 500) })
    assert.equal(status, 200, text)
  }
}

export const runJobs = ({ app }: TestServer): Promise<number> => app.jobs.job('bulk-jobs').runOnce()
