import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { callAs, doAs } from '../calls.ts'
import type { Reply } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'
import { listEmittedEventTypes } from './fixtures.ts'

/** A message as the provider received it; `reference` is ours. */
type ReceivedMessage = { id: string; reference: string; phoneNumberId: string }

/** What the provider does with a call: whether it accepts the message, and whether it responds. */
type CallOutcome = 'accept' | 'accept without response' | 'drop'

const UNSUPPORTED = {
  error: {
    message: '(#100) Unsupported get request',
    type: 'GraphMethodException',
    code: 100,
    fbtrace_id: 'A1',
  },
}

const readText = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/**
 * Starts a provider that has no lookup of messages by reference, as the real one, unless `options.lookup` is
 * set. `outcomes` are those of the next calls; without one, it accepts the message.
 */
const startMessageProvider = async () => {
  const received: ReceivedMessage[] = []
  const outcomes: CallOutcome[] = []
  const options = { lookup: false }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readText(request)
    const respond = (status: number, value: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
    }
    const url = new URL(request.url!, 'http://localhost')
    const lookup = url.searchParams.get('biz_opaque_callback_data')
    if (lookup !== null && options.lookup)
      return respond(200, {
        data: received.filter((m) => m.reference === lookup).map(({ id }) => ({ id })),
      })
    if (request.method !== 'POST') return respond(400, UNSUPPORTED)
    const outcome = outcomes.shift() ?? 'accept'
    const id = `wamid.${received.length + 1}`
    if (outcome !== 'drop')
      received.push({
        id,
        reference: (JSON.parse(body) as { biz_opaque_callback_data: string }).biz_opaque_callback_data,
        phoneNumberId: request.url!.split('/').at(-2)!,
      })
    if (outcome !== 'accept') {
      request.socket.destroy()
      return
    }
    respond(200, {
      messaging_product: 'whatsapp',
      contacts: [{ input: '1', wa_id: '1' }],
      messages: [{ id }],
    })
  }
  const server: Server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    outcomes,
    options,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

for (const database of databases) {
  describe(`Messages without a response, at a provider without a lookup (${database})`, () => {
    let provider: Awaited<ReturnType<typeof startMessageProvider>>
    let server: TestServer
    before(async () => {
      provider = await startMessageProvider()
      server = await startServer(database, {
        provider: {
          providerUrl: provider.url,
          providerToken: 'a token',
          providerAppSecret: 'an app secret',
          providerVerifyToken: 'a verify token',
        },
      })
    })
    after(async () => {
      await server.close()
      await provider.close()
    })

    /** Retries while the first call may be in flight; returns the Retry-After header. */
    const retryTooEarly = async (reply: () => Promise<Reply>): Promise<string> => {
      const { status, body, headers } = await reply()
      assert.deepEqual([status, body.code], [504, 'timeout'])
      return headers['retry-after']!
    }

    const createScene = async () => {
      // Without `sync`: this provider does not register numbers.
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const { id } = await plantConversation(server, workspace.id)
      const reply = () =>
        callAs(server, workspace.owner.key)(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi' },
          { confirm: 'send', idempotencyKey: `lost-response-${workspace.id}` },
        )
      const listReceived = () =>
        provider.received.filter((message) => message.phoneNumberId === `88${workspace.id}`)
      /** Sets the time of the last call to so many seconds ago. */
      const backdateCall = (seconds: number) =>
        sql`
        update messages set content = jsonb_set(content, '{call,called_at}', to_jsonb(to_char(
          (clock_timestamp() - ${seconds} * interval '1 second') at time zone 'UTC',
          'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
        where workspace_id = ${workspace.id} and status = 'pending'`.execute(server.db)
      const listEvents = async () =>
        (await listEmittedEventTypes(server, workspace)).filter((type) => type.startsWith('message.'))
      return {
        workspace,
        id,
        reply,
        listReceived,
        backdateCall,
        listEvents,
        run: doAs(server, workspace.owner.key),
      }
    }

    it('retry: waits 60 seconds for a status, then sends the message again', async () => {
      const { reply, listReceived, backdateCall, listEvents, run, id } = await createScene()
      provider.outcomes.push('drop')
      assert.equal((await reply()).status, 504)
      const retryAfter = await retryTooEarly(reply)
      assert.ok(Number(retryAfter) > 50 && Number(retryAfter) <= 60, retryAfter)
      await backdateCall(58)
      assert.equal((await reply()).status, 504)
      assert.deepEqual(
        [
          listReceived().length,
          (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data[0].status,
        ],
        [0, 'pending'],
      )
      await backdateCall(61)
      assert.equal((await reply()).status, 201)
      assert.deepEqual([listReceived().length, await listEvents()], [1, ['message.sent/1']])
      assert.equal((await reply()).status, 201)
      assert.equal(listReceived().length, 1)
    })

    it('retry: the wait starts again after each call', async () => {
      const { reply, listReceived, backdateCall } = await createScene()
      provider.outcomes.push('drop', 'drop')
      assert.equal((await reply()).status, 504)
      await backdateCall(61)
      assert.equal((await reply()).status, 504)
      assert.equal((await reply()).status, 504)
      assert.equal(listReceived().length, 0)
      await backdateCall(61)
      assert.equal((await reply()).status, 201)
      assert.equal(listReceived().length, 1)
    })

    it('retry: a status with the reference of the message replaces the response', async () => {
      const { workspace, reply, listReceived, listEvents } = await createScene()
      provider.outcomes.push('accept without response')
      assert.equal((await reply()).status, 504)
      const [{ id: wamid, reference }] = listReceived() as [ReceivedMessage]
      const status = (name: string) => ({
        id: wamid,
        status: name,
        timestamp: String(Math.floor(Date.now() / 1000)),
        recipient_id: '15550100001',
        biz_opaque_callback_data: reference,
      })
      const body = JSON.stringify({
        object: 'whatsapp_business_account',
        entry: [
          {
            id: `77${workspace.id}`,
            changes: [
              {
                field: 'messages',
                value: {
                  messaging_product: 'whatsapp',
                  metadata: { display_phone_number: '15550100001', phone_number_id: `88${workspace.id}` },
                  statuses: [status('delivered'), status('sent')],
                },
              },
            ],
          },
        ],
      })
      const delivered = await fetch(`${server.url}/provider/webhook`, {
        method: 'POST',
        body,
        headers: {
          'Content-Type': 'application/json',
          'X-Hub-Signature-256': `sha256=${createHmac('sha256', 'an app secret').update(body).digest('hex')}`,
        },
      })
      assert.equal(delivered.status, 200)
      while ((await server.app.jobs.job('provider-updates').runOnce()) > 0);
      const retried = await reply()
      assert.deepEqual([retried.status, retried.body.message.status], [201, 'delivered'])
      assert.deepEqual(
        [listReceived().length, await listEvents()],
        [1, ['message.sent/1', 'message.delivered/1']],
      )
    })

    it('retry with a lookup: waits 30 seconds while the call may be in flight', async () => {
      const { reply, listReceived, backdateCall } = await createScene()
      provider.options.lookup = true
      try {
        provider.outcomes.push('drop')
        assert.equal((await reply()).status, 504)
        const retryAfter = await retryTooEarly(reply)
        assert.ok(Number(retryAfter) > 20 && Number(retryAfter) <= 30, retryAfter)
        assert.equal(listReceived().length, 0)
        await backdateCall(31)
        provider.outcomes.push('accept without response')
        assert.equal((await reply()).status, 504)
        assert.equal((await reply()).status, 201, 'the lookup finds the message')
        assert.equal(listReceived().length, 1)
      } finally {
        provider.options.lookup = false
      }
    })

    it('the worker completes the call without a retry', async () => {
      const { listReceived, reply, backdateCall, run, id } = await createScene()
      provider.outcomes.push('drop')
      assert.equal((await reply()).status, 504)
      await reconcileProviderCalls(server.app)
      assert.equal(listReceived().length, 0)
      await backdateCall(61)
      await reconcileProviderCalls(server.app)
      assert.deepEqual(
        [
          listReceived().length,
          (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data[0].status,
        ],
        [1, 'sent'],
      )
      assert.equal((await reply()).headers['idempotent-replayed'], 'true')
    })
  })
}
