import type { App } from '../server/app.ts'
import { createStaticDocument } from '../server/http/static-document.ts'
import { lazy } from '../server/lazy.ts'
import { protocolVersions, serverDescription, serverInfo } from './identity.ts'

const CARD_TYPE = 'application/mcp-server-card+json'

/** Beside the MCP address, where the draft of server cards (SEP-2127) puts it. */
const CARD_PATH = '/mcp/server-card'

/** The catalog of that draft, its successor across protocols, and where earlier drafts had the card itself. */
const catalogPaths = ['/.well-known/mcp/catalog.json', '/.well-known/ai-catalog.json'] as const
const cardPaths = [CARD_PATH, '/.well-known/mcp/server-card.json'] as const

/** A host name as names are anchored on it: addresses and names of one machine are `localhost`. */
const toPublisher = (publicUrl: string): string => {
  const { hostname } = new URL(publicUrl)
  return /^[\d.]+$|^\[/.test(hostname) ? 'localhost' : hostname
}

/**
 * Returns the server card: who serves MCP at this public URL, where, in which revisions and with which header.
 * `oauth`: clients may sign in instead of sending an API key.
 */
const createServerCard = (publicUrl: string, { oauth }: { oauth: boolean }): Record<string, unknown> => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json',
  name: `${toPublisher(publicUrl).split('.').toReversed().join('.')}/${serverInfo.name}`,
  version: serverInfo.version,
  title: serverInfo.title,
  description: serverDescription,
  websiteUrl: `${publicUrl}/docs`,
  remotes: [
    {
      type: 'streamable-http',
      url: `${publicUrl}/mcp`,
      supportedProtocolVersions: protocolVersions,
      headers: [
        {
          name: 'Authorization',
          description: oauth ? 'An API key, for clients that do not sign in with OAuth.' : 'An API key.',
          value: 'Bearer {api_key}',
          variables: {
            api_key: {
              description: 'Made by `wcrm admin keys create --agent`.',
              isRequired: !oauth,
              isSecret: true,
              placeholder: 'wc_live_…',
            },
          },
        },
      ],
    },
  ],
})

const createCatalog = (publicUrl: string): Record<string, unknown> => ({
  specVersion: 'draft',
  entries: [
    {
      identifier: `urn:air:${toPublisher(publicUrl)}:${serverInfo.name}`,
      displayName: serverInfo.title,
      type: CARD_TYPE,
      url: `${publicUrl}${CARD_PATH}`,
    },
  ],
})

/** Public, and the same for everyone: pages of any origin may read it. */
const commonHeaders = {
  'Cache-Control': 'public, max-age=3600',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET',
  'Access-Control-Allow-Headers': 'Content-Type, Accept',
}

const serveDocument = (
  create: () => Record<string, unknown>,
  type: string,
): ((request: Request) => Promise<Response>) => {
  const document = lazy(() =>
    createStaticDocument(JSON.stringify(create()), { 'Content-Type': type, ...commonHeaders }),
  )
  return async (request) => {
    if (request.method === 'GET') return await document().serve(request)
    if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: commonHeaders })
    if (request.method !== 'HEAD')
      return new Response(null, { status: 405, headers: { Allow: 'GET, HEAD, OPTIONS' } })
    const { status, headers } = await document().serve(request)
    return new Response(null, { status, headers })
  }
}

/** Returns what clients read before they connect, by path: the server card, and the catalogs that name it. */
export const createDiscovery = ({
  config: { publicUrl, oauth },
}: Pick<App, 'config'>): Record<string, (request: Request) => Promise<Response>> => {
  const card = serveDocument(() => createServerCard(publicUrl, { oauth }), CARD_TYPE)
  const catalog = serveDocument(() => createCatalog(publicUrl), 'application/json')
  return Object.fromEntries([
    ...cardPaths.map((path) => [path, card] as const),
    ...catalogPaths.map((path) => [path, catalog] as const),
  ])
}
