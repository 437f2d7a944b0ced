import { eraseExports } from '../../../storage/contacts/exports.ts'
import type { Db } from '../../../storage/database.ts'
import type { ErasureCounts, RunningErasure } from '../../../storage/privacy/erasures.ts'
import {
  eraseBudgets,
  eraseConversationTexts,
  eraseMessages,
  eraseProviderUpdates,
  eraseSandboxPerson,
  listRunningTransactions,
} from '../../../storage/privacy/erasure-steps.ts'
import type { ErasedCounts } from '../../../storage/tables/erasures.ts'
import { treatPage } from './scans.ts'

/** How a step ended: `position` is where it goes on, null when it is done. */
type StepResult = { counts: ErasureCounts; position: string[] | null; isOpen?: boolean }

type StepOptions = { now: string; limit: number }
/** Undefined: it has to wait a moment. */
type Step = (tx: Db, erasure: RunningErasure, options: StepOptions) => Promise<StepResult | undefined>

/** After so many attempts nothing is waited for any more: what is leased all the time. */
const PATIENCE = 60

/** A step of one transaction. */
const once =
  (
    erase: (tx: Db, workspaceId: string, subject: RunningErasure['subject']) => Promise<ErasureCounts>,
  ): Step =>
  async (tx, { workspace_id: workspaceId, subject }) => ({
    counts: await erase(tx, workspaceId, subject),
    position: null,
  })

const eraseNextMessages: Step = async (tx, erasure, { now, limit }) => {
  const { workspace_id: workspaceId, subject, position } = erasure
  const [at = '0', createdAt, id] = position ?? []
  const { conversationIds, contactIds } = subject
  const conversationId = conversationIds[Number(at)]
  // After their conversations, what they wrote in groups.
  const of = conversationId === undefined ? { authorIds: contactIds } : { conversationId }
  const after = createdAt === undefined || id === undefined ? undefined : { createdAt, id }
  const { counts, last } = await eraseMessages(tx, workspaceId, of, { after, limit, now })
  const next = conversationId === undefined ? null : [String(Number(at) + 1)]
  return { counts, position: last ? [at, last.createdAt, last.id] : next }
}

const scan =
  (name: Parameters<typeof treatPage>[2]): Step =>
  (tx, { workspace_id: workspaceId, subject, position, attempts }, { limit }) =>
    treatPage(tx, workspaceId, name, subject, { after: position, limit, ignoreBusy: attempts > PATIENCE })

/**
 * Waits for transactions that had begun to read or write when the contact was gone: they may write a copy of what they
 * saw before. Those that began later find no contact.
 */
const settle: Step = async (tx, { position, attempts }) => {
  if (position === null) return { counts: {}, position: ['', ...(await listRunningTransactions(tx))] }
  const running = new Set(await listRunningTransactions(tx))
  if (attempts <= PATIENCE && position.some((one) => running.has(one))) return undefined
  return { counts: {}, position: null }
}

/**
 * What an erasure does after its call, in this order: where copies come from before where they go, and deliveries
 * before the events that they deliver. A step is added at the end: erasures that are running know them by number.
 */
export const steps: readonly Step[] = [
  settle,
  once(eraseSandboxPerson),
  once(eraseProviderUpdates),
  eraseNextMessages,
  once(eraseConversationTexts),
  scan('webhook_deliveries'),
  scan('events'),
  scan('audit_log'),
  scan('approvals'),
  scan('bulk_job_batches'),
  scan('idempotency'),
  scan('saved_filters'),
  once(eraseBudgets),
  // Files that were begun while the person was erased may have them still.
  once(eraseExports),
  scan('bulk_jobs'),
  scan('broadcast_sends'),
]

/** How an erasure names how many steps it takes: a server with fewer would end it without the others. */
export const erasureVersions = steps.map((_, n) => `${n + 1} steps`)

/** Adds counts of tables to others. */
export const addCounts = (a: ErasureCounts, b: ErasureCounts): ErasureCounts => {
  const sum = (name: string, kind: keyof ErasedCounts) => (a[name]?.[kind] ?? 0) + (b[name]?.[kind] ?? 0)
  return Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => [
      name,
      {
        deleted: sum(name, 'deleted'),
        cleared: sum(name, 'cleared'),
        pseudonymised: sum(name, 'pseudonymised'),
      },
    ]),
  )
}
