import type { ControlledTransaction } from 'kysely'
import type { AskReason } from '../../catalog/approvals.ts'
import type { Operation } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import type { AuditEntry } from '../../storage/access/audit.ts'
import type { Database, Db } from '../../storage/database.ts'
import {
  deleteRecord,
  type CompletedRecord,
  type IdempotencyRecord,
  reserveKey,
} from '../../storage/access/idempotency.ts'
import { commitReplicated } from '../../storage/client/replication.ts'
import { type CallOutcome, toAuditEntry } from '../guards/audit/entry.ts'
import type { App } from './app.ts'
import { requireOwnCall, requireSameView, toStoredView } from '../visibility/replays.ts'
import { showStoredAnswer } from '../visibility/records.ts'
import type { Actor, CallWatch, CallTrace } from './context.ts'
import type { PendingWrites } from './create-context.ts'
import type { AnyHandler, ExternalHandler, LocalHandler } from './handler.ts'
import type { Problem } from './problem.ts'
import {
  computeFingerprint,
  openBody,
  RECORD_TTL_MS,
  requireSameRequest,
  sealBody,
  stillRunningProblem,
} from './idempotency.ts'

/** A validated call of an operation that changes data. */
export type WriteCall = {
  actor: Actor
  op: Operation
  input: Record<string, unknown>
  /** The idempotency key. */
  key: string
  trace: CallTrace
  /** What the call must do, else it is refused: the token of a plan. A dry run may ask for its plan instead. */
  plan?: string | undefined
  /** The key was generated for this call, so it is not looked up: one round trip less. */
  fresh?: boolean
  watch?: CallWatch | undefined
  /** Throws if the call is no longer allowed. It locks what it reads until the transaction of the call ends. */
  requireStillAllowed?: (tx: Db) => Promise<void>
  /** The change is rolled back if a person has to approve what it does. */
  mayAsk?: boolean
}

/**
 * The final result of a call: what is sent, and what a retry with the same key is sent again. The body of an
 * error is its problem without the request id. `needsDelivery`: whether its events need webhook deliveries.
 */
export type ExecutionResult = {
  status: number
  body: string
  replayed?: boolean
  problem?: Problem
  needsDelivery?: boolean
  /** The body has a plan. */
  isPlanned?: boolean
  /** Of the record that a read shows. */
  version?: string | undefined
  /** A person decides on the call: the request for that. */
  approvalId?: string
  /** Why a person is asked about the change, which was not made; of a dry run, would be asked. */
  askedFor?: AskReason[] | undefined
}

type ErasedHandler = LocalHandler<unknown> | ExternalHandler<unknown>

/** Returns the handler of an operation, whose input was validated against the operation's schema. */
export const getHandler = (app: App, op: Operation): ErasedHandler =>
  app.handlers[op.name] as AnyHandler as ErasedHandler

/** Returns the status of a success, which is the same for all transports: 202 where a job does the work. */
export const getSuccessStatus = ({ routes: [route], jobs }: Operation, output?: unknown): number =>
  jobs && isObject(output) && output['job'] !== undefined
    ? 202
    : typeof route === 'object'
      ? (route.status ?? 200)
      : 200

export const toRecordKey = ({ actor, key }: WriteCall) => ({
  workspaceId: actor.workspace.id,
  staffId: actor.staff.id,
  key,
})

/** Returns the audit row of a call; undefined when the audit trail is turned off. */
export const toCallAudit = (app: App, call: WriteCall, outcome: CallOutcome): AuditEntry | undefined =>
  app.config.audit ? toAuditEntry({ ...call, dryRun: false }, outcome) : undefined

/** Returns the outcome of a successful run of the handler. */
export const toSuccess = (output: unknown, { change }: PendingWrites): Omit<CallOutcome, 'at'> => ({
  outcome: 'done',
  output: output as Record<string, unknown>,
  change,
})

/** Returns the idempotency record of a call, with its audit row unless `outcome` is absent. */
export const toFinalRecord = (
  app: App,
  call: WriteCall,
  status: number,
  body: string,
  outcome?: Omit<CallOutcome, 'at'>,
): CompletedRecord => {
  const now = app.now()
  return {
    ...toRecordKey(call),
    operation: call.op.name,
    fingerprint: computeFingerprint(call.op, call.input),
    status,
    body: sealBody(app, call, body),
    view: toStoredView(call.actor),
    now,
    expiresAt: new Date(Date.parse(now) + RECORD_TTL_MS).toISOString(),
    audit: outcome && toCallAudit(app, call, { at: now, ...outcome }),
  }
}

/** Returns an error as it is stored for retries. */
export const toStoredProblem = ({ code, message, extras }: Problem): string =>
  JSON.stringify({ code, detail: message, extras })

/**
 * Returns the stored result of a finished call, as its caller may see it now: phones may have been hidden
 * from the staff member since. Throws 409 `visibility_changed` when other things have been.
 */
export const toReplay = (
  app: App,
  call: WriteCall,
  { status, body, view }: Pick<IdempotencyRecord, 'status' | 'body' | 'view'>,
): ExecutionResult => {
  requireSameView(call.actor, view)
  return {
    status: status!,
    body: showStoredAnswer(call.actor, call.op, openBody(app, call, body!)),
    replayed: true,
  }
}

/**
 * Reserves the key in this transaction. Returns the result to replay, or the record of an external call that
 * was not completed; neither for a new call. Throws 409 while another request with the key is running, and
 * when the staff member may see less than when the call was made.
 */
export const reserve = async (
  app: App,
  tx: Db,
  call: WriteCall,
): Promise<{ replay?: ExecutionResult; unfinished?: IdempotencyRecord }> => {
  const { locked, record } = await reserveKey(tx, toRecordKey(call), app.now())
  if (!locked) throw stillRunningProblem()
  if (!record) return {}
  if (record.expired && record.state === 'done') {
    await deleteRecord(tx, toRecordKey(call))
    return {}
  }
  requireOwnCall(call.actor, record.view)
  requireSameRequest(record, computeFingerprint(call.op, call.input))
  if (record.state === 'done') return { replay: toReplay(app, call, record) }
  if (!record.lease_over) throw stillRunningProblem()
  requireSameView(call.actor, record.view)
  return { unfinished: record }
}

export type Transaction = ControlledTransaction<Database>

/**
 * Commits after the last statement and returns its result. Most last statements carry the commit with them
 * (storage/client/driver.ts).
 */
export const commitWith = async <T>(tx: Transaction, last: Promise<T>): Promise<T> => {
  const result = await last
  await tx.commit().execute()
  return result
}

/** Ends a transaction that found the result of an earlier call, which may be sent once it cannot be lost any more. */
export const endReplay = (tx: Transaction): Promise<void> => commitWith(tx, commitReplicated(tx))

/**
 * Begins the transaction of a call. One with a plan is one snapshot: what is rehearsed in it and what then runs see the
 * same, and a change of another call to what this one writes is a serialization failure, which is retried.
 */
export const beginFor = (app: App, call: Pick<WriteCall, 'plan'> | undefined): Promise<Transaction> =>
  call?.plan === undefined
    ? app.db.startTransaction().execute()
    : app.db.startTransaction().setIsolationLevel('repeatable read').execute()

/** Runs `work`, which commits or rolls back itself; rolls back when it throws. `call`: of which it begins. */
export const withTransaction = async <T>(
  app: App,
  work: (tx: Transaction) => Promise<T>,
  call?: Pick<WriteCall, 'plan'>,
): Promise<T> => {
  const tx = await beginFor(app, call)
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
