import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { listEmittedEventTypes } from '../messaging/fixtures.ts'
import { type BridgeScene, createBridgeScene, createOwnChannel, post } from './bridge.ts'

everyDatabase(
  'Messages to a channel of one’s own',
  (server) => {
    const withScene = async (work: (scene: BridgeScene) => Promise<void>, type?: string): Promise<void> => {
      const scene = await createBridgeScene(server(), type)
      try {
        await work(scene)
      } finally {
        await scene.bridge.close()
      }
    }

    const listMessages = async ({ run }: BridgeScene, conversation: string): Promise<any[]> =>
      (await run('inbox_list_messages', { conversation_id: conversation })).data

    it('a message opens a conversation with a new contact, and tells its events', () =>
      withScene(async (scene) => {
        const { status, body } = await scene.inbound({
          id: 'm-1',
          from: { id: 'visitor-1', name: 'Ada', email: 'ada@example.com', phone: '+1 555 010 0042' },
          text: 'Is the shop open?',
        })
        assert.equal(status, 201, JSON.stringify(body))
        assert.equal(body.duplicate, false)
        const conversation = await scene.run('inbox_get_conversation', {
          conversation_id: body.conversation_id,
        })
        assert.equal(conversation.last_message.text, 'Is the shop open?')
        assert.equal(conversation.last_message.id, body.message_id)
        assert.equal(conversation.reply_status, 'incoming_no_reply')
        assert.equal(conversation.channel.id, scene.channel.id)
        assert.deepEqual(conversation.window, {
          applies: false,
          open: true,
          kind: 'web',
          closes_at: null,
          closed_at: null,
          reason: null,
        })
        const contact = await scene.run('crm_get_contact', { contact_id: body.contact_id })
        assert.deepEqual(
          [contact.name, contact.web_visitor_id, contact.email, contact.phone],
          ['Ada', 'visitor-1', 'ada@example.com', '15550100042'],
        )
        assert.deepEqual(
          (await scene.run('crm_search_contacts', { filter: { email: { eq: 'ada@example.com' } } })).data
            .length,
          1,
        )
        const types = await listEmittedEventTypes(server(), scene.workspace)
        for (const type of ['contact.created/1', 'conversation.created/1', 'message.received/1'])
          assert.ok(types.includes(type), `${type} in ${types.join(' ')}`)
      }, 'web'))

    it('a repeated id changes nothing, also at the same moment', () =>
      withScene(async (scene) => {
        const message = { id: 'same', from: { id: 'v' }, text: 'Once' }
        const answers = await Promise.all(Array.from({ length: 8 }, () => scene.inbound(message)))
        assert.deepEqual(
          answers.map(({ status }) => status).toSorted(),
          [200, 200, 200, 200, 200, 200, 200, 201],
        )
        assert.equal(new Set(answers.map(({ body }) => body.message_id)).size, 1)
        const again = await scene.inbound({ ...message, from: { id: 'other' }, text: 'Another text' })
        assert.deepEqual([again.status, again.body.duplicate], [200, true])
        assert.equal(again.body.message_id, answers[0]!.body.message_id)
        const messages = await listMessages(scene, answers[0]!.body.conversation_id)
        assert.deepEqual(
          messages.map(({ text }) => text),
          ['Once'],
        )
        const types = await listEmittedEventTypes(server(), scene.workspace)
        assert.equal(types.filter((type) => type === 'message.received/1').length, 1)
      }))

    it('first messages at the same moment make one contact and one conversation', () =>
      withScene(async (scene) => {
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, n) =>
            scene.inbound({ id: `first-${n}`, from: { id: 'v', name: 'Ada' }, text: `${n}` }),
          ),
        )
        assert.deepEqual(
          answers.map(({ status }) => status),
          Array.from({ length: 6 }, () => 201),
        )
        assert.equal(new Set(answers.map(({ body }) => body.contact_id)).size, 1)
        assert.equal(new Set(answers.map(({ body }) => body.conversation_id)).size, 1)
        assert.equal((await scene.run('crm_count_contacts', {})).count, 1)
      }))

    it('ids of customers are those of the channel; web visitors are the same on every web chat', () =>
      withScene(async (scene) => {
        const message = { from: { id: '1' }, text: 'Hello' }
        const one = await post(server(), scene.channel, 'inbound', { id: 'a', ...message })
        const contacts = []
        for (const type of ['custom', 'web', 'web']) {
          const channel = await createOwnChannel(server(), scene.workspace.id, null, type)
          contacts.push((await post(server(), channel, 'inbound', { id: 'a', ...message })).contact_id)
        }
        assert.equal(new Set([one.contact_id, contacts[0], contacts[1]]).size, 3)
        assert.equal(contacts[1], contacts[2])
      }))

    it('a contact that gains a web visitor id is an updated contact', () =>
      withScene(async (scene) => {
        const message = { from: { id: 'visitor-2' }, text: 'Hello' }
        const { body } = await scene.inbound({ id: '1', ...message })
        const { db } = server()
        await db
          .updateTable('contacts')
          .set({ web_visitor_id: null })
          .where('id', '=', body.contact_id)
          .execute()
        await scene.inbound({ id: '2', ...message })
        const { data } = await scene.run('events_list', { types: ['contact.updated'] })
        assert.deepEqual(
          data.map((event: any) => [event.data.contact.id, event.data.changes]),
          [[body.contact_id, ['web_visitor_id']]],
        )
        assert.equal(
          (await scene.run('crm_get_contact', { contact_id: body.contact_id })).web_visitor_id,
          'visitor-2',
        )
      }, 'web'))

    it('what a visitor claims never leads to another contact, and replaces nothing', () =>
      withScene(async (scene) => {
        const known = await scene.run('crm_upsert_contact', {
          phone: '+1 555 010 0001',
          name: 'Grace',
          email: 'grace@example.com',
        })
        const from = { id: 'v', name: 'Grace', phone: '+1 555 010 0001', email: 'grace@example.com' }
        const first = await post(server(), scene.channel, 'inbound', { id: '1', from, text: 'I am Grace' })
        assert.notEqual(first.contact_id, known.id)
        const visitor = await scene.run('crm_get_contact', { contact_id: first.contact_id })
        assert.deepEqual([visitor.phone, visitor.web_visitor_id], [null, null])
        const later = { id: 'v', name: 'Mallory', phone: 'no phone', email: 'not an address' }
        await post(server(), scene.channel, 'inbound', { id: '2', from: later, text: 'Hello' })
        const after = await scene.run('crm_get_contact', { contact_id: first.contact_id })
        assert.deepEqual([after.name, after.email, after.phone], ['Grace', 'grace@example.com', null])
      }))

    it('visitors who claim one phone at the same moment are all heard, and one has it', () =>
      withScene(async (scene) => {
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, n) =>
            scene.inbound({ id: `${n}`, from: { id: `v${n}`, phone: '+1 555 010 0009' }, text: 'Hello' }),
          ),
        )
        assert.deepEqual(
          answers.map(({ status }) => status),
          Array.from({ length: 6 }, () => 201),
        )
        const { data } = await scene.run('crm_search_contacts', {})
        const phones = data.map(({ phone }: { phone: string | null }) => phone)
        assert.deepEqual(
          [phones.length, phones.filter((phone: string | null) => phone !== null)],
          [6, ['15550100009']],
        )
      }))

    it('a message reopens a closed conversation', () =>
      withScene(async (scene) => {
        const { conversation } = await scene.hello()
        await scene.run('inbox_close_conversation', { conversation_id: conversation })
        await scene.inbound({ id: 'later', from: { id: 'visitor-1' }, text: 'One more thing' })
        const after = await scene.run('inbox_get_conversation', { conversation_id: conversation })
        assert.deepEqual([after.state, after.unread_count], ['open', 2])
      }))

    it('a message can reply to one of the customer, and to a reply that was delivered', () =>
      withScene(async (scene) => {
        const { conversation, message } = await scene.hello()
        const reply = await scene.reply(conversation)
        await scene.deliver()
        const from = { id: 'visitor-1' }
        const own = await scene.inbound({ id: 'a', from, text: 'As I said', reply_to_id: 'hello-1' })
        const ours = await scene.inbound({
          id: 'b',
          from,
          text: 'You said',
          reply_to_id: reply.body.message.id,
        })
        const unknown = await scene.inbound({ id: 'c', from, text: 'Who said', reply_to_id: 'nothing' })
        const messages = await listMessages(scene, conversation)
        const repliedBy = (id: string) => messages.find((one) => one.id === id).reply_to_id
        assert.equal(repliedBy(own.body.message_id), message)
        assert.equal(repliedBy(ours.body.message_id), reply.body.message.id)
        assert.equal(repliedBy(unknown.body.message_id), null)
      }))

    it('messages have the time that the bridge says, never one in the future', () =>
      withScene(async (scene) => {
        const from = { id: 'v' }
        const late = '2026-01-02T03:04:05+01:00'
        const { body } = await scene.inbound({ id: 'past', from, text: 'Late', at: late })
        await scene.inbound({ id: 'future', from, text: 'Early', at: '2999-01-01T00:00:00Z' })
        const messages = await listMessages(scene, body.conversation_id)
        assert.equal(messages[1].created_at, '2026-01-02T02:04:05.000Z')
        assert.ok(Date.parse(messages[0].created_at) <= Date.now())
      }))

    it('no message is lost to what a customer typed', () =>
      withScene(async (scene) => {
        const key = scene.workspace.owner.key
        const { status, body } = await scene.inbound({
          id: 'odd',
          from: { id: 'v', name: '\u0000\ud800', email: 'x'.repeat(300) },
          text: `NUL \u0000, half \ud83d, key ${key}`,
        })
        assert.equal(status, 201, JSON.stringify(body))
        const [message] = await listMessages(scene, body.conversation_id)
        assert.equal(message.text, 'NUL \ufffd, half \ufffd, key wc_live_[redacted]')
      }))

    it('a visitor whose contact was deleted is a new contact', () =>
      withScene(async (scene) => {
        const before = await scene.hello('v')
        await scene.run('crm_delete_contact', { contact_id: before.contact })
        const after = await scene.hello('v')
        assert.notEqual(after.contact, before.contact)
        assert.notEqual(after.conversation, before.conversation)
      }, 'web'))

    it('staff from whom phones are hidden see no visitor id that is one, and cannot compare it', () =>
      withScene(async (scene) => {
        const { contact } = await scene.hello('15550100042')
        const staff = await scene.workspace.staff({ hide_phone_numbers: true })
        const call = callAs(server(), staff.key)
        const shown = await call('crm_get_contact', { contact_id: contact })
        assert.ok(!shown.text.includes('15550100042'), shown.text)
        const filter = { webVisitorId: { eq: '15550100042' } }
        const searched = await call('crm_search_contacts', { filter })
        assert.deepEqual([searched.status, searched.body.reason], [403, 'phone_hidden'])
      }, 'web'))
  },
  { ownJobs: true },
)
