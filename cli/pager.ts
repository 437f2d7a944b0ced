import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Writable } from 'node:stream'
import { type Io, isDumb, isInteractive } from './io.ts'

/** Returns the command that shows long output; undefined where none is set, or nobody reads at a terminal. */
const choosePager = (io: Io): string | undefined => {
  if (!isInteractive(io) || io.isPane || io.env['CI'] || isDumb(io)) return undefined
  const command = (io.env['WCRM_PAGER'] ?? io.env['PAGER'] ?? '').trim()
  return command === '' || command === 'cat' ? undefined : command
}

const canExecute = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** False when the command begins with the name of a program that does not exist; the shell says the rest. */
const isFound = (io: Io, command: string): boolean => {
  const [program] = /^[\w./+-]+(?=\s|$)/.exec(command) ?? []
  if (program === undefined) return true
  const folders = program.includes('/') ? [''] : (io.env['PATH'] ?? '').split(delimiter)
  return folders.some((folder) => canExecute(join(folder, program)))
}

const startPager = (io: Io, command: string) => {
  const env = { ...io.env, LESS: io.env['LESS'] ?? 'FRX', LV: io.env['LV'] ?? '-c' }
  // By the shell, as git does: the variable may hold a command with arguments.
  const child = spawn(command, { stdio: ['pipe', 'inherit', 'inherit'], shell: true, env })
  return { stdin: child.stdin, ended: once(child, 'close').catch(() => {}) }
}

/** A stdout that keeps what fits on the screen, and starts the pager for more. `end` waits until it was left. */
const createPagedOutput = (io: Io, command: string, rows: number) => {
  let [held, lines] = ['', 0]
  let pager: ReturnType<typeof startPager> | undefined
  const stdout = new Writable({
    decodeStrings: false,
    write: (chunk: string, _, done) => {
      held += chunk
      lines += chunk.split('\n').length - 1
      // The prompt of the shell takes a line.
      if (!pager && lines < rows) return done()
      if (!pager) {
        pager = startPager(io, command)
        pager.stdin.on('error', (error) => stdout.destroy(error))
      }
      const text = held
      held = ''
      pager.stdin.write(text, done)
    },
  })
  // The next write fails with it; a list that was written completely needs nothing more.
  stdout.on('error', () => {})
  const end = async (): Promise<void> => {
    if (held !== '') io.stdout.write(held)
    pager?.stdin.end()
    await pager?.ended
  }
  return { stdout, end }
}

const ignore = (): void => {}

/**
 * Runs what prints, with a stdout that shows in the pager what is longer than the screen: `WCRM_PAGER`, else `PAGER`;
 * shorter output is printed as it is. Resolves when the pager was left; to 0 when it was left before the end.
 */
export const withPager = async (io: Io, print: (io: Io) => Promise<number>): Promise<number> => {
  const command = choosePager(io)
  const { rows, columns } = io.stdout as { rows?: number; columns?: number }
  if (command === undefined || !rows) return await print(io)
  if (!isFound(io, command)) {
    io.stderr.write(`The pager was not found, so everything is printed: ${JSON.stringify(command)}\n`)
    return await print(io)
  }
  const { stdout, end } = createPagedOutput(io, command, rows)
  const shown = Object.assign(stdout, { isTTY: true, columns })
  // The pager decides what Control-C does; this process ends when the pager has.
  process.on('SIGINT', ignore)
  try {
    return await print(Object.create(io, { stdout: { value: shown } }) as Io)
  } catch (error) {
    // What the system says of a pipe that nobody reads differs: EPIPE, ECONNRESET.
    if (stdout.errored) return 0
    throw error
  } finally {
    await end()
    process.off('SIGINT', ignore)
  }
}
