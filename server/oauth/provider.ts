import { generateKeyPairSync, hkdfSync } from 'node:crypto'
import type { KoaContext, Provider } from 'oidc-provider'
import { findGrantKey, isStaffEnabled } from '../../storage/access/oauth.ts'
import { hashApiKey } from '../api-keys.ts'
import type { App } from '../app.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { createSealer } from '../sealer.ts'
import { createAdapter } from './adapter.ts'
import { createDocumentFetch, MAX_DOCUMENT_BYTES } from './clients.ts'
import { OAUTH_PATHS, grantableScopes, toResource } from './metadata.ts'
import { renderErrorPage, setPageHeaders } from './pages.ts'

const MINUTE = 60
const DAY = 24 * 60 * MINUTE
/** Seconds. A grant ends after a year; a client that comes back once a month keeps it until then. */
export const OAUTH_TTL = {
  AccessToken: 60 * MINUTE,
  AuthorizationCode: MINUTE,
  RefreshToken: 30 * DAY,
  Grant: 365 * DAY,
  Interaction: 15 * MINUTE,
  /** Not stored: nobody stays signed in. */
  Session: MINUTE,
  IdToken: MINUTE,
}

/** Of the request to the library, which names the client's network. It is set by this server alone. */
export const NETWORK_HEADER = 'x-wcrm-network'

/** `<workspace>.<staff>` */
export type Account = { workspaceId: string; staffId: string }
export const formatAccount = ({ workspaceId, staffId }: Account): string => `${workspaceId}.${staffId}`
const parseAccount = (id: string): Account | undefined => {
  const [, workspaceId, staffId] = /^(\d+)\.(\d+)$/.exec(id) ?? []
  return workspaceId && staffId ? { workspaceId, staffId } : undefined
}

/** Whether the staff member may sign in and, where a token is used, the API key of its grant is valid. */
const isAccountValid = async (app: App, id: string, grantId: string | undefined): Promise<boolean> => {
  const account = parseAccount(id)
  if (!account) return false
  if (grantId === undefined) return await isStaffEnabled(app.db, account.workspaceId, account.staffId)
  const key = await findGrantKey(app.db, hashApiKey(grantId), app.now())
  return key?.workspace_id === account.workspaceId && key.staff_id === account.staffId
}

const off = { enabled: false }

type ResourceContext = { InvalidTarget: new () => Error }

const createFeatures = ({ config: { publicUrl } }: App, { InvalidTarget }: ResourceContext) => ({
  devInteractions: off,
  dPoP: off,
  pushedAuthorizationRequests: off,
  rpInitiatedLogout: off,
  userinfo: off,
  clientIdMetadataDocument: { enabled: true, ack: 'draft-02', cacheDuration: { min: 60, max: 3600 } },
  registration: { enabled: true, initialAccessToken: false, issueRegistrationAccessToken: false },
  revocation: {
    enabled: true,
    allowedPolicy: (_: unknown, client: { clientId: string }, token: { clientId: string }) =>
      client.clientId === token.clientId,
  },
  resourceIndicators: {
    enabled: true,
    defaultResource: () => toResource(publicUrl),
    useGrantedResource: () => true,
    getResourceServerInfo: (_: unknown, resource: string) => {
      if (resource !== toResource(publicUrl)) throw new InvalidTarget()
      return {
        scope: grantableScopes.join(' '),
        audience: toResource(publicUrl),
        accessTokenTTL: OAUTH_TTL.AccessToken,
        accessTokenFormat: 'opaque',
      }
    },
  },
})

/** The library wants a key to sign what it never signs here. */
const createUnusedKey = () => ({
  keys: [
    {
      ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
      alg: 'ES256',
      use: 'sig',
    },
  ],
})

const createConfiguration = (app: App) => ({
  clientAuthMethods: ['none'],
  clientDefaults: {
    grant_types: ['authorization_code', 'refresh_token'],
    id_token_signed_response_alg: 'ES256',
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  cookies: {
    keys: app.secrets.secrets.map(({ secret }) =>
      Buffer.from(hkdfSync('sha256', secret, 'wcrm', 'oauth cookies', 32)).toString('base64url'),
    ),
    names: { interaction: 'wcrm_sign_in', resume: 'wcrm_sign_in_end', session: 'wcrm_sign_in_session' },
    short: { httpOnly: true, sameSite: 'lax', secure: true, signed: true },
    long: { httpOnly: true, sameSite: 'lax', secure: true, signed: true },
  },
  clientBasedCORS: (_: unknown, origin: string, client: { redirectUris: string[] }) =>
    client.redirectUris.some((uri) => URL.parse(uri)?.origin === origin && origin !== 'null'),
  expiresWithSession: () => false,
  fetch: createDocumentFetch(app),
  fetchResponseBodyLimits: { 'client_id metadata document': MAX_DOCUMENT_BYTES },
  findAccount: async (_: unknown, id: string, token?: { grantId?: string }) =>
    (await isAccountValid(app, id, token?.grantId))
      ? { accountId: id, claims: () => ({ sub: id }) }
      : undefined,
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `${OAUTH_PATHS.signIn}/${uid}` },
  issueRefreshToken: (_: unknown, client: { grantTypeAllowed: (type: string) => boolean }) =>
    client.grantTypeAllowed('refresh_token'),
  jwks: createUnusedKey(),
  pkce: { required: () => true },
  responseTypes: ['code'],
  revokeGrantPolicy: () => true,
  rotateRefreshToken: true,
  routes: {
    authorization: OAUTH_PATHS.authorize,
    token: OAUTH_PATHS.token,
    registration: OAUTH_PATHS.register,
    revocation: OAUTH_PATHS.revoke,
    jwks: OAUTH_PATHS.keys,
  },
  scopes: ['offline_access'],
  ttl: OAUTH_TTL,
})

/**
 * Loads the library, which takes a moment, and configures it: authorization code with PKCE, refresh tokens,
 * public clients alone.
 */
export const createProvider = async (app: App): Promise<Provider> => {
  const { Provider: ProviderClass, errors } = await import('oidc-provider')
  const context = {
    app,
    sealer: createSealer(app.secrets, 'oauth'),
    getNetwork: () => ProviderClass.ctx?.get(NETWORK_HEADER),
    createRefusal: () => new errors.InvalidGrant('it was used before'),
  }
  const provider = new ProviderClass(app.config.publicUrl, {
    ...createConfiguration(app),
    adapter: (kind: string) => createAdapter(kind, context),
    features: createFeatures(app, errors),
    renderError: (ctx: KoaContext, problem: { error: string; error_description?: string }) => {
      setPageHeaders(ctx)
      ctx.body = renderErrorPage(problem.error, problem.error_description)
    },
  })
  // The proxy in front ended TLS: the public URL is https.
  provider.proxy = true
  provider.on('server_error', (_, error) => app.log.error(errorLogDetails(error), 'An OAuth request failed'))
  return provider
}
