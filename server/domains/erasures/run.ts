import type { Transaction } from '../../kernel/call.ts'
import {
  claimErasure,
  type ClaimedErasure,
  countLaterErasures,
  findSecondsUntilErasure,
  finishErasure,
  lockErasure,
  postponeErasure,
  type RunningErasure,
  saveErasureProgress,
} from '../../../storage/privacy/erasures.ts'
import { hasFilesOf } from '../../../storage/privacy/erasure-steps.ts'
import { hasPartsOf } from '../../../storage/work/exports.ts'
import { hasOpenCalls } from '../../../storage/privacy/erasure-scans.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { withRetries } from '../../kernel/retry.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeRetrySeconds } from '../../work/backoff.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { toPatterns } from './scans.ts'
import { addCounts, steps } from './steps.ts'

/** Longer than a batch may take, so that an expired lease means that its server died. */
const LEASE_SECONDS = 60
/** After this others get their turn: erasures of other workspaces, on whichever server. */
const TURN_MS = 2000
/** Rows that one transaction reads. The embedded database has one session, for which others wait. */
const BATCH = { embedded: 200, postgres: 1000 }
/** For transactions and deliveries that have begun, for calls of the provider, and for files to be removed. */
const WAIT_SECONDS = { others: 0.5, calls: 10, files: 2 }

/** What became of an erasure in a batch: it goes on, has ended, or waits for so many seconds. */
type Progress = 'on' | 'done' | number

/** Does the next batch of a locked erasure, and commits. */
const runBatch = async (app: App, tx: Transaction, erasure: RunningErasure): Promise<Progress> => {
  const { workspace_id: workspaceId, id, step } = erasure
  const now = businessTime(app, workspaceId)
  const limit = app.embedded ? BATCH.embedded : BATCH.postgres
  const result = await steps[step]!(tx, erasure, { now, limit })
  if (!result) {
    await tx.rollback().execute()
    return WAIT_SECONDS.others
  }
  const { counts, position, isOpen } = result
  const progress = {
    step: position === null ? step + 1 : step,
    position,
    isRepeated: erasure.is_repeated || isOpen === true,
    counts: addCounts(erasure.counts, counts),
  }
  await saveErasureProgress(tx, workspaceId, id, progress, LEASE_SECONDS)
  await tx.commit().execute()
  return 'on'
}

/** Ends a locked erasure whose steps are done, unless something is left to wait for. */
const end = async (app: App, tx: Transaction, erasure: RunningErasure): Promise<Progress> => {
  const { workspace_id: workspaceId, id, subject, counts } = erasure
  if (erasure.is_repeated) {
    if (await hasOpenCalls(tx, workspaceId, toPatterns(subject))) {
      await tx.rollback().execute()
      return WAIT_SECONDS.calls
    }
    const again = { step: 0, position: null, isRepeated: false, counts }
    await saveErasureProgress(tx, workspaceId, id, again, LEASE_SECONDS)
    await tx.commit().execute()
    return 'on'
  }
  const hasFiles = async (): Promise<boolean> =>
    (await hasFilesOf(tx, workspaceId, subject.conversationIds)) ||
    (await hasPartsOf(tx, workspaceId, subject.contactIds))
  if (app.media && (await hasFiles())) {
    await tx.rollback().execute()
    app.jobs.job('file-removal').wake()
    return WAIT_SECONDS.files
  }
  await finishErasure(tx, workspaceId, id, businessTime(app, workspaceId))
  await tx.commit().execute()
  return 'done'
}

const runNext = (app: App, { workspace_id: workspaceId, id }: ClaimedErasure): Promise<Progress> =>
  withRetries(() =>
    withTransaction(app, async (tx): Promise<Progress> => {
      const erasure = await lockErasure(tx, workspaceId, id)
      if (!erasure) {
        await tx.rollback().execute()
        return 'done'
      }
      return erasure.step < steps.length ? await runBatch(app, tx, erasure) : await end(app, tx, erasure)
    }),
  )

/** Lets a claimed erasure go on for a while. Returns how many batches it did. */
const takeTurn = async (app: App, claimed: ClaimedErasure, signal: AbortSignal): Promise<number> => {
  const { workspace_id: workspaceId, id, attempts } = claimed
  const startedAt = performance.now()
  let waits = 0
  let count = 0
  try {
    for (; !signal.aborted && performance.now() - startedAt < TURN_MS; count++) {
      const progress = await runNext(app, claimed)
      if (progress === 'done') return count + 1
      if (progress === 'on') continue
      waits = progress
      break
    }
  } catch (error) {
    waits = computeRetrySeconds(attempts)
    app.log.warn({ erasure: id, ...errorLogDetails(error) }, 'An erasure did not go on; retrying')
  }
  await postponeErasure(app.db, workspaceId, id, waits)
  return count
}

const runAll = async (app: App, signal: AbortSignal): Promise<number> => {
  for (let count = 0; ;) {
    const claimed = signal.aborted ? undefined : await claimErasure(app.db, LEASE_SECONDS, steps.length)
    if (!claimed) return count
    count += await takeTurn(app, claimed, signal)
  }
}

const MIN_DELAY_MS = 200
/** After a downgrade such erasures wait until an operator acts. */
const WARN_INTERVAL_MS = 10 * 60_000
const LATER_VERSION =
  'Erasures that a later version began wait: this version lacks some of their steps. Start a server of that version'

/** Erases the copies of what is held on persons, after their contacts. */
export const erasuresJob = (app: App): JobDefinition => {
  let checkedAt = -Infinity
  const warnOfLaterVersion = async (): Promise<void> => {
    if (performance.now() - checkedAt < WARN_INTERVAL_MS) return
    checkedAt = performance.now()
    const count = await countLaterErasures(app.db, steps.length)
    if (count > 0) app.log.warn({ count }, LATER_VERSION)
  }
  return {
    name: 'erasures',
    intervalMs: getIdleMs(app),
    run: async (signal) => {
      const processed = await runAll(app, signal)
      await warnOfLaterVersion()
      const seconds = await findSecondsUntilErasure(app.db, steps.length)
      return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
    },
  }
}
