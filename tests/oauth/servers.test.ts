import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { revokeKey } from '../../storage/access/admin-keys.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import {
  authorizeUrl,
  callTool,
  createBrowser,
  createPkce,
  exchange,
  makeLoginCode,
  offeredScopes,
  PUBLIC_URL,
  refresh,
  registerClient,
  type Tokens,
} from './browser.ts'
import { measureStaleness } from '../staleness.ts'

describe('OAuth on several servers of a database', () => {
  let servers: TestServer[]
  let close: () => Promise<void>
  before(async () => {
    ;({ servers, close } = await startSharedServers(2, { publicUrl: PUBLIC_URL }))
  })
  after(() => close())

  it('goes on at any of them, and ends on all', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const clientId = (await registerClient(one)).body.client_id as string
    const { verifier, challenge } = createPkce()
    // Every request of the browser goes to the other server than the one before.
    const turns = { count: 0 }
    const either = {
      get url() {
        return servers[turns.count++ % 2]!.url
      },
    }
    const browser = createBrowser(either)
    const login = await browser.open(authorizeUrl(clientId, challenge))
    const code = await makeLoginCode(two, workspace.id, workspace.owner.staffId)
    const consent = await browser.submit(login, { step: 'login', code })
    const done = await browser.submit(consent, { step: 'approve', scope: offeredScopes(consent) })
    assert.ok(turns.count >= 5, `${turns.count} requests`)
    const given = { clientId, code: new URL(done.location!).searchParams.get('code')!, verifier }
    const exchanged = await Promise.all([exchange(one, given), exchange(two, given)])
    const won = exchanged.find((answer) => answer.status === 200)
    // Two exchanges at once are one too many: at most one gets tokens, and they do not last.
    assert.equal(exchanged.filter((answer) => answer.status === 200).length <= 1, true)
    if (won) {
      const tokens = (await won.json()) as Tokens
      assert.equal((await callTool(two, tokens.access_token, 'workspace_whoami')).status, 401)
    }
  })

  it('refuses the tokens of a revoked key everywhere', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const clientId = (await registerClient(one)).body.client_id as string
    const { verifier, challenge } = createPkce()
    const browser = createBrowser(one)
    const login = await browser.open(authorizeUrl(clientId, challenge))
    const code = await makeLoginCode(one, workspace.id, workspace.owner.staffId)
    const consent = await browser.submit(login, { step: 'login', code })
    const done = await browser.submit(consent, { step: 'approve', scope: offeredScopes(consent) })
    const authorization = new URL(done.location!).searchParams.get('code')!
    const exchanged = await exchange(two, { clientId, code: authorization, verifier })
    const first = (await exchanged.json()) as Tokens
    const tokens = (await (await refresh(one, clientId, first.refresh_token)).json()) as Tokens
    const statusAt = async (server: TestServer) =>
      (await callTool(server, tokens.access_token, 'workspace_whoami')).status
    assert.deepEqual([await statusAt(one), await statusAt(two)], [200, 200])
    const whoami = await (await callTool(one, tokens.access_token, 'workspace_whoami')).json()
    await revokeKey(one.db, workspace.id, (whoami as any).result.structuredContent.key.id, one.app.now())
    const times = await Promise.all(
      [one, two].map((server) => measureStaleness(async () => (await statusAt(server)) !== 200)),
    )
    assert.ok(Math.max(...times) < 1000, times.join(', '))
    assert.equal((await refresh(two, clientId, tokens.refresh_token)).status, 400)
  })
})
