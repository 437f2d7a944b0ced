import { CommanderError } from 'commander'
import { redactApiKeys } from '../catalog/redact.ts'
import type { Io } from './io.ts'

/** Options of a command that runs until it receives a signal. */
export type CommandOptions<C> = { config: C; json: boolean }

/**
 * Runs such a command and returns its exit code: 2 when the options are invalid, 1 with a reason when it
 * cannot start, else the result of `serve`.
 */
export const runService = async <C extends { port: number }>(
  name: string,
  io: Io,
  read: () => CommandOptions<C>,
  serve: (config: C, json: boolean) => Promise<number>,
): Promise<number> => {
  let options: CommandOptions<C>
  try {
    options = read()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    io.stderr.write(redactApiKeys(`${name}: ${(error as Error).message}\n`))
    return 2
  }
  try {
    return await serve(options.config, options.json)
  } catch (error) {
    io.stderr.write(redactApiKeys(`${name}: ${describeStartError(error, options.config.port)}\n`))
    return 1
  }
}

/** PostgreSQL's code. */
const DISK_FULL = '53100'

const describeStartError = (error: unknown, port: number): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === DISK_FULL || code === 'ENOSPC')
    return 'the disk of the database is full; free some space on it, then start again'
  if (code === 'EADDRINUSE') return `port ${port} is in use; stop the other server or use another --port`
  if (code === 'EACCES') return `this user may not listen on port ${port}; use another --port`
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT')
    return `cannot connect to the database (${code}); check --database-url`
  return message
}

/** Everything that is stopped ends sooner by itself; supervisors commonly kill after 30 seconds. */
const LAST_RESORT_MS = 28_000

/**
 * Resolves with the signal that stops the process, SIGTERM or SIGINT. Whatever still runs or is open 28
 * seconds later, the process ends then.
 */
export const waitForStopSignal = (): Promise<string> =>
  new Promise((resolve) => {
    const stop = (signal: string): void => {
      setTimeout(() => process.exit(0), LAST_RESORT_MS).unref()
      resolve(signal)
    }
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stop)
  })
