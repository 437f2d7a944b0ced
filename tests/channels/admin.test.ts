import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { deliverDueReplies } from '../deliver-due.ts'
import { computeSecretFingerprint, getKeyId, requireKnownSecret } from '../../server/secret.ts'
import { runAdminWith } from '../admin/admin-commands.ts'
import { doAs } from '../calls.ts'
import { createDatabase, databases, type TestDatabase } from '../databases.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { countSealed, findSecretFingerprint } from '../../storage/access/secrets.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { openDelivery, post, postAs } from './bridge.ts'

const SECRET = 'a secret of at least sixteen'
const NEXT = 'the next secret of this server'

for (const database of databases)
  describe(`wcrm admin channels, for channels of one’s own (${database})`, () => {
    type Scene = {
      server: TestServer
      workspace: TestWorkspace
      bridge: Awaited<ReturnType<typeof startReceiver>>
      /** Runs a command; `exit` and its JSON. */
      admin: (...argv: string[]) => Promise<{ exit: number; body: any; err: string }>
    }

    let created: TestDatabase
    let storage: Storage
    let server: TestServer
    let bridge: Scene['bridge']
    before(async () => {
      created = await createDatabase(database)
      storage = await openStorage(created.location)
      server = await serveStorage(storage, database, { secrets: [SECRET] })
      await requireKnownSecret({ db: storage.db, embedded: false }, server.app.secrets)
      await server.app.jobs.job('channel-deliveries').stop()
      bridge = await startReceiver()
    })
    after(async () => {
      await bridge.close()
      await server.close()
      await storage.close()
      await created.remove()
    })

    /** A workspace, and the commands of its administrator, who has the server's settings. */
    const withScene = async (work: (scene: Scene) => Promise<void>): Promise<void> => {
      const workspace = await makeWorkspace(server)
      const { location } = created
      const flags = [
        ...('databaseUrl' in location
          ? ['--database-url', location.databaseUrl]
          : ['--data', location.dataDir]),
        '--workspace',
        workspace.id,
        '--json',
      ]
      const env = { WCRM_SECRET: SECRET, WCRM_WEBHOOK_ALLOW: '127.0.0.0/8' }
      await work({
        server,
        workspace,
        bridge,
        admin: async (...argv) => {
          const { exit, out, err } = await runAdminWith(env, 'channels', ...argv, ...flags)
          return { exit, body: JSON.parse(exit === 0 ? out : err), err }
        },
      })
    }

    const create = ({ admin, bridge }: Scene) =>
      admin('create', '--type', 'custom', '--name', 'Radio', '--identifier', 'radio', '--url', bridge.url)

    it('create prints the secret and the token once; a bridge works with them', () =>
      withScene(async (scene) => {
        const { exit, body: channel } = await create(scene)
        assert.equal(exit, 0, JSON.stringify(channel))
        assert.match(channel.signing_secret, /^whsec_/)
        assert.match(channel.token, /^wc_chan_[0-9A-Za-z]{40}$/)
        assert.deepEqual(
          [channel.inbound_path, channel.url, channel.status],
          [`/channels/${channel.id}/inbound`, scene.bridge.url, 'connected'],
        )
        const listed = await scene.admin('list')
        const text = JSON.stringify(listed.body)
        assert.ok(!text.includes(channel.token) && !text.includes(channel.signing_secret))
        const stored = await sql<{ row: string }>`
          select s::text || t::text as row from channel_secrets s
          join channel_tokens t using (workspace_id, channel_id)
          where s.channel_id = ${channel.id}`.execute(scene.server.db)
        assert.ok(!stored.rows[0]!.row.includes(channel.token.slice(8)))
        assert.ok(!stored.rows[0]!.row.includes(channel.signing_secret.slice(6)))

        const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
        const { conversation_id: id } = await post(scene.server, channel, 'inbound', hello)
        const run = doAs(scene.server, scene.workspace.owner.key)
        await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
        await deliverDueReplies(scene.server.app)
        assert.equal(openDelivery(scene.bridge.received.at(-1)!, channel.signing_secret).text, 'Hi')
        const shown = JSON.stringify(await run('workspace_channels'))
        assert.ok(!shown.includes(scene.bridge.url), 'the URL is the administrator’s')
      }))

    it('update gives a channel its first URL, changes it and removes it', () =>
      withScene(async (scene) => {
        const flags = ['--type', 'web', '--name', 'Site', '--identifier', 'site']
        const { body: bare } = await scene.admin('create', ...flags)
        assert.deepEqual([bare.url, bare.token], [null, undefined])
        const { body: first } = await scene.admin('update', bare.id, '--url', scene.bridge.url)
        assert.match(first.token, /^wc_chan_/)
        const { body: second } = await scene.admin('update', bare.id, '--url', `${scene.bridge.url}/2`)
        assert.deepEqual([second.url, second.token], [`${scene.bridge.url}/2`, undefined])
        const { body: none } = await scene.admin('update', bare.id, '--url', 'none')
        assert.equal(none.url, null)
      }))

    it('refuses URLs that are not public, and channels of the provider', () =>
      withScene(async ({ admin, bridge, workspace, server }) => {
        const identity = ['--name', 'X', '--identifier', 'x']
        for (const [argv, detail] of [
          [['--type', 'custom', '--url', 'http://example.com/'], /--url must begin with https/],
          [
            ['--type', 'custom', '--url', 'https://10.1.2.3/'],
            /--url resolves to an address that is not public/,
          ],
          [['--type', 'chatapp', '--url', bridge.url], /type chatapp has no URL of its own/],
          [['--type', 'photoapp', '--url', bridge.url], /type photoapp has no URL of its own/],
        ] as const) {
          const { exit, body } = await admin('create', ...argv, ...identity)
          assert.equal(exit, 2, JSON.stringify(body))
          assert.match(body.detail, detail)
        }
        for (const [url, exception] of [
          ['http://10.1.2.3:8790/replies', '10.1.2.3:8790'],
          ['https://bridge.internal/', 'bridge.internal:443'],
          ['https://[fd00::1]:8790/', '[fd00::1]:8790'],
        ] as const) {
          const { body } = await admin('create', '--type', 'web', '--url', url, ...identity)
          const { fix } = body.errors[0]
          assert.ok(fix.includes(`set WCRM_WEBHOOK_ALLOW=${exception} for wcrm serve and wcrm admin`), fix)
        }
        const { body: channel } = await admin('create', '--type', 'sms', '--url', bridge.url, ...identity)
        assert.equal((await admin('update', channel.id, '--type', 'chatapp')).exit, 2)
        const rows = await server.db
          .selectFrom('channels')
          .select('id')
          .where('workspace_id', '=', workspace.id)
          .execute()
        assert.equal(rows.length, 2)
      }))

    it('a rotated secret signs beside the old ones, each for as long as it was promised', () =>
      withScene(async (scene) => {
        const { body: channel } = await create(scene)
        const { body: second } = await scene.admin('rotate-secret', channel.id)
        const { body: third } = await scene.admin('rotate-secret', channel.id, '--overlap', '7d')
        assert.ok(Date.parse(third.old_secret_valid_until) > Date.parse(second.old_secret_valid_until))
        const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
        const { conversation_id: id } = await post(scene.server, channel, 'inbound', hello)
        const run = doAs(scene.server, scene.workspace.owner.key)
        const deliver = async () => {
          await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
          await deliverDueReplies(scene.server.app)
          return scene.bridge.received.at(-1)!
        }
        const delivered = await deliver()
        for (const { signing_secret } of [channel, second, third])
          assert.equal(openDelivery(delivered, signing_secret).text, 'Hi')
        const { body: fourth } = await scene.admin('rotate-secret', channel.id, '--overlap', '0')
        assert.equal(fourth.old_secret_valid_until, null)
        const after = await deliver()
        assert.throws(() => openDelivery(after, third.signing_secret))
        for (const { signing_secret } of [channel, second, fourth]) openDelivery(after, signing_secret)
        // Five may sign at a time; then one has to expire.
        for (let n = 0; n < 2; n++) assert.equal((await scene.admin('rotate-secret', channel.id)).exit, 0)
        const refused = await scene.admin('rotate-secret', channel.id)
        assert.deepEqual([refused.exit, /still valid/.test(refused.body.detail)], [2, true])
      }))

    it('a rotated token works at once, the old one for as long as it was promised', () =>
      withScene(async ({ admin, server, ...scene }) => {
        const { body: channel } = await create({ admin, server, ...scene })
        const { body: second } = await admin('rotate-token', channel.id)
        const statusOf = async (token: string) =>
          (await postAs(server, { id: channel.id, token }, 'inbound', {})).status
        assert.deepEqual([await statusOf(channel.token), await statusOf(second.token)], [400, 400])
        await sql`
          update channel_tokens set valid_until = now() where channel_id = ${channel.id} and valid_until is not null
        `.execute(server.db)
        assert.deepEqual([await statusOf(channel.token), await statusOf(second.token)], [401, 400])
        const { body: third } = await admin('rotate-token', channel.id, '--overlap', '0')
        assert.deepEqual(
          [await statusOf(channel.token), await statusOf(second.token), await statusOf(third.token)],
          [401, 401, 400],
        )
        const plain = await admin('create', '--type', 'web', '--name', 'W', '--identifier', 'w')
        for (const verb of ['rotate-token', 'rotate-secret']) {
          const { exit, body } = await admin(verb, plain.body.id)
          assert.deepEqual([exit, /has no bridge yet/.test(body.detail)], [2, true])
          assert.equal((await admin(verb, '999')).exit, 3)
        }
      }))

    it('secrets are sealed again after a rotation of WCRM_SECRET', () =>
      withScene(async (scene) => {
        const { body: channel } = await create(scene)
        const { db } = storage
        const countStale = async (secret: string): Promise<number> =>
          (await countSealed(db, [], getKeyId(computeSecretFingerprint(secret)))).stale
        assert.ok((await countStale(NEXT)) > 0)
        await sql`delete from servers`.execute(db)
        const next = await serveStorage(storage, database, { secrets: [NEXT, SECRET] })
        await requireKnownSecret({ db, embedded: false }, next.app.secrets)
        await next.app.jobs.job('secret-rotation').runOnce()
        assert.equal(await findSecretFingerprint(db), computeSecretFingerprint(NEXT))
        assert.equal(await countStale(NEXT), 0)
        const last = await serveStorage(storage, database, { secrets: [NEXT] })
        await last.app.jobs.job('channel-deliveries').stop()
        const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
        const { conversation_id: id } = await post(last, channel, 'inbound', hello)
        await doAs(last, scene.workspace.owner.key)('messaging_send_reply', {
          conversation_id: id,
          text: 'Hi',
        })
        await deliverDueReplies(last.app)
        openDelivery(bridge.received.at(-1)!, channel.signing_secret)
        // This administrator has the old secret alone: nobody could open what it seals.
        const refused = await scene.admin('rotate-secret', channel.id)
        assert.deepEqual([refused.exit, /secret of the servers/.test(refused.body.detail)], [2, true])
        await next.close()
        await last.close()
      }))
  })
