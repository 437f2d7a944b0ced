import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import {
  createCustomerFixture,
  buildCustomerMessage,
  type WebhookPart,
  buildCustomerProfile,
} from '../provider/webhook-fixture.ts'

everyDatabase('Contacts of inbound messages', (server) => {
  it('a contact known by user id alone gets its phone when the provider reports it', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile(null, 'Ada', 'US.77')],
        messages: [buildCustomerMessage(null, { from_user_id: 'US.77' })],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.phone, c.chatapp_user_id]),
      [['Ada', null, 'US.77']],
    )
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile('15550100042', 'Countess', 'US.77')],
        messages: [buildCustomerMessage('15550100042', { from_user_id: 'US.77' })],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.phone, c.chatapp_user_id]),
      [['Ada', '15550100042', 'US.77']],
    )
    await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042')] }))
    assert.deepEqual(
      [
        (await scene.contacts()).length,
        (await scene.run('inbox_search_conversations')).data.length,
        (await scene.messages()).length,
      ],
      [1, 1, 3],
    )
    assert.equal((await scene.run('crm_search_contacts', { query: '0042' })).total, 1)
    assert.deepEqual(
      (await scene.events()).filter((e) => e.type === 'contact.updated/1').map((e) => e.data['changes']),
      [['phone']],
    )
  })

  it('an existing contact keeps its name and gets its user id', async () => {
    const scene = await createCustomerFixture(server())
    await scene.run('crm_upsert_contact', { phone: '+15550100042', name: 'Mrs Lovelace' })
    await scene.run('crm_upsert_contact', { phone: '+15550100043' })
    await scene.deliver(
      scene.value({
        contacts: [
          buildCustomerProfile('15550100042', 'ada', 'US.1'),
          buildCustomerProfile('15550100043', ' Bo ', 'US.2'),
        ],
        messages: [
          buildCustomerMessage('15550100042'),
          buildCustomerMessage('15550100043', { from_user_id: 'US.2' }),
        ],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.chatapp_user_id]),
      [
        ['Mrs Lovelace', 'US.1'],
        ['Bo', 'US.2'],
      ],
    )
    // A user id of another contact is not moved.
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile('15550100099', 'Cy', 'US.1')],
        messages: [buildCustomerMessage('15550100099')],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.phone, c.chatapp_user_id]),
      [
        ['15550100042', 'US.1'],
        ['15550100043', 'US.2'],
      ],
    )
  })

  it('a message without a sender is stored as unmatched', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({
        messages: [
          buildCustomerMessage(null),
          buildCustomerMessage('*******0042'),
          buildCustomerMessage('15550100042'),
        ],
      }),
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['unmatched', 'unmatched', 'done'],
    )
    assert.equal((await scene.contacts()).length, 1)
  })

  it('marketing preferences: the latest timestamp decides, whatever the order of arrival', async () => {
    const scene = await createCustomerFixture(server())
    const preference = (value: string, timestamp: number, waId = '15550100042') => ({
      field: 'user_preferences',
      value: {
        ...(scene.value({})['value'] as WebhookPart),
        contacts: [buildCustomerProfile(waId, 'Ada')],
        user_preferences: [
          { wa_id: waId, detail: 'User requested it', category: 'marketing_messages', value, timestamp },
        ],
      },
    })
    const dndFlags = async () => (await scene.contacts()).map((c) => c.dnd)
    await scene.deliver(preference('stop', 1_731_705_721))
    assert.deepEqual(await dndFlags(), [true])
    await scene.deliver(preference('resume', 1_731_705_700))
    assert.deepEqual(await dndFlags(), [true])
    await scene.deliver(preference('resume', 1_731_705_800))
    assert.deepEqual(await dndFlags(), [false])
    await scene.deliver(
      preference('stop', 1_731_705_900),
      preference('resume', 1_731_705_950),
      preference('stop', 1_731_706_000),
    )
    assert.deepEqual(await dndFlags(), [true])
    assert.deepEqual(
      (await scene.events())
        .filter((e) => e.type === 'contact.updated/1')
        .map((e) => e.data['contact']!['dnd']),
      [true, false, true, false, true],
    )
  })

  it('a changed number moves the conversation, unless another contact has the new number', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({ messages: [buildCustomerMessage('15550100042'), buildCustomerMessage('15550100043')] }),
    )
    const numberChange = (before: string, after: string) =>
      buildCustomerMessage(before, {
        type: 'system',
        system: {
          body: `User A changed from ${before} to ${after}`,
          wa_id: after,
          type: 'user_changed_number',
        },
      })
    await scene.deliver(
      scene.value({
        messages: [
          buildCustomerMessage('15550100088', { text: { body: 'new phone' } }),
          numberChange('15550100042', '15550100088'),
          numberChange('15550100043', '15550100088'),
          numberChange('15550100066', '15550100067'),
        ],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => c.phone),
      ['15550100088', '15550100043'],
    )
    const messages = await scene.messages()
    assert.deepEqual(
      messages
        .map((m) => [m.direction, m.type, m.text])
        .filter(([direction]) => direction === 'system')
        .map(([, , text]) => text)
        .sort(),
      ['User A changed from 15550100042 to 15550100088', 'User A changed from 15550100043 to 15550100088'],
    )
    assert.equal(messages.find((m) => m.text === 'new phone')!.conversation_id, messages[0]!.conversation_id)
    // The system message does not count as unread.
    assert.deepEqual(
      (await scene.run('inbox_search_conversations')).data.map((c: WebhookPart) => c['unread_count']).sort(),
      [1, 2],
    )
    const { key } = await scene.workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const hidden = await fetch(`${server().url}/v1/conversations/${messages[0]!.conversation_id}/messages`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    assert.ok(!(await hidden.text()).includes('155501000'))
  })
})
