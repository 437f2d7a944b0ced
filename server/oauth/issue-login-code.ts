import { normalizeClientName } from '../kernel/call.ts'
import { requireApiAccess } from '../kernel/access.ts'
import { recordControl } from '../guards/audit/record.ts'
import type { App } from '../app.ts'
import { Problem } from '../kernel/problem.ts'
import { authenticate } from '../kernel/authenticate.ts'
import { takeToken } from '../limits/rate-limit.ts'
import { getClientAddress, getPresence } from '../http/address.ts'
import { createRequestId } from '../ids.ts'
import { issueLoginCode } from './login-codes.ts'

/**
 * `POST /oauth/login-codes`, which `wcrm login-code` calls: a login code of the key's staff member. It is no
 * operation, so that no AI agent is offered it. What is granted with the code has at most the key's scopes and
 * ends no later than the key. Throws 403 for the keys of agents, test keys and keys that only some addresses
 * may use: a grant would outgrow them.
 */
export const serveLoginCodes = async (app: App, request: Request): Promise<Response> => {
  if (request.method !== 'POST')
    throw new Problem('method_not_allowed', 'Login codes are made by POST.', {}, { Allow: 'POST' })
  const address = getClientAddress(app, request)
  const actor = await authenticate(app, request.headers.get('authorization') ?? undefined, {
    address,
    presence: getPresence(request),
  })
  requireApiAccess(actor, address)
  const { key, staff, workspace } = actor
  if (key.agent) throw refuse("An AI agent's key makes no login codes: a person has to.")
  if (key.test) throw refuse('A test key makes no login codes. Use a live key.')
  if (key.allowFrom !== null)
    throw refuse(
      'This key may be used from some addresses only, which would not hold for what is granted. Ask an ' +
        `administrator for a code: wcrm admin login-code --staff ${staff.id}`,
    )
  const limits = await takeToken(app, actor, 'write')
  const grantable = { staffId: staff.id, scopes: key.scopes, keyExpiresAt: key.expiresAt }
  const issued = await issueLoginCode(app.db, workspace.id, grantable, app.now())
  if (!issued) throw refuse('The staff member of this key is disabled.')
  const requestId = createRequestId()
  await recordControl(app, {
    actor,
    trace: {
      door: request.headers.get('wcrm-door') === 'cli' ? 'cli' : 'rest',
      client: normalizeClientName(request.headers.get('user-agent') ?? undefined),
      requestId,
      confirmed: false,
    },
    name: 'oauth.login_code',
    input: undefined,
    target: { type: 'staff', id: staff.id },
    outcome: { outcome: 'done' },
    limited: true,
  })
  return new Response(
    JSON.stringify({
      code: issued.code,
      expires_at: issued.expiresAt,
      staff: { id: staff.id, name: staff.name },
      workspace: { id: workspace.id, name: workspace.name },
    }),
    {
      status: 201,
      headers: {
        ...limits,
        'Content-Type': 'application/json',
        'Cache-Control': 'no-store',
        'Request-Id': requestId,
      },
    },
  )
}

const refuse = (detail: string): Problem => new Problem('forbidden', detail)
