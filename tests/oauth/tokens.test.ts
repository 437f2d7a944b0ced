import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { revokeKey } from '../../storage/access/admin-keys.ts'
import { deleteOldOauth } from '../../server/jobs/retention.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, startWithOptions, type TestServer, type TestWorkspace } from '../servers.ts'
import {
  allow,
  authorizeUrl,
  callTool,
  connect,
  createPkce,
  exchange,
  makeLoginCode,
  postForm,
  PUBLIC_URL,
  refresh,
  registerClient,
  type Tokens,
} from './browser.ts'

for (const database of databases)
  describe(`tokens of OAuth clients, ${database}`, () => {
    let server: TestServer
    let workspace: TestWorkspace
    before(async () => {
      server = await startWithOptions(database, { publicUrl: PUBLIC_URL, dedicated: true })
      workspace = await makeWorkspace(server)
    })
    after(() => server.close())

    const connectOwner = (scopes?: string[]) => connect(server, workspace.id, workspace.owner.staffId, scopes)
    const statusOf = async (token: string) => (await callTool(server, token, 'workspace_whoami')).status
    /** What a server remembers of a key is older than a second. */
    const forget = () => server.app.keyCache.keys.clear()
    const findKeys = () =>
      server.db
        .selectFrom('api_keys')
        .select(['id', 'revoked_at', 'scopes'])
        .where('workspace_id', '=', workspace.id)
        .where('agent', '=', true)
        .orderBy('id', 'desc')
        .execute()

    it('end with their grant when a code is used twice', async () => {
      const tokens = await connectOwner()
      assert.equal(tokens.expires_in, 3600)
      assert.equal(await statusOf(tokens.access_token), 200)
      const again = await exchange(server, tokens)
      assert.equal(again.status, 400)
      assert.equal(((await again.json()) as any).error, 'invalid_grant')
      forget()
      assert.equal(await statusOf(tokens.access_token), 401)
      assert.equal((await refresh(server, tokens.clientId, tokens.refresh_token)).status, 400)
      assert.notEqual((await findKeys())[0]!.revoked_at, null)
    })

    it('are in answers that nothing keeps', async () => {
      const { clientId, refresh_token: token } = await connectOwner()
      const { status, headers } = await refresh(server, clientId, token)
      const kept = ['cache-control', 'pragma', 'content-type'].map((name) => headers.get(name))
      assert.deepEqual([status, ...kept], [200, 'no-store', 'no-cache', 'application/json; charset=utf-8'])
    })

    it('end with their family when a refresh token is used twice', async () => {
      const first = await connectOwner()
      const second = (await (await refresh(server, first.clientId, first.refresh_token)).json()) as Tokens
      assert.equal(await statusOf(second.access_token), 200)
      assert.notEqual(second.refresh_token, first.refresh_token)
      assert.equal((await refresh(server, first.clientId, first.refresh_token)).status, 400)
      assert.equal((await refresh(server, first.clientId, second.refresh_token)).status, 400)
      forget()
      assert.equal(await statusOf(second.access_token), 401)
    })

    it('are given once to requests at the same time', async () => {
      const first = await connectOwner()
      const answers = await Promise.all(
        [1, 2, 3, 4].map(() => refresh(server, first.clientId, first.refresh_token)),
      )
      const won = answers.filter((answer) => answer.status === 200)
      assert.ok(won.length <= 1, `${won.length} refreshes succeeded`)
      forget()
      for (const answer of won)
        assert.equal(await statusOf(((await answer.json()) as Tokens).access_token), 401)
    })

    it('stop when the key is revoked, and cannot be refreshed', async () => {
      const tokens = await connectOwner()
      const [key] = await findKeys()
      await revokeKey(server.db, workspace.id, key!.id, server.app.now())
      forget()
      assert.equal(await statusOf(tokens.access_token), 401)
      assert.equal((await refresh(server, tokens.clientId, tokens.refresh_token)).status, 400)
    })

    it('stop when the client revokes them', async () => {
      for (const name of ['access_token', 'refresh_token'] as const) {
        const tokens = await connectOwner()
        const other = await registerClient(server)
        // Another client's wish changes nothing.
        await postForm(server, '/oauth/revoke', { token: tokens[name], client_id: other.body.client_id })
        forget()
        assert.equal(await statusOf(tokens.access_token), 200)
        const revoked = await postForm(server, '/oauth/revoke', {
          token: tokens[name],
          client_id: tokens.clientId,
        })
        assert.equal(revoked.status, 200)
        forget()
        assert.equal(await statusOf(tokens.access_token), 401)
        assert.equal((await refresh(server, tokens.clientId, tokens.refresh_token)).status, 400)
      }
    })

    it('are given for the right verifier, redirect URI, client and resource alone', async () => {
      const { body: client } = await registerClient(server)
      const { verifier, challenge } = createPkce()
      const loginCode = await makeLoginCode(server, workspace.id, workspace.owner.staffId)
      const back = await allow(server, authorizeUrl(client.client_id, challenge), loginCode)
      const right = { clientId: client.client_id as string, code: back.searchParams.get('code')!, verifier }
      const refused = async (given: typeof right, more?: Record<string, string>) => {
        const answer = await exchange(server, given, more)
        assert.equal(answer.status, 400, await answer.clone().text())
        return ((await answer.json()) as { error: string }).error
      }
      assert.equal(await refused({ ...right, verifier: createPkce().verifier }), 'invalid_grant')
      assert.equal(await refused(right, { redirect_uri: 'http://127.0.0.1:8124/callback' }), 'invalid_grant')
      const other = await registerClient(server)
      assert.equal(await refused({ ...right, clientId: other.body.client_id }), 'invalid_grant')
      assert.equal((await exchange(server, right, { resource: PUBLIC_URL })).status, 200)
      const { access_token: _, ...tokens } = await connectOwner()
      const wrong = await refresh(server, tokens.clientId, tokens.refresh_token, {
        resource: 'https://other.example/mcp',
      })
      assert.equal(((await wrong.json()) as { error: string }).error, 'invalid_target')
    })

    it('have the scopes that were allowed, and say what to ask for when one is missing', async () => {
      const tokens = await connectOwner(['mcp:read'])
      assert.equal(tokens.scope, 'mcp:read')
      const refused = await callTool(server, tokens.access_token, 'crm_create_group', {
        name: 'A',
        emoji: 'x',
      })
      assert.equal(refused.status, 403)
      assert.match(
        refused.headers.get('www-authenticate')!,
        /^Bearer error="insufficient_scope", resource_metadata="[^"]+", scope="mcp:read crm:write"$/,
      )
      const wrapped = { operation: 'crm_create_group', input: { name: 'A' } }
      assert.equal((await callTool(server, tokens.access_token, 'run_write_operation', wrapped)).status, 403)
      const wide = await connectOwner(['mcp:read', 'crm:write'])
      const narrow = (await (
        await refresh(server, wide.clientId, wide.refresh_token, { scope: 'mcp:read' })
      ).json()) as Tokens
      assert.equal(
        (await callTool(server, narrow.access_token, 'crm_create_group', { name: 'B' })).status,
        403,
      )
      const rest = await fetch(`${server.url}/v1/me`, {
        headers: { Authorization: `Bearer ${narrow.access_token}` },
      })
      assert.deepEqual(((await rest.json()) as any).key.scopes, ['mcp:read'])
    })

    it('act as an agent that sees phones masked and can be paused', async () => {
      const tokens = await connectOwner()
      const headers = { Authorization: `Bearer ${tokens.access_token}`, 'Content-Type': 'application/json' }
      const created = await fetch(`${server.url}/v1/contacts`, {
        method: 'POST',
        headers: { ...headers, Authorization: `Bearer ${workspace.owner.key}` },
        body: JSON.stringify({ phone: '+15550100777', name: 'Ada' }),
      })
      assert.ok(created.ok, await created.clone().text())
      const seen = await (await fetch(`${server.url}/v1/contacts`, { headers })).text()
      assert.match(seen, /"Ada"/)
      assert.ok(!seen.includes('15550100777'), seen)
      const [key] = await findKeys()
      await server.db
        .updateTable('api_keys')
        .set({ paused_at: server.app.now() })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', key!.id)
        .execute()
      forget()
      assert.equal((await fetch(`${server.url}/v1/contacts`, { headers })).status, 403)
    })

    it('reach the workspace of who signed in, and no other', async () => {
      const other = await makeWorkspace(server, { name: 'Other' })
      const mine = await connectOwner()
      const theirs = await connect(server, other.id, other.owner.staffId)
      const show = async ({ access_token: token }: Tokens) =>
        ((await (await callTool(server, token, 'workspace_whoami')).json()) as any).result.structuredContent
          .workspace.id
      assert.deepEqual([await show(mine), await show(theirs)], [workspace.id, other.id])
    })

    it('are stored as hashes, and forgotten when they expire, with the key of a grant that has none left', async () => {
      const tokens = await connectOwner()
      const { rows } = await sql<{ row: string }>`
        select r::text as row from oauth_records r union all select g::text from oauth_grants g
        union all select k::text from api_keys k`.execute(server.db)
      for (const secret of [tokens.access_token, tokens.refresh_token, tokens.code])
        assert.ok(
          rows.every(({ row }) => !row.includes(secret)),
          'a credential is stored as it is',
        )
      const [key] = await findKeys()
      await sql`
        update oauth_records set expires_at = now() - interval '1 second' where kind <> 'Grant'`.execute(
        server.db,
      )
      await sql`update oauth_grants set created_at = now() - interval '1 hour'`.execute(server.db)
      await deleteOldOauth(server.app)
      const after = (await findKeys()).find(({ id }) => id === key!.id)!
      assert.notEqual(after.revoked_at, null)
      const left = await sql<{ n: string }>`
        select count(*) as n from oauth_records`.execute(server.db)
      assert.equal(left.rows[0]!.n, '0')
    })
  })
