import { normalizeClientName } from '../server/kernel/call.ts'
import { holdsScope, requireApiAccess } from '../server/kernel/access.ts'
import {
  type AuthInfo,
  localhostAllowedHostnames,
  validateHostHeader,
  validateOriginHeader,
} from '@modelcontextprotocol/server'
import type { Operation, Scope } from '../catalog/operation.ts'
import type { App } from '../server/app.ts'
import { recordAuthFailure } from '../server/guards/audit/record.ts'
import { logRefusal } from '../server/kernel/log-call.ts'
import { Problem } from '../server/kernel/problem.ts'
import { getClientAddress, getPresence } from '../server/http/address.ts'
import { toProblemResponse } from '../server/kernel/respond.ts'
import { authenticate, isAccessToken } from '../server/kernel/authenticate.ts'
import { errorLogDetails } from '../server/kernel/log-details.ts'
import { createChallenge, grantableScopes } from '../server/oauth/metadata.ts'
import type { Caller } from './call-request.ts'
import type { ToolSelection } from './toolsets.ts'

/**
 * Returns a check against DNS rebinding, by which a web page could cause requests: the Host, and the Origin
 * if present, must be this machine or the server's public name, on any port (MCP "Security"). The check
 * returns the error to send, if any.
 */
export const createOriginCheck = (
  app: App,
): ((request: Request, requestId: string) => Response | undefined) => {
  const allowed = [...localhostAllowedHostnames(), new URL(app.config.publicUrl).hostname]
  return (request, requestId) => {
    // A request made inside the process has no Host header; its address says the same.
    const host = validateHostHeader(request.headers.get('host') ?? new URL(request.url).host, allowed)
    const origin = validateOriginHeader(request.headers.get('origin'), allowed)
    if (host.ok && origin.ok) return undefined
    const what = host.ok ? `origin ${request.headers.get('origin')}` : `host ${request.headers.get('host')}`
    return problemResponse(
      app,
      requestId,
      new Problem('forbidden', `The ${what} is not served here; WCRM_PUBLIC_URL sets the public URL.`, {
        reason: 'host_not_allowed',
      }),
    )
  }
}

/** Authenticates the key and parses the query. Returns who is calling, or the error to send. */
export const authenticateRequest = async (
  app: App,
  request: Request,
  { requestId, toolsets }: { requestId: string; toolsets: readonly string[] },
): Promise<AuthInfo | Response> => {
  try {
    const address = getClientAddress(app, request)
    const actor = await authenticate(app, request.headers.get('authorization') ?? undefined, {
      address,
      presence: getPresence(request),
    })
    try {
      requireApiAccess(actor, address)
    } catch (error) {
      await recordAuthFailure(
        app,
        actor,
        {
          door: 'mcp',
          client: normalizeClientName(request.headers.get('user-agent') ?? undefined),
          requestId,
          confirmed: false,
        },
        error as Problem,
      )
      throw error
    }
    const selection: ToolSelection = parseSelection(request, toolsets)
    // The key itself stays in the request, so that nothing that logs this record can log the key.
    return {
      token: '',
      clientId: actor.key.id,
      scopes: [...actor.key.scopes],
      extra: { ...selection, actor, address, oauth: isSignedIn(app, request) },
    }
  } catch (error) {
    if (error instanceof Problem)
      return error.status === 401
        ? challenge(app, requestId, error, {
            error: request.headers.has('authorization') ? 'invalid_token' : undefined,
          })
        : problemResponse(app, requestId, error)
    app.log.error({ request_id: requestId, ...errorLogDetails(error) }, 'Cannot check an API key')
    return problemResponse(
      app,
      requestId,
      new Problem(
        'upstream_unavailable',
        'The key cannot be checked at the moment. Retry with backoff.',
        {},
        { 'Retry-After': '2' },
      ),
    )
  }
}

/** Whether an access token authenticated the request, not an API key. */
const isSignedIn = (app: App, request: Request): boolean =>
  app.config.oauth && isAccessToken(request.headers.get('authorization')?.trim().split(/ +/)[1] ?? '')

/**
 * Whether the client asks for reads only, in the query or in a header. Whoever says so in any way gets it: only
 * "false" alone means that changes are wanted.
 */
const isReadOnly = (query: URLSearchParams, header: string | null): boolean =>
  [...query.getAll('readonly'), ...(header === null ? [] : [header])].some(
    (value) => value.trim().toLowerCase() !== 'false',
  )

const knownParameters = ['toolsets', 'readonly', 'mode'] as const

const parseSelection = (request: Request, knownToolsets: readonly string[]): ToolSelection => {
  const query = new URL(request.url).searchParams
  for (const name of query.keys())
    if (!(knownParameters as readonly string[]).includes(name))
      // `?dry_run=true`, for one: ignored, the calls would run for real.
      throw invalidParameter(name, `/mcp takes no query parameter ${name.slice(0, 100)}.`, 'Remove it.', {
        allowed: knownParameters,
      })
  const toolsets = query.has('toolsets')
    ? query
        .getAll('toolsets')
        .flatMap((value) => value.split(','))
        .map((name) => name.trim())
        .filter(Boolean)
    : undefined
  if (toolsets?.length === 0)
    throw invalidParameter(
      'toolsets',
      'The parameter toolsets is empty, so no tool would be served.',
      `Leave it out for the usual tools, or use one or more of: ${knownToolsets.join(', ')}.`,
      { allowed: knownToolsets },
    )
  const unknown = toolsets?.find((name) => !knownToolsets.includes(name))
  if (unknown !== undefined)
    throw invalidParameter(
      'toolsets',
      `There is no toolset "${unknown.slice(0, 100)}".`,
      `Use one or more of: ${knownToolsets.join(', ')}.`,
      { allowed: knownToolsets },
    )
  const modes = query.getAll('mode')
  const unknownMode = modes.find((mode) => mode !== 'compact' && mode !== 'full')
  if (unknownMode !== undefined)
    throw invalidParameter(
      'mode',
      `There is no mode "${unknownMode.slice(0, 100)}".`,
      'Use compact, or leave it out.',
      {
        allowed: ['compact', 'full'],
      },
    )
  return {
    toolsets,
    compact: modes.includes('compact'),
    readonly: isReadOnly(query, request.headers.get('x-mcp-readonly')),
  }
}

const invalidParameter = (
  parameter: string,
  detail: string,
  fix: string,
  { allowed }: { allowed: readonly string[] },
): Problem =>
  new Problem('invalid_input', detail, {
    errors: [{ parameter: parameter.slice(0, 100), code: 'unknown_value', detail, fix, allowed }],
  })

export const problemResponse = (app: App, requestId: string, problem: Problem): Response => {
  logRefusal(app.log, requestId, problem)
  return toProblemResponse(problem, { publicUrl: app.config.publicUrl, requestId })
}

/** Returns a refusal that tells a client where to sign a person in, or which scopes to ask for. */
const challenge = (
  app: App,
  requestId: string,
  problem: Problem,
  details: Parameters<typeof createChallenge>[1],
): Response => {
  const response = problemResponse(app, requestId, problem)
  response.headers.set('WWW-Authenticate', createChallenge(app, details))
  return response
}

/**
 * Returns the refusal of a tool call that needs a scope which the client's access token lacks: the client can
 * ask the person for it. Undefined for any other message, and for API keys, whose scopes are fixed.
 */
export const refuseMissingScope = (
  app: App,
  requestId: string,
  { scopes, extra }: AuthInfo,
  op: Operation | undefined,
): Response | undefined => {
  const { agent } = (extra as Caller).actor.key
  if (extra?.['oauth'] !== true || !op || holdsScope({ scopes: scopes as Scope[], agent }, op))
    return undefined
  if (!grantableScopes.includes(op.scope)) return undefined
  const problem = new Problem(
    'insufficient_scope',
    `${op.name} needs the scope ${op.scope}; this access token holds ${scopes.join(', ') || 'none'}.`,
    { scope: op.scope },
  )
  return challenge(app, requestId, problem, {
    error: 'insufficient_scope',
    wanted: [...scopes, op.scope],
  })
}
