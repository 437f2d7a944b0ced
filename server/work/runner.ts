import type { Logger } from 'pino'
import type { Signals } from '../signals.ts'
import { jobChannel } from '../diagnostics-channels.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { computeBackoff } from './backoff.ts'

/** The background jobs of a server, declared in `server/jobs/background.ts`. */
export type JobName =
  | 'provider-updates'
  | 'media-downloads'
  | 'file-removal'
  | 'channel-deliveries'
  | 'approvals'
  | 'bulk-jobs'
  | 'bulk-sends'
  | 'erasures'
  | 'exports'
  | 'export-retention'
  | 'bulk-job-retention'
  | 'webhook-deliveries'
  | 'webhook-delivery-retention'
  | 'provider-call-reconciliation'
  | 'provider-health'
  | 'template-reads'
  | 'staff-reports'
  | 'secret-rotation'
  | 'server-clock'
  | 'sandbox-clock'
  | 'sandbox-numbers'
  | 'sandbox-updates'
  | 'idempotency-retention'
  | 'rate-bucket-retention'
  | 'provider-update-retention'
  | 'event-retention'
  | 'audit-retention'
  | 'contact-reads'
  | 'message-search'
  | 'filter-membership'
  | 'oauth-retention'
  | 'approval-retention'
  | 'merge-retention'
  | 'former-phone-retention'

/** What a run returns; every field is optional. */
type JobRunResult = {
  /** The number of items that were processed. */
  processed?: number
  /** Milliseconds until the next run, in place of the job's interval. */
  nextInMs?: number | undefined
  /** Milliseconds that a wake-up has to wait for the next run. Default 0: it starts at once. */
  pauseMs?: number
}

export type JobDefinition = {
  readonly name: JobName
  /** Milliseconds from the end of a run to the start of the next one, when nothing wakes the job earlier. */
  readonly intervalMs: number
  /** The same where it depends on what a run found; then `intervalMs` is that of retries alone. */
  readonly getIntervalMs?: () => number
  /**
   * Does the work that is due. `signal` is aborted when the job is stopped: return soon after. `nextWake` resolves at
   * the next wake-up, which causes another run too.
   */
  readonly run: (signal: AbortSignal, nextWake?: () => Promise<void>) => Promise<JobRunResult>
  /** Subscribes to what wakes the job, from its start to its stop. Returns the function to unsubscribe. */
  readonly subscribe?: (wake: () => void) => () => void
  /** Every process of a server runs it for itself, not one of them for all. */
  readonly everywhere?: boolean
  /** Finishes work that outlives a run, such as requests in flight. Called once, after the last run. */
  readonly drain?: () => Promise<void>
}

export type Job = {
  /** Polls from now on. A job that was not started runs only when it is woken. */
  start: () => void
  /** Runs as soon as possible. A wake-up during a run causes another run after it. */
  wake: () => void
  /**
   * Waits for a run that is in progress, then for one more. Returns the number of items that this one
   * processed, 0 when the job is stopped; rejects when it failed.
   */
  runOnce: () => Promise<number>
  /** Starts no other run, waits for the one in progress and drains. The storage may be closed after it. */
  stop: () => Promise<void>
}

/**
 * Milliseconds after which a job looks again though nothing is scheduled and nobody woke it: for the work of a
 * process that died before it woke anybody. The embedded database has one process.
 */
export const getIdleMs = ({ embedded }: { readonly embedded: boolean }): number =>
  embedded ? 30_000 : 10_000

/**
 * Milliseconds until the next run of a job whose first work is due in so many `seconds`; undefined: none is scheduled.
 * At least `min`: what is due may be in the hands of another server. At most `max`: work that nobody announced may be
 * due earlier.
 */
export const computeNextRunMs = (
  seconds: number | undefined,
  { min, max }: { readonly min: number; readonly max: number },
): number => Math.min(max, Math.max(min, (seconds ?? Infinity) * 1000))

/** The first run comes soon: the last process may have left work behind. */
const FIRST_RUN_MS = 1000

/**
 * A job that failed is retried after its interval, but no later than this; the delay doubles with each failure up
 * to the longer of the two.
 */
const BACKOFF_MS = 5000

const getRetryDelay = (intervalMs: number, failures: number): number =>
  computeBackoff(failures, {
    first: Math.min(intervalMs, BACKOFF_MS),
    longest: Math.max(intervalMs, BACKOFF_MS),
  })

/** Logs an error that all jobs share, and resolves with true; false for any other. */
type IsLogged = (error: unknown) => Promise<boolean>

const logFailure = (
  log: Pick<Logger, 'warn'>,
  run: { job: JobName; failures: number },
  error: unknown,
): void => log.warn({ ...run, ...errorLogDetails(error) }, 'Background job failed; retrying')

/** Runs one job; it never runs twice at once in this process. */
export const createJob = (definition: JobDefinition, log: Pick<Logger, 'warn'>, isLogged?: IsLogged): Job => {
  const { name, intervalMs, getIntervalMs = () => intervalMs } = definition
  const controller = new AbortController()
  let started = false
  let woken = false
  let wakeUp = Promise.withResolvers<void>()
  let failures = 0
  /** The time before which no wake-up starts a run, on the clock of `performance.now()`. */
  let notBefore = 0
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let last: { processed: number } | { error: unknown } = { processed: 0 }
  let unsubscribe: (() => void) | undefined
  let stopping: Promise<void> | undefined

  const schedule = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => void begin(), ms)
    timer.unref()
  }

  const execute = async (): Promise<void> => {
    let result: JobRunResult = {}
    try {
      result = await definition.run(controller.signal, () => wakeUp.promise)
      failures = 0
      last = { processed: result.processed ?? 0 }
    } catch (error) {
      failures++
      result = { nextInMs: getRetryDelay(intervalMs, failures) }
      last = { error }
      if (!(await isLogged?.(error))) logFailure(log, { job: name, failures }, error)
    }
    running = undefined
    if (stopping) return
    const { nextInMs, pauseMs = 0 } = result
    notBefore = performance.now() + pauseMs
    if (woken) schedule(pauseMs)
    else if (started) schedule(nextInMs ?? getIntervalMs())
  }

  const begin = async (): Promise<void> => {
    if (running || stopping) return
    clearTimeout(timer)
    woken = false
    running = Promise.resolve().then(execute)
    await running
  }

  const wake = (): void => {
    wakeUp.resolve()
    wakeUp = Promise.withResolvers()
    if (woken || stopping) return
    woken = true
    if (!running) schedule(Math.max(0, notBefore - performance.now()))
  }

  return {
    start: () => {
      if (started || stopping) return
      started = true
      unsubscribe = definition.subscribe?.(wake)
      if (!running && !woken) schedule(Math.min(intervalMs, FIRST_RUN_MS))
    },
    wake,
    runOnce: async () => {
      // A run in progress may have started before the caller's own changes were committed.
      while (running) await running
      if (stopping) return 0
      await begin()
      if ('error' in last) throw last.error
      return last.processed
    },
    stop: () =>
      (stopping ??= (async () => {
        controller.abort()
        clearTimeout(timer)
        unsubscribe?.()
        await running
        await definition.drain?.()
      })()),
  }
}

/** The jobs of one server, by name. */
export type JobRunner = {
  /** Declares a job. It runs when it is woken; it polls, and hears signals, once the runner is started. */
  add: (definition: JobDefinition) => void
  /** Throws when no such job was declared. */
  job: (name: JobName) => Job
  start: () => void
  /**
   * Starts those that run in every process. A wake-up of another one goes to the process that runs it, until
   * `start` is called because that is this one now.
   */
  follow: () => void
  /** Stops all jobs at the same time. */
  stop: () => Promise<void>
}

/** Is told of every run that ended, with its duration in seconds. */
type OnRun = (job: JobName, outcome: 'ok' | 'failed', seconds: number) => void

const toObserved = (definition: JobDefinition, onRun: OnRun): JobDefinition => ({
  ...definition,
  run: async (signal, nextWake) => {
    const startedAt = performance.now()
    let outcome: Parameters<OnRun>[1] = 'failed'
    try {
      const run = () => definition.run(signal, nextWake)
      const result = await jobChannel.tracePromise(run, { job: definition.name })
      outcome = 'ok'
      return result
    } finally {
      onRun(definition.name, outcome, (performance.now() - startedAt) / 1000)
    }
  },
})

export const createJobRunner = (
  log: Logger,
  { signals, isLogged, onRun }: { signals: Signals; isLogged?: IsLogged; onRun: OnRun },
): JobRunner => {
  const jobs = new Map<JobName, Job & { everywhere: boolean }>()
  let unsubscribe: (() => void) | undefined
  let isFollowing = false
  const wakeAll = (): void => {
    for (const job of jobs.values()) if (!isFollowing || job.everywhere) job.wake()
  }
  const hear = (): void => {
    unsubscribe ??= signals.on('job', (name) => {
      const job = jobs.get(name as JobName)
      if (job && (!isFollowing || job.everywhere)) job.wake()
    })
  }
  return {
    add: (definition) => {
      if (jobs.has(definition.name)) throw new Error(`The job ${definition.name} is declared twice.`)
      const { name, everywhere = false } = definition
      jobs.set(name, { ...createJob(toObserved(definition, onRun), log, isLogged), everywhere })
    },
    job: (name) => {
      const job = jobs.get(name)
      if (!job) throw new Error(`The job ${name} is not declared.`)
      return isFollowing && !job.everywhere ? { ...job, wake: () => signals.send('job', name) } : job
    },
    start: () => {
      const tookOver = isFollowing
      isFollowing = false
      hear()
      for (const job of jobs.values()) {
        job.start()
        if (tookOver) job.wake()
      }
      if (!tookOver) signals.start(wakeAll)
    },
    follow: () => {
      isFollowing = true
      hear()
      for (const job of jobs.values()) if (job.everywhere) job.start()
      signals.start(wakeAll)
    },
    stop: async () => {
      unsubscribe?.()
      await Promise.all([...jobs.values()].map((job) => job.stop()))
      signals.stop()
    },
  }
}
