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
    // Its user id tells whose a number is.
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile('15550100099', 'Cy', 'US.1')],
        messages: [buildCustomerMessage('15550100099')],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.phone, c.chatapp_user_id]),
      [
        ['15550100099', 'US.1'],
        ['15550100043', 'US.2'],
      ],
    )
  })

  it('a customer without a name is shown and found by the username, until there is a name', async () => {
    const scene = await createCustomerFixture(server())
    const say = (profile: WebhookPart, fields: WebhookPart = {}) =>
      scene.deliver(
        scene.value({
          contacts: [{ profile, user_id: 'BR.96', ...fields }],
          messages: [buildCustomerMessage(null, { from_user_id: 'BR.96' })],
        }),
      )
    const find = async (query: string): Promise<unknown[]> =>
      (await scene.run('crm_search_contacts', { query })).data.map((c: WebhookPart) => [
        c['name'],
        c['username'],
      ])
    await say({ username: 'soh_user' }, { username: 'soh_user' })
    assert.deepEqual(await find('SOH_us'), [['@soh_user', 'soh_user']])
    const { data } = await scene.run('inbox_search_conversations', { query: '@soh' })
    assert.deepEqual(
      data.map((v: WebhookPart) => (v['contact'] as WebhookPart)['name']),
      ['@soh_user'],
    )
    await say({}, { username: 'sara' })
    assert.deepEqual([await find('soh'), await find('sara')], [[], [['@sara', 'sara']]])
    await say({ name: 'Sara Gil', username: 'sara' })
    assert.deepEqual(await find('sara'), [['Sara Gil', 'sara']])
    const [contact] = await scene.contacts()
    await scene.run('crm_update_contact', { contact_id: contact!.id, name: 'Mrs Gil' })
    await say({ name: 'Sara', username: 'sg.77' })
    assert.deepEqual([await find('sara'), await find('@sg.77')], [[], [['Mrs Gil', 'sg.77']]])
    assert.deepEqual(
      (await scene.events()).filter((e) => e.type === 'contact.updated/1').map((e) => e.data['changes']),
      [['username', 'name'], ['name'], ['name'], ['username']],
    )
  })

  it('what is no number is the id of its sender', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({
        contacts: [{ profile: { name: 'Quim' }, wa_id: 'BR.1393000000000001' }],
        messages: [buildCustomerMessage('BR.1393000000000001')],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.phone, c.chatapp_user_id]),
      [['Quim', null, 'BR.1393000000000001']],
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

  it('a changed number or user id is of the contact, under every name of the notice', async () => {
    const changes: [from: string | null, fromUserId: string | undefined, system: WebhookPart][] = [
      ['15550100042', undefined, { type: 'user_changed_number', wa_id: '15550100088' }],
      ['15550100042', undefined, { type: 'customer_changed_number', new_wa_id: '15550100088' }],
      [
        '15550100042',
        undefined,
        { type: 'customer_changed_number', customer: '15550100042', wa_id: '15550100088' },
      ],
      [
        '15550100042',
        'CO.1',
        { type: 'user_changed_number', wa_id: '15550100088', user_id: 'MX.2', previous_user_id: 'CO.1' },
      ],
      [null, 'CO.1', { type: 'user_changed_user_id', user_id: 'MX.2', previous_user_id: 'CO.1' }],
    ]
    for (const [phone, userId, system] of changes) {
      const say = (from: string | null, fromUserId: string | undefined, body: string) =>
        scene.value({
          contacts: [buildCustomerProfile(from, 'Sara', fromUserId)],
          messages: [
            buildCustomerMessage(from, {
              ...(fromUserId === undefined ? {} : { from_user_id: fromUserId }),
              text: { body },
            }),
          ],
        })
      const scene = await createCustomerFixture(server())
      await scene.deliver(say(phone, userId, 'before'))
      const notice = () =>
        scene.value({ messages: [buildCustomerMessage(phone, { type: 'system', system, text: undefined })] })
      const [newPhone, newUserId] = [phone === null ? null : '15550100088', userId && 'MX.2']
      // The message of the new identity is before its notice in the batch, and the notice comes again with another id.
      await scene.deliver(say(newPhone, newUserId, 'after'), notice(), notice())
      if (newUserId !== undefined) await scene.deliver(say(null, newUserId, 'by user id'))
      assert.deepEqual(
        (await scene.run('crm_search_contacts')).data.map((c: WebhookPart) => [
          c['phone'],
          c['chatapp_user_id'],
        ]),
        [[newPhone, newUserId ?? null]],
      )
      const { data } = await scene.run('inbox_search_conversations')
      assert.deepEqual(
        data.map((v: WebhookPart) => v['unread_count']),
        [newUserId === undefined ? 2 : 3],
      )
      const listed = (await scene.run('inbox_list_messages', { conversation_id: data[0].id })).data
      const notices = listed.filter((m: WebhookPart) => m['direction'] === 'system')
      assert.deepEqual(
        notices.map((m: WebhookPart) => m['text']),
        Array(2).fill(`Notice of the provider: ${String(system['type']).replaceAll('_', ' ')}.`),
      )
      assert.deepEqual(
        (await scene.events())
          .filter((e) => e.type === 'contact.updated/1')
          .map((e) => (e.data['changes'] as unknown as string[]).toSorted()),
        [[...(userId === undefined ? [] : ['chatapp_user_id']), ...(phone === null ? [] : ['phone'])]],
      )
    }
  })

  it('of the new number or user id of a customer wrote first, both contacts are one', async () => {
    for (const [change, phone, chatapp_user_id] of [
      [{ type: 'user_changed_number', wa_id: '15550100042' }, '15550100042', 'US.2'],
      [{ type: 'user_changed_user_id', previous_user_id: 'US.2', user_id: 'US.1' }, '15550100043', 'US.1'],
    ] as const) {
      const scene = await createCustomerFixture(server())
      const [from43, from42] = [
        buildCustomerMessage('15550100043', { from_user_id: 'US.2' }),
        buildCustomerMessage('15550100042', { from_user_id: 'US.1' }),
      ]
      await scene.deliver(scene.value({ messages: [from43, from42] }))
      const [other, kept] = (await scene.contacts()).toSorted((a, b) => (a.phone! < b.phone! ? -1 : 1))
      const body = 'User 15550100043 changed'
      await scene.deliver(
        scene.value({
          messages: [
            buildCustomerMessage('15550100043', { type: 'system', system: { body, ...change } }),
            // Of nobody who is known: no contact is created, and it waits.
            buildCustomerMessage('15550100066', { type: 'system', system: { body, wa_id: '15550100067' } }),
          ],
        }),
      )
      assert.deepEqual(await scene.contacts(), [{ ...kept, phone, chatapp_user_id }])
      assert.deepEqual(
        (await scene.updates()).map(({ state }) => state),
        ['done', 'done', 'done', 'waiting'],
      )
      const { data } = await scene.run('inbox_search_conversations')
      const [open, closed] = ['open', 'closed'].map((state) => data.filter((v: any) => v.state === state))
      assert.deepEqual(
        [open, closed].map((list) => list.map((v: any) => [v.contact.id, v.reply_status])),
        [[[kept!.id, 'incoming_no_reply']], [[kept!.id, 'incoming_no_reply']]],
      )
      assert.equal(open![0].unread_count, 2)
      const listed = (await scene.run('inbox_list_messages', { conversation_id: open![0].id })).data
      assert.deepEqual(
        listed.filter((m: any) => m.direction === 'system').map((m: any) => m.text),
        [
          `Contact ${other!.id} was merged into this one: the provider says that both are one customer. ` +
            `crm_undo_contact_merge undoes it. Closed, and continued here: conversation ${closed![0].id}.`,
          body,
        ],
      )
      const { key } = await scene.workspace.staff({ role: 'agent', hide_phone_numbers: true })
      const hidden = await fetch(`${server().url}/v1/conversations/${open![0].id}/messages`, {
        headers: { Authorization: `Bearer ${key}` },
      })
      assert.ok(!(await hidden.text()).includes('155501000'))
      await scene.run('crm_undo_contact_merge', { merged_contact_id: other!.id })
      assert.deepEqual(
        (await scene.contacts()).map((c) => [c.id, c.phone, c.chatapp_user_id]).toSorted(),
        [
          [kept!.id, '15550100043', 'US.2'],
          [other!.id, '15550100042', 'US.1'],
        ].toSorted(),
      )
    }
  })
})
