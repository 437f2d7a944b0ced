import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { callAs, doAs } from '../calls.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'

type Posted = { id: string; reference: string; phoneNumberId: string }

/**
 * A provider that cannot be asked what it has sent, as the true one, unless it `tells`: it takes messages,
 * and loses answers as it is told.
 */
const startProvider = async () => {
  const posted: Posted[] = []
  const fates: ('take' | 'take and drop' | 'drop')[] = []
  const manner = { tells: false }
  const server: Server = createServer((request, response) => {
    let body = ''
    request
      .on('data', (chunk: Buffer) => {
        body += chunk.toString()
      })
      .on('end', () => {
        const answer = (status: number, value: unknown) =>
          response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
        const asked = new URL(request.url!, 'http://localhost').searchParams.get('biz_opaque_callback_data')
        if (asked !== null && manner.tells)
          return answer(200, { data: posted.filter((m) => m.reference === asked).map(({ id }) => ({ id })) })
        if (request.method !== 'POST')
          return answer(400, {
            error: {
              message: '(#100) Unsupported get request',
              type: 'GraphMethodException',
              code: 100,
              fbtrace_id: 'A1',
            },
          })
        const fate = fates.shift() ?? 'take'
        const id = `wamid.${posted.length + 1}`
        if (fate !== 'drop')
          posted.push({
            id,
            reference: (JSON.parse(body) as { biz_opaque_callback_data: string }).biz_opaque_callback_data,
            phoneNumberId: request.url!.split('/').at(-2)!,
          })
        if (fate !== 'take') return request.socket.destroy()
        answer(200, {
          messaging_product: 'whatsapp',
          contacts: [{ input: '1', wa_id: '1' }],
          messages: [{ id }],
        })
      })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posted,
    fates,
    manner,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

for (const database of databases) {
  describe(`Messages whose answer was lost, at a provider that cannot be asked (${database})`, () => {
    let provider: Awaited<ReturnType<typeof startProvider>>
    let server: TestServer
    before(async () => {
      provider = await startProvider()
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

    const scene = async () => {
      // This provider is told nothing of our numbers.
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const { id } = await plantConversation(server, workspace.id)
      const reply = () =>
        callAs(server, workspace.owner.key)(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi' },
          { confirm: 'send', idempotencyKey: `lost-answer-${workspace.id}` },
        )
      const mine = () => provider.posted.filter((message) => message.phoneNumberId === `88${workspace.id}`)
      /** As if the last call had been so many seconds ago. */
      const age = (seconds: number) =>
        sql`
        update messages set content = jsonb_set(content, '{call,called_at}', to_jsonb(to_char((clock_timestamp() - ${seconds} * interval '1 second') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
        where workspace_id = ${workspace.id} and status = 'pending'`.execute(server.db)
      const events = async () =>
        (
          await server.db
            .selectFrom('events')
            .select('type')
            .where('workspace_id', '=', workspace.id)
            .orderBy('id')
            .execute()
        )
          .map(({ type }) => type)
          .filter((type) => type.startsWith('message.'))
      return { workspace, id, reply, mine, age, events, run: doAs(server, workspace.owner.key) }
    }

    it('wait for a status, then are sent again', async () => {
      const { reply, mine, age, events, run, id } = await scene()
      provider.fates.push('drop')
      assert.equal((await reply()).status, 504)
      const early = await callEarly(reply)
      assert.ok(Number(early) > 50 && Number(early) <= 60, early)
      await age(58)
      assert.equal((await reply()).status, 504)
      assert.deepEqual(
        [mine().length, (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data[0].status],
        [0, 'pending'],
      )
      await age(61)
      assert.equal((await reply()).status, 201)
      assert.deepEqual([mine().length, await events()], [1, ['message.sent/1']])
      assert.equal((await reply()).status, 201)
      assert.equal(mine().length, 1)
    })
    const callEarly = async (reply: () => ReturnType<ReturnType<typeof callAs>>): Promise<string> => {
      const answer = await reply()
      assert.deepEqual([answer.status, answer.body.code], [504, 'timeout'])
      return answer.headers['retry-after']!
    }

    it('wait anew after each call', async () => {
      const { reply, mine, age } = await scene()
      provider.fates.push('drop', 'drop')
      assert.equal((await reply()).status, 504)
      await age(61)
      assert.equal((await reply()).status, 504)
      assert.equal((await reply()).status, 504)
      assert.equal(mine().length, 0)
      await age(61)
      assert.equal((await reply()).status, 201)
      assert.equal(mine().length, 1)
    })

    it('are known by the status that carries our mark', async () => {
      const { workspace, reply, mine, events } = await scene()
      provider.fates.push('take and drop')
      assert.equal((await reply()).status, 504)
      const [{ id: wamid, reference }] = mine() as [Posted]
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
      const told = await fetch(`${server.url}/provider/webhook`, {
        method: 'POST',
        body,
        headers: {
          'Content-Type': 'application/json',
          'X-Hub-Signature-256': `sha256=${createHmac('sha256', 'an app secret').update(body).digest('hex')}`,
        },
      })
      assert.equal(told.status, 200)
      while ((await server.app.jobs.job('provider-updates').runOnce()) > 0);
      const answer = await reply()
      assert.deepEqual([answer.status, answer.body.message.status], [201, 'delivered'])
      assert.deepEqual([mine().length, await events()], [1, ['message.sent/1', 'message.delivered/1']])
    })

    it('may still be on their way though they are not there yet', async () => {
      const { reply, mine, age } = await scene()
      provider.manner.tells = true
      try {
        provider.fates.push('drop')
        assert.equal((await reply()).status, 504)
        const early = await callEarly(reply)
        assert.ok(Number(early) > 20 && Number(early) <= 30, early)
        assert.equal(mine().length, 0)
        await age(31)
        provider.fates.push('take and drop')
        assert.equal((await reply()).status, 504)
        assert.equal((await reply()).status, 201, 'what is there is found at once')
        assert.equal(mine().length, 1)
      } finally {
        provider.manner.tells = false
      }
    })

    it('are finished by a worker when nobody asks again', async () => {
      const { mine, reply, age, run, id } = await scene()
      provider.fates.push('drop')
      assert.equal((await reply()).status, 504)
      await reconcileProviderCalls(server.app)
      assert.equal(mine().length, 0)
      await age(61)
      await reconcileProviderCalls(server.app)
      assert.deepEqual(
        [mine().length, (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data[0].status],
        [1, 'sent'],
      )
      assert.equal((await reply()).headers['idempotent-replayed'], 'true')
    })
  })
}
