import { currentVersion, type Scope } from '../../../catalog/index.ts'
import type { App } from '../../app.ts'
import { DEFAULT_MAX_BYTES, parseJson } from '../../http/body.ts'
import { newRequestId } from '../../ids.ts'
import { Problem, problemDocument } from '../../core/problem.ts'
import type { ProviderSettings } from '../../provider/settings.ts'
import { authenticate } from '../../core/steps/authenticate.ts'
import { databaseProblem } from '../../core/steps/deadline.ts'
import { entitle } from '../../core/steps/entitle.ts'
import { parseFields } from '../../core/steps/validate.ts'
import { type Act, acts } from './routes.ts'
import { type Control, controlOf } from './client.ts'
import { createSync, type Sync } from './sync.ts'

/**
 * `/sandbox/*`: with an API key, in ids of ours, what the sandbox's own control surface does in the
 * provider's.
 */
export type Driver = Sync & {
  serve: (request: Request) => Promise<Response>
  isSandbox: () => Promise<boolean>
}

export const createDriver = (app: App, settings: ProviderSettings): Driver => {
  const control = controlOf(settings)
  const sync = createSync(app, control, settings.verifyToken)
  return { ...sync, isSandbox: control.isSandbox, serve: (request) => serve(app, control, sync, request) }
}

const serve = async (app: App, control: Control, sync: Sync, request: Request): Promise<Response> => {
  const requestId = newRequestId()
  const headers = { 'Request-Id': requestId, 'Api-Version': currentVersion }
  try {
    const value = await answer(app, control, sync, request)
    return new Response(JSON.stringify(value), {
      status: 200,
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
  } catch (error) {
    const problem =
      error instanceof Problem
        ? error
        : (databaseProblem(error) ??
          new Problem(
            'internal_error',
            'The server failed in a way it did not foresee; report the request_id.',
          ))
    if (problem.code === 'internal_error')
      app.log.error({ request_id: requestId, stack: (error as Error).stack }, 'sandbox call failed')
    return new Response(JSON.stringify(problemDocument(problem, app.config.publicUrl, requestId)), {
      status: problem.status,
      headers: { ...headers, ...problem.headers, 'Content-Type': 'application/problem+json' },
    })
  }
}

const answer = async (app: App, control: Control, sync: Sync, request: Request): Promise<unknown> => {
  const url = new URL(request.url)
  const act = find(request.method, url.pathname)
  const actor = await authenticate(app, request.headers.get('authorization') ?? undefined)
  entitle(actor)
  // With the true provider these routes do not exist.
  if (!(await control.isSandbox()))
    throw new Problem('not_found', 'There is no sandbox: this server uses a messaging provider of its own.')
  const scope: Scope = act.changes ? 'messaging:write' : 'mcp:read'
  if (!actor.key.scopes.includes(scope))
    throw new Problem(
      'insufficient_scope',
      `This needs the scope ${scope}; the key holds ${actor.key.scopes.join(', ') || 'none'}.`,
      { scope },
    )
  if (act.changes && actor.key.test)
    throw new Problem(
      'forbidden',
      'A test key changes nothing, and the sandbox has no dry run. Use a live key.',
      { reason: 'test_key' },
    )
  const input = parseFields(
    act.input,
    act.method === 'GET' ? Object.fromEntries(url.searchParams) : await bodyOf(request),
  )
  return await act.run({ app, control, sync, actor }, input as never)
}

const find = (method: string, pathname: string): Act => {
  const path = pathname.replace(/^\/sandbox\/?/, '')
  const here = acts.filter((act) => act.path === path)
  const found = here.find((act) => act.method === method)
  if (found) return found
  if (here.length === 0)
    throw new Problem(
      'not_found',
      `There is no ${pathname.slice(0, 200)}. The sandbox has ${[...new Set(acts.map((act) => `/sandbox/${act.path}`))].join(', ')}.`,
    )
  const allowed = here.map((act) => act.method)
  throw new Problem(
    'method_not_allowed',
    `${method} is not a method of ${pathname.slice(0, 200)}.`,
    { allowed },
    { Allow: allowed.join(', ') },
  )
}

const bodyOf = async (request: Request): Promise<unknown> => {
  const text = await request.text()
  if (text === '') return {}
  if (Buffer.byteLength(text) > DEFAULT_MAX_BYTES)
    throw new Problem('payload_too_large', `The body is larger than ${DEFAULT_MAX_BYTES} bytes.`, {
      limit_bytes: DEFAULT_MAX_BYTES,
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
