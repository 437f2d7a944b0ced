import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Problem } from '../../server/kernel/problem.ts'
import { sealAccountSecret } from '../../server/provider/account-secrets.ts'
import { createRoutedProvider } from '../../server/domains/health/routed-provider.ts'
import { resolveProviderSettings } from '../../server/provider/settings.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { insertProviderAccount, updateProviderAccount } from '../../storage/channels/provider-accounts.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'
import { orderDraft } from '../templates/drafts.ts'
import { DEFAULT_APP_SECRET, DEFAULT_TOKEN, type Graph, startGraph } from './graph.ts'
import { buildCustomerMessage, buildWebhookBody, type WebhookPart } from './webhook-fixture.ts'
import { measureStaleness } from '../staleness.ts'

/** Stores credentials of the workspace's account, as `wcrm admin accounts create` does. */
const addAccount = async (
  { app, db }: TestServer,
  { id }: Pick<TestWorkspace, 'id'>,
  secrets: { token: string; appSecret?: string; verifyToken?: string; appId?: string },
  accountId = `77${id}`,
): Promise<void> => {
  const account = { workspace_id: id, account_id: accountId }
  const seal = (what: 'token' | 'app_secret' | 'verify_token', text: string | undefined) =>
    text === undefined ? {} : { [what]: sealAccountSecret(app.accountSealer, account, what, text) }
  await insertProviderAccount(
    db,
    id,
    accountId,
    {
      token: sealAccountSecret(app.accountSealer, account, 'token', secrets.token),
      ...seal('app_secret', secrets.appSecret),
      ...seal('verify_token', secrets.verifyToken),
      ...(secrets.appId === undefined ? {} : { app_id: secrets.appId }),
    },
    app.now(),
  )
}

for (const database of databases)
  describe(`Credentials of accounts (${database})`, () => {
    let graph: Graph
    let server: TestServer
    before(async () => {
      graph = await startGraph()
      server = await startServer(database, { provider: graph.config })
    })
    after(async () => {
      await server.close()
      await graph.close()
    })

    const makeCompany = async (secrets?: Parameters<typeof addAccount>[2]) => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      if (secrets) await addAccount(server, workspace, secrets)
      return { workspace, number: `88${workspace.id}`, account: `77${workspace.id}` }
    }
    const post = (body: string, secret: string) =>
      fetch(`${server.url}/provider/webhook`, {
        method: 'POST',
        body,
        headers: {
          'Content-Type': 'application/json',
          'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
        },
      })
    const messageTo = (number: string, from: string, fields: WebhookPart = {}): WebhookPart => ({
      field: 'messages',
      value: {
        messaging_product: 'whatsapp',
        metadata: { display_phone_number: '15550100001', phone_number_id: number },
        messages: [buildCustomerMessage(from, fields)],
      },
    })
    const countConversations = async ({ owner }: TestWorkspace) =>
      (await doAs(server, owner.key)('inbox_search_conversations')).data.length

    it('several companies: sends, templates, links, samples and files use the token of their account', async () => {
      const [one, two, other] = [
        await makeCompany({ token: 'EAAGone', appId: '101', appSecret: 'secret one' }),
        await makeCompany({ token: 'EAAGtwo', appId: '102', appSecret: 'secret two' }),
        await makeCompany(),
      ]
      for (const [{ workspace, number, account }, token, appId, secret] of [
        [one, 'EAAGone', '101', 'secret one'],
        [two, 'EAAGtwo', '102', 'secret two'],
        [other, DEFAULT_TOKEN, '4711', DEFAULT_APP_SECRET],
      ] as const) {
        const run = doAs(server, workspace.owner.key)
        const call = callAs(server, workspace.owner.key)
        graph.calls.length = 0
        const { id } = await plantConversation(server, workspace.id)
        await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
        const created = await call(
          'messaging_create_template',
          { template: orderDraft },
          { confirm: 'submit', idempotencyKey: `template-${workspace.id}` },
        )
        assert.equal(created.status, 201, created.text)
        const link = await call(
          'messaging_create_short_link',
          { message: 'Hi' },
          { idempotencyKey: `link-of-${workspace.id}` },
        )
        assert.equal(link.status, 201, link.text)
        await run('messaging_upload_template_sample', {
          file_name: 'a.png',
          content_type: 'image/png',
          data: Buffer.from('89504e470d0a1a0a0000', 'hex').toString('base64'),
        })
        const file = messageTo(number, '15550107777', {
          type: 'image',
          text: undefined,
          image: { id: `media${workspace.id}`, mime_type: 'image/png' },
        })
        assert.equal((await post(buildWebhookBody(account, file), secret)).status, 200)
        await server.app.jobs.job('provider-updates').runOnce()
        await server.app.jobs.job('media-downloads').runOnce()
        const paths = graph.calls.map(({ path }) => path)
        for (const path of [
          `${number}/messages`,
          `${account}/message_templates`,
          `${number}/message_qrdls`,
          `${appId}/uploads`,
          'upload:MTphdHRh',
          `media${workspace.id}`,
          `files/media${workspace.id}`,
        ])
          assert.ok(paths.includes(path), `${path} in ${paths.join(', ')}`)
        assert.deepEqual([...new Set(graph.calls.map((one_) => one_.token))], [token])
      }
    })

    it('new credentials are in force within a second, without a restart', async () => {
      const { workspace, number } = await makeCompany({ token: 'EAAGold' })
      const { id } = await plantConversation(server, workspace.id)
      const run = doAs(server, workspace.owner.key)
      await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
      const account = { workspace_id: workspace.id, account_id: `77${workspace.id}` }
      const token = sealAccountSecret(server.app.accountSealer, account, 'token', 'EAAGnew')
      await updateProviderAccount(server.db, workspace.id, account.account_id, { token }, server.app.now())
      const lastToken = () => graph.tokensOf(new RegExp(`^${number}/messages$`)).at(-1)
      assert.equal(lastToken(), 'EAAGold')
      const staleMs = await measureStaleness(async () => {
        await run('messaging_send_reply', { conversation_id: id, text: 'Hi again' })
        return lastToken() === 'EAAGnew'
      })
      assert.ok(staleMs < 1000, `the old token is used after ${staleMs} ms`)
    })

    it('an account with its own app secret takes nothing that another secret signed', async () => {
      const [victim, thief] = [
        await makeCompany({ token: 'EAAGv', appSecret: 'secret of the victim' }),
        await makeCompany({ token: 'EAAGt', appSecret: 'secret of the thief' }),
      ]
      const forged = {
        'an entry of the account': buildWebhookBody(victim.account, messageTo(victim.number, '15550108001')),
        "the number in an entry of one's own": buildWebhookBody(
          thief.account,
          messageTo(victim.number, '15550108002'),
        ),
        'its state': buildWebhookBody(victim.account, {
          field: 'account_update',
          value: { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE' } },
        }),
      }
      for (const [what, body] of Object.entries(forged))
        for (const secret of ['secret of the thief', DEFAULT_APP_SECRET])
          assert.equal((await post(body, secret)).status, 403, `${what}, signed with ${secret}`)
      // Beside something that the signer may report.
      const mixed = JSON.stringify({
        object: 'whatsapp_business_account',
        entry: [
          { id: thief.account, changes: [messageTo(thief.number, '15550108003')] },
          { id: victim.account, changes: [messageTo(victim.number, '15550108004')] },
        ],
      })
      assert.equal((await post(mixed, 'secret of the thief')).status, 200)
      await server.app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(
        [await countConversations(victim.workspace), await countConversations(thief.workspace)],
        [0, 1],
      )
      const [channel] = (await doAs(server, victim.workspace.owner.key)('workspace_channels')).data
      assert.equal(channel.status, 'connected')
      const own = buildWebhookBody(victim.account, messageTo(victim.number, '15550108001'))
      assert.equal((await post(own, 'secret of the victim')).status, 200)
      await server.app.jobs.job('provider-updates').runOnce()
      assert.equal(await countConversations(victim.workspace), 1)
    })

    it('an account without an app secret of its own takes what the app of the server signed alone', async () => {
      const [plain, thief] = [
        await makeCompany({ token: 'EAAGp' }),
        await makeCompany({ token: 'EAAGt', appSecret: 'another secret of a thief' }),
      ]
      const body = (entry: string, from: string) => buildWebhookBody(entry, messageTo(plain.number, from))
      assert.equal((await post(body(thief.account, '15550108005'), 'another secret of a thief')).status, 403)
      assert.equal((await post(body(plain.account, '15550108005'), 'another secret of a thief')).status, 403)
      assert.equal((await post(body(plain.account, '15550108006'), DEFAULT_APP_SECRET)).status, 200)
      await server.app.jobs.job('provider-updates').runOnce()
      assert.equal(await countConversations(plain.workspace), 1)
    })

    it('a number that is no channel here is taken from its signer, and ignored', async () => {
      const company = await makeCompany({ token: 'EAAGn', appSecret: 'secret of n' })
      const body = buildWebhookBody(company.account, messageTo('990000000000', '15550108007'))
      assert.equal((await post(body, 'secret of n')).status, 200)
    })

    it('the address is verified with the verify token of any account', async () => {
      await makeCompany({ token: 'EAAGw', verifyToken: 'verify token of w' })
      const verify = async (token: string) =>
        (
          await fetch(
            `${server.url}/provider/webhook?${new URLSearchParams({
              'hub.mode': 'subscribe',
              'hub.challenge': '42',
              'hub.verify_token': token,
            })}`,
          )
        ).status
      assert.deepEqual(
        [await verify('verify token of w'), await verify('our verify token'), await verify('neither')],
        [200, 200, 403],
      )
    })

    it('where accounts have credentials of their own, a sample names the one that it is for', async () => {
      const { workspace } = await makeCompany({ token: 'EAAGs', appId: '103' })
      await createChannel(
        server.db,
        workspace.id,
        { type: 'chatapp', status: 'connected', account_id: `78${workspace.id}`, account_name: 'Second' },
        server.app.now(),
      )
      const upload = (more: object = {}) =>
        callAs(server, workspace.owner.key)('messaging_upload_template_sample', {
          file_name: 'a.png',
          content_type: 'image/png',
          data: Buffer.from('89504e470d0a1a0a0000', 'hex').toString('base64'),
          ...more,
        })
      const ambiguous = await upload()
      assert.deepEqual([ambiguous.status, ambiguous.body.reason], [400, 'account_ambiguous'])
      graph.calls.length = 0
      assert.equal((await upload({ business_account_id: `77${workspace.id}` })).status, 201)
      assert.equal((await upload({ business_account_id: `78${workspace.id}` })).status, 201)
      assert.deepEqual(graph.tokensOf(/uploads$/), ['EAAGs', DEFAULT_TOKEN])
    })

    it('credentials that were sealed elsewhere send nothing, and the answer says so', async () => {
      const { workspace, number } = await makeCompany()
      await insertProviderAccount(
        server.db,
        workspace.id,
        `77${workspace.id}`,
        { token: 'TfGMKp0a.x' },
        server.app.now(),
      )
      const { id } = await plantConversation(server, workspace.id)
      const { status, body } = await callAs(server, workspace.owner.key)(
        'messaging_send_reply',
        { conversation_id: id, text: 'Hi' },
        { confirm: 'send' },
      )
      assert.deepEqual([status, body.code], [503, 'service_unconfigured'])
      assert.match(body.detail, /wcrm admin accounts update/)
      assert.deepEqual(graph.tokensOf(new RegExp(`^${number}/`)), [])
    })

    it('credentials that cannot be read: no call is made, and everybody who asks learns that', async () => {
      const { number } = await makeCompany()
      const db = server.db.withPlugin({
        transformQuery: () => {
          throw new Error('the database does not answer')
        },
        transformResult: async ({ result }) => result,
      })
      const settings = resolveProviderSettings(graph.config, {
        secret: 'unused',
        localUrl: '',
        embedded: false,
      })!
      const provider = createRoutedProvider(settings, server.app.webhookGuard, () => ({
        ...server.app,
        db,
      }))
      const send = () =>
        provider
          .send(
            { phoneNumberId: number },
            { to: '15550100042', reference: 'msg_unread', body: { type: 'text', text: { body: 'Hi' } } },
            AbortSignal.timeout(5000),
          )
          .catch(({ code, extras }: Problem) => [code, extras?.reason])
      // At the same time: the second waits for what the first one reads.
      assert.deepEqual(await Promise.all([send(), send()]), [
        ['upstream_unavailable', 'unreachable'],
        ['upstream_unavailable', 'unreachable'],
      ])
      assert.deepEqual(graph.tokensOf(new RegExp(`^${number}/`)), [])
    })
  })
