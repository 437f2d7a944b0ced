import { isObject } from '../../catalog/values.ts'
import { loadCredentials } from '../credentials.ts'
import { type Env, readCredentials } from '../credentials-file.ts'
import { requestHeaders } from '../remote.ts'
import { foldName, readPath } from '../text.ts'
import { sendRequest } from '../transport.ts'
import {
  cachePath,
  type CachedRows,
  isKeychainLocked,
  type NameCache,
  type NamedRow,
  noteLockedKeychain,
  readNameCache,
  writeNameCache,
} from './cache.ts'
import type { Lookup } from './lookups.ts'

/** How long names are taken for current. */
const FRESH_MS = 60_000
const PAGE = 100
const MAX_SEARCH = 100

export type NameRequest = {
  readonly env: Env
  /** Of `--url`, and of `-p`. */
  readonly url: string | undefined
  readonly profile: string | undefined
  readonly version: string
  /** The end, in milliseconds since the process began. */
  readonly deadline: number
  /** Called when the server would have needed longer. */
  readonly onLate: () => void
}

type Connection = { readonly url: string; readonly key: string; readonly profile: string | undefined }

const withDeadline = async <T>(work: Promise<T>, deadline: number): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const ends = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, deadline - performance.now()))
  })
  try {
    return await Promise.race([work, ends])
  } finally {
    clearTimeout(timer)
  }
}

/** Finds the server and the key that the command would use; undefined without a key that can be read now. */
const connect = async ({ env, url, profile, deadline }: NameRequest): Promise<Connection | undefined> => {
  const used =
    profile === undefined
      ? env
      : { ...env, WCRM_PROFILE: profile, WCRM_API_KEY: undefined, WCRM_URL: undefined }
  const mayAsk =
    !used['WCRM_API_KEY'] &&
    Object.values(readCredentials(used).profiles).some(({ store }) => store === 'keychain')
  if (mayAsk && isKeychainLocked(env)) return undefined
  try {
    const loaded = await withDeadline(loadCredentials(used, url), deadline)
    if (!loaded && mayAsk) noteLockedKeychain(env)
    return loaded?.key === undefined
      ? undefined
      : { url: loaded.url, key: loaded.key, profile: loaded.profile }
  } catch (error) {
    const { problem } = error as { problem?: { code?: string } }
    if (problem?.code === 'keychain') noteLockedKeychain(env)
    return undefined
  }
}

type Reply = { readonly status: number; readonly value: unknown }

/** Calls an operation. Undefined when there is no answer in time. */
const call = async (
  to: Connection,
  operation: string,
  input: object,
  { env, version, deadline, onLate }: NameRequest,
): Promise<Reply | undefined> => {
  const signal = AbortSignal.timeout(Math.max(0, Math.ceil(deadline - performance.now())))
  try {
    const response = await sendRequest({}, `${to.url}/v1/ops/${operation}`, {
      method: 'POST',
      headers: {
        ...requestHeaders({ ...to, version, apiVersion: env['WCRM_API_VERSION'] }),
        'Content-Type': 'application/json',
        Accept: 'application/json',
      },
      body: JSON.stringify(input),
      redirect: 'error',
      signal,
    })
    return { status: response.status, value: JSON.parse(await response.text()) }
  } catch {
    if (signal.aborted) onLate()
    return undefined
  }
}

const toText = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

const toRow = (row: Record<string, unknown>, { by, beside }: Lookup): NamedRow => [
  toText(row['id']),
  by.map((name) => toText(row[name])).filter((name) => name !== ''),
  toText(beside && readPath(row, beside)),
]

const entryKey = ({ operation, beside }: Lookup, search: string): string =>
  JSON.stringify([operation, beside, foldName(search)])

/** Finds rows that include all those with a text, asked for at most a minute ago. */
const findFresh = (cache: NameCache, lookup: Lookup, typed: string): CachedRows | undefined => {
  const isFresh = (entry: CachedRows | undefined): entry is CachedRows =>
    entry !== undefined && entry.at > Date.now() - FRESH_MS
  const text = foldName(typed)
  const exact = cache[entryKey(lookup, text)]
  if (isFresh(exact)) return exact
  for (let length = text.length - 1; length >= 0; length--) {
    const wider = cache[entryKey(lookup, text.slice(0, length))]
    if (isFresh(wider) && wider.whole) return wider
  }
  return undefined
}

/** What a stale cache knows: of this text, else of all. */
const findStale = (cache: NameCache, lookup: Lookup, typed: string): CachedRows | undefined =>
  cache[entryKey(lookup, typed)] ?? cache[entryKey(lookup, '')]

type Fetched = { readonly cache: NameCache; readonly rows: readonly NamedRow[]; readonly whole: boolean }

/** Asks for the rows with a text. `refused`: the key may not see the list, or is no longer taken. */
const fetchRows = async (
  to: Connection,
  lookup: Lookup,
  search: string,
  cache: NameCache,
  request: NameRequest,
): Promise<Fetched | 'refused' | undefined> => {
  const input = {
    limit: PAGE,
    ...lookup.input,
    ...(search === '' || lookup.search === undefined ? {} : { [lookup.search]: search }),
  }
  const reply = await call(to, lookup.operation, input, request)
  if (reply === undefined || reply.status === 429 || reply.status >= 500) return undefined
  const { value } = reply
  if (reply.status !== 200 || !isObject(value) || !Array.isArray(value['data'])) return 'refused'
  const rows = value['data'].filter(isObject).map((row) => toRow(row, lookup))
  const whole = typeof value['next_cursor'] !== 'string'
  return { cache: { ...cache, [entryKey(lookup, search)]: { at: Date.now(), whole, rows } }, rows, whole }
}

/**
 * Returns the rows that may have what is typed: of the cache, of the server, or, where that does not answer in time,
 * those that the key saw last. Nothing where the key is missing or refused. Never throws for the network.
 */
export const listNames = async (
  lookup: Lookup,
  typed: string,
  request: NameRequest,
): Promise<readonly NamedRow[]> => {
  const to = await connect(request)
  if (!to) return []
  const path = cachePath(request.env, [to.url, to.profile, to.key])
  const cache = readNameCache(path)
  const fresh = findFresh(cache, lookup, typed)
  if (fresh) return fresh.rows
  const text = typed.trim().slice(0, MAX_SEARCH)
  const known = cache[entryKey(lookup, '')]
  const first = text !== '' && lookup.search !== undefined && known?.whole === false ? text : ''
  let found = await fetchRows(to, lookup, first, cache, request)
  if (found === 'refused') {
    // It may see less than it did: what was kept of it is gone.
    writeNameCache(path, {})
    return []
  }
  if (!found) return findStale(cache, lookup, text)?.rows ?? []
  if (!found.whole && first === '' && text !== '' && lookup.search !== undefined) {
    const narrowed = await fetchRows(to, lookup, text, found.cache, request)
    if (narrowed && narrowed !== 'refused') found = narrowed
  }
  writeNameCache(path, found.cache)
  return found.rows
}
