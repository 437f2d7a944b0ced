import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { insertTemplate } from '../templates/insert-template.ts'
import { callAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { createTemplate, type MessageProvider, useMessageProvider } from './message-provider.ts'

for (const database of databases) {
  describe(`Customers that the response to a message names (${database})`, () => {
    let provider: MessageProvider
    let server: TestServer
    useMessageProvider(database, (started) => ({ provider, server } = started))

    /** A contact with this phone and a conversation; `reply` sends a message to it. */
    const createScene = async (phone: string) => {
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
      const scene = await createScene('15550100042')
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
      const { workspace, call } = await createScene('15550100042')
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
      const scene = await createScene('5531987654321')
      provider.nameCustomer({ wa_id: '553187654321' })
      assert.equal((await scene.reply()).status, 201)
      const [contact] = await scene.contacts()
      assert.deepEqual([contact!.phone, contact!.provider_phone], ['5531987654321', '553187654321'])
      const shown = await scene.call('crm_get_contact', { contact_id: scene.contactId })
      assert.equal(shown.body.phone, '5531987654321')
    })

    it('a customer of another line changes nothing', async () => {
      const scene = await createScene('15550100042')
      const before = await scene.contacts()
      provider.nameCustomer({ wa_id: '15550100043', user_id: 'US.78' })
      assert.equal((await scene.reply()).status, 201)
      assert.deepEqual(await scene.contacts(), before)
    })
  })
}
