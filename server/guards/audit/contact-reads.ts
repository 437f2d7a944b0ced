import { type ContactReadsRow, writeContactReads } from '../../../storage/access/audit-reads.ts'
import type { App } from '../../app.ts'
import type { Actor, CallTrace } from '../../kernel/context.ts'
import type { JobDefinition } from '../../work/runner.ts'
import type { Operation } from '../../../catalog/index.ts'
import { toAuditEntry } from './entry.ts'

/*
 * Reads of contacts by AI agents are audited in aggregate: one row for each key, operation and hour of real time,
 * with the number of calls and of different contacts. Calls are counted in memory and written by a job.
 */

const INTERVAL_MS = 10_000

/** Counts a read for the audit trail. */
export const recordContactRead = (
  { config, contactReads, now }: App,
  { actor, op, trace }: { actor: Actor; op: Operation; trace: CallTrace },
  contacts: ReadonlySet<string>,
): void => {
  if (!config.audit) return
  const at = now()
  const hour = `${at.slice(0, 13)}:00:00.000Z`
  const id = `${actor.key.id} ${op.name} ${hour}`
  let reads = contactReads.get(id)
  if (!reads) {
    const entry = toAuditEntry({ actor, op, trace, dryRun: false }, { at, outcome: 'done' })
    reads = { entry, workspaceId: actor.workspace.id, hour, calls: 0, contacts: new Set() }
    contactReads.set(id, reads)
  }
  reads.calls++
  for (const contact of contacts) reads.contacts.add(contact)
}

/** Writes what was counted; what cannot be written is counted again. Returns the number of rows. */
export const flushContactReads = async ({ db, contactReads }: App): Promise<number> => {
  const taken = [...contactReads]
  const count = taken.length
  contactReads.clear()
  while (taken.length > 0) {
    const [, { entry, workspaceId, hour, calls, contacts }] = taken[0]!
    const row: ContactReadsRow = { hour, calls, contacts: [...contacts] }
    try {
      await writeContactReads(db, workspaceId, entry, row)
    } catch (error) {
      for (const [id, reads] of taken) {
        const later = contactReads.get(id)
        if (later) reads.calls += later.calls
        for (const contact of later?.contacts ?? []) reads.contacts.add(contact)
        contactReads.set(id, reads)
      }
      throw error
    }
    taken.shift()
  }
  return count
}

/** Every process writes what it counted, and the rest when it stops. */
export const contactReadsJob = (app: App): JobDefinition => ({
  name: 'contact-reads',
  intervalMs: INTERVAL_MS,
  everywhere: true,
  run: async () => ({ processed: await flushContactReads(app) }),
  drain: async () => {
    await flushContactReads(app)
  },
})
