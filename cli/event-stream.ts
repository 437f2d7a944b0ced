import { streamEvents as stream } from '../client/stream.ts'
import { type ServerConnection, toCliError, toSendOptions } from './remote.ts'

export type StreamedEvent = Readonly<Record<string, unknown>>

type StreamOptions = {
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** Hears when the connection is there, and when it was lost. */
  readonly onConnection?: (isConnected: boolean) => void
}

/**
 * Yields events as they happen: from the oldest one, or after `input.after`. It reconnects after the last event
 * that was taken, so that none is missed or yielded twice. Ends when the signal is aborted; throws an error that a
 * retry does not fix, and when the first connection fails, since a server that never answered most likely has
 * another URL.
 */
export async function* streamEvents(
  to: ServerConnection,
  input: StreamedEvent,
  { signal, ...control }: StreamOptions,
): AsyncGenerator<StreamedEvent> {
  const options = {
    signal,
    types: [input['types'] ?? []].flat().map(String),
    ...Object.fromEntries(
      ['after', 'from', 'consumer'].flatMap((name) =>
        input[name] === undefined ? [] : [[name, String(input[name])]],
      ),
    ),
  }
  try {
    const events = stream(toSendOptions(to), options, { ...control, requiresFirst: true })
    yield* events as AsyncGenerator<object> as AsyncGenerator<StreamedEvent>
  } catch (error) {
    throw toCliError(error, to.url)
  }
}
