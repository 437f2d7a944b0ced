import { currentVersion, type Scope } from '../../../catalog/index.ts'
import type { App } from '../../core/app.ts'
import { DEFAULT_MAX_BODY_BYTES, parseJson } from '../../http/body.ts'
import { createRequestId } from '../../ids.ts'
import { Problem } from '../../core/problem.ts'
import { toProblemResponse } from '../../core/respond.ts'
import type { ProviderSettings } from '../../provider/settings.ts'
import { authenticate } from '../../core/steps/authenticate.ts'
import { toDatabaseProblem } from '../../core/steps/deadline.ts'
import { requireApiAccess } from '../../core/steps/entitle.ts'
import { parseFields } from '../../core/steps/validate.ts'
import { type ControlRoute, routes } from './routes.ts'
import { type ControlClient, createControlClient } from './client.ts'
import { createSandboxSync, type SandboxSync } from './sync.ts'

/**
 * `/sandbox/*`: the sandbox's control surface for API keys. It takes ids of this service, where the
 * sandbox's own surface takes the provider's.
 */
export type SandboxControl = SandboxSync & {
  serve: (request: Request) => Promise<Response>
  isSandbox: () => Promise<boolean>
}

export const createSandboxControl = (app: App, settings: ProviderSettings): SandboxControl => {
  const control = createControlClient(settings)
  const sync = createSandboxSync(app, control, settings.verifyToken)
  return {
    ...sync,
    isSandbox: control.isSandbox,
    serve: (request) => serveRequest(app, control, sync, request),
  }
}

const serveRequest = async (
  app: App,
  control: ControlClient,
  sync: SandboxSync,
  request: Request,
): Promise<Response> => {
  const requestId = createRequestId()
  const headers = { 'Request-Id': requestId, 'Api-Version': currentVersion }
  try {
    const value = await runRoute(app, control, sync, request)
    return new Response(JSON.stringify(value), {
      status: 200,
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
  } catch (error) {
    const problem =
      error instanceof Problem
        ? error
        : (toDatabaseProblem(error) ??
          new Problem('internal_error', 'The server failed unexpectedly; report the request_id.'))
    if (problem.code === 'internal_error')
      app.log.error({ request_id: requestId, stack: (error as Error).stack }, 'Sandbox request failed')
    return toProblemResponse(problem, { publicUrl: app.config.publicUrl, requestId, headers })
  }
}

const runRoute = async (
  app: App,
  control: ControlClient,
  sync: SandboxSync,
  request: Request,
): Promise<unknown> => {
  const url = new URL(request.url)
  const route = findRoute(request.method, url.pathname)
  const actor = await authenticate(app, request.headers.get('authorization') ?? undefined)
  requireApiAccess(actor)
  // These routes exist only with a sandbox.
  if (!(await control.isSandbox()))
    throw new Problem('not_found', 'There is no sandbox: this server uses the real messaging provider.')
  const scope: Scope = route.changes ? 'messaging:write' : 'mcp:read'
  if (!actor.key.scopes.includes(scope))
    throw new Problem(
      'insufficient_scope',
      `This requires the scope ${scope}; the key has ${actor.key.scopes.join(', ') || 'none'}.`,
      { scope },
    )
  if (route.changes && actor.key.test)
    throw new Problem(
      'forbidden',
      'Test keys cannot change the sandbox, which has no dry run. Use a live key.',
      { reason: 'test_key' },
    )
  const input = parseFields(
    route.input,
    route.method === 'GET' ? Object.fromEntries(url.searchParams) : await readJsonBody(request),
  )
  return await route.run({ app, control, sync, actor }, input as never)
}

const findRoute = (method: string, pathname: string): ControlRoute => {
  const path = pathname.replace(/^\/sandbox\/?/, '')
  const candidates = routes.filter((route) => route.path === path)
  const match = candidates.find((route) => route.method === method)
  if (match) return match
  const shownPath = pathname.slice(0, 200)
  if (candidates.length === 0) {
    const paths = [...new Set(routes.map((route) => `/sandbox/${route.path}`))].join(', ')
    throw new Problem('not_found', `${shownPath} does not exist. The sandbox has ${paths}.`)
  }
  const allowed = candidates.map((route) => route.method)
  throw new Problem(
    'method_not_allowed',
    `${shownPath} does not support the method ${method}.`,
    { allowed },
    { Allow: allowed.join(', ') },
  )
}

const readJsonBody = async (request: Request): Promise<unknown> => {
  const text = await request.text()
  if (text === '') return {}
  if (Buffer.byteLength(text) > DEFAULT_MAX_BODY_BYTES)
    throw new Problem('payload_too_large', `The body is larger than ${DEFAULT_MAX_BODY_BYTES} bytes.`, {
      limit_bytes: DEFAULT_MAX_BODY_BYTES,
    })
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')) {
    throw new Problem(
      'unsupported_media_type',
      'Send Content-Type: application/json.',
      {},
      { Accept: 'application/json' },
    )
  }
  return parseJson(text)
}
