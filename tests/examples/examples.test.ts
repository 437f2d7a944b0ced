import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type Client, createClient } from '../../client/index.ts'
import { anyDatabase, createDatabase, type TestDatabase } from '../databases.ts'
import { type ServerProcess, startCommand } from '../process.ts'
import { type Receiver, startReceiver } from '../webhooks/receiver.ts'
import { testApprovalChat } from './approval-chat.ts'
import { type Example, startExample } from './example.ts'
import { testSupportAgent } from './support-agent.ts'

describe('The examples, in the demo workspace', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-examples-'))
  let database: TestDatabase
  let server: ServerProcess & { said: { api_key: string } }
  let wcrm: Client
  let env: Record<string, string>

  before(async () => {
    database = await createDatabase(anyDatabase)
    server = await startCommand(['serve', '--port', '0', '--json', ...database.flags], {
      XDG_CONFIG_HOME: join(folder, 'config'),
      WCRM_KEYCHAIN: 'off',
      WCRM_WEBHOOK_ALLOW: '127.0.0.0/8',
    })
    env = { WCRM_URL: server.url, WCRM_API_KEY: server.said.api_key }
    wcrm = createClient({ url: server.url, apiKey: server.said.api_key })
  })
  after(async () => {
    await server.stop()
    await database.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  describe('order-shop', () => {
    let receiver: Receiver
    let settings: Record<string, string>
    let shop: Example
    let url: string

    const start = async (extra: Record<string, string> = {}): Promise<void> => {
      shop = startExample('order-shop/shop.ts', { ...settings, ...extra })
      ;({ url } = await shop.line())
    }
    const order = async (id: string, name: string, phone: string): Promise<Response> =>
      await fetch(`${url}/orders`, { method: 'POST', body: JSON.stringify({ id, name, phone }) })
    const find = async (id: string): Promise<any> => await (await fetch(`${url}/orders/${id}`)).json()
    const until = async (id: string, status: string): Promise<void> => {
      while ((await find(id)).status !== status) await setImmediate()
    }
    const forward = async ({ headers, body }: Receiver['received'][number]): Promise<number> => {
      const { host: _, connection: __, 'content-length': ___, ...kept } = headers
      return (await fetch(`${url}/webhooks`, { method: 'POST', headers: kept, body })).status
    }

    before(async () => {
      receiver = await startReceiver()
      const { signing_secret: secret } = await wcrm.webhooks.create({
        url: receiver.url,
        event_types: ['message.sent/1', 'message.delivered/1', 'message.read/1', 'message.failed/1'],
      })
      settings = {
        ...env,
        PORT: '0',
        SHOP_FILE: join(folder, 'shop.sqlite'),
        CHECK_SECONDS: '3600',
        WEBHOOK_SECRET: secret!,
      }
      await start()
    })
    after(async () => {
      await shop.kill('SIGTERM')
      await receiver.close()
    })

    it('sends one message for an order, and follows it by webhooks that come twice and backwards', async () => {
      const held: Receiver['received'] = []
      const arrived = Promise.withResolvers<void>()
      receiver.answer = (received) => {
        held.push(received)
        if (JSON.parse(received.body).type === 'message.delivered') arrived.resolve()
        return {}
      }
      const first = await order('1001', 'Ada', '+1 555 010 0942')
      assert.equal(first.status, 201)
      const { messageId, status } = (await first.json()) as any
      assert.equal(status, 'pending')
      const again = (await (await order('1001', 'Ada', '+1 555 010 0942')).json()) as any
      assert.equal(again.messageId, messageId)
      await arrived.promise
      assert.equal((await find('1001')).status, 'pending')
      for (const received of [...held].reverse()) {
        assert.equal(await forward(received), 204)
        assert.equal(await forward(received), 204)
      }
      assert.equal((await find('1001')).status, 'delivered')
      const { headers, body } = held[0]!
      assert.equal(await forward({ path: '', headers, body: `${body} ` }), 401)
    })

    it('learns what lost webhooks would have said, and completes what a kill interrupted', async () => {
      receiver.answer = () => ({})
      const { messageId } = (await (await order('1002', 'Grace', '+1 555 010 0943')).json()) as any
      while ((await wcrm.messages.get({ message_id: messageId })).status !== 'delivered') await setImmediate()
      assert.equal((await find('1002')).status, 'pending')
      // Killed while it takes an order: the order is there or not, and asking again gives the same message.
      const interrupted = order('1003', 'Mary', '+1 555 010 0944').catch(() => undefined)
      await shop.kill('SIGKILL')
      await interrupted
      await start()
      await until('1002', 'delivered')
      const answers = [
        await order('1003', 'Mary', '+1 555 010 0944'),
        await order('1003', 'Mary', '+1 555 010 0944'),
      ]
      const [one, two] = (await Promise.all(answers.map((answer) => answer.json()))) as any[]
      assert.equal(one.messageId, two.messageId)
      const { data } = await wcrm.conversations.search({ query: 'Mary', limit: 5 })
      const ours = data.filter(({ contact }) => contact?.name === 'Mary')
      assert.equal(ours.length, 1)
      const messages = await wcrm.conversations.messages({ conversation_id: ours[0]!.id })
      assert.equal(messages.data.filter(({ type }) => type === 'TEMPLATE').length, 1)
    })

    it('refuses what is no order', async () => {
      const bodies = ['', '[]', 'null', '{"id":"1"}']
      for (const body of bodies)
        assert.equal((await fetch(`${url}/orders`, { method: 'POST', body })).status, 400, body)
      assert.equal((await order('1004', 'Nobody', 'no phone')).status, 422)
    })
  })

  it('warehouse-sync goes on where it was killed, and forgets contacts that were deleted', async () => {
    const file = join(folder, 'warehouse.sqlite')
    const start = () =>
      startExample('warehouse-sync/sync.ts', { ...env, WAREHOUSE_FILE: file, PAGE_SIZE: '25' })
    /** Runs it to its end. Returns how many contacts it read in pages. */
    const sync = async (): Promise<number> => {
      const run = start()
      let read = 0
      for (let line = await run.line(); line; line = await run.line()) read += line.contacts ?? 0
      return read
    }
    const rows = (sql: string) => {
      const db = new DatabaseSync(file, { readOnly: true })
      const found = db.prepare(sql).all()
      db.close()
      return found
    }
    const { id } = await wcrm.contacts.upsert({ phone: '+1 555 010 0950', name: 'Delia Gone' })
    const killed = start()
    await killed.line()
    await killed.kill('SIGKILL')
    const saved = rows('select id from contacts').length
    assert.ok(saved >= 25)
    await wcrm.contacts.update({ contact_id: id!, name: 'Delia Renamed' })
    const { count } = await wcrm.contacts.count({})
    assert.equal((await sync()) + saved, count)
    const names: (string | null)[] = []
    for await (const { name } of wcrm.contacts.search({ limit: 100 })) names.push(name ?? null)
    assert.deepEqual(
      rows('select name from contacts')
        .map(({ name }) => name)
        .sort(),
      names.sort(),
    )
    assert.equal(rows(`select 1 from events where contact_id = ${id} and data is not null`).length, 1)

    await wcrm.contacts.delete({ contact_id: id! }, { confirm: 'delete' })
    assert.equal(await sync(), 0)
    assert.equal(rows('select id from contacts').length, names.length - 1)
    assert.deepEqual(rows("select 1 from events where data like '%Delia%'"), [])
    const events = rows('select id from events').length
    await sync()
    assert.equal(rows('select id from events').length, events)
  })

  const demo = () => ({
    folder,
    adminFlags: database.flags.slice(0, 2),
    url: server.url,
    ownerKey: server.said.api_key,
    wcrm,
  })
  testSupportAgent(demo)
  testApprovalChat(demo)
})
