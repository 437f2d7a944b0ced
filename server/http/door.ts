import type { CallRequest } from '../kernel/call.ts'
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx/node'
import { type Operation, listRoutes } from '../../catalog/index.ts'
import type { App } from '../app.ts'
import { logRefusal } from '../kernel/log-call.ts'
import { perform } from '../kernel/perform.ts'
import { Problem } from '../kernel/problem.ts'
import { type CallResponse, toProblemResult } from '../kernel/respond.ts'
import { createRequestId } from '../ids.ts'
import { getClientAddress, getPresence } from './address.ts'
import { distance } from 'fastest-levenshtein'

/*
 * What the two doors over HTTP share: REST (rest.ts, app.ts) and `/v1/ops` (ops.ts).
 */

/**
 * FastResponse is written as it is, in one piece with its head; a standard Response becomes a stream first
 * (measured: a quarter fewer calls per second).
 */
export const toResponse = ({ status, headers, body }: CallResponse): Response =>
  new FastResponse(status === 304 ? null : body, { status, headers })

/** Answers a problem outside a call, and logs it. */
export const problemResponse = (
  app: Pick<App, 'config' | 'log'>,
  problem: Problem,
  requestId = createRequestId(),
): Response => {
  logRefusal(app.log, requestId, problem)
  return toResponse(toProblemResult(problem, { publicUrl: app.config.publicUrl, requestId }))
}

/** Turns a problem that `work` throws into its response. `requestId`: that of the call in it. */
export const withProblems = async (
  app: App,
  work: () => Promise<Response>,
  requestId?: string,
): Promise<Response> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error, requestId)
    throw error
  }
}

/** What the doors read of a request: h3's event, or that of a request that was routed without h3. */
export type DoorEvent = {
  req: H3Event['req']
  url: Pick<URL, 'pathname' | 'searchParams'>
  /** `matchedRoute`: the path with the names of its parameters. */
  context: { params?: Record<string, string>; matchedRoute?: { route?: string } }
}

export const getHeader = (event: DoorEvent, name: string): string | undefined =>
  event.req.headers.get(name) ?? undefined

/** A reason may be percent-encoded UTF-8, since headers hold ASCII. */
const decodeReason = (text: string | undefined): string | undefined => text && decodeParameter(text)

export const toCallRequest = (
  app: App,
  event: DoorEvent,
  call: Pick<CallRequest, 'transport' | 'operation'> & Partial<CallRequest>,
): CallRequest => ({
  input: undefined,
  requestId: createRequestId(),
  authorization: getHeader(event, 'authorization'),
  apiVersion: getHeader(event, 'api-version'),
  idempotencyKey: getHeader(event, 'idempotency-key'),
  confirm: getHeader(event, 'api-confirm'),
  plan: getHeader(event, 'api-plan'),
  reason: decodeReason(getHeader(event, 'api-reason')),
  client: getHeader(event, 'user-agent'),
  address: getClientAddress(app, event.req as Request),
  presence: getPresence(event.req as Request),
  ...call,
})

export const serveUnknownRoute = async (app: App, event: DoorEvent): Promise<Response> =>
  toResponse(
    await perform(
      app,
      toCallRequest(app, event, {
        transport: 'rest',
        operation: undefined,
        unknown: {
          name: `route ${event.req.method} ${event.url.pathname.slice(0, 200)}`,
          findSimilar: () => findSimilarRoute(app.operations, event.req.method, event.url.pathname),
        },
      }),
    ),
  )

/** Path parameters arrive encoded; one that cannot be decoded is left as it is for validation to reject. */
export const decodeParameter = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const MAX_PATH = 200

/** The number of wrong letters in the fixed segments; undefined when a segment has too many. */
const countWrongLetters = (given: readonly string[], template: readonly string[]): number | undefined => {
  if (given.length !== template.length) return undefined
  let count = 0
  for (const [i, segment] of template.entries()) {
    const wrong = segment.startsWith('{') ? 0 : distance(given[i]!, segment)
    if (wrong > Math.max(1, Math.floor(segment.length / 3))) return undefined
    count += wrong
  }
  return count
}

/** Returns the route that an unknown path probably meant: one with a few other letters, else the first one below it. */
const findSimilarRoute = (
  operations: readonly Operation[],
  method: string,
  path: string,
): string | undefined => {
  if (path.length > MAX_PATH) return undefined
  const given = path.replace(/\/$/, '').split('/')
  const paths = operations
    .flatMap(listRoutes)
    .filter((route) => route.method === method)
    .map((route) => route.path)
  const near = paths
    .map((one) => ({ path: one, wrong: countWrongLetters(given, one.split('/')) ?? Infinity }))
    .toSorted((a, b) => a.wrong - b.wrong)[0]
  const found =
    near && near.wrong < Infinity
      ? near.path
      : given.length > 2
        ? paths.find(
            (one) => one.startsWith(`${given.join('/')}/`) && one.split('/').length === given.length + 1,
          )
        : undefined
  return found && `${method} ${found}`
}
