import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { insertTemplate } from '../templates/insert-template.ts'
import {
  createTemplate,
  deliver,
  deliverStatuses,
  type MessageProvider,
  useMessageProvider,
} from './message-provider.ts'
import { plantConversation } from '../inbox/conversations.ts'

const PHONE = '15550100777'

type Event = { id: string; type: string; data: Record<string, unknown> }

/** Whether the data of an event names a record, wherever it does. */
const names = (data: unknown, kind: string, id: string): boolean =>
  Object.entries((data ?? {}) as Record<string, unknown>).some(
    ([key, value]) =>
      (key === `${kind}_id` && value === id) ||
      (key === `${kind}_ids` && (value as string[]).includes(id)) ||
      (key === kind && (value as { id: string }).id === id) ||
      (typeof value === 'object' && names(value, kind, id)),
  )

for (const database of databases) {
  describe(`Sends in progress (${database})`, () => {
    let provider: MessageProvider
    let server: TestServer
    useMessageProvider(database, (started) => ({ provider, server } = started))

    /** A template message to a new phone, whose call the provider holds. */
    const startSend = async (outcome: 'accept when released' | 'refuse when released') => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      await insertTemplate(server.db, workspace.id, createTemplate(workspace.id), server.app.now())
      const [call, run] = [callAs(server, workspace.owner.key), doAs(server, workspace.owner.key)]
      const other: string = (await run('crm_upsert_contact', { phone: '+15550100778', name: 'Grace' })).id
      const { group } = await run('crm_create_group', { name: 'Regulars' })
      const countEvents = async (): Promise<number> =>
        (await server.db.selectFrom('events').select('id').where('workspace_id', '=', workspace.id).execute())
          .length
      const earlier = await countEvents()
      // A test that failed may have left a call that the provider holds.
      provider.release()
      provider.outcomes.push(outcome)
      const send = () =>
        call(
          'messaging_send_template',
          { phone: `+${PHONE}`, template: { name: 'order_update', language: 'en_US' } },
          { confirm: 'send' },
        )
      const first = send()
      await provider.waitForCall()
      const contact: string = (await run('crm_search_contacts', { query: PHONE })).data[0].id
      const { data } = await run('inbox_search_conversations', { contact_id: contact })
      const conversation: string = data[0].id
      return {
        call,
        run,
        send,
        ids: { contact, conversation, other, group: group.id as string, staff: workspace.owner.staffId },
        release: async () => {
          provider.release()
          return (await first).status
        },
        deliver: (updates: object) => deliver(server, workspace.id, updates),
        sent: () => provider.received.findLast((message) => message.phoneNumberId === `88${workspace.id}`)!,
        /** Events show when the transactions that began before them have ended. */
        listEvents: async (): Promise<Event[]> => {
          for (;;) {
            const count = await countEvents()
            const { data }: { data: Event[] } = await run('events_list', { limit: 100 })
            if (data.length === count) return data.slice(earlier)
          }
        },
      }
    }
    type Scene = Awaited<ReturnType<typeof startSend>>

    const assertCreatedFirst = async ({ ids, listEvents }: Scene) => {
      const events = await listEvents()
      for (const kind of ['contact', 'conversation'] as const) {
        const naming = events.filter(({ data }) => names(data, kind, ids[kind])).map(({ type }) => type)
        // A conversation names its contact too, and is created after it.
        const created = naming.filter((type) => type === `${kind}.created/1`)
        assert.deepEqual(
          [naming[0], created.length],
          [`${kind}.created/1`, 1],
          `${kind}: ${naming.join(' ')}`,
        )
      }
    }

    const changes: Record<string, (scene: Scene) => Promise<unknown>> = {
      'tags of a contact': ({ run, ids }) =>
        run('crm_tag_contacts', { contact_ids: [ids.contact], tags: ['VIP'] }),
      'tags of several contacts': ({ run, ids }) =>
        run('crm_tag_contacts', { contact_ids: [ids.other, ids.contact], tags: ['VIP', 'Press'] }),
      'a group': ({ run, ids }) =>
        run('crm_add_contacts_to_group', { contact_ids: [ids.contact], group_id: ids.group }),
      'fields of a contact': ({ run, ids }) =>
        run('crm_update_contact', { contact_id: ids.contact, name: 'Ada' }),
      'fields of several contacts': ({ run, ids }) =>
        run('crm_update_contacts', { contact_ids: [ids.contact, ids.other], starred: true }),
      'an upsert by its phone': ({ run }) => run('crm_upsert_contact', { phone: `+${PHONE}`, name: 'Ada' }),
      consent: ({ run, ids }) =>
        run('crm_record_consent', {
          contact_id: ids.contact,
          purpose: 'research',
          state: 'granted',
          source: 'form',
        }),
      'an assignment': ({ run, ids }) =>
        run('inbox_assign_conversation', { conversation_id: ids.conversation, staff_id: ids.staff }),
      assignments: ({ run, ids }) =>
        run('inbox_assign_conversations', { conversation_ids: [ids.conversation], staff_id: ids.staff }),
      'a close': ({ run, ids }) => run('inbox_close_conversation', { conversation_id: ids.conversation }),
      closes: ({ run, ids }) => run('inbox_close_conversations', { conversation_ids: [ids.conversation] }),
      'a message of the customer': ({ deliver: post }) =>
        post({
          messages: [
            { from: PHONE, id: `wamid.${PHONE}`, timestamp: '1', type: 'text', text: { body: 'Hello' } },
          ],
        }),
    }

    for (const [name, change] of Object.entries(changes))
      for (const outcome of ['accept when released', 'refuse when released'] as const)
        it(`a creation is told before ${name}, and stays when it was told: ${outcome}`, async () => {
          const scene = await startSend(outcome)
          await change(scene)
          await assertCreatedFirst(scene)
          const isRefused = outcome === 'refuse when released'
          assert.equal(await scene.release(), isRefused ? 502 : 201)
          await assertCreatedFirst(scene)
          await scene.run('crm_get_contact', { contact_id: scene.ids.contact })
          await scene.run('inbox_get_conversation', { conversation_id: scene.ids.conversation })
        })

    it('a creation is told before the message of another send to it', async () => {
      const scene = await startSend('accept when released')
      assert.equal((await scene.send()).status, 201)
      await assertCreatedFirst(scene)
      assert.equal(await scene.release(), 201)
      await assertCreatedFirst(scene)
    })

    it('a creation is told before what a status that overtakes the response reports of the customer', async () => {
      const scene = await startSend('accept when released')
      const { id, reference } = scene.sent()
      const status = {
        id,
        status: 'delivered',
        timestamp: String(Math.floor(Date.now() / 1000)),
        recipient_id: PHONE,
        recipient_user_id: `US.${PHONE}`,
        biz_opaque_callback_data: reference,
      }
      await scene.deliver({ statuses: [status] })
      const types = (await scene.listEvents()).map(({ type }) => type)
      assert.deepEqual(types, [
        'contact.created/1',
        'contact.updated/1',
        'conversation.created/1',
        'message.sent/1',
        'message.delivered/1',
      ])
      assert.equal(await scene.release(), 201)
      await assertCreatedFirst(scene)
    })

    it('a creation is told before a merge of its contact into another one, or of that into it', async () => {
      for (const isKept of [true, false]) {
        const scene = await startSend('accept when released')
        const { contact, conversation, other } = scene.ids
        const [kept, merged] = isKept ? [contact, other] : [other, contact]
        const input = { contact_id: kept, other_contact_id: merged }
        const { status } = await scene.call('crm_merge_contacts', input, { confirm: 'delete' })
        assert.equal(status, 200)
        assert.equal(await scene.release(), 201)
        if (isKept) await assertCreatedFirst(scene)
        const naming = (await scene.listEvents()).filter(({ data }) =>
          names(data, 'conversation', conversation),
        )
        assert.equal(naming[0]!.type, 'conversation.created/1')
      }
    })

    it('a customer still waits whose message is of before the reply and arrived after it was written', async () => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const inboundAt = new Date(Date.now() - 60_000).toISOString()
      const { id, contactId } = await plantConversation(server, workspace.id, { inboundAt })
      await server.db
        .updateTable('contacts')
        .set({ phone: PHONE })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', contactId)
        .execute()
      const [call, run] = [callAs(server, workspace.owner.key), doAs(server, workspace.owner.key)]
      const reply = () =>
        call('messaging_send_reply', { conversation_id: id, text: 'Hi' }, { confirm: 'send' })
      provider.outcomes.push('accept when released')
      const first = reply()
      await provider.waitForCall()
      const messages = async (): Promise<{ created_at: string; direction: string }[]> =>
        (await run('inbox_list_messages', { conversation_id: id })).data
      const written = (await messages()).find(({ direction }) => direction === 'outbound')!.created_at
      const second = Math.floor(Date.parse(written) / 1000)
      await deliver(server, workspace.id, {
        messages: [
          {
            from: PHONE,
            id: `wamid.in.${workspace.id}`,
            timestamp: String(second - 1),
            type: 'text',
            text: { body: 'And one thing more' },
          },
        ],
      })
      provider.release()
      assert.equal((await first).status, 201)
      const state = async () => {
        const { reply_status: status, unread_count: unread } = await run('inbox_get_conversation', {
          conversation_id: id,
        })
        return [status, unread]
      }
      assert.deepEqual(await state(), ['incoming_no_reply', 1])
      const waits = () =>
        server.db
          .selectFrom('reply_waits')
          .select(['since', 'ended_at'])
          .where('workspace_id', '=', workspace.id)
          .orderBy('since')
          .execute()
      const before = await waits()
      assert.deepEqual(before.at(-1), { since: new Date(second * 1000 - 1).toISOString(), ended_at: null })
      // A count of the replies from the messages alone finds the same.
      assert.equal((await reply()).status, 201)
      await deliverStatuses(server, workspace.id, provider.received.at(-1)!, 'failed')
      assert.deepEqual([await waits(), (await state())[0]], [before, 'incoming_no_reply'])
    })

    /** A contact with this phone and a conversation; `reply` sends a message to it. */
    const createReportedScene = async (phone: string) => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const { id, contactId } = await plantConversation(server, workspace.id)
      await server.db
        .updateTable('contacts')
        .set({ phone, chatapp_user_id: null })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', contactId)
        .execute()
      const call = callAs(server, workspace.owner.key)
      return {
        workspace,
        contactId,
        call,
        reply: () => call('messaging_send_reply', { conversation_id: id, text: 'Hi' }, { confirm: 'send' }),
        contacts: () =>
          server.db
            .selectFrom('contacts')
            .select(['id', 'phone', 'provider_phone', 'chatapp_user_id', 'name'])
            .where('workspace_id', '=', workspace.id)
            .orderBy('id')
            .execute(),
      }
    }

    it('a phone and a user id of two contacts are joined', async () => {
      const scene = await createReportedScene('15550100042')
      await server.db
        .insertInto('contacts')
        .values({
          workspace_id: scene.workspace.id,
          chatapp_user_id: 'US.77',
          created_at: server.app.now(),
          updated_at: server.app.now(),
        })
        .execute()
      provider.nameCustomer({ wa_id: '15550100042', user_id: 'US.77' })
      assert.equal((await scene.reply()).status, 201)
      const contacts = await scene.contacts()
      assert.deepEqual(
        contacts.map(({ id, phone, chatapp_user_id: userId }) => [id, phone, userId]),
        [[scene.contactId, '15550100042', 'US.77']],
      )
    })

    it('a contact that the message made is told before what the response says of it', async () => {
      const { workspace, call } = await createReportedScene('15550100042')
      await insertTemplate(server.db, workspace.id, createTemplate(workspace.id), server.app.now())
      const { next_cursor: start } = (await call('events_list', { after: 'now' })).body
      provider.nameCustomer({ wa_id: '15550100777', user_id: 'US.777' })
      const sent = await call(
        'messaging_send_template',
        { phone: '+15550100777', template: { name: 'order_update', language: 'en_US' } },
        { confirm: 'send' },
      )
      assert.equal(sent.status, 201, sent.text)
      const { data } = (await call('events_list', { limit: 100, after: start })).body
      assert.deepEqual(
        data.map(({ type }: { type: string }) => type),
        ['contact.created/1', 'conversation.created/1', 'message.sent/1', 'contact.updated/1'],
      )
    })

    it('the spelling of the phone is kept for the next message, and changes nothing that is shown', async () => {
      const scene = await createReportedScene('5531987654321')
      provider.nameCustomer({ wa_id: '553187654321' })
      assert.equal((await scene.reply()).status, 201)
      const [contact] = await scene.contacts()
      assert.deepEqual([contact!.phone, contact!.provider_phone], ['5531987654321', '553187654321'])
      const shown = await scene.call('crm_get_contact', { contact_id: scene.contactId })
      assert.equal(shown.body.phone, '5531987654321')
    })

    it('a customer of another line changes nothing', async () => {
      const scene = await createReportedScene('15550100042')
      const before = await scene.contacts()
      provider.nameCustomer({ wa_id: '15550100043', user_id: 'US.78' })
      assert.equal((await scene.reply()).status, 201)
      assert.deepEqual(await scene.contacts(), before)
    })
  })
}
