import type { Transaction } from '../../kernel/call.ts'
import {
  finishErasure,
  lockErasure,
  type RunningErasure,
  saveErasureProgress,
} from '../../../storage/privacy/erasures.ts'
import { hasFilesOf } from '../../../storage/privacy/erasure-steps.ts'
import { hasPartsOf } from '../../../storage/work/exports.ts'
import { hasOpenCalls } from '../../../storage/privacy/erasure-scans.ts'
import { advanceRun, finishRun, type Run } from '../../../storage/work/runs.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { withRetries } from '../../kernel/retry.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import { commitStep, createRunJob, type Progress } from '../../work/engine.ts'
import type { JobDefinition } from '../../work/runner.ts'
import { toPatterns } from './scans.ts'
import { addCounts, erasureVersions, steps } from './steps.ts'

/** Rows that one transaction reads. The embedded database has one session, for which others wait. */
const BATCH = { embedded: 200, postgres: 1000 }
/** For transactions and deliveries that have begun, for calls of the provider, and for files to be removed. */
const WAIT_SECONDS = { others: 0.5, calls: 10, files: 2 }

/** Does the next batch of a locked erasure, and commits. */
const runBatch = async (app: App, tx: Transaction, run: Run, erasure: RunningErasure): Promise<Progress> => {
  const { workspace_id: workspaceId, step } = erasure
  const now = businessTime(app, workspaceId)
  const limit = app.embedded ? BATCH.embedded : BATCH.postgres
  const result = await steps[step]!(tx, erasure, { now, limit })
  if (!result) {
    await tx.rollback().execute()
    return { seconds: WAIT_SECONDS.others, tries: 1 }
  }
  const { counts, position, isOpen } = result
  await saveErasureProgress(tx, erasure, {
    isRepeated: erasure.is_repeated || isOpen === true,
    counts: addCounts(erasure.counts, counts),
  })
  const keep = advanceRun(tx, run, { step: position === null ? step + 1 : step, position })
  return (await commitStep(tx, keep)) ? 'on' : 'over'
}

/** Ends a locked erasure whose steps are done, unless something is left to wait for. */
const end = async (app: App, tx: Transaction, run: Run, erasure: RunningErasure): Promise<Progress> => {
  const { workspace_id: workspaceId, id, subject, counts } = erasure
  if (erasure.is_repeated) {
    if (await hasOpenCalls(tx, workspaceId, toPatterns(subject))) {
      await tx.rollback().execute()
      return { seconds: WAIT_SECONDS.calls, tries: 1 }
    }
    await saveErasureProgress(tx, erasure, { isRepeated: false, counts })
    return (await commitStep(tx, advanceRun(tx, run, { step: 0, position: null }))) ? 'on' : 'over'
  }
  const hasFiles = async (): Promise<boolean> =>
    (await hasFilesOf(tx, workspaceId, subject.conversationIds)) ||
    (await hasPartsOf(tx, workspaceId, subject.contactIds))
  if (app.media && (await hasFiles())) {
    await tx.rollback().execute()
    app.jobs.job('file-removal').wake()
    return { seconds: WAIT_SECONDS.files, tries: 1 }
  }
  await finishErasure(tx, workspaceId, id, businessTime(app, workspaceId))
  await commitStep(tx, finishRun(tx, run))
  return 'over'
}

const runNext = (app: App, run: Run): Promise<Progress> =>
  withRetries(() =>
    withTransaction(app, async (tx) => {
      const erasure = await lockErasure(tx, run)
      if (erasure)
        return erasure.step < steps.length ? runBatch(app, tx, run, erasure) : end(app, tx, run, erasure)
      await commitStep(tx, finishRun(tx, run))
      return 'over'
    }),
  )

/** Erases the copies of what is held on persons, after their contacts. */
export const erasuresJob = (app: App): JobDefinition =>
  createRunJob(app, {
    kind: 'erasures',
    job: 'erasures',
    knows: erasureVersions,
    step: (run) => runNext(app, run),
  })
