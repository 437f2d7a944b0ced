import assert from 'node:assert/strict'
import { type AddressInfo, createServer } from 'node:net'
import { it } from 'node:test'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import type { ServerOptions } from '../servers.ts'
import { createSandboxDriver, listEmittedEventTypes, summarizeReply } from './fixtures.ts'
import { createReplyScene } from './replies.ts'
import { createTemplateScene } from './send-template.ts'
import { createIdempotencyKey } from './short-links.ts'

/** The sandbox is asked for its messages, and a call may take half a second. */
const options: ServerOptions = { provider: { provider: 'sandbox', providerTimeout: 0.5 } }
const UNKNOWN = [504, 'timeout', 'outcome_unknown']
/** The same where the provider said that it failed. */
const FAILED = [503, 'upstream_unavailable', 'outcome_unknown']
/** An error of the provider's own: it may have done the work, and here it has not. */
const NOT_DONE = { code: 2 }

/** Returns a URL at which nothing listens. */
const findClosedUrl = async (): Promise<string> => {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return `http://127.0.0.1:${port}`
}

everyDoor(
  'Problems that leave an outcome open',
  (test) => {
    test('carry the key that tells the outcome', async ({ server, workspace, call }) => {
      await createSandboxDriver(server, workspace).fault({ on: 'links', ...NOT_DONE })
      const idempotencyKey = createIdempotencyKey()
      const { status, body } = await call(
        'messaging_create_short_link',
        { message: 'Hi' },
        { idempotencyKey },
      )
      // The command line repeats a call once by itself, with the same key.
      assert.ok(status === 503 || status === 504, String(status))
      assert.deepEqual([body.reason, body.idempotency_key], ['outcome_unknown', idempotencyKey])
    })

    test('carry the key that the server made', async ({ server, workspace, call, door }) => {
      if (!door.confirms) return
      const { id, phone, sandbox } = await createReplyScene(server, workspace)
      await sandbox.fault({ to: `+${phone}`, ...NOT_DONE })
      const lost = await call(
        'messaging_send_reply',
        { conversation_id: id, text: 'Hi' },
        { confirm: 'send' },
      )
      assert.deepEqual(summarizeReply(lost), FAILED)
      const key = lost.body.idempotency_key
      assert.match(key, /^[\w-]{36}$/)
      if (door.name !== 'cli') assert.equal(lost.headers['idempotency-key'], key)
      const repeated = await call(
        'messaging_send_reply',
        { conversation_id: id, text: 'Hi' },
        { confirm: 'send', idempotencyKey: key },
      )
      assert.deepEqual([...summarizeReply(repeated), repeated.body.idempotency_key], [...UNKNOWN, key])
      assert.deepEqual(await sandbox.sent(phone), [])
    })
  },
  options,
)

everyDatabase(
  'Sends whose outcome is unknown',
  (server) => {
    it('a repeat sends nothing while the outcome is unknown, however old the call is', async () => {
      const { workspace, reply, phone, sandbox } = await createReplyScene(server())
      const repeat = () => reply({ text: 'Hi' }, { idempotencyKey: 'sent-long-ago' })
      await sandbox.fault({ to: `+${phone}`, ...NOT_DONE })
      assert.deepEqual(summarizeReply(await repeat()), FAILED)
      await server()
        .db.updateTable('idempotency')
        .set({ expires_at: '2020-01-01T00:00:00.000Z' })
        .where('workspace_id', '=', workspace.id)
        .execute()
      assert.deepEqual(summarizeReply(await repeat()), UNKNOWN)
      assert.deepEqual(await sandbox.sent(phone), [])
    })

    it('a provider that answers too late has sent it once', async () => {
      const { workspace, reply, phone, sandbox } = await createReplyScene(server())
      await sandbox.fault({ to: `+${phone}`, latency_ms: 1600 })
      const repeat = () => reply({ text: 'Once' }, { idempotencyKey: `late-answer-${workspace.id}` })
      const answers: Reply[] = []
      do answers.push(await repeat())
      while (answers.at(-1)!.status === 504 && answers.length < 20)
      assert.ok(answers.length > 2, String(answers.length))
      for (const answer of answers.slice(0, -1)) assert.deepEqual(summarizeReply(answer), UNKNOWN)
      assert.equal(answers.at(-1)!.status, 201)
      assert.equal((await sandbox.sent(phone)).length, 1)
      assert.deepEqual((await repeat()).body, answers.at(-1)!.body)
    })

    it('what a sandbox holds is found without a status and without a repeat', async () => {
      const { workspace, reply, phone, sandbox, run, id } = await createReplyScene(server())
      await sandbox.fault({ to: `+${phone}`, drop_answer: true })
      assert.equal(
        (await reply({ text: 'Once' }, { idempotencyKey: `held-there-${workspace.id}` })).status,
        504,
      )
      await reconcileProviderCalls(server().app)
      const [message] = (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data
      assert.deepEqual([message.status, (await sandbox.sent(phone)).length], ['sent', 1])
    })

    it('a template to a new contact that is never confirmed fails after 24 hours', async () => {
      const { workspace, send, sandbox, phone, run } = await createTemplateScene(server())
      await sandbox.fault({ to: `+${phone}`, ...NOT_DONE })
      const idempotencyKey = `never-there-${workspace.id}`
      assert.deepEqual(summarizeReply(await send({}, { idempotencyKey })), FAILED)
      const created = ['contact.created/1', 'conversation.created/1']
      assert.deepEqual(await listEmittedEventTypes(server(), workspace), created)
      await sandbox.advance('25h')
      await reconcileProviderCalls(server().app)
      const events = await listEmittedEventTypes(server(), workspace)
      assert.deepEqual(events, [...created, 'message.failed/1'])
      const final = await send({}, { idempotencyKey })
      assert.deepEqual(summarizeReply(final), [409, 'conflict', 'not_confirmed'])
      const message = await run('messaging_get_message', { message_id: final.body.message_id })
      assert.deepEqual([message.status, message.conversation_id], ['failed', final.body.conversation_id])
      assert.equal((await send({}, { idempotencyKey: `${idempotencyKey}-anew` })).status, 201)
      assert.equal((await sandbox.sent(phone)).length, 1)
    })

    it('a call that never left is undone, and its key can be used again', async () => {
      const { workspace, reply, run, id } = await createReplyScene(server())
      const { provider } = server().app
      const { send } = provider
      const idempotencyKey = `unreachable-${workspace.id}`
      try {
        const baseUrl = await findClosedUrl()
        provider.send = createAdapter({ baseUrl, version: 'v23.0', token: 'a token' }).send
        const refused = await reply({ text: 'Once' }, { idempotencyKey })
        assert.deepEqual(summarizeReply(refused), [503, 'upstream_unavailable', 'unreachable'])
        assert.equal(refused.body.idempotency_key, undefined)
      } finally {
        provider.send = send
      }
      assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
      assert.equal((await reply({ text: 'Once' }, { idempotencyKey })).status, 201)
    })
  },
  options,
)
