import { type Entry, type Operations, table } from './operations.ts'
import type { ChangeOptions } from './options.ts'
import { createListing, type Page } from './pages.ts'
import { streamEvents, type StreamOptions } from './stream.ts'
import { type CallOptions, sendCall, type TransportOptions } from './transport.ts'
import type { Event } from './types.ts'

/** Options of a client; see `TransportOptions`. */
export type ClientOptions = TransportOptions

export type Client = Operations & {
  /** Events as they happen, each once; ends with the signal alone. */
  readonly stream: (options?: StreamOptions) => AsyncGenerator<Event, void, undefined>
}

type AnyOptions = CallOptions & ChangeOptions & { readonly confirm?: string }
type Method = (input?: object, options?: AnyOptions) => unknown

const createMethod =
  (options: TransportOptions, [operation, kind]: Entry): Method =>
  (input = {}, { signal, idempotencyKey, dryRun, confirm, reason, plan } = {}) => {
    const call = { operation, signal, reason, plan }
    if (kind === 'list')
      return createListing(async (cursor) => {
        const asked = cursor === undefined ? input : { ...input, cursor }
        return (await sendCall(options, { ...call, input: asked })) as unknown as Page
      })
    if (kind === 'read') return sendCall(options, { ...call, input })
    return sendCall(options, {
      ...call,
      input: dryRun ? { ...input, dry_run: true } : input,
      key: idempotencyKey ?? crypto.randomUUID(),
      confirm: dryRun ? undefined : confirm,
    })
  }

const isEntry = (value: Entry | Readonly<Record<string, Entry>>): value is Entry => Array.isArray(value)

const mapValues = <T, R>(from: Readonly<Record<string, T>>, change: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([name, value]) => [name, change(value)]))

/**
 * Creates a client of a server. Its methods are the operations of the service, in groups as on the command line:
 * `client.contacts.upsert({ phone: '+1 555 010 0042', name: 'Ada' })`. They throw `WcrmError`.
 */
export const createClient = (options: ClientOptions): Client => {
  const methods = mapValues(table, (value) =>
    isEntry(value) ? createMethod(options, value) : mapValues(value, (entry) => createMethod(options, entry)),
  )
  return {
    ...methods,
    stream: (stream?: StreamOptions) => streamEvents(options, stream),
  } as unknown as Client
}
