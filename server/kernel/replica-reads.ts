import type { Operation } from '../../catalog/index.ts'
import { isClientGone } from '../../storage/client/client-presence.ts'
import type { Db } from '../../storage/database.ts'
import { errorCode } from '../../storage/client/error-codes.ts'
import type { App } from './app.ts'
import { Problem } from './problem.ts'

/** The connections of the server that a read goes to. */
export type ReadSource = { readonly db: Db; readonly heavy: Db }

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

/**
 * Reads from the replica where there is one, if it shows all that was acknowledged before now; else from the primary.
 * A read that fails for the sake of the replica is made once more, at the primary.
 */
export const readFromCurrent = async <T>(
  app: App,
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
