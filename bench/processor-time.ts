import { existsSync, readFileSync } from 'node:fs'
import type postgres from 'postgres'

const CLOCK_TICK_MS = 10

export type ReadCpuMs = () => Promise<number>

/**
 * Returns a reader of the processor time that this process, that of a server (`serverPid`) and those of the
 * database have used, in milliseconds. Database processes on another machine are not included.
 */
export const createCpuReader =
  (sql: postgres.Sql, serverPid?: number): ReadCpuMs =>
  async () => {
    const pids = await sql<
      { pid: number }[]
    >`select pid from pg_stat_activity where datname = current_database()`
    const ticks = [...pids.map(({ pid }) => pid), ...(serverPid === undefined ? [] : [serverPid])]
      .map((pid) => `/proc/${pid}/stat`)
      .filter((file) => existsSync(file))
      .map((file) =>
        readFileSync(file, 'utf8')
          .replace(/^.*\) /, '')
          .split(' '),
      )
      .reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0)
    const { user, system } = process.cpuUsage()
    return ticks * CLOCK_TICK_MS + (serverPid === undefined ? (user + system) / 1000 : 0)
  }
