import { isObject } from '../../../catalog/values.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultEffect, type FaultKind, consumeFault } from '../storage/faults.ts'
import { type SandboxCall, stripNonDigits, requireStorable, type SandboxOptions } from './call.ts'
import { controlEndpoints } from './control.ts'
import { createUpdateDelivery, type UpdateDelivery } from './deliver.ts'
import {
  invalidToken,
  faultError,
  invalidParameter,
  unknownPath,
  formatErrorBody,
  toErrorFields,
  providerError,
} from './errors.ts'
import { matchRoute, type SandboxRoute } from './routes.ts'

export type { SandboxOptions } from './call.ts'

/**
 * Emulates the messaging provider's side as clients see it. All of its state is in the database, so that
 * several servers can be one sandbox, and a message and the updates that it causes are stored together or
 * not at all.
 */
export type Sandbox = UpdateDelivery & {
  /**
   * Serves one request. `path`: the part of its path below the base. Returns `Response.error()` for a
   * response that is to be lost; the server then closes the connection.
   */
  fetch: (request: Request, path: string) => Promise<Response>
}

export const createSandbox = (options: SandboxOptions): Sandbox => {
  const delivery = createUpdateDelivery(options)
  return {
    ...delivery,
    fetch: async (request, path) => {
      try {
        return await handleRequest(options, request, path)
      } catch (error) {
        const refusal = toErrorFields(toBodyError(error)) ?? logUnexpected(options, error)
        return new Response(JSON.stringify(formatErrorBody(refusal)), {
          status: refusal.status,
          headers: { 'Content-Type': 'application/json; charset=UTF-8', ...refusal.headers },
        })
      } finally {
        if (request.method !== 'GET') delivery.wake()
      }
    },
  }
}

/** A body that was too large, or that ended early, is the client's error. */
const toBodyError = (error: unknown): unknown => {
  const { name, code, statusCode } = error as { name?: string; code?: string; statusCode?: number }
  if (statusCode === 413) return invalidParameter('The body is too large.')
  return name === 'AbortError' || code === 'ECONNRESET' ? invalidParameter('The body ended early.') : error
}

const logUnexpected = ({ log }: SandboxOptions, error: unknown) => {
  log.error(
    { code: (error as { code?: string }).code, stack: (error as Error).stack },
    'Sandbox request failed',
  )
  return toErrorFields(providerError(1))!
}

const handleRequest = async (
  options: SandboxOptions,
  request: Request,
  mounted: string,
): Promise<Response> => {
  const url = new URL(request.url)
  const below = mounted.split('?')[0]!.replace(/^\/*/, '/')
  const parts = splitPath(below)
  requireStorable([...url.searchParams].flat())
  const match =
    parts[0] === 'control' ? controlRoute(request.method, parts.slice(1)) : matchRoute(request.method, parts)
  if (!match?.route.open) requireToken(options, request, url)
  if (!match) throw unknownPath(below.slice(0, 200))
  const base = `${url.origin}${url.pathname.endsWith(below) ? url.pathname.slice(0, -below.length) : ''}`
  const call: SandboxCall = {
    ...options,
    method: request.method,
    path: match.path,
    query: url.searchParams,
    body: match.route.raw ? {} : await parseBody(request),
    request,
    base,
  }
  const { kind, fault } = await takeRequestFault(call, match.route)
  if (fault?.latency_ms) await sleep(fault.latency_ms)
  if (kind !== undefined && fault?.code !== undefined && !fault.async) throw faultError(kind, fault.code)
  const response = await retryOnConflict(() => match.route.serve({ ...call, fault }))
  return fault?.drop_answer ? Response.error() : response
}

const controlRoute = (
  method: string,
  parts: readonly string[],
): { route: SandboxRoute; path: Record<string, string> } | undefined => {
  const key = `${method} ${parts.join('/')}`
  return Object.hasOwn(controlEndpoints, key)
    ? { route: { serve: controlEndpoints[key]! }, path: {} }
    : undefined
}

/** Returns the decoded parts of a path, without a leading API version. */
const splitPath = (path: string): string[] => {
  let parts: string[]
  try {
    parts = path
      .split('/')
      .filter((part) => part !== '')
      .map(decodeURIComponent)
  } catch {
    throw unknownPath(path.slice(0, 200))
  }
  requireStorable(parts)
  return /^v\d{1,3}\.\d$/.test(parts[0] ?? '') ? parts.slice(1) : parts
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const requireToken = (options: SandboxOptions, request: Request, url: URL): void => {
  const token =
    /^(?:bearer|oauth)\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ??
    url.searchParams.get('access_token') ??
    ''
  if (!timingSafeEqual(digest(token), digest(options.token))) throw invalidToken()
}

/** Parses a JSON object, or the fields of a form, whose values may be JSON. */
const parseBody = async (request: Request): Promise<Record<string, unknown>> => {
  if (request.method === 'GET' || request.method === 'HEAD') return {}
  const text = await request.text()
  if (text === '') return {}
  const form = /^application\/x-www-form-urlencoded\b/i.test(request.headers.get('content-type') ?? '')
  const value = form
    ? Object.fromEntries([...new URLSearchParams(text)].map(([name, field]) => [name, parseFormField(field)]))
    : parseJsonText(text)
  if (!isObject(value)) throw invalidParameter('The body must be a JSON object.')
  requireStorable(value)
  return value
}

const parseJsonText = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidParameter('The body is not valid JSON.')
  }
}

const parseFormField = (text: string): unknown => {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Takes the fault that was ordered for this call; faults of messages may be limited to one customer. */
const takeRequestFault = async (
  call: SandboxCall,
  { faults }: SandboxRoute,
): Promise<{ kind?: FaultKind; fault?: FaultEffect | undefined }> => {
  const kind: FaultKind | undefined = typeof faults === 'function' ? await faults(call) : faults
  if (kind === undefined || (kind === 'messages' && call.body.status !== undefined)) return {}
  const { to, recipient } = call.body
  return {
    kind,
    fault: await consumeFault(
      call.db,
      kind,
      [typeof to === 'string' ? stripNonDigits(to) : '', typeof recipient === 'string' ? recipient : ''],
      call.path.id ?? '',
    ),
  }
}

/** Errors of two servers or calls that write the same rows at once; the later one is run again. */
const CONFLICT_CODES = new Set(['23505', '40001', '40P01'])

const retryOnConflict = async (work: () => Promise<Response>): Promise<Response> => {
  try {
    return await work()
  } catch (error) {
    if (!CONFLICT_CODES.has((error as { code?: string }).code ?? '')) throw error
    return await work()
  }
}
