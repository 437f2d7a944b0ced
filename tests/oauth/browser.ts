import { createHash, randomBytes } from 'node:crypto'
import { issueLoginCode } from '../../server/oauth/login-codes.ts'
import { scopes as allScopes, type Scope } from '../../catalog/operation.ts'
import { createToolRequest } from '../mcp-request.ts'
import type { TestServer } from '../servers.ts'

/** The public URL of the servers of these tests: a proxy in front of them ended TLS. */
export const PUBLIC_URL = 'https://wcrm.example'

/** A fetch that reaches the public URL at the server itself. */
export const fetchThrough =
  (server: Pick<TestServer, 'url'>): typeof fetch =>
  (input, init) => {
    const url = String(input instanceof Request ? input.url : input)
    return fetch(url.replace(PUBLIC_URL, server.url), { redirect: 'manual', ...init })
  }

/** A page as a person sees it. */
export type Page = {
  status: number
  text: string
  headers: Headers
  /** Where the browser was sent, out of this server. */
  location: string | undefined
}

/** A browser without JavaScript: it keeps cookies by path and follows redirects within the server. */
export const createBrowser = (server: Pick<TestServer, 'url'>) => {
  const cookies = new Map<string, { value: string; path: string }>()
  const request = async (url: string, init: RequestInit = {}): Promise<Page> => {
    const { pathname } = new URL(url)
    const sent = [...cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name.split('|')[0]}=${value}`)
    const response = await fetchThrough(server)(url, {
      ...init,
      headers: {
        Accept: 'text/html,*/*',
        ...(init.headers as Record<string, string> | undefined),
        ...(sent.length > 0 ? { Cookie: sent.join('; ') } : {}),
      },
    })
    for (const header of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? []
      const path = /path=([^;]+)/i.exec(header)?.[1] ?? '/'
      if (value === '') cookies.delete(`${name}|${path}`)
      else cookies.set(`${name}|${path}`, { value, path })
    }
    const location = response.headers.get('location') ?? undefined
    const text = await response.text()
    if (location !== undefined) {
      const next = new URL(location, PUBLIC_URL)
      if (next.origin === PUBLIC_URL) return await request(next.href)
    }
    return { status: response.status, text, headers: response.headers, location }
  }
  const submit = (page: Page, fields: Record<string, string | readonly string[]>): Promise<Page> => {
    if (page.status !== 200) throw new Error(`Not a form: ${page.status} ${page.text}`)
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)![1]!
    const token = /name="token" value="([^"]+)"/.exec(page.text)![1]!
    const form = new URLSearchParams({ token })
    for (const [name, value] of Object.entries(fields))
      for (const one of [value].flat() as string[]) form.append(name, one)
    return request(`${PUBLIC_URL}${action}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    })
  }
  return { open: (url: string) => request(url), submit, cookies }
}

/** The scopes whose boxes are ticked on a consent page. */
export const offeredScopes = (page: Page): string[] =>
  [...page.text.matchAll(/name="scope" value="([^"]+)" checked/g)].map(([, scope]) => scope!)

/** Makes a login code as an administrator does. */
export const makeLoginCode = async (
  { db, app }: Pick<TestServer, 'db' | 'app'>,
  workspaceId: string,
  staffId: string,
  grantable: { scopes?: Scope[]; keyExpiresAt?: string | null } = {},
): Promise<string> => {
  const { scopes = [...allScopes], keyExpiresAt = null } = grantable
  return (await issueLoginCode(db, workspaceId, { staffId, scopes, keyExpiresAt }, app.now()))!.code
}

/** A verifier of PKCE and its challenge. */
export const createPkce = (): { verifier: string; challenge: string } => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export type Tokens = { access_token: string; refresh_token: string; expires_in: number; scope: string }

export const postForm = (
  server: Pick<TestServer, 'url'>,
  path: string,
  fields: Record<string, string>,
): Promise<Response> =>
  fetchThrough(server)(`${PUBLIC_URL}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
    body: new URLSearchParams(fields).toString(),
  })

/** Registers a client that runs on the machine of its user. */
export const registerClient = async (
  server: Pick<TestServer, 'url'>,
  metadata: Record<string, unknown> = {},
): Promise<{ status: number; body: any }> => {
  const response = await fetchThrough(server)(`${PUBLIC_URL}/oauth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Tests', redirect_uris: ['http://127.0.0.1/callback'], ...metadata }),
  })
  return { status: response.status, body: await response.json() }
}

const REDIRECT_URI = 'http://127.0.0.1:8123/callback'

/** The address of a request for authorization. */
export const authorizeUrl = (
  clientId: string,
  challenge: string,
  more: Record<string, string> = {},
): string =>
  `${PUBLIC_URL}/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'a state',
    resource: `${PUBLIC_URL}/mcp`,
    ...more,
  })}`

/** Signs a person in and lets the client have what it asks for. Returns where the browser is sent. */
export const allow = async (
  server: Pick<TestServer, 'url'>,
  url: string,
  code: string,
  scopes?: readonly string[],
): Promise<URL> => {
  const browser = createBrowser(server)
  const consent = await browser.submit(await browser.open(url), { step: 'login', code })
  const done = await browser.submit(consent, { step: 'approve', scope: scopes ?? offeredScopes(consent) })
  if (done.location === undefined) throw new Error(`No way back: ${done.status} ${done.text}`)
  return new URL(done.location)
}

/** Registers a client, signs a person in, and gets the tokens. */
export const connect = async (
  server: TestServer,
  workspaceId: string,
  staffId: string,
  scopes?: readonly string[],
): Promise<Tokens & { clientId: string; code: string; verifier: string }> => {
  const clientId = (await registerClient(server)).body.client_id as string
  const { verifier, challenge } = createPkce()
  const loginCode = await makeLoginCode(server, workspaceId, staffId)
  const back = await allow(server, authorizeUrl(clientId, challenge), loginCode, scopes)
  const code = back.searchParams.get('code')!
  const response = await exchange(server, { clientId, code, verifier })
  return { ...((await response.json()) as Tokens), clientId, code, verifier }
}

/** Exchanges a code. */
export const exchange = (
  server: Pick<TestServer, 'url'>,
  { clientId, code, verifier }: { clientId: string; code: string; verifier: string },
  more: Record<string, string> = {},
): Promise<Response> =>
  postForm(server, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    code_verifier: verifier,
    redirect_uri: REDIRECT_URI,
    ...more,
  })

export const refresh = (
  server: Pick<TestServer, 'url'>,
  clientId: string,
  refreshToken: string,
  more: Record<string, string> = {},
): Promise<Response> =>
  postForm(server, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: refreshToken,
    ...more,
  })

/** Calls a tool over MCP as a client with a token does. */
export const callTool = (
  server: Pick<TestServer, 'url'>,
  token: string | undefined,
  name: string,
  input: Record<string, unknown> = {},
): Promise<Response> =>
  fetchThrough(server)(`${PUBLIC_URL}/mcp`, createToolRequest(name, input, { key: token }))
