import { Counter, Gauge } from 'prom-client'
import type { Storage } from '../storage/open.ts'
import type { Metrics } from './metrics.ts'

/** Adds the connections to the database to the metrics, by what they are for. To be called once per process. */
export const registerPoolMetrics = (
  { registry }: Pick<Metrics, 'registry'>,
  { poolStats }: Pick<Storage, 'poolStats'>,
): void => {
  const registers = [registry]
  new Gauge({
    name: 'wcrm_database_connections',
    help: 'Open connections to the database, by what they are for and whether they have something to do.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, { open, busy }] of Object.entries(poolStats())) {
        this.set({ pool, state: 'busy' }, busy)
        this.set({ pool, state: 'idle' }, open - busy)
      }
    },
  })
  new Gauge({
    name: 'wcrm_database_waiting',
    help: 'Statements and transactions that wait for a connection.',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, { waiting }] of Object.entries(poolStats())) this.set({ pool }, waiting)
    },
  })
  const registerTotal = (name: string, help: string, of: 'waited' | 'waitedSeconds'): void => {
    new Counter({
      name,
      help,
      labelNames: ['pool'],
      registers,
      collect() {
        this.reset()
        for (const [pool, stats] of Object.entries(poolStats())) this.inc({ pool }, stats[of])
      },
    })
  }
  registerTotal(
    'wcrm_database_waits_total',
    'Statements and transactions that waited for a connection.',
    'waited',
  )
  registerTotal('wcrm_database_wait_seconds_total', 'How long they waited, in all.', 'waitedSeconds')
}
