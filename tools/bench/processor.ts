import { existsSync, readdirSync, readFileSync } from 'node:fs'
import postgres from 'postgres'

/** Processor time in microseconds. */
export type ProcessorTime = { server: number; database: number }
export type ProcessorReader = {
  /**
   * Starts to measure the time of one server process and of the database processes that work for it: its own
   * connections, by their application name, and those that write for all. The returned function tells the
   * time since.
   */
  start: (pid: number, application: string) => Promise<() => Promise<ProcessorTime>>
  close: () => Promise<void>
}

/** Nanoseconds on a processor of one thread, as the scheduler counts them. */
const readThread = (path: string): number => {
  try {
    return Number(readFileSync(`${path}/schedstat`, 'utf8').split(' ')[0])
  } catch {
    return 0 // It ended.
  }
}

const readProcess = (pid: number): number => {
  const folder = `/proc/${pid}/task`
  try {
    return readdirSync(folder).reduce((sum, thread) => sum + readThread(`${folder}/${thread}`), 0)
  } catch {
    return 0
  }
}

/**
 * Returns a reader of the processor times of servers and of the PostgreSQL that `url` names; undefined where
 * the system does not tell them, or PostgreSQL runs on another machine. Autovacuum is left out: which round
 * it falls into is chance.
 */
export const openProcessorReader = async (url: string): Promise<ProcessorReader | undefined> => {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connection: { application_name: 'reader' } })
  const [own] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  if (!existsSync(`/proc/${own!.pid}/schedstat`)) {
    await sql.end()
    return undefined
  }
  const readDatabase = async (application: string): Promise<Map<number, number>> => {
    const rows = await sql<{ pid: number }[]>`
      select pid from pg_stat_activity
      where (backend_type = 'client backend' and application_name = ${application})
        or backend_type in ('walwriter', 'background writer', 'checkpointer', 'parallel worker')`
    return new Map(rows.map(({ pid }) => [pid, readProcess(pid)]))
  }
  return {
    start: async (pid, application) => {
      const before = await readDatabase(application)
      const serverBefore = readProcess(pid)
      return async () => {
        const server = (readProcess(pid) - serverBefore) / 1000
        let database = 0
        for (const [backend, time] of await readDatabase(application))
          database += (time - (before.get(backend) ?? 0)) / 1000
        return { server, database }
      }
    },
    close: () => sql.end(),
  }
}
