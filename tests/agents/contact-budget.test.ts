import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { autonomous, makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'

/* What the key of an AI agent may see of contacts in a day. */

const ZONE = 'America/Los_Angeles'
const LIMIT = 3
const MARKER = 'Zebra'

type Scene = Awaited<ReturnType<typeof createScene>>

/** A workspace with contacts in conversations, an AI agent's key with a budget of three, and a person's key. */
const createScene = async (server: TestServer, count = 5, limit = LIMIT) => {
  const workspace = await makeWorkspace(server, { timezone: ZONE })
  const owner = doAs(server, workspace.owner.key)
  const contacts: string[] = []
  for (let n = 0; n < count; n++)
    contacts.push(
      (await owner('crm_upsert_contact', { phone: `+155501000${10 + n}`, name: `${MARKER} ${n}` })).id,
    )
  const conversations: { id: string }[] = []
  for (const contactId of contacts.slice(0, 4))
    conversations.push(await plantConversation(server, workspace.id, { contactId }))
  const options = { agent: true, policy: autonomous, phones: false, contacts_per_day: limit, name: 'Mara' }
  const { key, keyId } = await workspace.key(workspace.owner.staffId, options)
  return { workspace, owner, contacts, conversations, key, keyId, call: callAs(server, key) }
}

const assertOver = ({ status, body, headers, text }: Reply): void => {
  assert.deepEqual([status, body.code, body.reason], [429, 'rate_limited', 'contact_budget'], text)
  const midnight = new Date(body.resets_at).toLocaleTimeString('en-GB', { timeZone: ZONE })
  assert.equal(midnight, '00:00:00')
  if (headers['retry-after'] !== undefined)
    assert.ok(
      Math.abs(Number(headers['retry-after']) * 1000 - (Date.parse(body.resets_at) - Date.now())) < 5000,
    )
  assert.ok(!text.includes(MARKER), 'the refusal shows a contact')
}

const countUsed = async (server: TestServer, { keyId }: Scene): Promise<number[]> =>
  (
    await sql<{ used: number }>`select used from contact_budgets where key_id = ${keyId}::bigint`.execute(
      server.db,
    )
  ).rows.map(({ used }) => used)

everyDatabase('The daily budget of contacts', (server) => {
  it('counts a contact once, whatever shows it, and refuses others until midnight', async () => {
    const scene = await createScene(server())
    const { call, contacts, conversations } = scene
    const get = (n: number) => call('crm_get_contact', { contact_id: contacts[n]! })
    assert.deepEqual([(await get(0)).status, (await get(0)).status, (await get(1)).status], [200, 200, 200])
    const [first] = conversations
    for (const op of ['inbox_get_conversation', 'inbox_list_messages'])
      assert.equal((await call(op, { conversation_id: first!.id })).status, 200)
    assert.deepEqual(await countUsed(server(), scene), [2])
    // Two more are one too many, and nothing of the page is given or counted.
    assertOver(await call('crm_search_contacts', { limit: 4 }))
    assert.deepEqual(await countUsed(server(), scene), [2])
    assert.equal((await call('inbox_list_messages', { conversation_id: conversations[2]!.id })).status, 200)
    assert.deepEqual(await countUsed(server(), scene), [3])
    assertOver(await get(3))
    // Those of today are free, and a person's key has no budget.
    assert.equal((await get(2)).status, 200)
    assert.equal(
      (await callAs(server(), scene.workspace.owner.key)('crm_search_contacts')).body.data.length,
      5,
    )
    const { data } = await scene.owner('audit_list', { outcome: 'refused', key_id: scene.keyId })
    assert.equal(data.length, 2)
    await sql`update contact_budgets set day = day - interval '4 days' where key_id = ${scene.keyId}::bigint`.execute(
      server().db,
    )
    await sql`update contact_views set day = day - interval '4 days' where key_id = ${scene.keyId}::bigint`.execute(
      server().db,
    )
    assert.equal((await get(3)).status, 200)
    await server().app.jobs.job('rate-bucket-retention').runOnce()
    assert.deepEqual(await countUsed(server(), scene), [1])
  })

  it('is counted whatever the fields of a contact are called', async () => {
    const { owner, call, contacts } = await createScene(server(), 1)
    await owner('crm_create_custom_field', { key: 'constructor', type: 'text' })
    await owner('crm_update_contact', { contact_id: contacts[0]!, attributes: { constructor: '12345' } })
    const { status, body, text } = await call('crm_search_contacts', { detail: 'compact' })
    assert.deepEqual([status, body.data?.[0].attributes_map], [200, { constructor: '12345' }], text)
  })

  it('is not spent by examples, whose ids are of nobody', async () => {
    const scene = await createScene(server(), 1, 0)
    for (const door of doorsOf(server().url, scene.key)) {
      const { status, text } = await door.call('webhooks_list_event_types', { search: 'contact' })
      assert.equal(status, 200, `${door.name}: ${text}`)
    }
    assert.deepEqual((await countUsed(server(), scene)).filter(Boolean), [])
  })

  it('once it is used up, nothing tells of other contacts, through any door', async () => {
    const scene = await createScene(server(), 5, 0)
    const { contacts, conversations, workspace } = scene
    const [contactId] = contacts
    const conversation = { conversation_id: conversations[0]!.id }
    const { data: messages } = await scene.owner('inbox_list_messages', conversation)
    const guess = { name: { startsWith: MARKER } }
    const doors = doorsOf(server().url, scene.key)
    for (const door of doors)
      for (const [op, input] of [
        ['crm_get_contact', { contact_id: contactId }],
        ['crm_search_contacts', {}],
        ['crm_search_contacts', { query: 'nobody of this name' }],
        ['crm_search_contacts', { filter: { name: { eq: 'nobody' } } }],
        ['crm_count_contacts', { filter: guess }],
        ['crm_create_saved_filter', { name: 'Guess', filter: guess, count: true, dry_run: true }],
        ['inbox_search_conversations', {}],
        ['inbox_search_conversations', { query: 'nobody' }],
        ['inbox_get_conversation', conversation],
        ['inbox_list_messages', conversation],
        ...(messages[0] ? [['messaging_get_message', { message_id: messages[0].id }] as const] : []),
        ['events_list', {}],
        ['crm_update_contact', { contact_id: contactId, starred: true, dry_run: true }],
        ['crm_tag_contacts', { contact_ids: [contactId], tags: ['VIP'], dry_run: true }],
        ['inbox_set_reminder', { ...conversation, at: null, dry_run: true }],
        ['messaging_send_reply', { ...conversation, text: 'Hello', dry_run: true }],
      ] as const)
        assertOver(await door.call(op, input as Record<string, unknown>))
    assertOver(await doors[1]!.call('crm_update_contact', { contact_id: contactId, starred: true }))
    assert.equal((await scene.owner('crm_get_contact', { contact_id: contactId })).starred, false)
    // What is not about contacts goes on.
    for (const op of [
      'crm_list_tags',
      'workspace_whoami',
      'crm_list_saved_filters',
      'messaging_list_templates',
    ])
      assert.equal((await scene.call(op)).status, 200, op)
    assert.ok(workspace.id)
  })

  it('a count takes as much as a contact, once for each question', async () => {
    const scene = await createScene(server())
    const count = (text: string) =>
      scene.call('crm_count_contacts', { filter: { name: { startsWith: text } } })
    for (const text of ['Z', 'Ze', 'Ze', 'Z']) assert.equal((await count(text)).status, 200)
    assert.equal((await count('Zeb')).status, 200)
    assertOver(await count('Zebr'))
    assert.equal((await count('Ze')).status, 200)
  })

  it('an event stream ends where it would show more, and says when to come back', async () => {
    const { key } = await createScene(server())
    const headers = { Authorization: `Bearer ${key}`, Accept: 'text/event-stream' }
    const text = await (await fetch(`${server().url}/v1/events`, { headers })).text()
    assert.ok(!text.includes(MARKER), text)
    assert.match(text, /: This key of an AI agent .*\nretry: \d{4,}\n\n$/)
  })

  it('reads are audited in aggregate, in one row for each operation', async () => {
    const scene = await createScene(server(), 5, 100)
    const { call, contacts } = scene
    for (const id of [contacts[0], contacts[1], contacts[0]])
      await call('crm_get_contact', { contact_id: id })
    const job = server().app.jobs.job('contact-reads')
    await job.runOnce()
    for (const id of [contacts[1], contacts[2]]) await call('crm_get_contact', { contact_id: id })
    await call('crm_search_contacts')
    await job.runOnce()
    const { data } = await scene.owner('audit_list', { key_id: scene.keyId })
    const shown = data.map(({ operation, changes }: { operation: string; changes: any }) => [
      operation,
      changes.reads.calls,
      changes.reads.contacts,
    ])
    // An hour may end between the two.
    if (new Set(data.map(({ changes }: { changes: any }) => changes.reads.hour)).size === 1)
      assert.deepEqual(shown.toSorted(), [
        ['crm_get_contact', 5, 3],
        ['crm_search_contacts', 1, 5],
      ])
    await scene.owner('crm_get_contact', { contact_id: contacts[0] })
    assert.equal(server().app.contactReads.size, 0)
  })
})

it('the budget is exact when servers count at once', async () => {
  const { servers, close } = await startSharedServers(2)
  try {
    const scene = await createScene(servers[0]!, 24, 10)
    const replies = await Promise.all(
      scene.contacts.flatMap((id) =>
        servers.map((server) => callAs(server, scene.key)('crm_get_contact', { contact_id: id })),
      ),
    )
    const shown = new Set(replies.filter(({ status }) => status === 200).map(({ body }) => body.id))
    assert.equal(shown.size, 10)
    for (const reply of replies) if (reply.status !== 200) assertOver(reply)
    assert.deepEqual(await countUsed(servers[0]!, scene), [10])
    // What was counted before the process ended is written when it stops.
    await servers[0]!.app.jobs.stop()
    assert.ok((await scene.owner('audit_list', { key_id: scene.keyId, outcome: 'done' })).data.length > 0)
  } finally {
    await close()
  }
})
