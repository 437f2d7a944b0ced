import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { requireProvider, readConfig } from '../../server/config.ts'
import { resolveProviderSettings, SANDBOX_TOKEN_PREFIX } from '../../server/provider/settings.ts'
import { controlEndpoints } from '../../packages/sandbox/emulator/control.ts'
import { createControlClient } from '../../packages/sandbox/control/client.ts'
import { routes } from '../../packages/sandbox/control/routes.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'

/** Answers everything, as a provider that nobody should mistake for a sandbox, or that claims to be one. */
const startProvider = async (answer: unknown) => {
  const asked: string[] = []
  const server: Server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

const credentials = {
  providerToken: 'EAAGtrueToken',
  providerAppSecret: 'an app secret',
  providerVerifyToken: 'a verify token',
}

for (const database of databases)
  describe(`With a true provider (${database})`, () => {
    let provider: Awaited<ReturnType<typeof startProvider>>
    let server: TestServer
    before(async () => {
      provider = await startProvider({ sandbox: true, success: true })
      server = await startServer(database, { provider: { providerUrl: provider.url, ...credentials } })
    })
    after(async () => {
      await server.close()
      await provider.close()
    })

    it('no control of the sandbox sends it anything, and each says why', async () => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      for (const { method, path } of routes) {
        const response = await fetch(`${server.url}/sandbox/${path}`, {
          method,
          headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
          ...(method === 'POST' ? { body: '{}' } : {}),
        })
        const { code, reason, detail } = (await response.json()) as Record<string, string>
        assert.deepEqual(
          [response.status, code, reason],
          [404, 'not_found', 'no_sandbox'],
          `${method} ${path}`,
        )
        assert.match(detail!, /real messaging provider/)
      }
      assert.equal((await fetch(`${server.url}/sandbox/provider/control`)).status, 404)
      await server.sync(workspace.id).catch(() => {})
      for (const job of ['sandbox-clock', 'sandbox-numbers'] as const)
        assert.throws(() => server.app.jobs.job(job), /not declared/)
      assert.deepEqual(provider.asked, [])
    })
  })

describe('The client of the controls', () => {
  it('sends nothing to a true provider, whichever endpoint is asked for', async () => {
    const provider = await startProvider({ sandbox: true })
    const settings = { baseUrl: provider.url, token: 't', builtIn: false }
    const client = createControlClient({ ...settings, sandbox: false })
    const endpoints = Object.keys(controlEndpoints)
    assert.ok(endpoints.length > 15)
    for (const endpoint of endpoints) {
      const [method, path] = endpoint.split(' ') as [string, string]
      await assert.rejects(client.request(method, path, method === 'GET' ? undefined : {}), /no sandbox/)
    }
    assert.deepEqual(provider.asked, [])
    // The same requests do arrive at a sandbox.
    await createControlClient({ ...settings, sandbox: true }).request('POST', 'say', {})
    assert.deepEqual(provider.asked, ['POST /control/say'])
    await provider.close()
  })
})

describe('Who the provider is', () => {
  const isSandbox = (config: object) =>
    resolveProviderSettings(
      { ...credentials, ...config },
      { secret: 'a secret of at least sixteen', localUrl: 'http://127.0.0.1:1', embedded: false },
    )?.sandbox

  it('a URL is a true provider unless WCRM_PROVIDER or a token of a sandbox says otherwise', () => {
    const providerUrl = 'http://127.0.0.1:8790'
    assert.equal(isSandbox({ providerUrl }), false)
    assert.equal(isSandbox({ providerUrl, provider: 'sandbox' }), true)
    assert.equal(isSandbox({ providerUrl, providerToken: `${SANDBOX_TOKEN_PREFIX}x` }), true)
    assert.equal(isSandbox({ provider: 'sandbox' }), true)
  })

  it('the provider itself is never a sandbox, and WCRM_PROVIDER=sandbox beside it is refused', () => {
    for (const providerUrl of [
      'https://graph.facebook.com',
      'http://graph.facebook.com',
      'https://facebook.com',
    ])
      assert.equal(
        isSandbox({ providerUrl, provider: 'sandbox', providerToken: `${SANDBOX_TOKEN_PREFIX}x` }),
        false,
      )
    const env = {
      WCRM_PROVIDER: 'sandbox',
      WCRM_PROVIDER_TOKEN: 't',
      WCRM_PROVIDER_APP_SECRET: 's',
      WCRM_PROVIDER_VERIFY_TOKEN: 'v',
    }
    const check = (url: string) => requireProvider(readConfig({}, { ...env, WCRM_PROVIDER_URL: url }))
    assert.throws(() => check('https://graph.facebook.com'), /unset one of them/)
    assert.equal(check('http://127.0.0.1:8790').provider, 'sandbox')
  })
})
