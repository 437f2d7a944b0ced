import type { z } from 'zod'
import { Problem } from '../../core/problem.ts'
import { refusalProblem, timedOut, transportProblem, unreadable } from './problems.ts'

export type HttpOptions = {
  /** Without the version. */
  baseUrl: string
  /** Such as `v23.0`. */
  version: string
  token: string
  timeoutMs: number
}

export type Ask = {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below the version; made with `at`. */
  path: string
  query?: Record<string, string | undefined>
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is. */
  body?: FormData | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** In place of the base URL and the version. */
  base?: string
}

export type Http = {
  options: HttpOptions
  /** Asks once, never again, and reads the answer by this schema. Throws a `Problem`, and nothing else. */
  ask: <S extends z.ZodType>(answer: S, ask: Ask, signal: AbortSignal) => Promise<z.output<S>>
}

/** A page of a hundred templates with long texts stays well below. */
const MOST_BYTES = 8 * 1024 * 1024

/** A path of ids and fixed words; an id that could lead elsewhere is refused. */
export const at = (...parts: string[]): string => {
  for (const part of parts) {
    if (!/^[\w:~=-]{1,256}$/.test(part))
      throw new Problem('upstream_error', 'An id of the provider, as it is set up here, is malformed.', {
        reason: 'provider_not_found',
      })
  }
  return parts.join('/')
}

/** Commas stay as they are, as the provider's own examples write lists. */
const queryOf = (query: Record<string, string | undefined>): string => {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const encode = (value: string): string => encodeURIComponent(value.toWellFormed()).replaceAll('%2C', ',')
  return pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${encode(value)}`).join('&')}`
}

/** The whole body, or undefined when there is more than that; then the rest is left unread. */
export const readUpTo = async (
  response: Response,
  mostBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  if (!response.body) return new Uint8Array()
  const parts: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the stream.
  for await (const part of response.body) {
    size += part.byteLength
    if (size > mostBytes) return undefined
    parts.push(part)
  }
  return Uint8Array.from(Buffer.concat(parts))
}

const parse = (bytes: Uint8Array | undefined): unknown => {
  try {
    return bytes && JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

const isRefusal = (body: unknown): boolean =>
  body !== null &&
  typeof body === 'object' &&
  'error' in body &&
  body.error !== null &&
  typeof body.error === 'object'

/** The caller's deadline and our own, whichever is first. */
export const deadline = (signal: AbortSignal, timeoutMs: number): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])

export const createHttp = (options: HttpOptions): Http => {
  const { baseUrl, version, token, timeoutMs } = options
  const ask: Http['ask'] = async (
    answer,
    { method, path, query = {}, json, body, headers = {}, base = `${baseUrl}/${version}` },
    outer,
  ) => {
    const signal = deadline(outer, timeoutMs)
    try {
      if (signal.aborted) throw timedOut()
      const response = await fetch(`${base}/${path}${queryOf(query)}`, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          Authorization: `Bearer ${token}`,
          Accept: 'application/json',
          ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        ...(body === undefined ? {} : { body }),
      })
      const value = parse(await readUpTo(response, MOST_BYTES))
      if (!response.ok || isRefusal(value))
        throw refusalProblem(response.status, response.headers, value, token)
      const read = answer.safeParse(value)
      if (!read.success) throw unreadable()
      return read.data
    } catch (error) {
      throw transportProblem(error, signal)
    }
  }
  return { options, ask }
}
