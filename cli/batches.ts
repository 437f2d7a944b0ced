import { createHash, randomUUID } from 'node:crypto'
import { cliError, isCliError } from './error.ts'
import {
  type ApiResponse,
  BATCH_FAILURES,
  callOperation,
  type CallHeaders,
  createPatientPolicy,
  type ServerConnection,
} from './remote.ts'
import { createProgressLine } from './result.ts'

type Summary = Record<string, unknown>

/** A list of an answer, such as the failures, is shown up to here; the numbers count all. */
const MAX_LISTED = 50

/**
 * Adds an answer to the sum of those before: numbers are added, lists joined, and what is true of one is true of all.
 * A list of failures keeps the first 50, as that of one call does.
 */
const addAnswer = (sum: Summary | undefined, answer: Summary): Summary =>
  Object.fromEntries(
    Object.entries({ ...sum, ...answer }).map(([name, value]) => {
      const before = sum?.[name]
      if (before === undefined) return [name, value]
      if (typeof value === 'number' && typeof before === 'number') return [name, before + value]
      if (typeof value === 'boolean') return [name, before === true || value]
      if (!Array.isArray(value) || !Array.isArray(before)) return [name, value]
      const all = [...(before as unknown[]), ...(value as unknown[])]
      return [name, name === 'failures' ? all.slice(0, MAX_LISTED) : all]
    }),
  )

/** A list of ids that may be longer than one call takes. */
export type IdBatches = {
  readonly operation: string
  /** The field with the list. */
  readonly field: string
  /** The number of ids of one call. */
  readonly size: number
}

/** Splits a list of ids, each of which counts once. */
const splitIds = (ids: readonly unknown[], size: number): unknown[][] => {
  const distinct = [...new Map(ids.map((id) => [String(id), id])).values()]
  return Array.from({ length: Math.ceil(distinct.length / size) }, (_, i) =>
    distinct.slice(i * size, (i + 1) * size),
  )
}

/** The key of a batch follows from that of the run, so that a repeat of the run finds what was done. */
const batchKey = (run: string, index: number, ids: readonly unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([run, index, ids]))
    .digest('hex')

/** Throws the failure of a batch with the key that repeats the run, and how far it came. */
const failRun = (error: unknown, run: string, { done, total }: { done: number; total: number }): never => {
  if (!isCliError(error)) throw error
  const { exitCode, problem } = error
  // A first call that was refused changed nothing: its own message says what to do.
  const isOpen = problem.code === 'interrupted' || (problem.status ?? 0) >= 500
  if (done === 0 && !isOpen) throw error
  throw Object.assign(cliError(exitCode, { ...problem, idempotency_key: run }), {
    hint:
      `Stopped after ${done} of ${total} ids. To continue, run the same command with the same ids and ` +
      `--idempotency-key ${run}`,
  })
}

/**
 * Calls an operation for a list of ids of any length, in batches, each under a key of its own. Waits where the rate
 * limit says so. Returns the answers as one; throws the first failure of a call with the key of the run.
 */
export const callInBatches = async (
  to: ServerConnection,
  { operation, field, size }: IdBatches,
  input: Readonly<Record<string, unknown>>,
  headers: CallHeaders = {},
): Promise<Pick<ApiResponse, 'value' | 'approvalId'>> => {
  const { io } = to
  const batches = splitIds(input[field] as unknown[], size)
  const total = batches.reduce((count, ids) => count + ids.length, 0)
  const run = headers.idempotencyKey ?? randomUUID()
  const progress = createProgressLine(io, `Ids of ${total.toLocaleString('en')}`)
  const isDryRun = input['dry_run'] === true
  if (io.stderr.isTTY && !isDryRun)
    io.stderr.write(`${batches.length} calls for ${total} ids, under --idempotency-key ${run}\n`)
  let sum: Summary | undefined
  let done = 0
  try {
    for (const [index, ids] of batches.entries()) {
      const idempotencyKey = batchKey(run, index, ids)
      const { value, approvalId } = await callOperation(
        to,
        operation,
        { ...input, [field]: ids },
        { ...headers, idempotencyKey, policy: createPatientPolicy(to, { failures: BATCH_FAILURES }) },
      )
      done += ids.length
      if (approvalId !== undefined) {
        io.stderr.write(`Asked for ${done} of ${total} ids; the others were not sent.\n`)
        return { value, approvalId }
      }
      sum = addAnswer(sum, value)
      progress.update(done)
    }
  } catch (error) {
    failRun(error, run, { done, total })
  } finally {
    progress.end()
  }
  return { value: sum ?? {} }
}
