import { type CliError, cliError } from './error.ts'

/** Exit codes of an interrupted process, as shells use them. */
const INTERRUPTIONS = { SIGINT: 130, SIGTERM: 143 } as const

/** Runs work so that Ctrl-C or SIGTERM ends it with this error. A second signal ends the process at once. */
export const withSignals = async <T>(
  toError: (exitCode: number) => CliError,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const controller = new AbortController()
  const handlers = Object.entries(INTERRUPTIONS).map(([name, exitCode]) => {
    const interrupt = (): void => controller.abort(toError(exitCode))
    process.once(name, interrupt)
    return () => process.off(name, interrupt)
  })
  try {
    return await work(controller.signal)
  } finally {
    for (const remove of handlers) remove()
  }
}

/** Runs a change so that Ctrl-C or SIGTERM ends it with an error that has its key: the server may have made it. */
export const withInterruption = async <T>(
  idempotencyKey: string,
  change: (signal: AbortSignal) => Promise<T>,
): Promise<T> =>
  await withSignals(
    (exitCode) =>
      cliError(exitCode, {
        type: 'about:blank',
        title: 'Interrupted',
        code: 'interrupted',
        detail: 'The answer was not awaited.',
        idempotency_key: idempotencyKey,
      }),
    change,
  )
