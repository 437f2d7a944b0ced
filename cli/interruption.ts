import { cliError } from './error.ts'

/** Exit codes of an interrupted process, as shells use them. */
const INTERRUPTIONS = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Runs a change so that Ctrl-C or SIGTERM ends it with an error that has its key: the server may have made it. A second
 * signal ends the process at once.
 */
export const withInterruption = async <T>(
  idempotencyKey: string,
  change: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const controller = new AbortController()
  const handlers = Object.entries(INTERRUPTIONS).map(([name, exitCode]) => {
    const interrupt = (): void =>
      controller.abort(
        cliError(exitCode, {
          type: 'about:blank',
          title: 'Interrupted',
          code: 'interrupted',
          detail: 'The answer was not awaited.',
          idempotency_key: idempotencyKey,
        }),
      )
    process.once(name, interrupt)
    return () => process.off(name, interrupt)
  })
  try {
    return await change(controller.signal)
  } finally {
    for (const remove of handlers) remove()
  }
}
