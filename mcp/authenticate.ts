import {
  type AuthInfo,
  localhostAllowedHostnames,
  validateHostHeader,
  validateOriginHeader,
} from '@modelcontextprotocol/server'
import type { App } from '../server/core/app.ts'
import { normalizeClientName } from '../server/audit/entry.ts'
import { recordAuthFailure } from '../server/audit/record.ts'
import { Problem, toProblemDocument } from '../server/core/problem.ts'
import { authenticate } from '../server/core/steps/authenticate.ts'
import { requireApiAccess } from '../server/core/steps/entitle.ts'
import { type ToolSelection, listToolsetNames } from './toolsets.ts'

/**
 * Refuses requests that a web page could have caused by DNS rebinding: the Host, and the Origin where there
 * is one, must be this machine or the server's public name, on any port (MCP "Security").
 */
export const createOriginCheck = (app: App): ((request: Request, requestId: string) => Response | undefined) => {
  const allowed = [...localhostAllowedHostnames(), new URL(app.config.publicUrl).hostname]
  return (request, requestId) => {
    // A request made inside the process has no Host header; its address says the same.
    const host = validateHostHeader(request.headers.get('host') ?? new URL(request.url).host, allowed)
    const origin = validateOriginHeader(request.headers.get('origin'), allowed)
    if (host.ok && origin.ok) return undefined
    const what = host.ok ? `origin ${request.headers.get('origin')}` : `host ${request.headers.get('host')}`
    return refusal(
      app,
      requestId,
      new Problem('forbidden', `The ${what} is not served here. WCRM_PUBLIC_URL names the address that is.`, {
        reason: 'host_not_allowed',
      }),
    )
  }
}

/** Reads the key and the query. Answers who is calling, or the refusal. */
export const authenticateRequest = async (app: App, request: Request, requestId: string): Promise<AuthInfo | Response> => {
  try {
    const actor = await authenticate(app, request.headers.get('authorization') ?? undefined)
    try {
      requireApiAccess(actor)
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
    const selection: ToolSelection = parseSelection(new URL(request.url).searchParams, listToolsetNames(app.operations))
    // The key itself stays in the request: nothing that handles this record may log it.
    return {
      token: '',
      clientId: actor.key.id,
      scopes: [...actor.key.scopes],
      extra: { ...selection, test: actor.key.test },
    }
  } catch (error) {
    if (error instanceof Problem) return refusal(app, requestId, error)
    app.log.error({ request_id: requestId, stack: (error as Error).stack }, 'key not checked')
    return refusal(
      app,
      requestId,
      new Problem('upstream_unavailable', 'The key could not be checked at the moment.'),
    )
  }
}

const parseSelection = (query: URLSearchParams, known: readonly string[]): ToolSelection => {
  const toolsets = query.has('toolsets')
    ? query
        .getAll('toolsets')
        .flatMap((value) => value.split(','))
        .map((name) => name.trim())
        .filter(Boolean)
    : undefined
  const unknown = toolsets?.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const detail = `There is no toolset "${unknown}".`
    throw new Problem('invalid_input', detail, {
      errors: [
        {
          parameter: 'toolsets',
          code: 'unknown_value',
          detail,
          fix: `Use one or more of: ${known.join(', ')}.`,
          allowed: known,
        },
      ],
    })
  }
  return { toolsets, readonly: query.get('readonly') === 'true' }
}

const refusal = (app: App, requestId: string, problem: Problem): Response =>
  new Response(JSON.stringify(toProblemDocument(problem, app.config.publicUrl, requestId)), {
    status: problem.status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Request-Id': requestId,
      ...(problem.status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
      ...problem.headers,
    },
  })
