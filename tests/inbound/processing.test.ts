import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { it } from 'node:test'
import { sql } from 'kysely'
import { toEventTime } from '../../server/domains/inbound/event-time.ts'
import { deleteOldUpdates } from '../../server/jobs/retention.ts'
import { databases } from '../databases.ts'
import { everyDatabase } from '../doors.ts'
import {
  buildWebhookBody,
  createCustomerFixture,
  buildCustomerMessage,
  type WebhookPart,
  buildCustomerProfile,
  insertSentMessage,
  postWebhook,
  toUnixSeconds,
} from '../provider/webhook-fixture.ts'
import { startSharedServers, type TestServer } from '../servers.ts'
import { types, countOf } from './events.ts'
import { waitUntil } from '../wait-until.ts'

/** A short text that is the same for the same rows. */
const digest = (rows: readonly unknown[]): string =>
  `${rows.length} rows, ${createHash('sha256').update(JSON.stringify(rows)).digest('hex')}`

everyDatabase('Processing of provider updates', (server) => {
  it('duplicates: updates that are delivered again change nothing', async () => {
    const scene = await createCustomerFixture(server())
    const messages = Array.from({ length: 500 }, (_, n) =>
      buildCustomerMessage(`155501${String(1000 + (n % 50))}0`.slice(0, 11), { text: { body: `n ${n}` } }),
    )
    const body = buildWebhookBody(scene.account, scene.value({ messages }))
    assert.equal((await postWebhook(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    // Digests, because a failed deepEqual needs memory quadratic in the lines: gigabytes for these rows.
    const snapshot = async () => ({
      messages: digest(await scene.messages()),
      contacts: digest(await scene.contacts()),
      events: types(await scene.events()).length,
      rows: digest(
        (
          await sql`
            select xmin::text, ctid::text, * from provider_updates
            where subject = ${scene.number} order by id`.execute(server().db)
        ).rows,
      ),
    })
    const before = await snapshot()
    assert.deepEqual([(await scene.messages()).length, (await scene.contacts()).length], [500, 50])
    for (let n = 0; n < 10; n++) assert.equal((await postWebhook(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    assert.deepEqual(await snapshot(), before)
    // Messages are not repeated even after the row of their update was deleted.
    await sql`delete from provider_updates where subject = ${scene.number}`.execute(server().db)
    await scene.deliver(scene.value({ messages: messages.slice(0, 20) }))
    assert.deepEqual(
      [digest(await scene.messages()), types(await scene.events()).length],
      [before.messages, before.events],
    )
  })

  it('messages are ordered by their timestamp, not by arrival', async () => {
    const scene = await createCustomerFixture(server())
    const firstSecond = 1_790_000_000
    const messages = ['one', 'two', 'three', 'four'].map((body, n) =>
      buildCustomerMessage('15550100042', { text: { body }, timestamp: String(firstSecond + n * 60) }),
    )
    for (const n of [2, 0, 3, 1]) await scene.deliver(scene.value({ messages: [messages[n]] }))
    assert.deepEqual(
      (await scene.messages()).map((m) => m.text),
      ['one', 'two', 'three', 'four'],
    )
    const [conversation] = (await scene.run('inbox_search_conversations')).data
    assert.deepEqual([conversation.last_message.text, conversation.unread_count], ['four', 4])
    assert.equal(
      (await scene.contacts())[0]!.last_activity_at,
      new Date((firstSecond + 180) * 1000).toISOString(),
    )
  })

  it('stored updates are applied in the background', async () => {
    const scene = await createCustomerFixture(server())
    assert.equal(
      (
        await postWebhook(
          server(),
          buildWebhookBody(scene.account, scene.value({ messages: [buildCustomerMessage('15550100042')] })),
        )
      ).status,
      200,
    )
    await waitUntil('the message is there', async () => (await scene.messages()).length > 0)
    assert.equal((await scene.messages()).length, 1)
  })

  it('a failing update is rolled back and retried, and the others are applied', async () => {
    const scene = await createCustomerFixture(server())
    await sql`
      create function refuse() returns trigger language plpgsql
      as $$ begin raise exception 'poison'; end $$`.execute(server().db)
    await sql`
      create trigger refuse before insert on messages
      for each row when (new.text = 'poison') execute function refuse()`.execute(server().db)
    const messages = ['one', 'poison', 'two'].map((body, n) =>
      buildCustomerMessage(`1555010004${n}`, { text: { body } }),
    )
    await scene.deliver(scene.value({ messages }))
    assert.deepEqual((await scene.messages()).map((m) => m.text).sort(), ['one', 'two'])
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.attempts, u.payload === null]),
      [
        ['done', 0, true],
        ['waiting', 1, false],
        ['done', 0, true],
      ],
    )
    assert.deepEqual(
      [(await scene.contacts()).length, countOf(types(await scene.events()), 'contact.created/1')],
      [2, 2],
    )
    await sql`drop trigger refuse on messages`.execute(server().db)
    await sql`
      update provider_updates set next_attempt_at = now()
      where state = 'waiting' and subject = ${scene.number}`.execute(server().db)
    await server().app.jobs.job('provider-updates').runOnce()
    assert.deepEqual(
      [
        (await scene.messages()).length,
        (await scene.contacts()).length,
        countOf(types(await scene.events()), 'message.received/1'),
      ],
      [3, 3, 3],
    )
  })

  it('messages beyond the contact limit of the plan still create contacts', async () => {
    const scene = await createCustomerFixture(server(), { contact_limit: 1 })
    await scene.run('crm_upsert_contact', { phone: '+15550100001' })
    await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042')] }))
    assert.deepEqual(
      [
        (await scene.contacts()).length,
        (await scene.messages()).length,
        (await scene.run('crm_search_contacts')).total,
      ],
      [2, 1, 2],
    )
  })

  it('retention: updates are deleted eight days after they were received', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({ messages: [buildCustomerMessage('15550100042'), buildCustomerMessage('15550100043')] }),
    )
    await sql`
      update provider_updates set received_at = received_at - interval '8 days 1 minute'
      where id = (select min(id) from provider_updates where subject = ${scene.number})`.execute(server().db)
    await deleteOldUpdates(server().app)
    assert.deepEqual([(await scene.updates()).length, (await scene.messages()).length], [1, 2])
  })
})

it('event time: seconds become the latest millisecond, at most the time of receipt', () => {
  const received = '2026-10-01T09:30:05.400Z'
  for (const [reported, expected] of [
    ['2026-10-01T09:30:05Z', received],
    ['2026-10-01T09:30:04Z', '2026-10-01T09:30:04.999Z'],
    ['2026-10-01T09:00:00Z', '2026-10-01T09:00:00.000Z'],
    ['2026-10-01T09:31:00Z', received],
  ]) {
    assert.equal(toEventTime(toUnixSeconds(reported!), received), expected)
    assert.equal(toEventTime(Number(toUnixSeconds(reported!)), received), expected)
  }
  for (const invalid of [undefined, null, '', 'soon', '-5', {}, Infinity])
    assert.equal(toEventTime(invalid, received), received)
})

/** Has every server apply updates until none is due. */
const applyAll = async (servers: readonly TestServer[]): Promise<void> => {
  const deadline = Date.now() + 60_000
  for (let due = -1; due !== 0;) {
    assert.ok(Date.now() < deadline, `${due} updates are still due`)
    await Promise.all(servers.map((server) => server.app.jobs.job('provider-updates').runOnce()))
    const { rows } = await sql<{ n: string }>`
      select count(*) as n from provider_updates
      where state = 'waiting' and next_attempt_at <= now()`.execute(servers[0]!.db)
    due = Number(rows[0]!.n)
  }
}

it(
  'several servers apply each update once and create one contact per customer',
  { skip: !databases.includes('postgresql') },
  async () => {
    const { servers, close } = await startSharedServers(3)
    try {
      const scene = await createCustomerFixture(servers[0]!)
      const customers = Array.from({ length: 12 }, (_, n) => ({
        phone: n % 3 === 2 ? null : `155501002${String(n).padStart(2, '0')}`,
        userId: `US.${n}`,
      }))
      const sent = await Promise.all(
        Array.from({ length: 10 }, () => insertSentMessage(scene, '+15550100999')),
      )
      const messages = customers.flatMap(({ phone, userId }) =>
        Array.from({ length: 20 }, (_, n) =>
          buildCustomerMessage(phone, {
            from_user_id: userId,
            text: { body: `${userId} ${n}` },
            timestamp: String(1_790_000_000 + n),
          }),
        ),
      )
      const statuses = sent.flatMap(({ wamid }) =>
        ['sent', 'delivered', 'read'].map((name) => ({ id: wamid, status: name, timestamp: '1790000000' })),
      )
      // Every body goes to every server, in shuffled parts.
      const parts = [
        ...messages.map((m) => ({
          messages: [m],
          contacts: [
            buildCustomerProfile(
              ((m as WebhookPart)['from'] as string) ?? null,
              undefined,
              (m as WebhookPart)['from_user_id'] as string,
            ),
          ],
        })),
        ...statuses.map((s) => ({ statuses: [s] })),
      ]
      const shuffled = parts.toSorted(
        (a, b) => ((JSON.stringify(a).length * 7919) % 101) - ((JSON.stringify(b).length * 7919) % 101),
      )
      const bodies = Array.from({ length: 30 }, (_, n) =>
        buildWebhookBody(
          scene.account,
          ...shuffled.filter((_part, i) => i % 30 === n).map((part) => scene.value(part)),
        ),
      )
      await Promise.all(
        servers.flatMap((server) =>
          bodies.map(async (body) => assert.equal((await postWebhook(server, body)).status, 200)),
        ),
      )
      await applyAll(servers)
      assert.deepEqual([...new Set((await scene.updates()).map((u) => u.state))], ['done'])
      assert.equal((await scene.contacts()).length, customers.length + 1)
      const inbound = (await scene.messages()).filter((m) => m.direction === 'inbound')
      assert.equal(inbound.length, messages.length)
      assert.equal(new Set(inbound.map((m) => m.conversation_id)).size, customers.length)
      const seen = types(await scene.events())
      assert.deepEqual(
        ['message.received/1', 'message.delivered/1', 'message.read/1', 'conversation.created/1']
          .map((type) => countOf(seen, type))
          .map((n, i) => (i === 1 ? n <= 10 : n)),
        [messages.length, true, 10, customers.length],
      )
      const { data } = await scene.run('inbox_search_conversations', { limit: 100 })
      assert.deepEqual(
        data
          .filter((c: WebhookPart) => c['unread_count'] !== 0)
          .map((c: { unread_count: number; last_message: { text: string } }) => [
            c.unread_count,
            c.last_message.text.split(' ')[1],
          ]),
        customers.map(() => [20, '19']),
      )
    } finally {
      await close()
    }
  },
)
