import cluster from 'node:cluster'
import type { ProcessMetrics } from './metrics.ts'

/**
 * Messages between the processes of one server (`wcrm serve --processes`), all through the first one, which only
 * supervises (`cli/processes.ts`) and passes them on.
 */
export type FromWorker =
  /** It serves. */
  | { kind: 'ready' }
  /** It is not stuck. */
  | { kind: 'pong' }
  /** To all others. */
  | { kind: 'signal'; text: string }
  /** The metrics of all others are wanted, in addition to these of its own; `id` identifies the answer. */
  | { kind: 'gather'; id: number; metrics: ProcessMetrics }
  | { kind: 'metrics'; id: number; metrics: ProcessMetrics }

export type ToWorker =
  /** To be answered by `pong`. */
  | { kind: 'ping' }
  /** Do the background work from now on. */
  | { kind: 'lead' }
  /** How many processes serve, of how many. */
  | { kind: 'state'; ready: number; of: number }
  | { kind: 'signal'; text: string }
  | { kind: 'gather'; id: number }
  | { kind: 'metrics'; id: number; metrics: ProcessMetrics[] }

/** The other processes of this server, as one of them sees them. */
export type Siblings = {
  /** The same in all of them. */
  readonly group: string
  /** Whether it is the one that was started first, which speaks for all. */
  readonly isFirst: boolean
  /** How many processes the server has, this one included. */
  readonly count: number
  areReady: () => boolean
  /** Resolves when all have been ready at the same time. */
  allReady: Promise<void>
  /** Says that this process serves. Resolves when it is told to do the background work. */
  announce: () => Promise<void>
  sendSignal: (text: string) => void
  onSignal: (listener: (text: string) => void) => void
  /** Sets what answers others that ask for the metrics of this process. */
  onGather: (read: () => Promise<ProcessMetrics>) => void
  /**
   * Returns the metrics of the others: the last counters of those that ended or do not answer in time. Takes those of
   * this process, whose counters are kept when it ends.
   */
  gather: (own: ProcessMetrics) => Promise<ProcessMetrics[]>
}

export const GROUP_VARIABLE = 'WCRM_INTERNAL_GROUP'
export const COUNT_VARIABLE = 'WCRM_INTERNAL_COUNT'

/** The first process answers sooner, unless it is about to end. */
const GATHER_TIMEOUT_MS = 5_000

const send = (message: FromWorker): void => {
  // The channel may have closed: then this process ends.
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}

/** Returns the siblings of this process; undefined when it is a server by itself. To be called once. */
export const findSiblings = (): Siblings | undefined => {
  const { [GROUP_VARIABLE]: group, [COUNT_VARIABLE]: count } = process.env
  if (!cluster.isWorker || group === undefined || count === undefined) return undefined
  const state = { ready: 0, of: Number(count) }
  const allReady = Promise.withResolvers<void>()
  const lead = Promise.withResolvers<void>()
  const gathered = new Map<number, (metrics: ProcessMetrics[]) => void>()
  let onSignal = (_text: string): void => {}
  let readMetrics = async (): Promise<ProcessMetrics> => []
  let lastId = 0
  process.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'ping':
        return send({ kind: 'pong' })
      case 'lead':
        return lead.resolve()
      case 'state':
        Object.assign(state, { ready: message.ready, of: message.of })
        if (message.ready === message.of) allReady.resolve()
        return
      case 'signal':
        return onSignal(message.text)
      case 'gather':
        void readMetrics().then((metrics) => send({ kind: 'metrics', id: message.id, metrics }))
        return
      case 'metrics':
        gathered.get(message.id)?.(message.metrics)
    }
  })
  return {
    group,
    isFirst: cluster.worker!.id === 1,
    count: Number(count),
    areReady: () => state.ready === state.of,
    allReady: allReady.promise,
    announce: () => {
      send({ kind: 'ready' })
      return lead.promise
    },
    sendSignal: (text) => send({ kind: 'signal', text }),
    onSignal: (listener) => {
      onSignal = listener
    },
    onGather: (read) => {
      readMetrics = read
    },
    gather: (own) =>
      new Promise((resolve) => {
        const id = ++lastId
        const finish = (metrics: ProcessMetrics[]): void => {
          clearTimeout(timer)
          gathered.delete(id)
          resolve(metrics)
        }
        const timer = setTimeout(finish, GATHER_TIMEOUT_MS, [])
        gathered.set(id, finish)
        send({ kind: 'gather', id, metrics: own })
      }),
  }
}
