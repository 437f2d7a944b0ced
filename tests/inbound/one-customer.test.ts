import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver } from '../messaging/fixtures.ts'
import { createTemplateScene } from '../messaging/send-template.ts'
import {
  buildCustomerMessage,
  buildCustomerProfile,
  createCustomerFixture,
  createWamid,
  type CustomerFixture,
  insertSentMessage,
  postWebhook,
  buildWebhookBody,
  toUnixSeconds,
  type WebhookPart,
} from '../provider/webhook-fixture.ts'

/** A number as people write it, as it is shown, and as the messaging app knows its customer. */
const spellings = [
  ['+55 31 98765-4321', '5531987654321', '553187654321'],
  ['+52 55 1234 5678', '525512345678', '5215512345678'],
  ['+54 11 2345-6789', '541123456789', '5491123456789'],
  ['+225 07 07 12 34 56', '2250707123456', '22507123456'],
] as const

const showContacts = async (scene: CustomerFixture) =>
  (await scene.contacts()).map(({ phone, chatapp_user_id: userId }) => [phone, userId])

const eventsOf = async (scene: CustomerFixture, type: string): Promise<WebhookPart[]> =>
  (await scene.events()).filter((event) => event.type === type).map(({ data }) => data)

/** A message from a customer, with what the provider says of the customer. */
const say = (phone: string | null, userId: string | undefined, fields: WebhookPart = {}): WebhookPart => ({
  contacts: [buildCustomerProfile(phone, 'Ada', userId)],
  messages: [
    buildCustomerMessage(phone, { ...(userId === undefined ? {} : { from_user_id: userId }), ...fields }),
  ],
})

/** A status of a sent message, which names the customer by phone and user id. */
const statusOf = (wamid: string, phone: string, userId: string): WebhookPart => ({
  statuses: [
    {
      id: wamid,
      status: 'delivered',
      timestamp: toUnixSeconds(new Date().toISOString()),
      recipient_id: phone,
      recipient_user_id: userId,
    },
  ],
})

everyDatabase('One customer, one contact', (server) => {
  it('a customer whom the provider spells otherwise is the contact that people entered', async () => {
    const scene = await createCustomerFixture(server())
    for (const [written, shown, spelled] of spellings) {
      const { id } = await scene.run('crm_upsert_contact', { phone: written })
      await scene.deliver(scene.value(say(spelled, undefined)))
      const { data } = await scene.run('crm_search_contacts', { filter: { phoneNumber: { eq: written } } })
      assert.deepEqual(
        data.map((contact: WebhookPart) => [contact['id'], contact['phone']]),
        [[id, shown]],
      )
    }
    assert.equal((await scene.contacts()).length, spellings.length)
    assert.equal((await scene.messages()).length, spellings.length)
  })

  it('people find the contact of a customer who wrote first, by any spelling', async () => {
    const scene = await createCustomerFixture(server())
    for (const [written, shown, spelled] of spellings) {
      await scene.deliver(scene.value(say(spelled, undefined)))
      const { action, contact } = await scene.run('crm_upsert_contact', { phone: written })
      // In Argentina both can be dialled: the one that came first is shown.
      assert.deepEqual([action, contact.phone], ['unchanged', shown === '541123456789' ? spelled : shown])
    }
    assert.equal((await scene.contacts()).length, spellings.length)
  })

  it('two spellings of new customers in one batch are one contact', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      ...spellings.flatMap(([, shown, spelled]) => [
        scene.value(say(spelled, undefined)),
        scene.value(say(shown, undefined)),
      ]),
    )
    assert.equal((await scene.contacts()).length, spellings.length)
    assert.equal((await scene.run('inbox_search_conversations')).data.length, spellings.length)
  })

  it('messages go to the spelling that the provider told last, else to the number that is shown', async () => {
    const { workspace, send, run, call } = await createTemplateScene(server())
    const sandbox = createSandboxDriver(server(), workspace)
    const [written, shown, spelled] = spellings[0]
    assert.equal((await send({ phone: written })).status, 201)
    assert.equal((await sandbox.sent(shown)).length, 1)
    await sandbox.say({ from: spelled, text: 'hi' })
    assert.equal((await send({ phone: written })).status, 201)
    assert.equal((await sandbox.sent(spelled)).length, 1)
    const { data } = await run('inbox_search_conversations')
    assert.equal(data.length, 1)
    const reply = { conversation_id: data[0].id, text: 'hello' }
    assert.equal((await call('messaging_send_reply', reply, { confirm: 'send' })).status, 201)
    assert.equal((await sandbox.sent(spelled)).length, 2)
    assert.equal((await run('crm_search_contacts')).total, 1)
  })

  it('a changed number is of the contact, whichever spelling names it', async () => {
    const scene = await createCustomerFixture(server())
    const { id } = await scene.run('crm_upsert_contact', { phone: spellings[0][0] })
    await scene.deliver(
      scene.value({
        messages: [
          buildCustomerMessage(spellings[0][2], {
            type: 'system',
            system: { body: 'changed', wa_id: spellings[1][2], type: 'user_changed_number' },
          }),
        ],
      }),
    )
    const again = await scene.run('crm_upsert_contact', { phone: spellings[1][0] })
    assert.deepEqual([again.id, again.contact.phone], [id, spellings[1][1]])
    assert.equal((await scene.run('crm_upsert_contact', { phone: spellings[0][0] })).action, 'created')
  })
})

/** A contact that staff know by phone, and one of the same customer that is known by user id alone. */
const plantDoubles = async (scene: CustomerFixture, userId = 'US.77') => {
  const vip = (await scene.run('crm_create_group', { name: 'VIP' })).group.id as string
  const known = (await scene.run('crm_upsert_contact', {
    phone: '+1 555 010 0042',
    name: 'Mrs Lovelace',
    tags: ['both', 'phone'],
    group_ids: [vip],
  })) as { id: string }
  const sent = await insertSentMessage(scene, '+15550100042')
  await scene.deliver(scene.value(say(null, userId, { text: { body: 'by user id' } })))
  const other = (await scene.contacts()).find(({ phone }) => phone === null)!
  await scene.run('crm_tag_contacts', { contact_ids: [other.id], tags: ['both', 'identity'] })
  await scene.run('crm_add_contacts_to_group', { group_id: vip, contact_ids: [other.id] })
  await scene.run('crm_update_contact', {
    contact_id: other.id,
    name: 'Ada',
    email: 'ada@example.com',
    starred: true,
    dnd: true,
  })
  return { vip, known, other, sent }
}

const assertJoined = async (
  scene: CustomerFixture,
  { known, other }: Awaited<ReturnType<typeof plantDoubles>>,
): Promise<void> => {
  assert.deepEqual(await showContacts(scene), [['15550100042', 'US.77']])
  const contact = await scene.run('crm_get_contact', { contact_id: known.id })
  assert.deepEqual(
    [contact.name, contact.email, contact.starred, contact.dnd],
    ['Mrs Lovelace', 'ada@example.com', true, true],
  )
  assert.deepEqual(
    contact.tags.map(({ name }: { name: string }) => name),
    ['both', 'identity', 'phone'],
  )
  assert.equal(contact.conversations.length, 2)
  const { data: tags } = await scene.run('crm_list_tags')
  assert.deepEqual(
    tags.map((tag: WebhookPart) => [tag['name'], tag['contacts_count']]),
    [
      ['both', 1],
      ['identity', 1],
      ['phone', 1],
    ],
  )
  const { data: groups } = await scene.run('crm_list_groups')
  assert.equal(groups[0].contacts_count, 1)
  assert.equal((await scene.run('crm_search_contacts')).total, 1)
  assert.deepEqual(await eventsOf(scene, 'contact.deleted/1'), [
    { contact: { id: other.id, merged_into: known.id, reason: 'same_customer' } },
  ])
}

everyDatabase('A phone and a user id of one customer', (server) => {
  it('are joined when a message has both: nothing of either contact is lost', async () => {
    const scene = await createCustomerFixture(server())
    const doubles = await plantDoubles(scene)
    await scene.deliver(scene.value(say('15550100042', 'US.77', { text: { body: 'with both' } })))
    await assertJoined(scene, doubles)
    const updated = (await eventsOf(scene, 'contact.updated/1')).at(-1)!
    assert.deepEqual(updated['changes'], ['chatapp_user_id', 'dnd', 'starred', 'email'])
    assert.deepEqual((await eventsOf(scene, 'contact.tags_added/1')).at(-1)!['tags'], [
      (await scene.run('crm_list_tags', { search: 'identity' })).data.map(
        ({ id, name }: { id: string; name: string }) => ({ id, name }),
      )[0],
    ])
    // The conversation of the user id is the latest on the channel, so the message is in it.
    const messages = await scene.messages()
    const inbound = messages.filter(({ direction }) => direction === 'inbound')
    assert.equal(inbound.length, 2)
    assert.equal(inbound[0]!.conversation_id, inbound[1]!.conversation_id)
    // The window is of the customer: it is open in both conversations.
    const { data } = await scene.run('inbox_search_conversations')
    assert.deepEqual(
      data.map(({ window, contact }: any) => [window.open, contact.id]),
      [
        [true, doubles.known.id],
        [true, doubles.known.id],
      ],
    )
  })

  it('are joined by a status of a message to the phone', async () => {
    const scene = await createCustomerFixture(server())
    const doubles = await plantDoubles(scene)
    await scene.deliver(scene.value(statusOf(doubles.sent.wamid, '15550100042', 'US.77')))
    await assertJoined(scene, doubles)
    await scene.deliver(scene.value(say(null, 'US.77')))
    assert.equal((await scene.contacts()).length, 1)
  })

  it('are joined in one batch, and by several servers at once', async () => {
    const scene = await createCustomerFixture(server())
    await Promise.all(
      Array.from({ length: 6 }, async (_, i) =>
        postWebhook(
          server(),
          buildWebhookBody(
            scene.account,
            scene.value(say(null, `US.${i % 3}`)),
            scene.value(say(`1555010004${i % 3}`, undefined)),
            scene.value(say(`1555010004${i % 3}`, `US.${i % 3}`)),
            scene.value(statusOf(createWamid(), `1555010004${i % 3}`, `US.${i % 3}`)),
          ),
        ),
      ),
    )
    const job = server().app.jobs.job('provider-updates')
    await Promise.all([job.runOnce(), job.runOnce()])
    const contacts = await showContacts(scene)
    assert.deepEqual(
      contacts.toSorted((a, b) => (a[0]! < b[0]! ? -1 : 1)),
      [0, 1, 2].map((i) => [`1555010004${i}`, `US.${i}`]),
    )
    assert.equal((await scene.messages()).length, 18)
    assert.equal((await scene.run('crm_search_contacts')).total, 3)
  })

  it('are joined where the phone had another user id, and where both had a phone', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(scene.value(say('15550100042', 'US.1')), scene.value(say(null, 'US.2')))
    await scene.deliver(scene.value(say('15550100042', 'US.2')))
    assert.deepEqual(await showContacts(scene), [['15550100042', 'US.2']])
    await scene.deliver(scene.value(say('15550100043', undefined)), scene.value(say('15550100044', 'US.4')))
    await scene.deliver(scene.value(say('15550100043', 'US.4')))
    assert.deepEqual((await showContacts(scene)).slice(1), [['15550100043', 'US.4']])
    // A status tells nothing new of who has the number.
    await scene.deliver(scene.value(statusOf(createWamid(), '15550100043', 'US.2')))
    assert.deepEqual(await showContacts(scene), [
      ['15550100042', 'US.2'],
      ['15550100043', 'US.4'],
    ])
  })

  it('a status makes no contact, and changes nothing that is known', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(scene.value(say('15550100042', 'US.1')))
    const before = await scene.events()
    await scene.deliver(
      scene.value(statusOf(createWamid(), '15550100042', 'US.1')),
      scene.value(statusOf(createWamid(), '15550100099', 'US.9')),
    )
    assert.deepEqual(await showContacts(scene), [['15550100042', 'US.1']])
    assert.deepEqual(await scene.events(), before)
  })
})
