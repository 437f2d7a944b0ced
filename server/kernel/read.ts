import type { ExecutionResult } from './call.ts'
import type { Operation } from '../../catalog/index.ts'
import { clientGoneError, isClientGone, readFor } from '../../storage/client/client-presence.ts'
import { errorCode } from '../../storage/client/error-codes.ts'
import type { Db } from '../../storage/database.ts'
import { createContext } from './create-context.ts'
import { HEAVY_READ_DEADLINE_MS, isHeavy, openHeavyDb } from './heavy.ts'
import { withDeadline } from './deadline.ts'
import { type Incoming, guardOutcome } from './guard.ts'
import type { Kernel } from './kernel.ts'
import { Problem } from './problem.ts'
import { getLocalHandler, getSuccessStatus } from './write-call.ts'

/**
 * The event log shows what no transaction in progress can precede, and a standby knows other transactions than its
 * primary (docs/decisions/0012).
 */
const FROM_PRIMARY = new Set(['events_list'])

/**
 * Whether calls of an operation may be answered by the replica: lists, searches and reports. Others read so little that
 * the question whether the replica is current would cost as much.
 */
export const mayReadReplica = ({ name, scope, waits, heavy, output }: Operation): boolean =>
  scope === 'mcp:read' &&
  !waits &&
  !FROM_PRIMARY.has(name) &&
  (heavy !== undefined || 'next_cursor' in output.shape)

/** The connections of the server that a read goes to. */
type ReadSource = { readonly db: Db; readonly heavy: Db }

/**
 * Reads from the replica where there is one, if it shows all that was acknowledged before now; else from the primary.
 * A read that fails for the sake of the replica is made once more, at the primary.
 */
const readFromCurrent = async <T>(
  app: Kernel,
  op: Operation,
  read: (source: ReadSource) => Promise<T>,
): Promise<T> => {
  const { replica } = app
  if (!replica || !mayReadReplica(op)) return await read(app)
  const state = await replica.ask()
  if (state === 'current')
    try {
      const answer = await read(replica)
      app.metrics.replicaReads.inc({ outcome: 'used' })
      return answer
    } catch (error) {
      const { code } = error as { code?: string }
      if (error instanceof Problem || code === errorCode.queryCanceled || isClientGone(error)) throw error
      replica.noteLoss()
    }
  app.metrics.replicaReads.inc({ outcome: state === 'current' ? 'failed' : state })
  return await read(app)
}

/** Rejects with 504 when an expensive read takes too long. */
const inHeavyTime = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await withDeadline(HEAVY_READ_DEADLINE_MS, work)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code !== errorCode.queryCanceled && code !== 'timeout') throw error
    throw new Problem(
      'timeout',
      'The read did not finish in time. Narrow it: conditions that fewer records meet, such as a tag, or a ' +
        'shorter range of dates.',
      { reason: 'query_timeout' },
    )
  }
}

/** Runs a read. `requireStillAllowed`: checks a caller who waited, before the answer. */
export const read = async (
  app: Kernel,
  call: Incoming & { work?: Promise<unknown> },
  requireStillAllowed: () => Promise<void>,
): Promise<ExecutionResult> => {
  const { actor, op, request } = call
  const { presence } = request
  const handler = getLocalHandler(app, op)
  for (let { input } = call; ;) {
    const run = (db: Db) =>
      readFor(presence, () => handler(createContext(app, { tx: db, actor, op, input, presence }), input))
    const output = await readFromCurrent(app, op, async (source) => {
      if (!isHeavy(op, input)) return await run(source.db)
      const work = run(openHeavyDb(source))
      call.work = work
      return await inHeavyTime(work)
    })
    if (presence?.isGone()) throw clientGoneError()
    // Whose key was paused or has ended while it waited learns nothing more.
    if (op.waits) await requireStillAllowed()
    const body = (request.present ?? JSON.stringify)(output)
    if (typeof body === 'number') {
      input = { ...input, limit: body }
      continue
    }
    await guardOutcome(app, { ...call, input }, { kind: 'read', db: app.db, output })
    const version = op.versioned?.by && (output as { version?: string }).version
    return { status: getSuccessStatus(op), body, version }
  }
}
