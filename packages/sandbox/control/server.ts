import { normalizeClientName } from '../../../server/kernel/call.ts'
import { requireApiAccess } from '../../../server/kernel/access.ts'
import { currentVersion, type Scope } from '../../../catalog/index.ts'
import { toFailure } from '../../../server/guards/audit/entry.ts'
import { recordControl } from '../../../server/guards/audit/record.ts'
import type { App } from '../../../server/app.ts'
import type { Actor, CallTrace } from '../../../server/kernel/context.ts'
import { logRefusal } from '../../../server/kernel/log-call.ts'
import { Problem } from '../../../server/kernel/problem.ts'
import { toProblemResponse } from '../../../server/kernel/respond.ts'
import { authenticate } from '../../../server/kernel/authenticate.ts'
import { toDatabaseProblem } from '../../../server/kernel/deadline.ts'
import { errorLogDetails } from '../../../server/kernel/log-details.ts'
import { peekLimits, takeToken } from '../../../server/limits/rate-limit.ts'
import { parseFields } from '../../../server/kernel/validate.ts'
import { getClientAddress, getPresence } from '../../../server/http/address.ts'
import { type BodyReader, DEFAULT_MAX_BODY_BYTES, parseJson, withBody } from '../../../server/http/body.ts'
import { createRequestId } from '../../../server/ids.ts'
import type { ProviderSettings } from '../../../server/provider/settings.ts'
import { hasHiddenPhones } from '../../../server/visibility/policy.ts'
import { type ControlClient, createControlClient, noSandboxProblem } from './client.ts'
import type { ControlRoute } from './route.ts'
import { routes } from './routes.ts'
import { createSandboxSync, type SandboxSync } from './sync.ts'

/**
 * `/sandbox/*`: the sandbox's control surface for the keys of owners and admins. It takes ids of this
 * service, where the sandbox's own surface takes the provider's, and acts on the key's workspace alone.
 */
export type SandboxControl = SandboxSync & {
  serve: (request: Request) => Promise<Response>
  isSandbox: boolean
}

type Surface = { app: App; control: ControlClient; sync: SandboxSync }

export const createSandboxControl = (app: App, settings: ProviderSettings): SandboxControl => {
  const control = createControlClient(settings)
  const sync = createSandboxSync(app, control, settings.verifyToken)
  return {
    ...sync,
    isSandbox: control.isSandbox,
    serve: (request) => serveRequest({ app, control, sync }, request),
  }
}

/** How far a call came, for the audit trail; see `perform`. */
type Progress = { actor?: Actor; route?: ControlRoute; input?: Record<string, unknown>; limited: boolean }

const serveRequest = async (surface: Surface, request: Request): Promise<Response> => {
  const { app } = surface
  const trace: CallTrace = {
    door: request.headers.get('wcrm-door') === 'cli' ? 'cli' : 'rest',
    client: normalizeClientName(request.headers.get('user-agent') ?? undefined),
    requestId: createRequestId(),
    confirmed: false,
  }
  const headers: Record<string, string> = { 'Request-Id': trace.requestId, 'Api-Version': currentVersion }
  const progress: Progress = { limited: false }
  try {
    const value = await runRoute(surface, request, headers, progress)
    if (progress.route?.changes) await record(app, trace, progress, { outcome: 'done' })
    return new Response(JSON.stringify(value), {
      status: 200,
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
  } catch (error) {
    const problem = toProblem(app, trace, error)
    const failure = toFailure(problem)
    const isFailedChange = progress.route?.changes === true && progress.input !== undefined
    if (failure.outcome === 'refused' || isFailedChange) await record(app, trace, progress, failure)
    logRefusal(app.log, trace.requestId, problem)
    return toProblemResponse(problem, {
      publicUrl: app.config.publicUrl,
      requestId: trace.requestId,
      headers,
    })
  }
}

const toProblem = (app: App, { requestId }: CallTrace, error: unknown): Problem => {
  if (error instanceof Problem) return error
  const known = toDatabaseProblem(error)
  if (known) return known
  app.log.error({ request_id: requestId, ...errorLogDetails(error) }, 'Sandbox request failed')
  return new Problem('internal_error', 'The server failed unexpectedly; report the request_id.')
}

const record = async (
  app: App,
  trace: CallTrace,
  { actor, route, input, limited }: Progress,
  outcome: ReturnType<typeof toFailure>,
): Promise<void> => {
  if (!actor || !route) return
  const id = route.target && input?.[route.target.field]
  await recordControl(app, {
    actor,
    trace,
    name: route.name,
    input,
    target: route.target && typeof id === 'string' ? { type: route.target.type, id } : null,
    outcome,
    limited,
  })
}

const runRoute = (
  { app, control, sync }: Surface,
  request: Request,
  headers: Record<string, string>,
  progress: Progress,
): Promise<unknown> =>
  withBody(app, request, { maxBytes: DEFAULT_MAX_BODY_BYTES }, async (body) => {
    const url = new URL(request.url)
    const route = findRoute(request.method, url.pathname)
    progress.route = route
    const address = getClientAddress(app, request)
    const actor = await authenticate(app, request.headers.get('authorization') ?? undefined, {
      address,
      presence: getPresence(request),
    })
    progress.actor = actor
    const kind = route.changes ? 'write' : 'read'
    Object.assign(headers, peekLimits(app, actor, kind))
    requireApiAccess(actor, address)
    requireRights(actor, route)
    Object.assign(headers, await takeToken(app, actor, kind))
    progress.limited = true
    // These routes exist only with a sandbox.
    if (!control.isSandbox) throw noSandboxProblem()
    const input = parseFields(route.input, await readInput(actor, request, url, body))
    progress.input = input
    return await route.run({ app, control, sync, actor }, input as never)
  })

const DECIDED_BY_PEOPLE = new Set(['sandbox.advance_clock', 'sandbox.reset_clock', 'sandbox.review'])

/** Throws 403 unless it is a live key of an owner or admin, with the scope. */
const requireRights = (actor: Actor, { name, changes }: ControlRoute): void => {
  const { key, staff } = actor
  const scope: Scope = changes ? 'messaging:write' : 'mcp:read'
  if (!key.scopes.includes(scope))
    throw new Problem(
      'insufficient_scope',
      `${name} needs the scope ${scope}; this key holds ${key.scopes.join(', ') || 'none'}.`,
      { scope },
    )
  if (staff.role !== 'owner' && staff.role !== 'admin')
    throw new Problem(
      'forbidden',
      `The sandbox is controlled by owners and admins; this key belongs to a staff member who is ${staff.role}. ` +
        'Use the key of an owner or admin.',
      { reason: 'not_admin' },
    )
  if (hasHiddenPhones(actor))
    throw new Problem('forbidden', 'The sandbox shows phone numbers, which are hidden from this key.', {
      reason: 'phone_hidden',
    })
  if (key.agent && DECIDED_BY_PEOPLE.has(name))
    throw new Problem(
      'forbidden',
      `${name} is not for AI agents' keys: the hours of their policy, the expiry of their requests and the review ` +
        'of their templates follow from it. Use the key of a person.',
      { reason: 'denied_by_policy' },
    )
  if (changes && key.test)
    throw new Problem(
      'forbidden',
      'Test keys cannot change the sandbox, which has no dry run. Use a live key.',
      { reason: 'test_key' },
    )
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

const readInput = async (actor: Actor, request: Request, url: URL, body: BodyReader): Promise<unknown> => {
  if (request.method === 'GET') return Object.fromEntries(url.searchParams)
  const [parameter] = url.searchParams.keys()
  // A change that was asked for with `?dry_run=true`, for one, must not run.
  if (parameter !== undefined)
    throw new Problem('invalid_input', 'This route takes no query parameters, and has no dry run.', {
      errors: [
        {
          parameter: parameter.slice(0, 100),
          code: 'unexpected_parameter',
          detail: 'is not a parameter of this route',
          fix: 'Send the fields in a JSON body.',
        },
      ],
    })
  return parseJson(await body.text(actor.key.id))
}
