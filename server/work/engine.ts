import { setTimeout as sleep } from 'node:timers/promises'
import {
  claimRuns,
  countLaterRuns,
  postponeRun,
  renewRun,
  type Run,
  type RunFilter,
  secondsUntilRun,
} from '../../storage/work/runs.ts'
import type { App } from '../app.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import type { Transaction } from '../kernel/call.ts'
import { computeRetrySeconds } from './backoff.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition, type JobName } from './runner.ts'

/** `tries`: 1 where that was a try without progress, by which the next one is later or the last. */
type Wait = { readonly seconds: number; readonly tries: 0 | 1 }

/** What became of a run in a step: it goes on, waits, or is over: ended, or another's. */
export type Progress = 'on' | 'over' | Wait

/**
 * `signal` is aborted when the server stops, or has lost the run; `lost` when it has lost it. `turns`: how many the job
 * gives at this moment.
 */
export type Turn = { readonly signal: AbortSignal; readonly lost: AbortSignal; readonly turns: () => number }

/**
 * A kind of work. A step does some of it, and says with `advanceRun` or `finishRun` what becomes of the run, in the
 * transaction of what it did: when they say that the run is another's by now, it is rolled back. A step that calls
 * others does so outside of a transaction. It may be done again where its server died.
 */
export type RunKind = RunFilter & {
  readonly job: JobName
  readonly step: (run: Run, turn: Turn) => Promise<Progress>
  /** Decides on an error: whether it has ended the run. Otherwise, and without it, the step is tried again later. */
  readonly fail?: (run: Run, error: unknown) => Promise<boolean>
  /** Milliseconds after which a run lets others go on, of its workspace and of others, on whichever server. */
  readonly turnMs?: number
  /** How many runs a server has in work at once. */
  readonly turns?: number
  readonly perQueue?: number
  /** The part of the time in which a run rests between its steps. */
  readonly idleShare?: number
}

/** Renewed while a server works on a run, so that an expired lease means that it died. */
const LEASE_SECONDS = 20
const RENEW_MS = 5000
const TURN_MS = 2000
/** What becomes due while others are in work is noticed after this. */
const LOOK_MS = 500
const MIN_DELAY_MS = 200

/** Commits what a step did if the run is this server's still, else rolls back. Returns which. */
export const commitStep = async (tx: Transaction, keep: Promise<boolean>): Promise<boolean> => {
  const isOurs = await keep
  await (isOurs ? tx.commit() : tx.rollback()).execute()
  return isOurs
}

/** Does steps of a run until it ends or waits, or its turn is over. Returns how many. */
const takeTurn = async (
  app: App,
  kind: RunKind,
  run: Run,
  { signal, turns }: Omit<Turn, 'lost'>,
): Promise<number> => {
  const { turnMs = TURN_MS, idleShare = 0 } = kind
  const lost = new AbortController()
  const turn = { signal: AbortSignal.any([signal, lost.signal]), lost: lost.signal, turns }
  const renewal = setInterval(() => {
    renewRun(app.db, run, LEASE_SECONDS).then(
      (isOurs) => isOurs || lost.abort(),
      () => {},
    )
  }, RENEW_MS)
  const startedAt = performance.now()
  let { attempts } = run
  let count = 0
  let wait: Wait = { seconds: 0, tries: 0 }
  try {
    do {
      const stepAt = performance.now()
      const progress = await kind.step(run, turn)
      count++
      if (progress === 'over') return count
      if (progress !== 'on') {
        wait = progress
        break
      }
      attempts = 0
      const restMs = ((performance.now() - stepAt) * idleShare) / (1 - idleShare)
      // Rejects when the job is stopped, which ends the turn.
      if (restMs > 0) await sleep(restMs, undefined, { signal: turn.signal }).catch(() => {})
    } while (!turn.signal.aborted && performance.now() - startedAt < turnMs)
  } catch (error) {
    if (!turn.signal.aborted) {
      const failed = { ...run, attempts }
      if (await kind.fail?.(failed, error)) return count
      wait = { seconds: computeRetrySeconds(attempts), tries: 1 }
      const { kind: name, subject } = run
      app.log.warn(
        { kind: name, subject, attempts, ...errorLogDetails(error) },
        'A run did not go on; retrying',
      )
    }
  } finally {
    clearInterval(renewal)
  }
  await postponeRun(app.db, run, wait)
  return count
}

/** Gives every run that is due a turn. Returns how many steps there were. */
const runDue = async (
  app: App,
  kind: RunKind,
  signal: AbortSignal,
  nextWake: () => Promise<void>,
): Promise<number> => {
  const { turns: most = 1 } = kind
  const turns = new Set<Promise<void>>()
  const errors: unknown[] = []
  const turn = { signal, turns: () => turns.size }
  let after: Run | undefined
  let count = 0
  for (;;) {
    const wake = nextWake()
    const limit = signal.aborted || errors.length > 0 ? 0 : most - turns.size
    const claimed =
      limit === 0
        ? []
        : await claimRuns(app.db, { ...kind, leaseSeconds: LEASE_SECONDS, limit, after }).catch(
            (error: unknown) => (errors.push(error), []),
          )
    for (const run of claimed) {
      const done: Promise<void> = takeTurn(app, kind, run, turn)
        .then((steps) => void (count += steps))
        .catch((error: unknown) => void errors.push(error))
        .finally(() => turns.delete(done))
      turns.add(done)
    }
    after = claimed.at(-1) ?? after
    if (claimed.length > 0) continue
    if (turns.size > 0) await Promise.race([...turns, wake, sleep(LOOK_MS, undefined, { ref: false })])
    else if (errors.length > 0) throw errors[0]
    else return count
  }
}

/** How often runs are looked for that a later version began: after a downgrade they wait until an operator acts. */
const WARN_INTERVAL_MS = 10 * 60_000

/** The job of a kind of work. */
export const createRunJob = (app: App, kind: RunKind): JobDefinition => {
  let checkedAt = -Infinity
  const warnOfLaterVersion = async (): Promise<void> => {
    if (!kind.knows || performance.now() - checkedAt < WARN_INTERVAL_MS) return
    checkedAt = performance.now()
    const count = await countLaterRuns(app.db, kind)
    if (count > 0)
      app.log.warn(
        { kind: kind.kind, count },
        'Runs that a later version began wait: this version lacks what they need. Start a server of that version',
      )
  }
  return {
    name: kind.job,
    intervalMs: getIdleMs(app),
    run: async (signal, nextWake = () => new Promise(() => {})) => {
      const processed = await runDue(app, kind, signal, nextWake)
      await warnOfLaterVersion()
      const seconds = await secondsUntilRun(app.db, kind)
      return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
    },
  }
}
