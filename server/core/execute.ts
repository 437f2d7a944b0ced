import type { ControlledTransaction } from 'kysely'
import { type Operation, routesOf } from '../../catalog/index.ts'
import { writeAudit } from '../../storage/audit.ts'
import { takeContactIds } from '../../storage/contacts.ts'
import type { Database, Db } from '../../storage/database.ts'
import { type EventRow, writeEvents } from '../../storage/events.ts'
import { type Finale, runFinale } from '../../storage/deferred-write.ts'
import {
  dropRecord,
  dropRunning,
  type FinalRecord,
  giveUpLease,
  type IdempotencyRecord,
  type Lease,
  lockRecord,
  renewLease,
  reserveKey,
  settleOutcome,
  writeIntent,
  writeOutcome,
} from '../../storage/idempotency.ts'
import type { App } from '../app.ts'
import { type Difference, endedBy, entryOf, type Trace, type Went } from '../audit/entry.ts'
import { isTold, markTold, tell } from '../audit/record.ts'
import type { Actor, Context } from './context.ts'
import { cursorsFor } from './cursors.ts'
import { emitter } from './emit.ts'
import { announceEvents } from '../events/signal.ts'
import { mediaUrls } from '../media/urls.ts'
import type { AnyHandler, Handler, ProviderHandler } from './handler.ts'
import { Problem } from './problem.ts'
import { outcomeUnknown } from '../provider/port.ts'
import { checkUrl } from '../webhooks/guard.ts'
import { isRetryable, withDeadline } from './steps/deadline.ts'
import {
  fingerprintOf,
  KEPT_MS,
  keptBody,
  requireSameRequest,
  runningKey,
  shownBody,
  stillRunning,
} from './steps/idempotency.ts'
import { allowances } from './steps/rate-limit.ts'

/**
 * A final answer: what is sent, and what a retry with the same key is sent again. A refusal's body is its
 * problem without the request's id.
 */
export type Outcome = { status: number; body: string; replayed?: boolean; problem?: Problem }

export type Change = {
  actor: Actor
  op: Operation
  input: Record<string, unknown>
  key: string
  trace: Trace
  /**
   * The key was made for this call: nobody can have used it, so it need not be looked up (a round trip
   * less).
   */
  fresh?: boolean
}

const WRITE_DEADLINE_MS = 30_000
const CALL_DEADLINE_MS = 20_000
/** Longer than a call may last, so that a lease that ran out means a dead caller. */
const LEASE_SECONDS = 30
const ATTEMPTS = 4
/** Contact ids that a server takes at a time, to know a contact's id before it is written. */
const CONTACT_IDS = 64

const handlerOf = (app: App, op: Operation): Handler<unknown> | ProviderHandler<unknown> =>
  app.handlers[op.name] as AnyHandler as Handler<unknown> | ProviderHandler<unknown>

const statuses = new WeakMap<Operation, number>()

export const successStatus = (op: Operation): number => {
  let status = statuses.get(op)
  if (status === undefined) statuses.set(op, (status = routesOf(op)[0]!.status))
  return status
}

/** What a handler leaves to the end of the change. */
type Gathered = { events: EventRow[]; finale?: Finale; difference?: Difference }

/** The context of one call; what the handler leaves to the end is put into `gathered`. */
export const contextOf = (
  app: App,
  tx: Db,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
  dryRun: boolean,
  gathered: Gathered = { events: [] },
  attempt = 1,
): Context => {
  const now = app.now()
  return {
    tx,
    actor,
    now,
    dryRun,
    attempt,
    publicUrl: app.config.publicUrl,
    filters: app.config.filters,
    cursors: cursorsFor(app.cursorSealer, actor, op.name, input, now),
    limits: () => allowances(app, actor),
    finish: (finale) => {
      gathered.finale = finale
    },
    newContactId: async () => {
      // A database that crashed may have forgotten that it gave these ids, and given them to others.
      if (attempt > 2) app.contactIds.length = 0
      return app.contactIds.pop() ?? (await leaseContactId(app, tx))
    },
    mediaUrl: mediaUrls(app.mediaSealer, app.config.publicUrl, actor.workspace.id),
    checkWebhookUrl: async (text) => (await checkUrl(text, app.webhookGuard)).url.href,
    webhookSealer: app.webhookSealer,
    note: (before, after) => {
      gathered.difference = { before, after } as Difference
    },
    emit: emitter(gathered.events, now),
  }
}

const leaseContactId = async (app: App, tx: Db): Promise<string> => {
  const [first, ...rest] = await takeContactIds(tx, CONTACT_IDS)
  app.contactIds.push(...rest)
  return first!
}

/**
 * Runs the whole operation in a transaction that is rolled back: the same code as the real run, with
 * nothing left behind.
 */
export const rehearse = async (
  app: App,
  { actor, op, input, trace }: Omit<Change, 'key'>,
): Promise<Outcome> => {
  const handler = handlerOf(app, op)
  let gathered: Gathered
  const output = await attempts(async (attempt) => {
    const tx = await app.db.startTransaction().execute()
    try {
      gathered = { events: [] }
      const ctx = contextOf(app, tx, actor, op, input, true, gathered, attempt)
      return await withDeadline(
        WRITE_DEADLINE_MS,
        (async () => {
          if (typeof handler !== 'function') {
            const intent = await handler.prepare(ctx, input)
            return await handler.settle(ctx, intent, handler.rehearse(intent))
          }
          const rehearsed = await handler(ctx, input)
          if (gathered.finale) await runFinale(tx, gathered.finale)
          return rehearsed
        })(),
      )
    } finally {
      await tx.rollback().execute()
    }
  })
  await tell(
    app,
    { actor, op, input, trace, dryRun: true },
    {
      at: app.now(),
      outcome: 'done',
      output: output as Record<string, unknown>,
      difference: gathered!.difference,
    },
  )
  return { status: successStatus(op), body: JSON.stringify({ ...(output as object), dry_run: true }) }
}

/**
 * Runs a change once per key: the change, its events, its audit row and the record of its answer are one
 * transaction.
 */
export const change = async (app: App, work: Change): Promise<Outcome> => {
  const running = runningKey(work.actor, work.key)
  if (app.running.has(running)) throw stillRunning()
  app.running.add(running)
  try {
    const handler = handlerOf(app, work.op)
    const outcome =
      typeof handler === 'function'
        ? await runInOne(app, work, handler)
        : await runInThree(app, work, handler)
    if (!outcome.replayed && (work.op.emits!.length > 0 || work.op.scope === 'webhooks:write'))
      announceEvents(app)
    return outcome
  } catch (error) {
    if (error instanceof Problem && isFinal(error)) return await keepRefusal(app, work, error)
    throw error
  } finally {
    app.running.delete(running)
  }
}

/** Refusals that a mere repeat may mend, or that belong to another request, are not kept. */
const PASSING = new Set<unknown>(['still_running', 'deleted_meanwhile', 'idempotency_key_reused'])

/** 4xx answers given after the work began are kept for retries. */
const isFinal = (problem: Problem): boolean => problem.status < 500 && !PASSING.has(problem.extras.reason)

const recordKey = ({ actor, key }: Change) => ({
  workspaceId: actor.workspace.id,
  staffId: actor.staff.id,
  key,
})

const auditOf = (app: App, work: Change, went: Went) =>
  app.config.audit ? entryOf({ ...work, dryRun: false }, went) : undefined

/** `went`: what the audit trail tells of it. */
const finalRecord = (
  app: App,
  work: Change,
  status: number,
  body: string,
  went?: Omit<Went, 'at'>,
): FinalRecord => {
  const now = app.now()
  return {
    ...recordKey(work),
    operation: work.op.name,
    fingerprint: fingerprintOf(work.op, work.input),
    status,
    body: keptBody(app, work, body),
    now,
    expiresAt: new Date(Date.parse(now) + KEPT_MS).toISOString(),
    audit: went && auditOf(app, work, { at: now, ...went }),
  }
}

/**
 * Takes the key in this transaction. Answers the outcome to replay, or the record of a call that may be
 * under way.
 */
const reserve = async (
  app: App,
  tx: Db,
  work: Change,
): Promise<{ replay?: Outcome; unsettled?: IdempotencyRecord }> => {
  const { locked, record } = await reserveKey(tx, recordKey(work), app.now())
  if (!locked) throw stillRunning()
  if (!record) return {}
  if (record.expired && record.state === 'done') {
    await dropRecord(tx, recordKey(work))
    return {}
  }
  requireSameRequest(record, fingerprintOf(work.op, work.input))
  if (record.state === 'done')
    return { replay: { status: record.status!, body: shownBody(app, work, record.body!), replayed: true } }
  if (!record.lease_over) throw stillRunning()
  return { unsettled: record }
}

type Tx = ControlledTransaction<Database>

/**
 * Commits after the last statement, and answers what that did. Most last statements bring the commit along
 * (storage/driver.ts).
 */
const commitWith = async <T>(tx: Tx, last: Promise<T>): Promise<T> => {
  const written = await last
  await tx.commit().execute()
  return written
}

const inTransaction = async <T>(app: App, work: (tx: Tx) => Promise<T>): Promise<T> => {
  const tx = await app.db.startTransaction().execute()
  try {
    return await work(tx)
  } catch (error) {
    if (!tx.isCommitted)
      await tx
        .rollback()
        .execute()
        .catch(() => {})
    throw error
  }
}

const runInOne = (app: App, work: Change, handler: Handler<unknown>): Promise<Outcome> =>
  attempts((attempt) =>
    withDeadline(
      WRITE_DEADLINE_MS,
      inTransaction(app, async (tx) => {
        const { replay } = work.fresh ? {} : await reserve(app, tx, work)
        if (replay) {
          await tx.rollback().execute()
          return replay
        }
        const gathered: Gathered = { events: [] }
        const output = await handler(
          contextOf(app, tx, work.actor, work.op, work.input, false, gathered, attempt),
          work.input,
        )
        const [status, body] = [successStatus(work.op), JSON.stringify(output)]
        await commitWith(
          tx,
          writeOutcome(
            tx,
            finalRecord(app, work, status, body, done(output, gathered)),
            gathered.events,
            gathered.finale,
          ),
        )
        return { status, body }
      }),
    ),
  )

const done = (output: unknown, { difference }: Gathered): Omit<Went, 'at'> => ({
  outcome: 'done',
  output: output as Record<string, unknown>,
  difference,
})

/** What a running record keeps, so that a retry or a worker can go on with it. */
export type StoredIntent = { intent: unknown; input: Record<string, unknown>; keyId: string; trace?: Trace }

const runInThree = async (app: App, work: Change, handler: ProviderHandler<unknown>): Promise<Outcome> => {
  const begun = await attempts(() =>
    withDeadline(
      WRITE_DEADLINE_MS,
      inTransaction(app, async (tx) => {
        const { replay, unsettled } = await reserve(app, tx, work)
        if (replay) {
          await tx.rollback().execute()
          return { replay }
        }
        if (unsettled) {
          const lease = await commitWith(tx, renewLease(tx, recordKey(work), LEASE_SECONDS))
          return { intent: (unsettled.intent as StoredIntent).intent, again: true, lease }
        }
        const intent = await handler.prepare(
          contextOf(app, tx, work.actor, work.op, work.input, false),
          work.input,
        )
        const stored: StoredIntent = {
          intent,
          input: work.input,
          keyId: work.actor.key.id,
          trace: work.trace,
        }
        const lease = await commitWith(
          tx,
          writeIntent(tx, finalRecord(app, work, 0, ''), stored, LEASE_SECONDS),
        )
        return { intent, again: false, lease }
      }),
    ),
  )
  if ('replay' in begun) return begun.replay!
  return await finishCall(app, work, handler, begun)
}

/** Where a caller stands before its call: `again` when an earlier call may have reached the provider. */
export type Begun = { intent: unknown; again: boolean; lease: Lease }

/**
 * Whether the intent of a failed call is kept. A call that was surely not made is given back to its caller;
 * but not once an earlier answer was lost, for nobody may be there to make it again: then a worker does,
 * when the provider takes it.
 */
const isOpen = (problem: Problem, again: boolean): boolean =>
  outcomeUnknown(problem) || (again && problem.code === 'upstream_unavailable')

/**
 * Calls the provider and writes what came of it. Also the way in for a worker that takes over a call whose
 * process died.
 */
export const finishCall = async (
  app: App,
  work: Change,
  handler: ProviderHandler<unknown>,
  { intent, again, lease }: Begun,
): Promise<Outcome> => {
  let result: unknown
  try {
    result = await handler.call(
      intent,
      {
        again,
        signal: AbortSignal.timeout(CALL_DEADLINE_MS),
        provider: app.provider,
        tx: app.db,
        now: app.now(),
      },
      work.input,
    )
  } catch (error) {
    if (error instanceof Problem && !isOpen(error, again))
      await takeBack(app, work, handler, intent, lease, error)
    else await giveUpLease(app.db, recordKey(work), lease)
    const problem =
      error instanceof Problem
        ? error
        : new Problem(
            'timeout',
            'The messaging provider did not answer in time. Retry with the same Idempotency-Key; it never runs twice.',
          )
    // Told of when it was taken back, or by whoever finds out what came of it.
    markTold(problem)
    throw problem
  }
  return await attempts(() =>
    inTransaction(app, async (tx) => {
      // A worker takes over from a caller that is silent too long; whoever of them is second finds the
      // answer there.
      const present = await lockRecord(tx, recordKey(work))
      if (present?.state === 'done') {
        await tx.rollback().execute()
        return { status: present.status!, body: shownBody(app, work, present.body!), replayed: true }
      }
      const gathered: Gathered = { events: [] }
      const output = await handler.settle(
        contextOf(app, tx, work.actor, work.op, work.input, false, gathered),
        intent,
        result,
      )
      const [status, body] = [successStatus(work.op), JSON.stringify(output)]
      await commitWith(
        tx,
        (present ? settleOutcome : writeOutcome)(
          tx,
          finalRecord(app, work, status, body, done(output, gathered)),
          gathered.events,
        ),
      )
      return { status, body }
    }),
  )
}

/** Frees the key of a call that was refused for sure, and undoes what was prepared for it. */
const takeBack = async (
  app: App,
  work: Change,
  handler: ProviderHandler<unknown>,
  intent: unknown,
  lease: Lease,
  problem: Problem,
): Promise<void> => {
  await attempts(() =>
    inTransaction(app, async (tx) => {
      const gathered: Gathered = { events: [] }
      if (await dropRunning(tx, recordKey(work), lease)) {
        await handler.refused?.(
          contextOf(app, tx, work.actor, work.op, work.input, false, gathered),
          intent,
          problem,
        )
        await writeEvents(tx, work.actor.workspace.id, gathered.events)
        const entry = auditOf(app, work, endedBy(app.now(), problem))
        if (entry) await writeAudit(tx, work.actor.workspace.id, entry)
      }
      await tx.commit().execute()
    }),
  )
}

/** Nothing was changed; the refusal itself is remembered, in a transaction of its own. */
const keepRefusal = async (app: App, work: Change, problem: Problem): Promise<Outcome> => {
  const body = JSON.stringify({ code: problem.code, detail: problem.message, extras: problem.extras })
  return await attempts(() =>
    inTransaction(app, async (tx) => {
      const { replay } = work.fresh ? {} : await reserve(app, tx, work)
      if (replay) {
        await tx.rollback().execute()
        return replay
      }
      const { at: _, ...went } = endedBy(app.now(), problem)
      await commitWith(
        tx,
        writeOutcome(
          tx,
          finalRecord(app, work, problem.status, body, isTold(problem) ? undefined : went),
          [],
        ),
      )
      return { status: problem.status, body, problem }
    }),
  )
}

/**
 * Again after serialisation faults and deadlocks, when another request with this key was a moment quicker,
 * and when the last work did not write.
 */
const attempts = async <T>(work: (attempt: number) => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (attempt >= ATTEMPTS || !isRetryable(error)) throw error
    }
  }
}
