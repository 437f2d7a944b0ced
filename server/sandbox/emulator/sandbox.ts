import { createHash, timingSafeEqual } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultEffect, type FaultKind, takeFault } from '../../../storage/sandbox/faults.ts'
import { type Call, digitsOf, isObject, requireClean, type SandboxOptions } from './call.ts'
import { controls } from './control.ts'
import { createDelivery, type Delivery } from './deliver.ts'
import { badToken, faulty, invalid, noPath, refusalBody, refusalOf, refuse } from './errors.ts'
import { findRoute, type Route } from './routes.ts'

export type { SandboxOptions } from './call.ts'

/**
 * The messaging provider's own side, as far as clients can tell. All it knows is in the database, so that
 * several servers may be one sandbox, and a message and the updates that it causes are kept together or not
 * at all.
 */
export type Sandbox = Delivery & {
  /**
   * Answers one request. `path`: the part of its path below the base. An answer that is to be lost is
   * `Response.error()`, upon which the server is to break the connection off.
   */
  fetch: (request: Request, path: string) => Promise<Response>
}

export const createSandbox = (options: SandboxOptions): Sandbox => ({
  ...createDelivery(options),
  fetch: async (request, path) => {
    try {
      return await answer(options, request, path)
    } catch (error) {
      const refusal = refusalOf(error) ?? unforeseen(options, error)
      return new Response(JSON.stringify(refusalBody(refusal)), {
        status: refusal.status,
        headers: { 'Content-Type': 'application/json; charset=UTF-8', ...refusal.headers },
      })
    }
  },
})

const unforeseen = ({ log }: SandboxOptions, error: unknown) => {
  log.error(
    { code: (error as { code?: string }).code, stack: (error as Error).stack },
    'sandbox: a request failed',
  )
  return refusalOf(refuse(1))!
}

const answer = async (options: SandboxOptions, request: Request, mounted: string): Promise<Response> => {
  const url = new URL(request.url)
  const below = mounted.split('?')[0]!.replace(/^\/*/, '/')
  const parts = partsOf(below)
  requireClean([...url.searchParams].flat())
  const found =
    parts[0] === 'control' ? controlRoute(request.method, parts.slice(1)) : findRoute(request.method, parts)
  if (!found?.route.open) requireToken(options, request, url)
  if (!found) throw noPath(below.slice(0, 200))
  const base = `${url.origin}${url.pathname.endsWith(below) ? url.pathname.slice(0, -below.length) : ''}`
  const call: Call = {
    ...options,
    method: request.method,
    path: found.path,
    query: url.searchParams,
    body: found.route.raw ? {} : await bodyOf(request),
    request,
    base,
  }
  const { kind, fault } = await faultOf(call, found.route)
  if (fault?.latency_ms) await sleep(fault.latency_ms)
  if (kind !== undefined && fault?.code !== undefined && !fault.async) throw faulty(kind, fault.code)
  const response = await again(() => found.route.serve({ ...call, fault }))
  return fault?.drop_answer ? Response.error() : response
}

const controlRoute = (
  method: string,
  parts: readonly string[],
): { route: Route; path: Record<string, string> } | undefined => {
  const key = `${method} ${parts.join('/')}`
  return Object.hasOwn(controls, key) ? { route: { serve: controls[key]! }, path: {} } : undefined
}

/** The path's parts, decoded, without the version that they may begin with. */
const partsOf = (path: string): string[] => {
  let parts: string[]
  try {
    parts = path
      .split('/')
      .filter((part) => part !== '')
      .map(decodeURIComponent)
  } catch {
    throw noPath(path.slice(0, 200))
  }
  requireClean(parts)
  return /^v\d{1,3}\.\d$/.test(parts[0] ?? '') ? parts.slice(1) : parts
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const requireToken = ({ token }: SandboxOptions, request: Request, url: URL): void => {
  const given =
    /^(?:bearer|oauth)\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ??
    url.searchParams.get('access_token') ??
    ''
  if (!timingSafeEqual(digest(given), digest(token))) throw badToken()
}

/** A JSON object, or the fields of a form, whose values may be JSON. */
const bodyOf = async (request: Request): Promise<Record<string, unknown>> => {
  if (request.method === 'GET' || request.method === 'HEAD') return {}
  const text = await request.text()
  if (text === '') return {}
  const form = /^application\/x-www-form-urlencoded\b/i.test(request.headers.get('content-type') ?? '')
  const value = form
    ? Object.fromEntries([...new URLSearchParams(text)].map(([name, field]) => [name, fieldOf(field)]))
    : parsed(text)
  if (!isObject(value)) throw invalid('The body must be a JSON object.')
  requireClean(value)
  return value
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('The body is not valid JSON.')
  }
}

const fieldOf = (text: string): unknown => {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The fault that was ordered for this call; those of messages may be for one customer. */
const faultOf = async (
  call: Call,
  { faults }: Route,
): Promise<{ kind?: FaultKind; fault?: FaultEffect | undefined }> => {
  const kind: FaultKind | undefined = typeof faults === 'function' ? await faults(call) : faults
  if (kind === undefined || (kind === 'messages' && call.body.status !== undefined)) return {}
  const { to, recipient } = call.body
  return {
    kind,
    fault: await takeFault(call.db, kind, [
      typeof to === 'string' ? digitsOf(to) : '',
      typeof recipient === 'string' ? recipient : '',
    ]),
  }
}

/** Two servers, or two calls, that write the same at once: the later one is done anew. */
const MET = new Set(['23505', '40001', '40P01'])

const again = async (work: () => Promise<Response>): Promise<Response> => {
  try {
    return await work()
  } catch (error) {
    if (!MET.has((error as { code?: string }).code ?? '')) throw error
    return await work()
  }
}
