import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { deliver, deliverStatuses, type MessageProvider, useMessageProvider } from './message-provider.ts'

const PHONE = '15550100779'

for (const database of databases) {
  describe(`A customer who writes while a reply is on its way (${database})`, () => {
    let provider: MessageProvider
    let server: TestServer
    useMessageProvider(database, (started) => ({ provider, server } = started))

    it('still waits where the message is of before the reply and arrived after it was written', async () => {
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
  })
}
