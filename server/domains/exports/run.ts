import type { Transaction } from '../../kernel/call.ts'
import {
  advanceExport,
  claimExport,
  countParts,
  deleteExportsBefore,
  expireExports,
  failExport,
  findSecondsUntilExport,
  finishExport,
  postponeExport,
  type RunningExport,
  type WrittenPart,
} from '../../../storage/work/exports.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import { computeRetrySeconds } from '../../work/backoff.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { FIXED_HOURS, hoursAgo } from '../../work/retention-periods.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import type { MediaStore } from '../../media-store.ts'
import * as contactsFile from './contacts-file.ts'
import {
  type ExportWork,
  type FileEnd,
  LEASE_SECONDS,
  releasingParts,
  removePart,
  type StepResult,
} from './parts.ts'
import * as personArchive from './person-archive.ts'

/** After this others get their turn: exports of other workspaces, on whichever server. */
const TURN_MS = 2000
/** With the delays between them, some hours. */
const MAX_ATTEMPTS = 40

/** Counts written parts together with what `advance` writes, which says whether the export is where it was. */
const commit = async (
  work: ExportWork,
  parts: readonly WrittenPart[],
  advance: (tx: Transaction) => Promise<boolean>,
): Promise<boolean> => {
  const { app, running } = work
  const { workspace_id: workspaceId, id } = running
  const isCounted = await releasingParts(work, parts, () =>
    withRetries(() =>
      withTransaction(app, async (tx) => {
        const isOurs =
          (await advance(tx)) && (parts.length === 0 || (await countParts(tx, workspaceId, id, parts)))
        await (isOurs ? tx.commit() : tx.rollback()).execute()
        return isOurs
      }),
    ),
  )
  if (!isCounted) for (const part of parts) await removePart(work, part.id)
  return isCounted
}

type Work = ExportWork<RunningExport>

/** Does the next step of a file; undefined when all that is left is its end. */
const writeNext = ({ running, ...files }: Work, signal: AbortSignal): Promise<StepResult | undefined> =>
  running.kind === 'person'
    ? personArchive.writeNext({ ...files, running }, signal)
    : contactsFile.writeNext({ ...files, running }, signal)

const writeEnd = ({ running, ...files }: Work): Promise<FileEnd> =>
  running.kind === 'person'
    ? personArchive.writeEnd({ ...files, running })
    : contactsFile.writeEnd({ ...files, running })

/** Does the next step. Returns the export as it is then; undefined when it ended, or is another server's. */
const runNext = async (work: Work, signal: AbortSignal): Promise<RunningExport | undefined> => {
  const { app, running } = work
  const { workspace_id: workspaceId, id } = running
  const next = await writeNext(work, signal)
  if (next) {
    const isOurs = await commit(work, next.parts, (tx) =>
      advanceExport(tx, workspaceId, id, running, next.to, LEASE_SECONDS),
    )
    return isOurs ? { ...running, ...next.to, attempts: 0 } : undefined
  }
  const { parts, size, sha256 } = await writeEnd(work)
  const fileUntil = hoursAgo(app.now(), -FIXED_HOURS.export_files)
  await commit(work, parts, (tx) =>
    finishExport(tx, workspaceId, id, running, {
      size,
      sha256,
      fileUntil,
      now: businessTime(app, workspaceId),
    }),
  )
  return undefined
}

/** Lets a claimed export go on for a while. Returns how many steps it did. */
const takeTurn = async (claimed: Work, signal: AbortSignal): Promise<number> => {
  const { app } = claimed
  const { workspace_id: workspaceId, id, attempts } = claimed.running
  const startedAt = performance.now()
  let count = 0
  let waits = 0
  try {
    let work = claimed
    for (; !signal.aborted && performance.now() - startedAt < TURN_MS; count++) {
      const running = await runNext(work, signal)
      if (!running) return count + 1
      work = { ...work, running }
    }
  } catch (error) {
    if (error instanceof Problem && error.status < 500) {
      await failExport(app.db, workspaceId, id, {
        problem: error.message,
        now: businessTime(app, workspaceId),
      })
      return count
    }
    app.log.warn({ export: id, attempts, ...errorLogDetails(error) }, 'An export did not go on; retrying')
    if (attempts >= MAX_ATTEMPTS) {
      const problem = 'The file could not be made: the database or the store of files failed again and again.'
      await failExport(app.db, workspaceId, id, { problem, now: businessTime(app, workspaceId) })
      return count
    }
    waits = computeRetrySeconds(attempts)
  }
  await postponeExport(app.db, workspaceId, id, waits)
  return count
}

const runAll = async (app: App, store: MediaStore, signal: AbortSignal): Promise<number> => {
  for (let count = 0; ;) {
    const running = signal.aborted ? undefined : await claimExport(app.db, LEASE_SECONDS)
    if (!running) return count
    count += await takeTurn({ app, store, running }, signal)
  }
}

const MIN_DELAY_MS = 200

/** Makes files for download. */
export const exportsJob = (app: App, store: MediaStore): JobDefinition => ({
  name: 'exports',
  intervalMs: getIdleMs(app),
  run: async (signal) => {
    const processed = await runAll(app, store, signal)
    const seconds = await findSecondsUntilExport(app.db)
    return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
  },
})

/** Lets files expire, and deletes what is known of old ones. Returns the count. */
export const deleteOldExports = async (app: App, signal: AbortSignal): Promise<number> => {
  const expired = await expireExports(app.db, app.now())
  if (expired > 0 && app.media) app.jobs.job('file-removal').wake()
  const before = hoursAgo(app.now(), FIXED_HOURS.exports)
  return expired + (await changeInBatches((limit) => deleteExportsBefore(app.db, before, limit), signal))
}
