import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { messageSearchStrategy } from '../../storage/messages/search.ts'
import { doAs, everyPage } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import {
  idsOf,
  insertChannel,
  insertContact,
  insertConversation,
  insertMessage,
  type Owned,
} from './inbox-rows.ts'

const day = (n: number): string => new Date(Date.UTC(2026, 0, 1 + n)).toISOString()

/** Two customers on two channels; a message each 20 days, oldest first, so that they are in several months. */
const createMessages = async ({ server, workspace }: Owned) => {
  const shop = await insertChannel(server, workspace, 'Shop')
  const help = await insertChannel(server, workspace, 'Help')
  const staff_id = workspace.owner.staffId
  const contacts: string[] = []
  const conversations: string[] = []
  for (const [n, channel_id] of [shop, help].entries()) {
    const contact_id = await insertContact(server.db, workspace.id, `Ada ${n}`, `1555010000${n}`)
    contacts.push(contact_id)
    conversations.push(await insertConversation(server.db, workspace.id, { contact_id, channel_id }))
  }
  const outbound = { direction: 'outbound', status: 'sent', staff_id } as const
  const system = { direction: 'system', status: 'system' } as const
  const given = [
    { at: 0, text: 'Where is my ORDER? Café crème, please' },
    { at: 1, text: 'The order of Zoë left Straße 5', ...outbound },
    { at: 0, text: 'ordering again: привет МИР' },
    { at: 1, text: 'Customer called about her order', ...system, note: true, staff_id },
    { at: 0, text: 'Conversation closed, order', ...system, type: 'SYSTEM' },
    { at: 0, text: 'order deleted', deleted: true },
    { at: 1, text: "東京タワーへ行く, don't order", ...outbound },
  ]
  const ids: string[] = []
  for (const [n, { at, deleted, ...message }] of given.entries()) {
    const id = await insertMessage(server.db, workspace.id, {
      ...message,
      conversation_id: conversations[at]!,
      channel_id: [shop, help][at]!,
      created_at: day(n * 20),
    })
    if (deleted)
      await server.db
        .updateTable('messages')
        .set({ deleted_at: day(200) })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', id)
        .execute()
    ids.push(id)
  }
  return { shop, help, contacts, conversations, ids, staff_id }
}

/** What each search finds, as places among the messages above, newest first. */
const searches = (
  data: Awaited<ReturnType<typeof createMessages>>,
): [Record<string, unknown>, number[]][] => [
  [{ query: 'order' }, [6, 3, 2, 1, 0]],
  [{ query: 'Orders' }, [6, 3, 2, 1, 0]],
  [{ query: '"order"' }, [6, 3, 1, 0]],
  [{ query: '"orders"' }, []],
  [{ query: 'order my' }, [0]],
  [{ query: '"my order"' }, [0]],
  [{ query: '"order my"' }, []],
  [{ query: '"where is my order" crèmes' }, [0]],
  [{ query: '"where is my orders"' }, []],
  [{ query: '"about order"' }, []],
  [{ query: 'customers calling' }, [3]],
  [{ query: 'cust' }, []],
  [{ query: 'cafe CREME' }, [0]],
  [{ query: 'café' }, [0]],
  [{ query: 'zoe strasse' }, [1]],
  [{ query: 'Привет мира' }, [2]],
  [{ query: 'Привет "мира"' }, []],
  [{ query: '京タ' }, [6]],
  [{ query: '京東' }, []],
  [{ query: "don't" }, [6]],
  [{ query: 't don' }, [6]],
  [{ query: 'rder' }, []],
  [{ query: 'order_%' }, [6, 3, 2, 1, 0]],
  [{ query: 'order', channel_id: data.help }, [6, 3, 1]],
  [{ query: 'order', staff_id: data.staff_id }, [6, 3, 1]],
  [{ query: 'order', channel_id: data.shop, staff_id: data.staff_id }, []],
  [{ query: 'order', contact_id: data.contacts[0] }, [2, 0]],
  [{ query: 'order', conversation_id: data.conversations[1] }, [6, 3, 1]],
  [{ query: 'order', conversation_id: data.conversations[1], contact_id: data.contacts[0] }, []],
  [{ query: 'order', direction: 'inbound' }, [2, 0]],
  [{ query: 'order', direction: 'outbound' }, [6, 1]],
  [{ query: 'order', direction: 'note' }, [3]],
  [{ query: 'order', from: day(20), to: day(60) }, [2, 1]],
  [{ query: 'order', from: day(21), to: day(61), channel_id: data.help }, [3]],
  [{ query: 'order', from: day(500) }, []],
]

const defaults = { ...messageSearchStrategy }
/** By the newest messages, by the index, and newest first where the index finds too many. */
const strategies = [
  defaults,
  { headRows: 0, moreRows: 0, maxHits: 10_000 },
  { headRows: 1, moreRows: 0, maxHits: 0 },
]
/** Few rows, or few texts, of those that no index finds. */
const shortScans = [{ scanRows: 2 }, { scanRows: 3, scanBytes: 0 }, { scanBytes: 250 }]

/** Runs `check` with each way of finding messages. */
const withStrategies = async (
  check: () => Promise<void>,
  given: readonly Partial<typeof defaults>[] = strategies,
): Promise<void> => {
  for (const strategy of given) {
    Object.assign(messageSearchStrategy, strategy)
    try {
      await check()
    } finally {
      Object.assign(messageSearchStrategy, defaults)
    }
  }
}

const indexMessages = async ({ app }: TestServer): Promise<void> => {
  await app.jobs.job('message-search').runOnce()
}

const countIndexed = async ({ server, workspace }: Owned): Promise<number> =>
  (
    await sql`select 1 from message_search where workspace_id = ${workspace.id} and keys <> '{}'`.execute(
      server.db,
    )
  ).rows.length

everyDoor('Search in messages', (test) => {
  test('finds words in their forms and phrases with each filter, newest first', async (scene) => {
    const data = await createMessages(scene)
    await createMessages({ server: scene.server, workspace: await makeWorkspace(scene.server) })
    const checkAll = async (): Promise<void> => {
      for (const [input, expected] of searches(data)) {
        const { status, body } = await scene.call('inbox_search_messages', input)
        assert.equal(status, 200, JSON.stringify(body))
        const found = idsOf(body).map((id) => data.ids.indexOf(id))
        assert.deepEqual(found, expected, JSON.stringify([messageSearchStrategy, input]))
      }
      const run = doAs(scene.server, scene.workspace.owner.key)
      const pages = await everyPage(run, 'inbox_search_messages', { query: 'order' }, [2])
      assert.deepEqual(
        pages.map((page) => idsOf(page).map((id) => data.ids.indexOf(id))),
        [[6, 3], [2, 1], [0]],
      )
    }
    await checkAll()
    assert.equal(await countIndexed(scene), 0)
    await indexMessages(scene.server)
    assert.equal(await countIndexed(scene), 5)
    await withStrategies(checkAll)
  })

  test('finds at once what is written, edited and deleted after it was indexed', async (scene) => {
    const { server, workspace } = scene
    const data = await createMessages(scene)
    await indexMessages(server)
    const find = async (query: string) =>
      idsOf((await scene.call('inbox_search_messages', { query })).body).map((id) => data.ids.indexOf(id))
    const change = (n: number, set: { text?: string | null; deleted_at?: string }) =>
      server.db
        .updateTable('messages')
        .set(set)
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', data.ids[n]!)
        .execute()
    data.ids.push(
      await insertMessage(server.db, workspace.id, {
        text: 'A late order',
        conversation_id: data.conversations[0]!,
        channel_id: data.shop,
        created_at: day(10),
      }),
    )
    await change(0, { text: 'Where is my parcel?' })
    await change(1, { text: null, deleted_at: day(300) })
    await change(4, { text: 'Conversation closed, parcel' })
    await server.db
      .deleteFrom('messages')
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', data.ids[3]!)
      .execute()
    assert.equal(await countIndexed(scene), 3)
    for (const isIndexed of [false, true]) {
      if (isIndexed) await indexMessages(server)
      await withStrategies(async () => {
        assert.deepEqual(await find('order'), [6, 2, 7])
        assert.deepEqual(await find('parcel'), [0])
      })
    }
    assert.equal(await countIndexed(scene), 4)
  })

  test('shows the words that were found, and finds an edited text by its new words', async (scene) => {
    const data = await createMessages(scene)
    const text = `${'far '.repeat(60)}the Órder ordered, ${'on '.repeat(100)}`
    await indexMessages(scene.server)
    await scene.server.db
      .updateTable('messages')
      .set({ text })
      .where('workspace_id', '=', scene.workspace.id)
      .where('id', '=', data.ids[2]!)
      .execute()
    const find = async (query: string) => (await scene.call('inbox_search_messages', { query })).body.data
    assert.deepEqual(await find('привет'), [])
    const [hit] = await find('"the order" ordering')
    assert.match(hit.excerpt, /^…(?:far )+\*\*the\*\* \*\*Órder\*\* \*\*ordered\*\*, (?:on )+(?:o|on)?…$/)
    assert.ok(hit.excerpt.length < 220)
    assert.deepEqual(await find('京'), [
      {
        id: data.ids[6],
        conversation_id: data.conversations[1],
        contact: { id: data.contacts[1], name: 'Ada 1' },
        channel_id: data.help,
        direction: 'outbound',
        type: 'TEXT',
        note: false,
        from: { staff_id: data.staff_id, name: 'Owner' },
        excerpt: "東**京**タワーへ行く, don't order",
        created_at: day(120),
      },
    ])
    const { status, body } = await scene.call('inbox_search_messages', { query: '"!"' })
    assert.equal(status, 400)
    assert.equal(body.errors[0].code, 'invalid_value')
  })

  test('staff find what is on their channels, without hidden phones', async (scene) => {
    const { server, workspace, as } = scene
    const data = await createMessages(scene)
    const find = async (input: Record<string, unknown>, limits: object) => {
      const { key } = await workspace.staff({ role: 'agent', ...limits })
      return await as(key)('inbox_search_messages', input)
    }
    await indexMessages(server)
    await withStrategies(async () => {
      for (const [input, channel_ids, expected] of [
        [{}, [data.help], [6, 3, 1]],
        [{}, [data.shop], [2, 0]],
        [{}, [], []],
        [{ channel_id: data.help }, [data.shop], []],
        [{ contact_id: data.contacts[1] }, [data.shop], []],
        [{ conversation_id: data.conversations[1] }, [data.shop], []],
        [{ direction: 'note' }, [data.shop], []],
      ] as const) {
        const { body } = await find({ query: 'order', ...input }, { channel_ids })
        assert.deepEqual(
          idsOf(body).map((id) => data.ids.indexOf(id)),
          expected,
        )
      }
    })
    await server.db
      .updateTable('contacts')
      .set({ name: 'Ada 15550100001' })
      .where('workspace_id', '=', workspace.id)
      .execute()
    const { body } = await find({ query: 'order' }, { hide_phone_numbers: true })
    assert.equal(body.data.length, 5)
    assert.ok(!JSON.stringify(body).includes('15550100001'))
    const refused = await find({ query: 'order 1555' }, { hide_phone_numbers: true })
    assert.equal(refused.status, 403)
    assert.equal(refused.body.reason, 'phone_hidden')
  })
})

everyDatabase('Search in messages that no index finds', (getServer) => {
  it('says how far it came where a page would read too much, and goes on there', async () => {
    const server = getServer()
    const workspace = await makeWorkspace(server)
    const data = await createMessages({ server, workspace })
    const run = doAs(server, workspace.owner.key)
    let short = 0
    const checkAll = async (): Promise<void> => {
      for (const [input, expected] of searches(data)) {
        const found: number[] = []
        for (let cursor: string | null | undefined; cursor !== null;) {
          const page = await run('inbox_search_messages', {
            ...input,
            limit: 2,
            ...(cursor ? { cursor } : {}),
          })
          found.push(...idsOf(page).map((id) => data.ids.indexOf(id)))
          cursor = page.next_cursor
          const isShort = cursor !== null && page.data.length < 2
          if (isShort) short++
          assert.equal(page.searched_to !== null, isShort, JSON.stringify(page))
          assert.ok(
            !isShort || page.data.every((row: { created_at: string }) => row.created_at >= page.searched_to),
          )
        }
        assert.deepEqual(found, expected, JSON.stringify([messageSearchStrategy, input]))
      }
    }
    await withStrategies(checkAll, shortScans)
    assert.ok(short > 0)
    await indexMessages(server)
    await withStrategies(checkAll, shortScans)
    const sinceThird = sql`message_id > ${data.ids[3]!}::bigint`
    await sql`delete from message_search where ${sinceThird}`.execute(server.db)
    await sql`update message_search_progress set indexed_to = ${data.ids[3]!}::bigint`.execute(server.db)
    await withStrategies(checkAll, shortScans)
  })
})
