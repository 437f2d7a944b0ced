import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { advanceClock } from '../../server/clock.ts'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { deleteExpiredRecords } from '../../storage/access/idempotency.ts'
import { insertTemplate } from '../templates/insert-template.ts'
import { listAudit } from '../audit/audit-rows.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer, startWithOptions, type TestServer } from '../servers.ts'
import { listEmittedEventTypes, summarizeReply } from './fixtures.ts'
import { createTemplate, deliverStatuses, startMessageProvider } from './message-provider.ts'

const HOUR_MS = 3_600_000
const UNKNOWN = [504, 'timeout', 'outcome_unknown']
const NOT_CONFIRMED = [409, 'conflict', 'not_confirmed']

for (const database of databases) {
  describe(`Sends without a response, at a provider without a look-up (${database})`, () => {
    let provider: Awaited<ReturnType<typeof startMessageProvider>>
    let started: TestServer
    const server = () => started
    before(async () => {
      provider = await startMessageProvider()
      started = await startServer(database, { provider: { ...provider.config, providerTimeout: 0.6 } })
    })
    after(async () => {
      await started.close()
      await provider.close()
    })

    const createScene = async (on = server()) => {
      // Without `sync`: this provider does not register numbers.
      const workspace = await makeWorkspace({ db: on.db, app: on.app })
      const { id, contactId } = await plantConversation(on, workspace.id)
      const run = doAs(on, workspace.owner.key)
      const key = `lost-response-${workspace.id}`
      const reply = ({ at = on, idempotencyKey = key } = {}) =>
        callAs(at, workspace.owner.key)(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi' },
          { confirm: 'send', idempotencyKey },
        )
      // Ids of workspaces are unique in one database alone.
      const start = provider.received.length
      const listReceived = () =>
        provider.received.slice(start).filter((message) => message.phoneNumberId === `88${workspace.id}`)
      const findMessage = async () =>
        (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data[0]
      return {
        workspace,
        id,
        contactId,
        run,
        key,
        reply,
        listReceived,
        findMessage,
        findStatus: async () => (await findMessage()).status,
        listEvents: async () =>
          (await listEmittedEventTypes(on, workspace)).filter((type) => type.startsWith('message.')),
        deliver: (...names: string[]) => deliverStatuses(on, workspace.id, listReceived()[0]!, ...names),
        advance: (hours: number) => advanceClock(on.app, workspace.id, hours * HOUR_MS),
        /** Ends the wait until the background job looks at the workspace's open calls again. */
        makeDue: () =>
          sql`
          update idempotency set lease_until = created_at
          where workspace_id = ${workspace.id} and state = 'running'`.execute(on.db),
        listOutcomes: async () =>
          (await listAudit(on, workspace)).map((row) => [row.operation, row.outcome, row.code]),
      }
    }
    type Scene = Awaited<ReturnType<typeof createScene>>

    it('a send whose outcome is unknown is sent again neither by a repeat nor by the job', async () => {
      const { reply, listReceived, findStatus, listEvents, makeDue } = await createScene()
      provider.outcomes.push('drop')
      const lost = await reply()
      assert.deepEqual(summarizeReply(lost), UNKNOWN)
      assert.ok(Number(lost.headers['retry-after']) > 0)
      for (let n = 0; n < 3; n++) {
        await makeDue()
        await reconcileProviderCalls(server().app)
        assert.deepEqual(summarizeReply(await reply()), UNKNOWN)
      }
      assert.deepEqual([listReceived().length, await findStatus(), await listEvents()], [0, 'pending', []])
      assert.deepEqual(provider.asked, [], 'it is not asked for what only a sandbox can answer')
    })

    it('a send of a server that was killed before or during the call is not sent again', async () => {
      const { workspace, reply, listReceived, makeDue, findStatus } = await createScene()
      provider.outcomes.push('accept')
      assert.equal((await reply()).status, 201)
      // What a process leaves that dies between the commit of the intent and the response.
      await sql`
        update messages set status = 'pending', provider_id = null, sent_at = null,
          content = '{"call": {"opens": false, "makes_contact": false}}'
        where workspace_id = ${workspace.id} and direction = 'outbound'`.execute(server().db)
      await sql`
        update idempotency set state = 'running', status = null, body = null, lease_until = clock_timestamp(),
          intent = jsonb_build_object('keyId', ${workspace.owner.keyId}::text, 'input', '{}'::jsonb, 'intent',
            (select jsonb_build_object('workspaceId', ${workspace.id}::text, 'messageId', id::text,
              'conversationId', conversation_id::text, 'phoneNumberId', ${`88${workspace.id}`}::text,
              'outgoing', jsonb_build_object('reference', reference, 'to', '15550100001',
                'body', '{"type": "text", "text": {"body": "Hi"}}'::jsonb))
            from messages m where m.workspace_id = ${workspace.id} and m.direction = 'outbound'))
        where workspace_id = ${workspace.id}`.execute(server().db)
      assert.deepEqual(summarizeReply(await reply()), UNKNOWN)
      await makeDue()
      await reconcileProviderCalls(server().app)
      assert.deepEqual([listReceived().length, await findStatus()], [1, 'pending'])
    })

    it('a status with our reference makes it sent, and the repeat answers what became of it', async () => {
      const { reply, listReceived, listEvents, deliver, listOutcomes } = await createScene()
      provider.outcomes.push('accept without response')
      assert.deepEqual(summarizeReply(await reply()), UNKNOWN)
      assert.deepEqual(await listOutcomes(), [], 'the audit trail waits for the outcome')
      await deliver('delivered', 'sent')
      const repeated = await reply()
      assert.deepEqual([repeated.status, repeated.body.message.status], [201, 'delivered'])
      assert.equal((await reply()).text, repeated.text)
      assert.deepEqual(
        [listReceived().length, await listEvents(), await listOutcomes()],
        [1, ['message.sent/1', 'message.delivered/1'], [['messaging_send_reply', 'done', null]]],
      )
    })

    it('a contact that a send made is announced when it is sent, unless it was merged into another one', async () => {
      for (const isMerged of [false, true]) {
        const { workspace, contactId, reply, deliver } = await createScene()
        provider.outcomes.push('accept without response')
        assert.equal((await reply()).status, 504)
        // What a template to a new phone leaves; the contact of the conversation may be another one since.
        const call = { opens: false, makes_contact: true, contact_id: isMerged ? '999999' : contactId }
        await sql`
          update messages set content = ${JSON.stringify({ call })}::text::jsonb
          where workspace_id = ${workspace.id} and direction = 'outbound'`.execute(server().db)
        await deliver('sent')
        const types = await listEmittedEventTypes(server(), workspace)
        assert.deepEqual(
          [types.includes('message.sent/1'), types.includes('contact.created/1')],
          [true, !isMerged],
        )
      }
    })

    it('whom a send made is announced before others change them, while its outcome is unknown', async () => {
      const one = await startWithOptions(database, { provider: provider.config })
      try {
        for (const isStalled of [false, true]) {
          const { workspace, run, makeDue, deliver, listReceived } = await createScene(one)
          await insertTemplate(one.db, workspace.id, createTemplate(workspace.id), one.app.now())
          const { next_cursor: start } = await run('events_list', { after: 'now' })
          provider.outcomes.push(isStalled ? 'accept when released' : 'accept without response')
          const first = callAs(one, workspace.owner.key)(
            'messaging_send_template',
            { phone: '+15550100777', template: { name: 'order_update', language: 'en_US' } },
            { confirm: 'send' },
          )
          if (isStalled) {
            await provider.waitForCall()
            // As if its server had been killed, and another one looked for the outcome.
            await makeDue()
            await reconcileProviderCalls(one.app)
          } else assert.deepEqual(summarizeReply(await first), UNKNOWN)
          const [contact] = (await run('crm_search_contacts', { query: '15550100777' })).data
          const [conversation] = (await run('inbox_search_conversations', { contact_id: contact.id })).data
          await run('crm_tag_contacts', { contact_ids: [contact.id], tags: ['VIP'] })
          await run('inbox_close_conversation', { conversation_id: conversation.id })
          if (isStalled) {
            provider.release()
            assert.equal((await first).status, 201)
          } else await deliver('sent')
          assert.equal(listReceived().length, 1)
          const events = (await run('events_list', { limit: 100, after: start })).data
          assert.deepEqual(
            events.map(({ type }: { type: string }) => type),
            [
              'contact.created/1',
              'conversation.created/1',
              'contact.tags_added/1',
              'conversation.closed/1',
              'message.sent/1',
            ],
          )
          assert.equal(events[0].data.actor.key.id, workspace.owner.keyId)
        }
      } finally {
        await one.close()
      }
    })

    it('a status that says failed is the outcome too', async () => {
      const { reply, deliver, findMessage, listEvents } = await createScene()
      provider.outcomes.push('accept without response')
      assert.equal((await reply()).status, 504)
      await deliver('failed', 'failed')
      const repeated = await reply()
      assert.deepEqual([repeated.status, repeated.body.message.status], [201, 'failed'])
      assert.deepEqual(
        [(await findMessage()).error, await listEvents()],
        ['Message undeliverable', ['message.sent/1', 'message.failed/1']],
      )
    })

    it('a repeat waits for the status, at most as long as a call may take', async () => {
      const one = await startWithOptions(database, { provider: provider.config })
      try {
        const { reply, deliver } = await createScene(one)
        provider.outcomes.push('accept without response')
        assert.equal((await reply()).status, 504)
        const [repeated] = await Promise.all([reply(), deliver('sent')])
        assert.deepEqual([repeated.status, repeated.body.message?.status], [201, 'sent'])
      } finally {
        await one.close()
      }
    })

    it('a repeat on another server while the first call is under way makes no call', async () => {
      // Here a call may take as long as usual, so that the first is under way until it is released.
      const start = () => startWithOptions(database, { provider: provider.config })
      const [one, other] = [await start(), await start()]
      try {
        const { reply, listReceived, listEvents, makeDue } = await createScene(one)
        provider.outcomes.push('accept when released')
        const first = reply()
        await provider.waitForCall()
        const repeated = summarizeReply(await reply({ at: other }))
        assert.deepEqual(repeated, [409, 'conflict', 'still_running'])
        // As if the first server had stalled for longer than its lease.
        await makeDue()
        await reconcileProviderCalls(other.app)
        provider.release()
        assert.equal((await first).status, 201)
        assert.equal((await reply({ at: other })).text, (await first).text)
        assert.deepEqual([listReceived().length, await listEvents()], [1, ['message.sent/1']])
      } finally {
        await one.close()
        await other.close()
      }
    })

    it('without a repeat, the background job completes what a status has confirmed', async () => {
      const { reply, deliver, makeDue } = await createScene()
      provider.outcomes.push('accept without response')
      assert.equal((await reply()).status, 504)
      await deliver('sent')
      await makeDue()
      await reconcileProviderCalls(server().app)
      const repeated = await reply()
      assert.deepEqual([repeated.status, repeated.headers['idempotent-replayed']], [201, 'true'])
    })

    const assertFailed = async ({
      reply,
      findMessage,
      listEvents,
      listReceived,
      run,
      id,
      listOutcomes,
    }: Scene) => {
      const message = await findMessage()
      assert.deepEqual(
        [message.status, message.error, message.failed_at === null],
        ['failed', 'The provider did not confirm the message within 24 hours.', false],
      )
      const repeated = await reply()
      assert.deepEqual(summarizeReply(repeated), NOT_CONFIRMED)
      assert.deepEqual([repeated.body.message_id, repeated.body.conversation_id], [message.id, id])
      assert.equal(repeated.headers['idempotent-replayed'], 'true')
      assert.deepEqual([await listEvents(), listReceived().length], [['message.failed/1'], 0])
      assert.deepEqual(await listOutcomes(), [['messaging_send_reply', 'failed', 'conflict']])
      assert.equal(
        (await run('inbox_get_conversation', { conversation_id: id })).reply_status,
        'incoming_no_reply',
      )
    }

    it('after 24 hours it is failed, the customer still waits, and the repeat answers so', async () => {
      const scene = await createScene()
      provider.outcomes.push('drop')
      assert.equal((await scene.reply()).status, 504)
      await scene.advance(23)
      await reconcileProviderCalls(server().app)
      assert.equal(await scene.findStatus(), 'pending')
      await scene.advance(2)
      await reconcileProviderCalls(server().app)
      await assertFailed(scene)
      const anew = await scene.reply({ idempotencyKey: `${scene.key}-anew` })
      assert.deepEqual([anew.status, anew.body.code ?? anew.body.message.status], [409, 'window_closed'])
    })

    it('a repeat after 24 hours fails it where the job has not', async () => {
      const scene = await createScene()
      provider.outcomes.push('drop')
      assert.equal((await scene.reply()).status, 504)
      await scene.advance(25)
      assert.deepEqual(summarizeReply(await scene.reply()), NOT_CONFIRMED)
      await assertFailed(scene)
    })

    it('a confirmation after 24 hours overrules the failure', async () => {
      const { reply, advance, deliver, findMessage, listEvents } = await createScene()
      provider.outcomes.push('accept without response')
      assert.equal((await reply()).status, 504)
      await advance(25)
      await reconcileProviderCalls(server().app)
      await deliver('sent', 'delivered')
      const { status, error, failed_at: failedAt } = await findMessage()
      assert.deepEqual([status, error, failedAt], ['delivered', null, null])
      assert.deepEqual(await listEvents(), ['message.failed/1', 'message.sent/1', 'message.delivered/1'])
    })

    it('the answer is kept for 24 hours from when it is known', async () => {
      const { reply, deliver, workspace } = await createScene()
      provider.outcomes.push('accept without response')
      assert.equal((await reply()).status, 504)
      const age = () =>
        sql`
        update idempotency set created_at = created_at - interval '25 hours',
          expires_at = expires_at - interval '25 hours' where workspace_id = ${workspace.id}`.execute(
          server().db,
        )
      await age()
      await deleteExpiredRecords(server().db, server().app.now(), 1000)
      await deliver('sent')
      const repeated = await reply()
      assert.equal(repeated.status, 201)
      await deleteExpiredRecords(server().db, server().app.now(), 1000)
      assert.equal((await reply()).text, repeated.text)
    })

    it('a contact that is deleted meanwhile changes nothing about the outcome', async () => {
      for (const ends of ['confirmed', 'failed'] as const) {
        const { reply, run, contactId, deliver, advance, listReceived } = await createScene()
        provider.outcomes.push(ends === 'confirmed' ? 'accept without response' : 'drop')
        assert.equal((await reply()).status, 504)
        await run('crm_delete_contact', { contact_id: contactId })
        if (ends === 'confirmed') {
          await deliver('delivered')
          assert.equal((await reply()).status, 201)
        } else {
          await advance(25)
          assert.deepEqual(summarizeReply(await reply()), NOT_CONFIRMED)
        }
        assert.equal(listReceived().length, ends === 'confirmed' ? 1 : 0)
      }
    })
  })
}
