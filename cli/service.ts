import { CommanderError } from 'commander'
import type { Io } from './io.ts'

/** What was asked of a command that serves until it is told to stop. */
export type Asked<C> = { config: C; json: boolean }

/**
 * Runs such a command: 2 when what was asked is wrong, 1 with a plain reason when it cannot start, else
 * what it answers.
 */
export const runService = async <C extends { port: number }>(
  name: string,
  io: Io,
  read: () => Asked<C>,
  serve: (config: C, json: boolean) => Promise<number>,
): Promise<number> => {
  let asked: Asked<C>
  try {
    asked = read()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    io.stderr.write(`${name}: ${(error as Error).message}\n`)
    return 2
  }
  try {
    return await serve(asked.config, asked.json)
  } catch (error) {
    io.stderr.write(`${name}: ${plainReason(error, asked.config.port)}\n`)
    return 1
  }
}

const plainReason = (error: unknown, port: number): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return `port ${port} is in use; stop the other server, or use another --port`
  if (code === 'EACCES') return `port ${port} may not be opened by this user; use another --port`
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT')
    return `the database does not answer (${code}); check --database-url`
  return message
}

/** The signal that tells the process to stop, when it comes. */
export const untilSignal = (): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
