import type { Transaction } from '../../kernel/call.ts'
import {
  advanceExport,
  countParts,
  deleteExportsBefore,
  expireExports,
  failExport,
  finishExport,
  loadRunningExport,
  type RunningExport,
  type WrittenPart,
} from '../../../storage/work/exports.ts'
import { advanceRun, finishRun, type Run } from '../../../storage/work/runs.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { commitStep, createRunJob, type Progress } from '../../work/engine.ts'
import { FIXED_HOURS, hoursAgo } from '../../work/retention-periods.ts'
import type { JobDefinition } from '../../work/runner.ts'
import type { MediaStore } from '../../media-store.ts'
import * as contactsFile from './contacts-file.ts'
import { type ExportWork, type FileEnd, releasingParts, removePart, type StepResult } from './parts.ts'
import * as personArchive from './person-archive.ts'

/** With the delays between them, some hours. */
const MAX_ATTEMPTS = 40

/** Counts written parts together with what `advance` writes, which says whether the export is made still. */
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
        const isMade =
          (await advance(tx)) && (parts.length === 0 || (await countParts(tx, workspaceId, id, parts)))
        return await commitStep(tx, Promise.resolve(isMade))
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

/** Does the next step. */
const runNext = async (run: Run, work: Work, signal: AbortSignal): Promise<Progress> => {
  const { app, running } = work
  const { workspace_id: workspaceId, id } = running
  const next = await writeNext(work, signal)
  if (next) {
    const isOurs = await commit(
      work,
      next.parts,
      async (tx) => (await advanceExport(tx, workspaceId, id, next.to)) && (await advanceRun(tx, run)),
    )
    return isOurs ? 'on' : 'over'
  }
  const { parts, size, sha256 } = await writeEnd(work)
  const fileUntil = hoursAgo(app.now(), -FIXED_HOURS.export_files)
  const file = { size, sha256, fileUntil, now: businessTime(app, workspaceId) }
  await commit(
    work,
    parts,
    async (tx) => (await finishExport(tx, workspaceId, id, file)) && (await finishRun(tx, run)),
  )
  return 'over'
}

/** Gives an export up. */
const fail = (app: App, run: Run, problem: string): Promise<boolean> =>
  withTransaction(app, async (tx) => {
    const { workspace_id: workspaceId, subject: id } = run
    await failExport(tx, workspaceId, id, { problem, now: businessTime(app, workspaceId) })
    return await commitStep(tx, finishRun(tx, run))
  })

/** Makes files for download. */
export const exportsJob = (app: App, store: MediaStore): JobDefinition =>
  createRunJob(app, {
    kind: 'exports',
    job: 'exports',
    step: async (run, { signal, lost }) => {
      const running = await loadRunningExport(app.db, run.workspace_id, run.subject)
      if (running) return await runNext(run, { app, store, running, lost }, signal)
      await finishRun(app.db, run)
      return 'over'
    },
    fail: async (run, error) => {
      if (error instanceof Problem && error.status < 500) return await fail(app, run, error.message)
      if (run.attempts + 1 < MAX_ATTEMPTS) return false
      return await fail(
        app,
        run,
        'The file could not be made: the database or the store of files failed again and again.',
      )
    },
  })

/** Lets files expire, and deletes what is known of old ones. Returns the count. */
export const deleteOldExports = async (app: App, signal: AbortSignal): Promise<number> => {
  const expired = await expireExports(app.db, app.now())
  if (expired > 0 && app.media) app.jobs.job('file-removal').wake()
  const before = hoursAgo(app.now(), FIXED_HOURS.exports)
  return expired + (await changeInBatches((limit) => deleteExportsBefore(app.db, before, limit), signal))
}
