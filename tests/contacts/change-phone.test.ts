import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import {
  buildCustomerMessage,
  buildCustomerProfile,
  createCustomerFixture,
} from '../provider/webhook-fixture.ts'

const confirm = { confirm: 'rotate' }
const [OLD, NEW, OTHER] = ['15550100001', '15550100002', '15550100003']

everyDoor('The phone of a contact', (test) => {
  test('is changed, and all else stays', async ({ call, door }) => {
    const { contact } = (
      await call('crm_upsert_contact', { phone: OLD, name: 'Ada', tags: ['VIP'], metadata: { erp: 'B' } })
    ).body
    const input = { contact_id: contact.id, phone: '+1 555 010 0002' }
    assert.equal((await call('crm_change_phone', input)).status, 428)
    const rehearsed = await call('crm_change_phone', { ...input, dry_run: true })
    assert.deepEqual([rehearsed.body.changed, rehearsed.body.contact.phone], [true, NEW])
    assert.equal((await call('crm_get_contact', { contact_id: contact.id })).body.phone, OLD)
    if (!door.confirms) return
    const changed = await call('crm_change_phone', { ...input, if_version: contact.version }, confirm)
    assert.equal(changed.status, 200, changed.text)
    const { phone, name, tags, metadata } = changed.body.contact
    assert.deepEqual(
      [changed.body.changed, phone, name, tags.length, metadata],
      [true, NEW, 'Ada', 1, { erp: 'B' }],
    )
    const found = await call('crm_search_contacts', { query: NEW })
    assert.deepEqual([found.body.data.length, found.body.data[0].id], [1, contact.id])
    assert.equal((await call('crm_search_contacts', { query: OLD })).body.data.length, 0)
    const stale = await call(
      'crm_change_phone',
      { ...input, phone: OTHER, if_version: contact.version },
      confirm,
    )
    assert.equal(stale.status, 412)
    assert.equal((await call('crm_change_phone', input, confirm)).body.changed, false)
  })

  test('is refused where it cannot be', async ({ call, door }) => {
    const make = async (phone: string) => (await call('crm_upsert_contact', { phone })).body.id as string
    const [id, other] = [await make(OLD), await make('+54 11 2345-6789')]
    const change = (input: Record<string, unknown>) =>
      door.confirms
        ? call('crm_change_phone', input, confirm)
        : call('crm_change_phone', { ...input, dry_run: true })
    const taken = await change({ contact_id: id, phone: '+54 9 11 15 2345-6789' })
    assert.deepEqual(
      [taken.status, taken.body.reason, taken.body.errors[0].pointer],
      [409, 'phone_taken', '#/phone'],
    )
    assert.match(taken.text, new RegExp(`Contact ${other} has this phone.*crm_merge_contacts`))
    // Another spelling of its own line.
    const same = await change({ contact_id: other, phone: '+54 9 11 2345 6789' })
    assert.deepEqual([same.body.changed, same.body.contact.phone], [false, '541123456789'])
    for (const phone of ['030 1234567', '+1 555', '+1555010••••', '+1555010****'])
      assert.deepEqual((await change({ contact_id: id, phone })).body.errors?.[0].pointer, '#/phone', phone)
    assert.equal((await change({ contact_id: '999999999999', phone: NEW })).status, 404)
  })
})

everyDatabase('Messages from a number that a contact had', (server) => {
  const createScene = async () => {
    const scene = await createCustomerFixture(server())
    const write = (phone: string, userId?: string, name = 'Somebody') =>
      scene.deliver(
        scene.value({
          contacts: [
            { ...buildCustomerProfile(phone, name), ...(userId === undefined ? {} : { user_id: userId }) },
          ],
          messages: [buildCustomerMessage(phone, userId === undefined ? {} : { from_user_id: userId })],
        }),
      )
    const change = async (id: string, phone: string) =>
      (await scene.run('crm_change_phone', { contact_id: id, phone })).contact
    const find = async (phone: string) =>
      (await scene.run('crm_search_contacts', { query: phone, detail: 'full' })).data[0]
    const get = (id: string) => scene.run('crm_get_contact', { contact_id: id })
    const count = async () => (await scene.run('crm_count_contacts', {})).count as number
    const messages = async (conversationId: string) =>
      (await scene.run('inbox_get_conversation', { conversation_id: conversationId, messages: 10 })).messages
        ?.length
    return { ...scene, write, change, find, get, count, messages }
  }

  it('arrive in its open conversation for a week, and say nothing of it', async () => {
    const scene = await createScene()
    const { write, change, find, get, count } = scene
    await scene.run('crm_upsert_contact', { phone: OLD })
    await write(OLD)
    const { id } = await find(OLD)
    await change(id, NEW)
    await write(OLD, 'US.2222222222')
    const [{ id: conversationId }] = (await get(id)).conversations
    assert.deepEqual([await count(), (await get(id)).conversations.length], [1, 1])
    const contact = await get(id)
    assert.deepEqual([contact.phone, contact.chatapp_user_id], [NEW, null])
    // From the new number too, into the same conversation.
    await write(NEW)
    assert.equal((await get(id)).conversations[0].id, conversationId)

    await sql`update contact_former_ids set changed_at = changed_at - interval '8 days'
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    await write(OLD)
    assert.equal(await count(), 2)
    const stranger = await find(OLD)
    assert.notEqual(stranger.id, id)
    await server().app.jobs.job('former-phone-retention').runOnce()
    const { rows } = await sql`select 1 from contact_former_ids
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    assert.equal(rows.length, 0)
  })

  it('make a new contact where no conversation is open', async () => {
    const { run, write, change, find, get, count } = await createScene()
    await write(OLD)
    const { id } = await find(OLD)
    await run('inbox_close_conversation', { conversation_id: (await get(id)).conversations[0].id })
    await change(id, NEW)
    await write(OLD)
    assert.equal(await count(), 2)
    assert.notEqual((await find(OLD)).id, id)
  })

  it('are told apart by the user id: the same person always, a new owner never', async () => {
    const { write, change, find, get, count } = await createScene()
    await write(OLD, 'US.1111111111', 'Ada')
    const { id } = await find(OLD)
    await change(id, NEW)
    assert.equal((await get(id)).chatapp_user_id, 'US.1111111111')
    await write(OLD, 'US.1111111111')
    assert.equal(await count(), 1)
    await write(OLD, 'US.3333333333', 'Eve')
    assert.equal(await count(), 2)
    const eve = await find(OLD)
    assert.deepEqual([eve.name, eve.chatapp_user_id], ['Eve', 'US.3333333333'])
  })

  it('are of a contact that was given the number, and a user id that is the number goes', async () => {
    const { run, write, change, find, get, count, workspace } = await createScene()
    await write(OLD, OLD)
    const { id } = await find(OLD)
    assert.equal((await get(id)).chatapp_user_id, OLD)
    await change(id, NEW)
    assert.equal((await get(id)).chatapp_user_id, null)
    const { contact } = await run('crm_upsert_contact', { phone: OLD, name: 'Eve' })
    await write(OLD, OLD)
    assert.deepEqual([await count(), (await get(contact.id)).conversations.length], [2, 1])
    // Given back, it is a former number no more.
    await run('crm_delete_contact', { contact_id: contact.id })
    await change(id, OLD)
    const { rows } = await sql`select id_key from contact_former_ids
      where workspace_id = ${workspace.id}`.execute(server().db)
    assert.deepEqual([...rows], [{ id_key: NEW }])
  })

  it('follow a merge and its undo', async () => {
    const { run, write, change, find, get, count } = await createScene()
    await write(OLD)
    const { id } = await find(OLD)
    await change(id, NEW)
    const other = (await run('crm_upsert_contact', { phone: OTHER })).id
    await run('crm_merge_contacts', { contact_id: other, other_contact_id: id })
    await write(OLD)
    assert.deepEqual([await count(), (await get(other)).conversations.length], [1, 1])
    await run('crm_undo_contact_merge', { merged_contact_id: id })
    await write(OLD)
    assert.deepEqual(
      [await count(), (await get(id)).conversations.length, (await get(other)).conversations.length],
      [2, 1, 0],
    )
    await run('crm_delete_contact', { contact_id: id })
    await write(OLD)
    assert.notEqual((await find(OLD)).id, other)
  })

  it('write an event, and hidden phones stay hidden', async () => {
    const scene = await createScene()
    const { run, workspace } = scene
    const { id } = await run('crm_upsert_contact', { phone: OLD })
    const { id: other } = await run('crm_upsert_contact', { phone: OTHER })
    const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const call = callAs(server(), agent.key)
    const input = { contact_id: id, phone: NEW }
    const answers = []
    for (const phone of [OLD, NEW, OTHER]) {
      const { body } = await call('crm_change_phone', { contact_id: id, phone, dry_run: true })
      answers.push([body.changed, body.contact.phone.replaceAll(/\d/g, '#'), body.warnings?.length])
    }
    assert.deepEqual(new Set(answers.map((one) => JSON.stringify(one))).size, 1)
    const taken = await call('crm_change_phone', { contact_id: id, phone: OTHER }, { confirm: 'rotate' })
    assert.deepEqual([taken.status, taken.body.reason], [409, 'phone_taken'])
    assert.ok(taken.text.includes(`contact ${other}`) && !taken.text.includes(OTHER), taken.text)
    const done = await call('crm_change_phone', input, { confirm: 'rotate' })
    assert.deepEqual([done.status, done.body.contact.phone_masked], [200, true])
    assert.ok(!done.text.includes(NEW), done.text)
    const last = (await scene.events()).at(-1) as { type: string; data: any }
    assert.deepEqual(
      [last.type, last.data.contact.id, last.data.contact.phone, last.data.changes],
      ['contact.updated/1', id, NEW, ['phone']],
    )
  })

  it('of two calls that give one number to two contacts, one is refused', async () => {
    const { run, workspace } = await createScene()
    const call = callAs(server(), workspace.owner.key)
    const ids = [
      (await run('crm_upsert_contact', { phone: OLD })).id,
      (await run('crm_upsert_contact', { phone: OTHER })).id,
    ]
    const answers = await Promise.all(
      ids.map((id) => call('crm_change_phone', { contact_id: id, phone: NEW }, { confirm: 'rotate' })),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
  })
})
