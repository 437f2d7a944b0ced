import { type Command, CommanderError } from 'commander'
import { setTimeout as pause } from 'node:timers/promises'
import { redactApiKeys } from '../catalog/redact.ts'
import { isSchemaError, SCHEMA_EXIT_CODE } from './error.ts'
import { collectHelp, writeHelp } from './help-layout.ts'
import type { Io } from './io.ts'
import { describeDatabaseError } from './start-errors.ts'

/** Options of a command that runs until it receives a signal. */
export type CommandOptions<C> = { config: C; json: boolean }

/** Returns the flags of a command; throws when they are invalid, or when only help was asked for, after printing it. */
export const parseFlags = async <Flags extends object>(
  command: Command,
  argv: readonly string[],
  io: Io,
): Promise<Flags> => {
  const texts = collectHelp(command)
  try {
    return command.parse(argv, { from: 'user' }).opts<Flags>()
  } catch (error) {
    await writeHelp(io, texts)
    const detail = texts.error
      .replace(/^error: /, '')
      .trim()
      .replaceAll('\n', ' ')
    if (detail !== '')
      io.stderr.write(redactApiKeys(`${command.name()}: ${detail}\nSee: ${command.name()} --help\n`))
    throw error
  }
}

/**
 * Runs such a command and returns its exit code: 2 when the options are invalid, 5 when the schema of the
 * database does not fit, 1 with a reason when it cannot start otherwise, else the result of `serve`.
 */
export const runService = async <C>(
  name: string,
  io: Io,
  read: () => Promise<CommandOptions<C>>,
  serve: (config: C, json: boolean) => Promise<number>,
): Promise<number> => {
  let options: CommandOptions<C>
  try {
    options = await read()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    io.stderr.write(redactApiKeys(`${name}: ${(error as Error).message}\n`))
    return 2
  }
  surviveRejections(io)
  try {
    return await serve(options.config, options.json)
  } catch (error) {
    io.stderr.write(redactApiKeys(`${name}: ${describeDatabaseError(error) ?? (error as Error).message}\n`))
    // What was opened before it failed, such as another port, must not keep the process.
    const code = isSchemaError(error) ? SCHEMA_EXIT_CODE : 1
    setTimeout(() => process.exit(code), EXIT_AFTER_FAILED_START_MS).unref()
    return code
  }
}

const EXIT_AFTER_FAILED_START_MS = 1000

/**
 * Logs promises that were rejected without a handler, and goes on. postgres.js leaves some behind: it closes a
 * connection without waiting for the result, so that losing one at that moment would end the process.
 */
const surviveRejections = (io: Io): void => {
  process.on('unhandledRejection', (error) => {
    // Anything may be the reason of a rejection, also nothing.
    const { code, stack } = (error ?? {}) as { code?: string; stack?: string }
    const cause = code === undefined ? { stack } : { code }
    const line = { level: 50, time: Date.now(), cause, msg: 'A promise was rejected without a handler' }
    io.stderr.write(redactApiKeys(`${JSON.stringify(line)}\n`))
  })
}

/** Everything that is stopped ends sooner by itself; supervisors commonly kill after 30 seconds. */
const LAST_RESORT_MS = 28_000

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const
export type StopSignal = (typeof STOP_SIGNALS)[number]

/** Resolves with the next signal to stop; until then it does not end the process. */
export const nextStopSignal = (): Promise<StopSignal> =>
  new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const each of STOP_SIGNALS) process.off(each, stop)
      resolve(signal as StopSignal)
    }
    for (const signal of STOP_SIGNALS) process.on(signal, stop)
  })

/**
 * Resolves with the signal that stops the process, SIGTERM or SIGINT. Whatever still runs or is open 28
 * seconds after that and the grace, the process ends then.
 */
export const waitForStopSignal = async (graceMs = 0): Promise<StopSignal> => {
  const signal = await nextStopSignal()
  setTimeout(() => process.exit(0), graceMs + LAST_RESORT_MS).unref()
  return signal
}

/** Waits for the grace of a supervisor's signal; one from a terminal has none, and a second signal ends it. */
export const waitForGrace = async (signal: StopSignal, graceMs: number): Promise<void> => {
  if (signal === 'SIGINT' || graceMs === 0) return
  await Promise.race([pause(graceMs, undefined, { ref: false }), nextStopSignal()])
}
