import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { currentVersion, findOperation, type Scope } from '../../catalog/index.ts'
import type { getApproval } from '../../catalog/approvals.ts'
import { createSessionKey, revokeKey, SESSION_MINUTES } from '../../storage/access/admin-keys.ts'
import { findApproval } from '../../storage/agents/approvals.ts'
import { findKey } from '../../storage/access/keys.ts'
import type { LoginCode } from '../../storage/access/oauth.ts'
import { createApiKey, hashApiKey, isApiKey } from '../api-keys.ts'
import { toClientNetwork } from '../client-address.ts'
import type { App } from '../app.ts'
import { perform } from '../kernel/perform.ts'
import { Problem } from '../kernel/problem.ts'
import type { CallResponse } from '../kernel/respond.ts'
import { lookUpLimited } from '../kernel/throttle.ts'
import { getClientAddress } from '../http/address.ts'
import { withBody } from '../http/body.ts'
import { createRequestId } from '../ids.ts'
import { createFormToken, isSameToken } from '../oauth/form-token.ts'
import { redeemLoginCode } from '../oauth/login-codes.ts'
import { pageHeaders } from '../oauth/pages.ts'
import { recordSignIn } from '../oauth/record-sign-in.ts'
import { getEditableText, renderApproval, renderMessage, renderSignIn } from './page-html.ts'
import { APPROVAL_PAGES, toApprovalUrl } from '../guards/agents/approvals/page-url.ts'

/*
 * The page on which a person decides on a call of an AI agent. Signing in makes a key of the person that lives for
 * minutes and is held in a cookie of this page; what the page shows and does are operations called with it.
 */

const COOKIE = 'wcrm_approval'
const SESSION_MS = SESSION_MINUTES * 60_000
const MAX_BODY_BYTES = 128 * 1024

type Detail = z.infer<(typeof getApproval)['output']>

/** One request. `cookie`: the key of whoever signed in, else a random text that ties the form to the browser. */
type Visit = { app: App; request: Request; id: string; path: string; cookie: string | undefined }

const readCookie = (request: Request): string | undefined => {
  const value = new RegExp(`(?:^|;)\\s*${COOKIE}=([\\w-]{43,60})(?:;|$)`).exec(
    request.headers.get('cookie') ?? '',
  )?.[1]
  return value
}

const toCookie = ({ app, path }: Visit, value: string): string =>
  `${COOKIE}=${value}; Path=${path}; HttpOnly; SameSite=Strict; Max-Age=${value === '' ? 0 : SESSION_MS / 1000}` +
  (app.config.publicUrl.startsWith('https:') ? '; Secure' : '')

const page = (status: number, body: string, headers: Record<string, string> = {}): Response =>
  new Response(body, { status, headers: { ...pageHeaders("'self'"), ...headers } })

const toToken = ({ app, id }: Visit, cookie: string): string =>
  createFormToken(app, `approval ${id} ${cookie}`)

const showSignIn = (visit: Visit, error?: string): Response => {
  const nonce = randomBytes(32).toString('base64url')
  const body = renderSignIn({ action: visit.path, token: toToken(visit, nonce), error })
  return page(error === undefined ? 200 : 400, body, { 'Set-Cookie': toCookie(visit, nonce) })
}

const OUT_OF_DATE = 'This form was out of date. Check it, then send it again.'

/** Calls an operation as whoever signed in. */
const call = (
  { app, request, id }: Visit,
  key: string,
  name: 'approvals_get' | 'approvals_approve' | 'approvals_decline',
  input: Record<string, unknown> = {},
): Promise<CallResponse> =>
  perform(app, {
    transport: 'rest',
    operation: findOperation(name),
    input: { approval_id: id, ...input },
    requestId: createRequestId(),
    authorization: `Bearer ${key}`,
    client: request.headers.get('user-agent') ?? undefined,
    address: getClientAddress(app, request),
  })

const getDetail = ({ problem }: CallResponse): string => problem?.detail ?? 'wcrm could not answer.'

const toLineFeeds = (text: string): string => text.replaceAll(/\r\n?/g, '\n')

const readText = (form: URLSearchParams | undefined, name: 'text' | 'note'): string | undefined => {
  const given = form?.get(name)
  return typeof given === 'string' ? toLineFeeds(given) : undefined
}

/** `written`: what the person wrote into a form that was refused; it is theirs to correct. */
const showApproval = async (
  visit: Visit,
  key: string,
  error?: string,
  written?: URLSearchParams,
): Promise<Response> => {
  const response = await call(visit, key, 'approvals_get')
  // The sign-in has ended meanwhile.
  if (response.status === 401) return showSignIn(visit)
  if (response.status >= 400)
    return page(response.status, renderMessage('This did not work', getDetail(response)))
  const detail = JSON.parse(response.body) as Detail
  const form = {
    action: visit.path,
    token: toToken(visit, key),
    error,
    text: readText(written, 'text'),
    note: readText(written, 'note'),
    version: detail.summary_version,
  }
  return page(error === undefined ? 200 : 400, renderApproval(detail, findOperation(detail.operation), form))
}

/** The name of the keys that signing in makes. */
const KEY_NAME = 'Approval page'

/** What the page needs: deciding, and rehearsing the call with the rights of who decides. */
const limitScopes = async ({ app, id }: Visit, login: LoginCode): Promise<Scope[]> => {
  const asked = await findApproval(app.db, login.workspace_id, id)
  const operation = asked && findOperation(asked.operation)
  const needed = ['mcp:read', 'approvals:write', operation?.scope]
  return login.scopes.filter((scope) => needed.includes(scope))
}

const signIn = async (visit: Visit, code: string): Promise<Response> => {
  const { app, request } = visit
  const network = toClientNetwork(getClientAddress(app, request))
  const redeem = () => redeemLoginCode(app.db, code, app.now())
  const login = await lookUpLimited(app, network, redeem, 'login_code')
  if (!login)
    return showSignIn(
      visit,
      'This login code is wrong, was used before or has expired. Get a new one with: wcrm login-code',
    )
  if (!login.scopes.includes('approvals:write'))
    return showSignIn(visit, 'The key that made this login code lacks the scope approvals:write.')
  const now = app.now()
  const end = new Date(Date.parse(now) + SESSION_MS).toISOString()
  const secret = createApiKey(false)
  const fields = {
    staff_id: login.staff_id,
    scopes: await limitScopes(visit, login),
    name: KEY_NAME,
    agent: false,
    // A login code does not tell whether the key that made it sees phone numbers.
    phones: false,
    api_version: currentVersion,
    expires_at: login.key_expires_at !== null && login.key_expires_at < end ? login.key_expires_at : end,
  }
  const keyId = await createSessionKey(app.db, login.workspace_id, hashApiKey(secret), fields, now)
  await recordSignIn(app, {
    workspaceId: login.workspace_id,
    keyId,
    userAgent: request.headers.get('user-agent') ?? undefined,
    name: 'approvals.sign_in',
    input: { approval_id: visit.id },
  })
  return new Response(null, {
    status: 303,
    headers: { ...pageHeaders("'self'"), Location: visit.path, 'Set-Cookie': toCookie(visit, secret) },
  })
}

/** Returns the text if the person changed it: browsers send other line breaks than they were given. */
const getEdit = (detail: Detail, form: URLSearchParams): string | undefined => {
  const [asked, text] = [getEditableText(detail), readText(form, 'text')]
  return asked === undefined || text === toLineFeeds(asked) ? undefined : text
}

const decide = async (visit: Visit, key: string, form: URLSearchParams): Promise<Response> => {
  const { app } = visit
  const note = readText(form, 'note')?.trim()
  const common = note ? { note } : {}
  const isApproval = form.get('step') === 'approve'
  if (!isApproval && form.get('step') !== 'decline') return await showApproval(visit, key, OUT_OF_DATE, form)
  const read = await call(visit, key, 'approvals_get')
  if (read.status >= 400) return await showApproval(visit, key)
  const text = getEdit(JSON.parse(read.body) as Detail, form)
  const response = isApproval
    ? await call(visit, key, 'approvals_approve', {
        ...common,
        ...(text === undefined ? {} : { text }),
        // What the person saw on the page, which may be of long ago.
        ...(form.get('version') ? { summary_version: form.get('version') } : {}),
      })
    : await call(visit, key, 'approvals_decline', common)
  if (response.status >= 400) return await showApproval(visit, key, getDetail(response), form)
  const row = await findKey(app.db, hashApiKey(key), app.now())
  if (row) await revokeKey(app.db, row.workspace_id, row.key_id, app.now())
  const [title, message] = isApproval
    ? ['Approved', 'The call runs once, as the agent. You may close this page.']
    : ['Declined', 'The call never runs. You may close this page.']
  return page(200, renderMessage(title, message), { 'Set-Cookie': toCookie(visit, '') })
}

/** Returns the key that signing in made; undefined for a browser that did not. No other key is taken. */
const findSignIn = async ({ app, cookie }: Visit): Promise<string | undefined> => {
  if (cookie === undefined || !isApiKey(cookie)) return undefined
  const row = await findKey(app.db, hashApiKey(cookie), app.now())
  return row?.key_name === KEY_NAME && !row.test ? cookie : undefined
}

const submit = async (visit: Visit, form: URLSearchParams): Promise<Response> => {
  const { cookie } = visit
  const key = await findSignIn(visit)
  if (cookie === undefined || !isSameToken(form.get('token') ?? '', toToken(visit, cookie)))
    return key === undefined
      ? showSignIn(visit, OUT_OF_DATE)
      : await showApproval(visit, key, OUT_OF_DATE, form)
  return key === undefined ? await signIn(visit, form.get('code') ?? '') : await decide(visit, key, form)
}

const serve = async (app: App, request: Request): Promise<Response> => {
  const path = new URL(request.url).pathname
  const id = /^\/([1-9]\d{0,18})$/.exec(path.slice(APPROVAL_PAGES.length))?.[1]
  if (id === undefined || toApprovalUrl(app.config.publicUrl, id) === null)
    return page(404, renderMessage('There is no such page', 'Open the address that the agent gave you.'))
  const visit = { app, request, id, path, cookie: readCookie(request) }
  if (request.method === 'GET' || request.method === 'HEAD') {
    const key = await findSignIn(visit)
    return key === undefined ? showSignIn(visit) : await showApproval(visit, key)
  }
  if (request.method !== 'POST')
    return page(405, renderMessage('This did not work', 'The page takes GET and POST.'), {
      Allow: 'GET, HEAD, POST',
    })
  return await withBody(app, request, { maxBytes: MAX_BODY_BYTES, json: false }, async (body) => {
    const bytes = await body.bytes(`approvals ${toClientNetwork(getClientAddress(app, request))}`)
    return await submit(visit, new URLSearchParams(bytes.toString('utf8')))
  })
}

/** Returns the handler of the pages `/approvals/<id>`. */
export const createApprovalPages =
  (app: App) =>
  async (request: Request): Promise<Response> => {
    try {
      return await serve(app, request)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return page(error.status, renderMessage('This did not work', error.message), error.headers)
    }
  }
