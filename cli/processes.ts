import cluster from 'node:cluster'
import type { Worker } from 'node:cluster'
import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import type { Config } from '../server/config.ts'
import { findFreePort } from '../server/http/free-port.ts'
import { COUNT_VARIABLE, type FromWorker, GROUP_VARIABLE, type ToWorker } from '../server/siblings.ts'
import { METRICS_PORT, SERVER_PORT } from './listeners.ts'
import { nextStopSignal, type StopSignal, waitForStopSignal } from './service.ts'
import { listenError } from './start-errors.ts'
import type { ProcessMetrics } from '../server/metrics.ts'

/** A process that ended is started again after this, doubled while it goes on to end, up to the second. */
const RESTART_MS = { first: 100, last: 10_000 }
/** A process that lived so long ended for a new reason. */
const STABLE_MS = 30_000
/** A process that serves is asked this often whether it is stuck, and killed when it left so many unanswered. */
const PING = { everyMs: 5000, unanswered: 5 }

export const countProcesses = (processes: number | 'auto'): number =>
  processes === 'auto' ? availableParallelism() : processes

type Group = {
  readonly count: number
  readonly log: Logger
  /** Those that serve. */
  readonly ready: Set<Worker>
  /** How many pings each of them left unanswered. */
  readonly unanswered: Map<Worker, number>
  readonly metrics: ReturnType<typeof createMetricsCollector>
  leader: Worker | undefined
  restartMs: number
  /** Whether one has ever served: until then, a process that ends cannot start, and the command gives up. */
  hasServed: boolean
  isStopping: boolean
}

const listWorkers = (): Worker[] =>
  Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)

const send = (worker: Worker, message: ToWorker): void => {
  if (worker.isConnected()) worker.send(message, () => {})
}

const sendToAll = (message: ToWorker, except?: Worker): void => {
  for (const worker of listWorkers()) if (worker !== except) send(worker, message)
}

const sendState = ({ ready, count }: Group): void =>
  sendToAll({ kind: 'state', ready: ready.size, of: count })

/** One process does the background work: the oldest that serves. */
const chooseLeader = (group: Group): void => {
  if (group.leader || group.isStopping) return
  const [oldest] = group.ready
  group.leader = oldest
  if (oldest) send(oldest, { kind: 'lead' })
}

const receive = (group: Group, worker: Worker, message: FromWorker): void => {
  switch (message.kind) {
    case 'ready':
      group.ready.add(worker)
      group.hasServed = true
      sendState(group)
      return chooseLeader(group)
    case 'pong':
      return void group.unanswered.delete(worker)
    case 'signal':
      return sendToAll(message, worker)
    case 'gather':
      return group.metrics.collect(worker, message.id, message.metrics)
    case 'metrics':
      return group.metrics.receive(worker, message.id, message.metrics)
  }
}

/**
 * Kills processes that do not answer, such as those that are stopped or in an endless loop: the kernel goes on to give
 * them connections, and nobody else does the work of the one that leads. Only that it has ended says that it does
 * nothing any more. Pings are counted, not time: after a pause of the whole machine, or of this process, none is due.
 */
const killStuck = ({ ready, unanswered, log }: Group): void => {
  for (const worker of ready) {
    const count = unanswered.get(worker) ?? 0
    unanswered.set(worker, count + 1)
    if (count < PING.unanswered) send(worker, { kind: 'ping' })
    else if (count === PING.unanswered) {
      log.error({ pid: worker.process.pid }, 'A server process does not respond; killing it')
      worker.process.kill('SIGKILL')
    }
  }
}

/** Starts a process. One that ends while the group does not stop is started again, and its work is taken over. */
const start = (group: Group): Worker => {
  const startedAt = performance.now()
  const worker = cluster.fork()
  worker.on('message', (message: FromWorker) => receive(group, worker, message))
  worker.on('exit', (code, signal) => {
    group.ready.delete(worker)
    group.unanswered.delete(worker)
    group.metrics.keep(worker)
    if (group.leader === worker) group.leader = undefined
    if (group.isStopping || !group.hasServed) return
    chooseLeader(group)
    sendState(group)
    group.log.error({ pid: worker.process.pid, code, signal }, 'A server process ended; starting another')
    if (performance.now() - startedAt > STABLE_MS) group.restartMs = RESTART_MS.first
    setTimeout(() => {
      if (!group.isStopping) start(group)
    }, group.restartMs)
    group.restartMs = Math.min(2 * group.restartMs, RESTART_MS.last)
  })
  return worker
}

/** Resolves with the exit code when the process ends before it serves; with undefined when it serves. */
const waitUntilReady = (worker: Worker): Promise<number | undefined> =>
  new Promise((resolve) => {
    worker.on('message', ({ kind }: FromWorker) => {
      if (kind === 'ready') resolve(undefined)
    })
    worker.once('exit', (code) => resolve(code ?? 1))
  })

/** Stops all processes with the signals that this one gets: the second one ends their grace. */
const stopAll = async (signal: StopSignal): Promise<void> => {
  const ended = listWorkers().map((worker) => new Promise((resolve) => worker.once('exit', resolve)))
  const pass = (each: StopSignal): void => {
    // A terminal sends SIGINT to all of them by itself.
    if (each !== 'SIGINT' || !process.stdin.isTTY)
      for (const worker of listWorkers()) worker.process.kill(each)
    void nextStopSignal().then(pass)
  }
  pass(signal)
  await Promise.all(ended)
}

type GroupOptions = {
  count: number
  host: string
  port: number
  graceMs: number
  metricsListen: Config['metricsListen']
}

/**
 * Runs `count` processes of the same command that share its port, until a signal stops them. This process only
 * supervises. Returns the exit code: that of the first process when it cannot start.
 */
export const superviseProcesses = async (
  { count, host, port, graceMs, metricsListen }: GroupOptions,
  log: Logger,
): Promise<number> => {
  // With port 0 each process would get another one; a port that is shared would not be refused when it is taken.
  const shared = await findFreePort(host, port).catch((error: unknown) => {
    throw listenError(error, { host, port }, SERVER_PORT)
  })
  cluster.setupPrimary({ args: [...process.argv.slice(2), '--port', String(shared)] })
  const variables = { [GROUP_VARIABLE]: crypto.randomUUID(), [COUNT_VARIABLE]: String(count) }
  // One for all of them, as that of the server.
  if (metricsListen?.port === 0) {
    const place = { host: metricsListen.host ?? host, port: 0 }
    const free = await findFreePort(place.host, 0).catch((error: unknown) => {
      throw listenError(error, place, METRICS_PORT)
    })
    const given = process.env['WCRM_METRICS_LISTEN']!
    Object.assign(variables, { WCRM_METRICS_LISTEN: given.replace(/0+$/, String(free)) })
  }
  Object.assign(process.env, variables)
  const ready = new Set<Worker>()
  const group: Group = {
    count,
    log,
    ready,
    unanswered: new Map(),
    metrics: createMetricsCollector(ready, send),
    leader: undefined,
    restartMs: RESTART_MS.first,
    hasServed: false,
    isStopping: false,
  }
  process.once('exit', () => {
    for (const worker of listWorkers()) worker.process.kill('SIGKILL')
  })
  const stopSignal = waitForStopSignal(graceMs).then((signal) => {
    group.isStopping = true
    return signal
  })
  // The first one migrates the database and creates the demo workspace; the others find both.
  const failed = await Promise.race([waitUntilReady(start(group)), stopSignal.then(() => 0)])
  if (failed !== undefined && !group.isStopping) return failed
  for (let n = 1; n < count && !group.isStopping; n++) start(group)
  // Also while they stop: one that is stuck would never end.
  setInterval(killStuck, PING.everyMs, group).unref()
  await stopAll(await stopSignal)
  return 0
}

/** A process that does not answer in time counts with its last metrics. */
const GATHER_MS = 1_000

const isCounter = ({ type }: ProcessMetrics[number]): boolean => type === 'counter' || type === 'histogram'

/** Adds counters and histograms to `sum`. */
const addCounters = (sum: ProcessMetrics, metrics: ProcessMetrics): void => {
  for (const metric of metrics.filter(isCounter)) {
    const known = sum.find(({ name }) => name === metric.name)
    if (!known) {
      sum.push({ ...metric, values: metric.values.map((value) => ({ ...value })) })
      continue
    }
    const identify = ({ metricName, labels }: (typeof metric.values)[number]): string =>
      JSON.stringify([metricName, Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))])
    const byId = new Map(known.values.map((value) => [identify(value), value]))
    for (const value of metric.values) {
      const before = byId.get(identify(value))
      if (before) before.value += value.value
      else known.values.push({ ...value })
    }
  }
}

/**
 * Gathers the metrics of all processes for the one that was asked. What counts must never go down, or Prometheus takes
 * it for a restart: the last counters of processes that ended are kept, and those that are late count as in their
 * last answer. Gauges are those of the processes that answer.
 */
const createMetricsCollector = (
  ready: ReadonlySet<Worker>,
  send: (worker: Worker, message: ToWorker) => void,
) => {
  const last = new Map<Worker, ProcessMetrics>()
  const ended: ProcessMetrics = []
  const open = new Map<number, { missing: Set<Worker>; finish: () => void }>()
  let lastId = 0
  return {
    /** `metrics` are those of the process that asks; `id` identifies the answer for it. */
    collect: (asker: Worker, id: number, metrics: ProcessMetrics): void => {
      last.set(asker, metrics)
      const others = [...ready].filter((worker) => worker !== asker)
      const missing = new Set(others)
      const gatherId = ++lastId
      const finish = (): void => {
        clearTimeout(timer)
        open.delete(gatherId)
        const found = others.flatMap((worker) => {
          const known = ready.has(worker) ? last.get(worker) : undefined
          return known ? [missing.has(worker) ? known.filter(isCounter) : known] : []
        })
        send(asker, { kind: 'metrics', id, metrics: [ended, ...found] })
      }
      const timer = setTimeout(finish, GATHER_MS)
      if (others.length === 0) return finish()
      open.set(gatherId, { missing, finish })
      for (const worker of others) send(worker, { kind: 'gather', id: gatherId })
    },
    receive: (worker: Worker, id: number, metrics: ProcessMetrics): void => {
      // Of one that has ended, what it sent last may arrive after its end.
      if (ready.has(worker)) last.set(worker, metrics)
      const gather = open.get(id)
      if (gather?.missing.delete(worker) && gather.missing.size === 0) gather.finish()
    },
    /** Keeps the counters of a process that ended. */
    keep: (worker: Worker): void => {
      addCounters(ended, last.get(worker) ?? [])
      last.delete(worker)
    },
  }
}
