import { API_VERSION, type Entry, type Operations, table } from './operations.ts'
import type { ChangeOptions, Versioned } from './options.ts'
import { createListing, type Page } from './pages.ts'
import { streamEvents, type StreamOptions } from './stream.ts'
import { WcrmError } from './problem.ts'
import { isRecord } from './request.ts'
import { type Call, type CallOptions, sendCall, type TransportOptions } from './transport.ts'
import type { Approval, Event } from './types.ts'

/** Options of a client; see `TransportOptions`. */
export type ClientOptions = TransportOptions

export type Client = Operations & {
  /** Events as they happen, each once; ends with the signal alone. */
  readonly stream: (options?: StreamOptions) => AsyncGenerator<Event, void, undefined>
}

type AnyOptions = CallOptions & ChangeOptions & Versioned & { readonly confirm?: string }
type Method = (input?: object, options?: AnyOptions) => unknown

/** Sends a call and returns its answer. Throws also when a person decides on it first. */
const send = async (options: TransportOptions, call: Call): Promise<Record<string, unknown>> => {
  const { status, headers, text, body } = await sendCall(options, call)
  if (status !== 202 || !isRecord(body['approval'])) return body
  throw new WcrmError({
    status,
    code: 'approval_required',
    message: String(body['next'] ?? 'A person decides on this call.'),
    approval: body['approval'] as unknown as Approval,
    body: text,
    requestId: headers.get('request-id') ?? undefined,
    idempotencyKey: call.key,
  })
}

const createMethod =
  (options: TransportOptions, [operation, kind]: Entry): Method =>
  (input = {}, { signal, idempotencyKey, dryRun, confirm, reason, plan, ifVersion } = {}) => {
    const call = { operation, signal, reason, plan }
    if (kind === 'list')
      return createListing(async (cursor) => {
        const asked = cursor === undefined ? input : { ...input, cursor }
        return (await send(options, { ...call, input: asked })) as unknown as Page
      })
    if (kind === 'read') return send(options, { ...call, input })
    return send(options, {
      ...call,
      input: {
        ...input,
        ...(ifVersion === undefined ? {} : { if_version: ifVersion }),
        ...(dryRun ? { dry_run: true } : {}),
      },
      key: idempotencyKey ?? crypto.randomUUID(),
      confirm: dryRun ? undefined : confirm,
    })
  }

const isEntry = (value: Entry | Readonly<Record<string, Entry>>): value is Entry => Array.isArray(value)

const mapValues = <T, R>(from: Readonly<Record<string, T>>, change: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([name, value]) => [name, change(value)]))

/**
 * Throws where no request could be sent to an address: as an answer that did not come it would be tried again, and a
 * change would seem to have perhaps happened.
 */
const checkUrl = (url: unknown): void => {
  // A page may give an address that is relative to its own.
  const page = (globalThis as { location?: { href?: string } }).location?.href
  const given = typeof url === 'string' ? url : undefined
  const parsed = given !== undefined && URL.canParse(given, page) ? new URL(given, page) : undefined
  const fault =
    parsed === undefined || !/^https?:$/.test(parsed.protocol)
      ? 'is not the address of a server, such as https://crm.example.com'
      : parsed.username || parsed.password
        ? 'has a user name or password, which no request can have'
        : parsed.search || parsed.hash
          ? 'has a query or fragment, behind which no path can stand'
          : undefined
  if (fault === undefined) return
  throw new TypeError(`createClient: url ${fault}${parsed ? '' : ` (${given ?? typeof url})`}.`)
}

/**
 * Creates a client of a server. Its methods are the operations of the service, in groups as on the command line:
 * `client.contacts.upsert({ phone: '+1 555 010 0042', name: 'Ada' })`. They throw `WcrmError`; this function a
 * `TypeError`, where no request could be sent to `url`.
 */
export const createClient = (given: ClientOptions): Client => {
  checkUrl(given.url)
  const options = { ...given, apiVersion: given.apiVersion ?? API_VERSION }
  const methods = mapValues(table, (value) =>
    isEntry(value) ? createMethod(options, value) : mapValues(value, (entry) => createMethod(options, entry)),
  )
  return {
    ...methods,
    stream: (stream?: StreamOptions) => streamEvents(options, stream),
  } as unknown as Client
}
