import { type Scope, scopes } from '../../catalog/operation.ts'
import type { App } from '../app.ts'

/** What clients find out about this server before they sign anybody in (RFC 9728, RFC 8414). */

/** The scopes that a hosted client can get: those of operations that an AI agent may call. */
export const grantableScopes: readonly Scope[] = scopes.filter((scope) => scope !== 'approvals:write')

export const OAUTH_PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  signIn: '/oauth/sign-in',
  loginCodes: '/oauth/login-codes',
  /** No token is signed, so no document lists keys; the library wants a path for it. */
  keys: '/oauth/keys',
  resourceMetadata: '/.well-known/oauth-protected-resource',
  serverMetadata: '/.well-known/oauth-authorization-server',
} as const

/** Whether OAuth can be served at this public URL: https, and at the root of its host. */
export const isOauthPossible = (publicUrl: string): boolean => {
  const url = URL.parse(publicUrl)
  return url?.protocol === 'https:' && url.pathname === '/' && url.search === ''
}

/** The resource that access tokens are for. */
export const toResource = (publicUrl: string): string => `${publicUrl}/mcp`

/**
 * Returns the resource in the form of `toResource` when a client names this server by it, by the address of
 * `/mcp` with a query, or by its origin; any other text as it is.
 */
export const normalizeResource = (text: string, publicUrl: string): string => {
  const url = URL.parse(text)
  if (!url || url.hash !== '' || text.includes('#')) return text
  const path = url.pathname.replace(/\/+$/, '')
  const isOurs = url.origin === new URL(publicUrl).origin && (path === '' || path === '/mcp')
  return isOurs && url.username === '' && url.password === '' ? toResource(publicUrl) : text
}

export const createResourceMetadata = (publicUrl: string): Record<string, unknown> => ({
  resource: toResource(publicUrl),
  authorization_servers: [publicUrl],
  scopes_supported: grantableScopes,
  bearer_methods_supported: ['header'],
  resource_name: 'wcrm',
  resource_documentation: `${publicUrl}/docs`,
})

export const createServerMetadata = (publicUrl: string): Record<string, unknown> => ({
  issuer: publicUrl,
  authorization_endpoint: publicUrl + OAUTH_PATHS.authorize,
  token_endpoint: publicUrl + OAUTH_PATHS.token,
  registration_endpoint: publicUrl + OAUTH_PATHS.register,
  revocation_endpoint: publicUrl + OAUTH_PATHS.revoke,
  scopes_supported: grantableScopes,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['none'],
  revocation_endpoint_auth_methods_supported: ['none'],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: true,
  service_documentation: `${publicUrl}/docs`,
})

const quote = (text: string): string => `"${text}"`

/**
 * Returns the `WWW-Authenticate` of a refusal of `/mcp`. `error`: a token was sent and is not good
 * (`invalid_token`), or lacks a scope (`insufficient_scope`). `wanted`: the scopes to ask for.
 */
export const createChallenge = (
  { config }: Pick<App, 'config'>,
  { error, wanted = grantableScopes }: { error?: string | undefined; wanted?: readonly string[] } = {},
): string => {
  if (!config.oauth) return 'Bearer'
  const parts = [
    ...(error === undefined ? [] : [`error=${quote(error)}`]),
    `resource_metadata=${quote(`${config.publicUrl}${OAUTH_PATHS.resourceMetadata}/mcp`)}`,
    `scope=${quote(wanted.join(' '))}`,
  ]
  return `Bearer ${parts.join(', ')}`
}
