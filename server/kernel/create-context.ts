import type { EventTypeId } from '../../catalog/events.ts'
import type { Operation } from '../../catalog/index.ts'
import { reserveContactIds } from '../../storage/contacts/contacts.ts'
import type { ClientPresence } from '../../storage/client/client-presence.ts'
import type { Db } from '../../storage/database.ts'
import type { DeferredWrite } from '../../storage/client/deferred-write.ts'
import type { EventRow } from '../../storage/events/events.ts'
import type { RecordChange } from '../guards/audit/entry.ts'
import { toBusinessTime } from '../clock.ts'
import { watchEvents } from '../domains/events/watch.ts'
import { createExportUrls } from '../domains/exports/urls.ts'
import { createMediaUrls } from '../domains/media/urls.ts'
import { checkWebhookUrl } from '../domains/webhooks/guard.ts'
import { requireProviderConfigured } from '../provider/port.ts'
import { showActor } from './actor-view.ts'
import type { App } from './app.ts'
import type { Actor, CallWatch, Context, CallTrace, RecordFailure, UndoneRecord } from './context.ts'
import { createCursors } from './cursors.ts'
import { createEmit } from './emit.ts'
import { Problem } from './problem.ts'
import { openHeavyDb } from '../guards/limits/heavy-reads.ts'
import { getAllowances } from '../guards/limits/rate-limit.ts'

/** What a handler leaves to the end of the call. */
export type PendingWrites = {
  events: EventRow[]
  deferred?: DeferredWrite
  change?: RecordChange
  undo?: UndoneRecord[]
  failures?: readonly RecordFailure[]
  afterDryRun?: (db: Db, expiresAt?: string) => Promise<void>
}

type ContextOptions = {
  tx: Db
  actor: Actor
  op: Operation
  input: Record<string, unknown>
  dryRun?: boolean
  /** Collects what the handler leaves to the end of the call. */
  pending?: PendingWrites
  attempt?: number
  /** What is deferred is written by the statement that writes the response. */
  mayBeOptimistic?: boolean
  watch?: CallWatch | undefined
  /** Whether the client of a read still waits. */
  presence?: ClientPresence | undefined
  /** The token of the plan that a change was sent with. */
  plan?: string | undefined
  trace?: CallTrace
}

/** The embedded database has one session, for which others wait. */
const JOB_BATCH_SIZES = { embedded: 100, postgres: 500 }

/** Contact ids that a server takes at a time, so that a contact's id is known before it is written. */
const CONTACT_ID_BATCH = 64

const takeContactId = async (app: App, tx: Db, attempt: number): Promise<string> => {
  // A database that crashed may have lost that it gave these ids, and have given them to others.
  if (attempt > 2) app.contactIdPool.length = 0
  const pooled = app.contactIdPool.pop()
  if (pooled !== undefined) return pooled
  const batch = await reserveContactIds(tx, CONTACT_ID_BATCH)
  const [next] = app.contactIdPool.slice(-1)
  // Ids are taken from the end, so that they grow in the order in which contacts are made. Another call may have
  // brought a batch meanwhile: a later one is used after it, and an earlier one is given up.
  if (next === undefined || BigInt(batch[0]!) > BigInt(next)) {
    app.contactIdPool.push(...batch)
    app.contactIdPool.sort((a, b) => (BigInt(a) < BigInt(b) ? 1 : -1))
  }
  return app.contactIdPool.pop()!
}

const cancelled = (): Problem =>
  new Problem(
    'upstream_unavailable',
    'The client cancelled the call before it was done. Nothing was changed.',
    {
      reason: 'call_cancelled',
    },
  )

/** Returns the context of one run of a handler. */
export const createContext = (
  app: App,
  {
    tx,
    actor,
    op,
    input,
    dryRun = false,
    pending = { events: [] },
    attempt = 1,
    mayBeOptimistic = false,
    watch,
    presence,
    plan,
    trace,
  }: ContextOptions,
): Context<EventTypeId> => {
  const realNow = app.now()
  const now = toBusinessTime(app, actor.workspace.id, realNow)
  // A transaction of the embedded database holds the only session.
  const heavy = op.heavy && tx.isTransaction && !app.embedded ? openHeavyDb(app) : tx
  return {
    tx,
    heavy,
    regexVerdicts: app.regexVerdicts,
    labelCache: app.labelCache,
    actor,
    now,
    realNow,
    dryRun,
    planned: !dryRun && plan !== undefined,
    attempt,
    publicUrl: app.config.publicUrl,
    filters: app.config.filters,
    jobBatchSize: JOB_BATCH_SIZES[app.embedded ? 'embedded' : 'postgres'],
    recordUndo: (undone) => {
      pending.undo = [...(pending.undo ?? []), undone]
    },
    recordFailures: (failures) => {
      pending.failures = failures
    },
    trace,
    cursors: createCursors(app.cursorSealer, actor, op.name, input, realNow),
    summarizeCall: (called, given, output) => app.summarizeCall(tx, actor, called, given, output),
    readRequestVersion: (request) => app.readRequestVersion(tx, request),
    watchEvents: () => watchEvents(app, actor.workspace.id, presence),
    requireProvider: () => requireProviderConfigured(app.provider),
    limits: () => getAllowances(app, actor),
    deferWrite: (write) => {
      pending.deferred = write
    },
    mayBeOptimistic,
    afterDryRun: (write) => {
      pending.afterDryRun = write
    },
    newContactId: () => takeContactId(app, tx, attempt),
    mediaUrl: createMediaUrls(app.mediaSealer, app.config.publicUrl, actor.workspace.id, realNow),
    exportUrl: createExportUrls(app.mediaSealer, app.config.publicUrl, actor, realNow),
    checkWebhookUrl: async (text) => (await checkWebhookUrl(text, app.webhookGuard)).url.href,
    webhookSealer: app.webhookSealer,
    auditChange: (before, after) => {
      pending.change = { before, after } as RecordChange
    },
    reached: (share) => {
      if (watch?.signal.aborted) throw cancelled()
      watch?.reached?.(share)
    },
    emit: createEmit(pending.events, now, showActor(actor)),
  }
}
