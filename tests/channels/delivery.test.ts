import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { updateChannel } from '../../storage/workspace/admin.ts'
import { claimRuns } from '../../storage/work/runs.ts'
import { everyDatabase } from '../doors.ts'
import { listEmittedEventTypes, summarizeReply } from '../messaging/fixtures.ts'
import { loadWorkspaceRows } from '../world.ts'
import { type BridgeScene, createBridgeScene, makeDue, openDelivery } from './bridge.ts'

everyDatabase(
  'Replies on a channel of one’s own',
  (server) => {
    const withScene = async (work: (scene: BridgeScene) => Promise<void>, type?: string): Promise<void> => {
      const scene = await createBridgeScene(server(), type)
      try {
        await work(scene)
      } finally {
        await scene.bridge.close()
      }
    }
    const statusOf = async ({ run }: BridgeScene, id: string): Promise<string> =>
      (await run('messaging_get_message', { message_id: id })).status
    const bodies = ({ bridge, channel }: BridgeScene): any[] =>
      bridge.received.map((received) => openDelivery(received, channel.secret))

    it('a reply is pending until the bridge takes it, signed, once', () =>
      withScene(async (scene) => {
        const { conversation, contact } = await scene.hello()
        const reply = await scene.reply(conversation)
        assert.equal(reply.status, 201, reply.text)
        const { id, status, from } = reply.body.message
        assert.deepEqual([status, from.name], ['pending', 'Owner'])
        await scene.deliver()
        await scene.deliver()
        assert.deepEqual(bodies(scene), [
          {
            id,
            channel_id: scene.channel.id,
            conversation_id: conversation,
            to: { id: 'visitor-1', contact_id: contact, name: 'Ada' },
            from: { staff_id: scene.workspace.owner.staffId, name: 'Owner' },
            actor: {
              staff: { id: scene.workspace.owner.staffId, name: 'Owner' },
              key: { id: scene.workspace.owner.keyId, name: null },
              agent: false,
              approved_by: null,
            },
            type: 'TEXT',
            text: 'Hi Ada',
            content: null,
            media: null,
            reply_to: null,
            created_at: reply.body.message.created_at,
          },
        ])
        const { headers } = scene.bridge.received[0]!
        assert.deepEqual(
          [headers['webhook-id'], headers['wc-channel-id'], headers['wc-attempt']],
          [id, scene.channel.id, '1'],
        )
        assert.equal(await statusOf(scene, id), 'sent')
        const after = await scene.run('inbox_get_conversation', { conversation_id: conversation })
        assert.deepEqual([after.reply_status, after.unread_count], ['outgoing_no_response', 0])
        const types = await listEmittedEventTypes(server(), scene.workspace)
        assert.equal(types.filter((type) => type === 'message.sent/1').length, 1)
      }))

    it('a repeat with the same key sends nothing again; a dry run sends nothing', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const before = await loadWorkspaceRows(server().db, scene.workspace.id)
        const rehearsal = await scene.reply(conversation, { text: 'Hi', dry_run: true })
        assert.deepEqual([rehearsal.status, rehearsal.body.message.id], [201, null], rehearsal.text)
        assert.deepEqual(await loadWorkspaceRows(server().db, scene.workspace.id), before)
        const key = { confirm: 'send', idempotencyKey: 'one-reply-only' }
        const input = { conversation_id: conversation, text: 'Hi' }
        const first = await scene.call('messaging_send_reply', input, key)
        const again = await scene.call('messaging_send_reply', input, key)
        assert.equal(again.text, first.text)
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 1)
      }))

    it('files, quick messages and the message that is replied to reach the bridge', () =>
      withScene(async (scene) => {
        const { conversation, message } = await scene.hello()
        const media = { media_url: 'https://example.com/a.pdf', type: 'DOCUMENT', caption: 'Here' }
        await scene.reply(conversation, { ...media, file_name: 'a.pdf', reply_to_id: message })
        const quick = await scene.run('messaging_create_quick_message', {
          code: 'hi',
          type: 'TEXT',
          text: 'Hi {{contact.name}}',
          visibility: 'private',
        })
        await scene.reply(conversation, { quick_message_id: quick.id })
        await scene.deliver()
        const [file, text] = bodies(scene)
        assert.deepEqual(
          [file.type, file.text, file.media],
          ['DOCUMENT', 'Here', { url: 'https://example.com/a.pdf', file_name: 'a.pdf' }],
        )
        assert.deepEqual(file.reply_to, { message_id: message, id: 'hello-1' })
        assert.equal(text.text, 'Hi Ada')
      }))

    it('a bridge that fails is tried again with the same id and bytes', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const answers = [{ status: 500 }, 'drop', { status: 429, headers: { 'retry-after': '600' } }] as const
        scene.bridge.answer = () => answers[scene.bridge.received.length - 1] ?? {}
        const { message } = (await scene.reply(conversation)).body
        for (const waits of [5, 30, 600]) {
          await scene.deliver()
          assert.equal(await statusOf(scene, message.id), 'pending')
          const { rows } = await sql<{ seconds: number }>`
          select extract(epoch from run_after - now())::float8 as seconds from runs
          where workspace_id = ${scene.workspace.id} and kind = 'channel_deliveries'`.execute(server().db)
          assert.ok(Math.abs(rows[0]!.seconds - waits) < waits * 0.1 + 4, `${rows[0]!.seconds} for ${waits}`)
          await makeDue(server(), scene.workspace.id)
        }
        await scene.deliver()
        assert.equal(await statusOf(scene, message.id), 'sent')
        const sent = scene.bridge.received
        assert.deepEqual(
          sent.map(({ headers }) => [headers['webhook-id'], headers['wc-attempt']]),
          [1, 2, 3, 4].map((n) => [message.id, String(n)]),
        )
        assert.equal(new Set(sent.map(({ body }) => body)).size, 1)
      }))

    it('a refusal fails the message with its reason, and the customer still waits', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const problem = { instance: 'x'.repeat(2000), detail: 'The visitor has left.' }
        scene.bridge.answer = () => ({ status: 422, body: JSON.stringify(problem) })
        const { message } = (await scene.reply(conversation)).body
        await scene.deliver()
        const failed = await scene.run('messaging_get_message', { message_id: message.id })
        assert.deepEqual(
          [failed.status, failed.error],
          ['failed', 'The bridge answered 422: The visitor has left.'],
        )
        assert.ok(failed.failed_at !== null)
        assert.ok((await listEmittedEventTypes(server(), scene.workspace)).includes('message.failed/1'))
        const after = await scene.run('inbox_get_conversation', { conversation_id: conversation })
        assert.equal(after.reply_status, 'incoming_no_reply')
        await makeDue(server(), scene.workspace.id)
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 1)
      }))

    it('after the last attempt the message has failed', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        scene.bridge.answer = () => ({ status: 301, headers: { location: 'https://example.com/' } })
        const { message } = (await scene.reply(conversation)).body
        for (let n = 0; n < 8; n++) {
          await scene.deliver()
          await makeDue(server(), scene.workspace.id)
        }
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 8)
        const failed = await scene.run('messaging_get_message', { message_id: message.id })
        assert.equal(failed.error, 'The bridge answered 301. It was tried 8 times.')
      }))

    it('replies of a conversation arrive in order, and hold up no other', () =>
      withScene(async (scene) => {
        const [ada, grace] = [await scene.hello('ada'), await scene.hello('grace')]
        scene.bridge.answer = ({ body }) => (body.includes('"one"') ? { status: 503 } : {})
        for (const text of ['one', 'two']) await scene.reply(ada.conversation, { text })
        await scene.reply(grace.conversation, { text: 'three' })
        await scene.deliver()
        const texts = () => bodies(scene).map(({ text }) => text)
        assert.deepEqual(texts().toSorted(), ['one', 'three'])
        scene.bridge.answer = () => ({})
        await makeDue(server(), scene.workspace.id)
        await scene.deliver()
        assert.deepEqual(texts().slice(2), ['one', 'two'])
      }))

    it('a server that died is taken over: the bridge sees the same id', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const { message } = (await scene.reply(conversation)).body
        const { db } = server()
        // It sent the reply, and was killed before it recorded that.
        await claimRuns(db, { kind: 'channel_deliveries', leaseSeconds: 30, limit: 64 })
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 0, 'another server waits for the lease')
        await makeDue(server(), scene.workspace.id)
        await scene.deliver()
        assert.deepEqual(
          scene.bridge.received.map(({ headers }) => headers['webhook-id']),
          [message.id],
        )
      }))

    it('statuses of the bridge change the message, in any order and repeatedly', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const { message } = (await scene.reply(conversation)).body
        await scene.deliver()
        const report = async (status: string, more: object = {}) =>
          (await scene.status({ message_id: message.id, status, ...more })).body
        assert.deepEqual(await report('read'), { message_id: message.id, status: 'read', changed: true })
        assert.deepEqual(await report('delivered'), {
          message_id: message.id,
          status: 'read',
          changed: false,
        })
        assert.equal((await report('read')).changed, false)
        const shown = await scene.run('messaging_get_message', { message_id: message.id })
        assert.ok(shown.read_at !== null && shown.delivered_at !== null)

        const second = (await scene.reply(conversation, { text: 'And' })).body.message
        await scene.deliver()
        const failure = { message_id: second.id, status: 'failed', error: 'The browser was closed.' }
        assert.equal((await scene.status(failure)).body.status, 'failed')
        const failed = await scene.run('messaging_get_message', { message_id: second.id })
        assert.equal(failed.error, 'The browser was closed.')
        const types = await listEmittedEventTypes(server(), scene.workspace)
        for (const type of ['message.read/1', 'message.failed/1'])
          assert.equal(types.filter((one) => one === type).length, 1, type)
      }))

    it('a status says that the bridge has the reply, where its answer was lost', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        scene.bridge.answer = () => 'drop'
        const { message } = (await scene.reply(conversation)).body
        await scene.deliver()
        assert.equal((await scene.status({ message_id: message.id, status: 'delivered' })).body.changed, true)
        assert.equal(await statusOf(scene, message.id), 'delivered')
        await makeDue(server(), scene.workspace.id)
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 1)
        const types = await listEmittedEventTypes(server(), scene.workspace)
        assert.deepEqual(
          types.filter((type) => /^message\.(sent|delivered)/.test(type)),
          ['message.sent/1', 'message.delivered/1'],
        )
      }))

    it('a reply that counts as failed is not delivered any more', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const { message } = (await scene.reply(conversation)).body
        const { db } = server()
        await db.updateTable('messages').set({ status: 'failed' }).where('id', '=', message.id).execute()
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 0)
        const left = await db
          .selectFrom('channel_deliveries')
          .select('message_id')
          .where('workspace_id', '=', scene.workspace.id)
          .execute()
        assert.deepEqual(left, [])
      }))

    it('no window applies, and a channel that is off or has no URL refuses replies', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const { db } = server()
        for (const [fields, expected] of [
          [{}, [201]],
          [{ status: 'disconnected' }, [409, 'conflict', 'channel_not_connected']],
          [{ status: 'unknown' }, [409, 'conflict', 'channel_not_connected']],
          [{ status: 'connected', url: null }, [409, 'conflict', 'channel_not_supported']],
          [{ url: scene.bridge.url }, [201]],
        ] as const) {
          if (Object.keys(fields).length > 0)
            await updateChannel(db, scene.workspace.id, scene.channel.id, fields)
          const { window } = await scene.run('inbox_get_conversation', { conversation_id: conversation })
          const reply = await scene.reply(conversation, { text: 'Hi', dry_run: true })
          assert.deepEqual(reply.status === 201 ? [201] : summarizeReply(reply), expected)
          assert.deepEqual(
            [window.applies, window.open, window.kind, window.reason],
            [false, true, null, null],
          )
          const [waiting] = (await scene.run('inbox_queue')).data
          assert.equal(waiting.can_reply, reply.status === 201)
          const [row] = (await scene.run('inbox_search_conversations')).data
          assert.deepEqual(row.window, window)
        }
      }))

    it('a template is refused', () =>
      withScene(async (scene) => {
        const { contact } = await scene.hello()
        const template = { name: 'any', language: 'en_US' }
        const input = { contact_id: contact, channel_id: scene.channel.id, template }
        const reply = await scene.call('messaging_send_template', input, { confirm: 'send' })
        assert.deepEqual(summarizeReply(reply), [409, 'conflict', 'channel_not_supported'])
        assert.match(reply.body.detail, /messaging_send_reply/)
      }))

    it('replies wait while the channel is disconnected, for a day at most', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        const [first, second] = [await scene.reply(conversation), await scene.reply(conversation)]
        const { db } = server()
        const set = (fields: object) => updateChannel(db, scene.workspace.id, scene.channel.id, fields)
        await set({ status: 'disconnected' })
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 0)
        await sql`
        update channel_deliveries set expires_at = now()
        where workspace_id = ${scene.workspace.id} and message_id = ${first.body.message.id}`.execute(db)
        await makeDue(server(), scene.workspace.id)
        await scene.deliver()
        const failed = await scene.run('messaging_get_message', { message_id: first.body.message.id })
        assert.deepEqual(
          [failed.status, failed.error],
          ['failed', 'The channel took no replies for 24 hours.'],
        )
        assert.equal(await statusOf(scene, second.body.message.id), 'pending')
        await set({ status: 'connected' })
        await scene.deliver()
        assert.equal(await statusOf(scene, second.body.message.id), 'sent')
        assert.equal(scene.bridge.received.length, 1)
      }))

    it('a bridge at an address that is not public is never reached', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        await updateChannel(server().db, scene.workspace.id, scene.channel.id, {
          url: 'https://10.1.2.3/hooks',
        })
        const { message } = (await scene.reply(conversation)).body
        await scene.deliver()
        const { error } = await server()
          .db.selectFrom('channel_deliveries')
          .select('error')
          .where('message_id', '=', message.id)
          .executeTakeFirstOrThrow()
        assert.equal(error, 'The address is not public.')
      }))
  },
  { ownJobs: true },
)
