import { randomBytes } from 'node:crypto'
import type { Interaction, KoaContext, Provider } from 'oidc-provider'
import { currentVersion } from '../../catalog/index.ts'
import type { Scope } from '../../catalog/operation.ts'
import { createGrantKey, extendOauthClient, type LoginCode } from '../../storage/access/oauth.ts'
import { hashApiKey } from '../api-keys.ts'
import type { App } from '../app.ts'
import { Problem } from '../kernel/problem.ts'
import { lookUpLimited } from '../kernel/throttle.ts'
import { createFormToken, isSameToken } from './form-token.ts'
import { recordSignIn } from './record-sign-in.ts'
import { redeemLoginCode } from './login-codes.ts'
import { OAUTH_PATHS, grantableScopes, toResource } from './metadata.ts'
import {
  renderConsentPage,
  renderErrorPage,
  renderLoginPage,
  setPageHeaders,
  type ShownClient,
} from './pages.ts'
import { formatAccount, NETWORK_HEADER, OAUTH_TTL } from './provider.ts'

/*
 * The pages between a client's request and its answer: a person signs in with a login code, sees who asks for
 * what, and allows or declines it. The library binds them to one browser by a cookie.
 */

const MAX_ATTEMPTS = 5

/** What is kept of a sign-in under way, beside what the library keeps. */
type SignIn = { attempts: number; login?: LoginCode }

const getSignIn = ({ result }: Interaction): SignIn =>
  (result?.['sign_in'] as SignIn | undefined) ?? { attempts: 0 }

const saveSignIn = async (interaction: Interaction, signIn: SignIn): Promise<void> => {
  interaction.result = { ...interaction.result, sign_in: signIn }
  await interaction.save(Math.max(1, interaction.exp - Math.floor(Date.now() / 1000)))
}

const getText = (value: unknown): string => (typeof value === 'string' ? value : '')

const showClient = (client: { clientId: string; clientName?: string }, redirectUri: string): ShownClient => {
  const redirect = new URL(redirectUri)
  const isWeb = redirect.protocol === 'https:' || redirect.protocol === 'http:'
  const document = client.clientId.startsWith('https://') ? URL.parse(client.clientId) : undefined
  return {
    name: client.clientName,
    domain: document?.hostname,
    target: isWeb ? redirect.host : redirect.protocol.slice(0, -1),
    isLocal: !isWeb || redirect.protocol === 'http:',
    opens: isWeb ? undefined : redirect.href,
  }
}

/** What one request of a sign-in works on. */
type Step = {
  app: App
  provider: Provider
  ctx: KoaContext
  interaction: Interaction
  shown: ShownClient
}

const getRequestedScopes = ({ interaction }: Step): Scope[] => {
  const asked = getText(interaction.params['scope']).split(' ')
  return grantableScopes.filter((scope) => asked.includes(scope))
}

/** Splits the scopes that the client asked for into those that this login may grant, and the others. */
const splitScopes = (step: Step, { scopes: allowed }: LoginCode): { scopes: Scope[]; withheld: Scope[] } => {
  const asked = getRequestedScopes(step)
  return {
    scopes: asked.filter((scope) => allowed.includes(scope)),
    withheld: asked.filter((scope) => !allowed.includes(scope)),
  }
}

const showPage = (step: Step, error?: string): void => {
  const { app, ctx, interaction, shown: client } = step
  const { login } = getSignIn(interaction)
  const action = `${OAUTH_PATHS.signIn}/${interaction.uid}`
  const token = createFormToken(app, `${login ? 'consent' : 'login'} ${interaction.uid}`)
  setPageHeaders(ctx, getText(interaction.params['redirect_uri']))
  ctx.status = error === undefined ? 200 : 400
  ctx.body = login
    ? renderConsentPage({
        client,
        action,
        token,
        error,
        ...splitScopes(step, login),
        workspace: login.workspace_name,
        staff: login.staff_name,
      })
    : renderLoginPage({ client, action, token, error })
}

const finish = async ({ provider, ctx }: Step, result: Record<string, unknown>): Promise<void> => {
  const returnTo = await provider.interactionResult(ctx.req, ctx.res, result)
  ctx.status = 303
  ctx.redirect(returnTo)
}

const decline = (step: Step, description: string): Promise<void> =>
  finish(step, { error: 'access_denied', error_description: description })

/** Takes the login code of the form. */
const logIn = async (step: Step, form: URLSearchParams): Promise<void> => {
  const { app, ctx, interaction } = step
  const signIn = getSignIn(interaction)
  if (signIn.attempts >= MAX_ATTEMPTS) return await decline(step, 'too many wrong login codes')
  const redeem = () => redeemLoginCode(app.db, form.get('code') ?? '', app.now())
  const login = await lookUpLimited(app, ctx.get(NETWORK_HEADER) || undefined, redeem, 'login_code')
  if (login && splitScopes(step, login).scopes.length === 0)
    return await decline(step, 'the key that made the login code has none of the requested scopes')
  await saveSignIn(interaction, { attempts: signIn.attempts + 1, ...(login ? { login } : {}) })
  showPage(
    step,
    login
      ? undefined
      : 'This login code is wrong, was used before or has expired. Get a new one with: wcrm login-code',
  )
}

/**
 * Returns the name of the key. It is shown as the product's own text: of what a client that proved no domain calls
 * itself, letters and digits are taken alone, and only where the answer goes to a program on this device.
 */
const toKeyName = ({ domain, target, isLocal, name = '' }: ShownClient): string => {
  const called = Array.from(name.replaceAll(/[^\p{L}\p{N} ._-]/gu, '').trim())
    .slice(0, 30)
    .join('')
    .trim()
  const place = domain ?? (isLocal ? target.replace(/:\d+$/, '') : target)
  return `OAuth: ${place}`.slice(0, 100) + (domain === undefined && isLocal && called ? ` (${called})` : '')
}

/** Creates the grant, and the API key that acts for it. */
const approve = async (step: Step, login: LoginCode, scopes: readonly Scope[]): Promise<void> => {
  const { app, provider, ctx, interaction, shown } = step
  const now = app.now()
  const clientId = getText(interaction.params['client_id'])
  const accountId = formatAccount({ workspaceId: login.workspace_id, staffId: login.staff_id })
  const grant = new provider.Grant({ accountId, clientId })
  const resource = toResource(app.config.publicUrl)
  grant.addResourceScope(resource, scopes.join(' '))
  const rejected = getText(interaction.params['scope'])
    .split(' ')
    .filter((scope) => scope !== '' && !scopes.includes(scope as Scope))
  if (rejected.length > 0) grant.rejectResourceScope(resource, rejected.join(' '))
  const grantId = await grant.save()
  const end = new Date(Date.parse(now) + OAUTH_TTL.Grant * 1000).toISOString()
  const keyId = await createGrantKey(
    app.db,
    login.workspace_id,
    {
      grantHash: hashApiKey(grantId),
      clientId: clientId.slice(0, 2000),
      hash: randomBytes(32),
      key: {
        staff_id: login.staff_id,
        scopes: [...scopes],
        name: toKeyName(shown),
        agent: true,
        phones: false,
        api_version: currentVersion,
        expires_at: login.key_expires_at !== null && login.key_expires_at < end ? login.key_expires_at : end,
      },
    },
    now,
  )
  await extendOauthClient(app.db, hashApiKey(clientId), end)
  await recordSignIn(app, {
    workspaceId: login.workspace_id,
    keyId,
    userAgent: ctx.get('user-agent'),
    name: 'oauth.connect',
    input: { client_id: clientId, scopes },
  })
  await finish(step, { login: { accountId, remember: false }, consent: { grantId } })
}

const consent = async (step: Step, login: LoginCode, form: URLSearchParams): Promise<void> => {
  const { scopes: offered } = splitScopes(step, login)
  const chosen = offered.filter((scope) => form.getAll('scope').includes(scope))
  if (chosen.length === 0) return showPage(step, 'Choose at least one thing that it may do, or decline.')
  await approve(step, login, chosen)
}

const submit = async (step: Step, form: URLSearchParams): Promise<void> => {
  const { app, interaction } = step
  const { login } = getSignIn(interaction)
  const expected = createFormToken(app, `${login ? 'consent' : 'login'} ${interaction.uid}`)
  // A form of another page, or one that was sent before: shown again as it is now.
  if (!isSameToken(form.get('token') ?? '', expected))
    return showPage(step, 'This form was out of date. Check it, then send it again.')
  if (form.get('step') === 'decline') return await decline(step, 'the person declined')
  if (login) return await consent(step, login, form)
  await logIn(step, form)
}

/** The body was read before, within its limit. */
const readForm = async ({ req }: KoaContext): Promise<URLSearchParams> => {
  const chunks: Buffer[] = []
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk)
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}

/** Serves the pages of a sign-in, within the library's requests. */
export const serveSignIn =
  (app: App, provider: Provider) =>
  async (ctx: KoaContext, next: () => Promise<void>): Promise<void> => {
    if (!ctx.path.startsWith(`${OAUTH_PATHS.signIn}/`)) return await next()
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(() => undefined)
    const client =
      interaction && ctx.path === `${OAUTH_PATHS.signIn}/${interaction.uid}`
        ? await provider.Client.find(getText(interaction.params['client_id'])).catch(() => undefined)
        : undefined
    if (!interaction || !client) {
      setPageHeaders(ctx)
      ctx.status = 400
      ctx.body = renderErrorPage('session_not_found')
      return
    }
    const shown = showClient(client, getText(interaction.params['redirect_uri']))
    const step = { app, provider, ctx, interaction, shown }
    try {
      if (ctx.method === 'POST') await submit(step, await readForm(ctx))
      else showPage(step)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      setPageHeaders(ctx)
      ctx.status = error.status
      for (const [name, value] of Object.entries(error.headers)) ctx.set(name, value)
      ctx.body = renderErrorPage(error.status === 429 ? 'too_many_requests' : 'server_error')
    }
  }
