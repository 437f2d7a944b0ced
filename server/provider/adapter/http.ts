import type { z } from 'zod'
import { Problem } from '../../kernel/problem.ts'
import { refusalProblem, timeoutProblem, transportProblem, unreadableResponse } from './problems.ts'
import { traceHeaders } from '../../diagnostics-channels.ts'

export type ProviderHttpOptions = {
  /** Without the API version. */
  baseUrl: string
  /** API version, such as `v23.0`. */
  version: string
  token: string
  timeoutMs: number
}

export type ProviderRequest = {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below the version; built with `joinPath`. */
  path: string
  query?: Record<string, string | undefined>
  /** Sent as JSON. */
  json?: unknown
  /** Sent unchanged. */
  body?: FormData | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** Replaces the base URL and the version. */
  base?: string
}

export type ProviderHttp = {
  options: ProviderHttpOptions
  /**
   * Makes one request without retries, and parses the response with this schema. Throws nothing but a
   * `Problem`.
   */
  request: <S extends z.ZodType>(
    schema: S,
    request: ProviderRequest,
    signal: AbortSignal,
  ) => Promise<z.output<S>>
}

/** A page of a hundred templates with long texts is far smaller. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024

/** Joins ids and fixed words to a path; throws for an id that could lead elsewhere. */
export const joinPath = (...parts: string[]): string => {
  for (const part of parts) {
    if (!/^[\w:~=-]{1,256}$/.test(part))
      throw new Problem('upstream_error', 'A provider id in the configuration is malformed.', {
        reason: 'provider_not_found',
      })
  }
  return parts.join('/')
}

/** Commas are not encoded, as in the lists of the provider's own examples. */
const formatQuery = (query: Record<string, string | undefined>): string => {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const encode = (value: string): string => encodeURIComponent(value.toWellFormed()).replaceAll('%2C', ',')
  return pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${encode(value)}`).join('&')}`
}

/** Reads the whole body; undefined when it is larger than `maxBytes`, and the rest is left unread. */
const readAtMost = async (
  response: Response,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  if (!response.body) return new Uint8Array()
  const parts: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the stream.
  for await (const part of response.body) {
    size += part.byteLength
    if (size > maxBytes) return undefined
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

const isErrorBody = (body: unknown): boolean =>
  body !== null &&
  typeof body === 'object' &&
  'error' in body &&
  body.error !== null &&
  typeof body.error === 'object'

/** A signal that aborts with the caller's signal or after a timeout, whichever is first. */
export const withTimeout = (signal: AbortSignal, timeoutMs: number): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])

export const createProviderHttp = (options: ProviderHttpOptions): ProviderHttp => {
  const { baseUrl, version, token, timeoutMs } = options
  const request: ProviderHttp['request'] = async (
    schema,
    { method, path, query = {}, json, body, headers = {}, base = `${baseUrl}/${version}` },
    callerSignal,
  ) => {
    const signal = withTimeout(callerSignal, timeoutMs)
    try {
      if (signal.aborted) throw timeoutProblem()
      const response = await fetch(`${base}/${path}${formatQuery(query)}`, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          Authorization: `Bearer ${token}`,
          Accept: 'application/json',
          ...traceHeaders(),
          ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        ...(body === undefined ? {} : { body }),
      })
      const value = parse(await readAtMost(response, MAX_RESPONSE_BYTES))
      if (!response.ok || isErrorBody(value))
        throw refusalProblem(response.status, response.headers, value, token)
      const parsed = schema.safeParse(value)
      if (!parsed.success) throw unreadableResponse()
      return parsed.data
    } catch (error) {
      throw transportProblem(error, signal)
    }
  }
  return { options, request }
}
