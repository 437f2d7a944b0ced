import type { KyselyPlugin } from 'kysely'
import type { Operation } from '../../catalog/index.ts'
import { errorCode } from '../../storage/client/error-codes.ts'
import type { Db } from '../../storage/database.ts'

/** How long an expensive read may take, all of its statements together. */
export const HEAVY_READ_DEADLINE_MS = 8_000

/** Whether a call of this operation is expensive: always, or with one of the fields it declares. */
export const isHeavy = ({ heavy }: Operation, input: Record<string, unknown>): boolean =>
  heavy === true || (heavy ?? []).some((field) => input[field] !== undefined)

const deadlineError = (): Error =>
  Object.assign(new Error('the deadline of an expensive read has passed'), { code: errorCode.queryCanceled })

/** Refuses statements after the deadline, so that a read that nobody waits for any more ends. */
const refuseAfter = (deadline: number): KyselyPlugin => ({
  transformQuery: ({ node }) => {
    if (performance.now() >= deadline) throw deadlineError()
    return node
  },
  transformResult: async ({ result }) => result,
})

/** Returns the connections for the expensive reads of one call, which end with its deadline. */
export const openHeavyDb = ({ heavy }: { readonly heavy: Db }): Db =>
  heavy.withPlugin(refuseAfter(performance.now() + HEAVY_READ_DEADLINE_MS))
