import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { databases } from '../databases.ts'
import { makeWorkspace, startWithOptions, type TestServer, type TestWorkspace } from '../servers.ts'
import { allow, callTool, fetchThrough, makeLoginCode, PUBLIC_URL } from './browser.ts'
import { type ClientSite, startClientSite } from './documents.ts'

const REDIRECT = 'http://127.0.0.1:9999/callback'

/** What a client of the SDK keeps, and where it would send a person's browser. */
const createProvider = (clientMetadataUrl?: string) => {
  const kept: Record<string, any> = {}
  const provider: OAuthClientProvider & { kept: typeof kept } = {
    kept,
    redirectUrl: REDIRECT,
    ...(clientMetadataUrl === undefined ? {} : { clientMetadataUrl }),
    clientMetadata: { client_name: 'SDK client', redirect_uris: [REDIRECT] },
    state: () => 'some state',
    clientInformation: () => kept['client'],
    saveClientInformation: (client) => void (kept['client'] = client),
    tokens: () => kept['tokens'],
    saveTokens: (tokens) => void (kept['tokens'] = tokens),
    redirectToAuthorization: (url) => void (kept['url'] = url),
    saveCodeVerifier: (verifier) => void (kept['verifier'] = verifier),
    codeVerifier: () => kept['verifier'],
    saveDiscoveryState: (state) => void (kept['discovery'] = state),
    discoveryState: () => kept['discovery'],
    saveAuthorizationServerUrl: (url) => void (kept['server'] = url),
    authorizationServerUrl: () => kept['server'],
    saveResourceUrl: (url) => void (kept['resource'] = url),
  }
  return provider
}

for (const database of databases)
  describe(`an OAuth client that knows only the URL, ${database}`, () => {
    let server: TestServer
    let workspace: TestWorkspace
    let site: ClientSite
    before(async () => {
      site = await startClientSite((path, { url }) => ({
        body: JSON.stringify({ client_id: url(path), client_name: 'Documented', redirect_uris: [REDIRECT] }),
      }))
      server = await startWithOptions(database, {
        publicUrl: PUBLIC_URL,
        resolve: async () => ['127.0.0.1'],
      })
      workspace = await makeWorkspace(server)
    })
    after(async () => {
      await server.close()
      await site.close()
    })

    /** Connects, is sent to sign in, comes back with a code, and calls a tool. */
    const connectAndCall = async (clientMetadataUrl?: string) => {
      const provider = createProvider(clientMetadataUrl)
      const createTransport = () =>
        new StreamableHTTPClientTransport(new URL(`${PUBLIC_URL}/mcp`), {
          authProvider: provider,
          fetch: fetchThrough(server),
        })
      const transport = createTransport()
      await assert.rejects(new Client({ name: 'sdk', version: '1' }).connect(transport), /nauthorized/)
      const code = await makeLoginCode(server, workspace.id, workspace.owner.staffId)
      const back = await allow(server, String(provider.kept['url']), code)
      assert.equal(back.searchParams.get('iss'), PUBLIC_URL)
      assert.equal(back.searchParams.get('state'), 'some state')
      await transport.finishAuth(back.searchParams)
      const client = new Client({ name: 'sdk', version: '1' })
      await client.connect(createTransport())
      const answer = await client.callTool({ name: 'workspace_whoami', arguments: {} })
      await client.close()
      return { provider, answer }
    }

    it('registers itself, signs a person in and calls a tool', async () => {
      const { provider, answer } = await connectAndCall()
      const { staff, key } = answer.structuredContent as any
      assert.equal(staff.id, workspace.owner.staffId)
      assert.deepEqual(key.scopes, [
        'mcp:read',
        'crm:write',
        'messaging:write',
        'webhooks:write',
        'inbox:write',
      ])
      const row = await server.db
        .selectFrom('api_keys')
        .selectAll()
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', key.id)
        .executeTakeFirstOrThrow()
      assert.deepEqual(
        { agent: row.agent, phones: row.phones, policy: row.policy, name: row.name },
        { agent: true, phones: false, policy: null, name: 'OAuth: 127.0.0.1 (SDK client)' },
      )
      assert.equal(typeof provider.kept['tokens'].refresh_token, 'string')
    })

    it('is identified by the document at its address', async () => {
      const address = site.url('/client.json')
      const { provider, answer } = await connectAndCall(address)
      assert.equal(provider.kept['client'].client_id, address)
      assert.equal((answer.structuredContent as any).key.name, 'OAuth: client.example.com')
      assert.deepEqual(site.asked, ['/client.json'])
    })

    it('is told where to sign in', async () => {
      const refused = await callTool(server, undefined, 'workspace_whoami')
      assert.equal(refused.status, 401)
      const challenge = refused.headers.get('www-authenticate')!
      assert.match(
        challenge,
        /resource_metadata="https:\/\/wcrm\.example\/\.well-known\/oauth-protected-resource\/mcp"/,
      )
      assert.match(challenge, /scope="mcp:read [^"]+"/)
      const wrong = await callTool(server, 'x'.repeat(43), 'workspace_whoami')
      assert.match(wrong.headers.get('www-authenticate')!, /^Bearer error="invalid_token"/)
      for (const suffix of ['', '/mcp']) {
        const response = await fetchThrough(server)(
          `${PUBLIC_URL}/.well-known/oauth-protected-resource${suffix}`,
        )
        const { resource, authorization_servers: servers } = (await response.json()) as any
        assert.deepEqual({ resource, servers }, { resource: `${PUBLIC_URL}/mcp`, servers: [PUBLIC_URL] })
      }
    })
  })
