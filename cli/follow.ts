import { type StreamedEvent, streamEvents } from './event-stream.ts'
import { writeOut } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { pickFields } from './output.ts'
import type { ServerConnection } from './remote.ts'
import type { RowWriter } from './row-formats.ts'
import { formatTsv } from './text.ts'

type FollowOptions = {
  readonly json: boolean
  readonly picks?: readonly string[] | undefined
  readonly writer?: RowWriter | undefined
}

/** A signal that is aborted on Ctrl-C and on SIGTERM. */
export const abortOnStop = (): { signal: AbortSignal; unsubscribe: () => void } => {
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, abort)
  return {
    signal: stop.signal,
    unsubscribe: () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, abort)
    },
  }
}

/**
 * Prints events as they happen, one per line, from the oldest one or after `after`; none is missed or printed twice.
 * Returns the exit code 0 on Ctrl-C; throws an error that a retry does not fix.
 */
export const followEvents = async (
  { to, spec }: { to: ServerConnection; spec: CommandSpec },
  input: StreamedEvent,
  { json, picks, writer }: FollowOptions,
): Promise<number> => {
  const { io } = to
  const { signal, unsubscribe } = abortOnStop()
  const formatEvent = (event: StreamedEvent): string | Promise<string> => {
    if (writer) return writer.rows([event])
    if (!json) return formatTsv([event], [...spec.output.columns, 'data'])
    const shown = picks ? (pickFields(spec, { data: [event] }, picks)['data'] as StreamedEvent[])[0] : event
    return `${JSON.stringify(shown)}\n`
  }
  try {
    if (writer?.header) io.stdout.write(writer.header)
    for await (const event of streamEvents(to, input, { signal }))
      await writeOut(io, await formatEvent(event))
    return 0
  } finally {
    unsubscribe()
  }
}
