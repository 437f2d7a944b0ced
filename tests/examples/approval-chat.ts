import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { succeed } from '../admin/admin-commands.ts'
import { type Receiver, startReceiver } from '../webhooks/receiver.ts'
import { type Example, startExample } from './example.ts'
import type { Demo } from './support-agent.ts'

const SIGNING_SECRET = 'slack-signing-secret'

/** The example approval-chat, with a chat that keeps what it is posted. */
export const testApprovalChat = (demo: () => Demo): void => {
  describe('approval-chat', () => {
    let chat: Receiver
    let bot: Example
    let url: string
    let endpointId: string
    let agentKey: string
    const posts: any[] = []
    const waiting: ((post: any) => void)[] = []
    /** The next post to the chat that nobody has read. */
    const nextPost = async (): Promise<any> =>
      posts.length > 0 ? posts.shift() : await new Promise((resolve) => void waiting.push(resolve))

    before(async () => {
      const { wcrm, adminFlags, ownerKey } = demo()
      chat = await startReceiver(({ body }) => {
        const next = waiting.shift()
        if (next) next(JSON.parse(body))
        else posts.push(JSON.parse(body))
        return {}
      })
      const agent: any = await succeed(
        'keys',
        'create',
        '--staff',
        '1',
        '--scopes',
        'all',
        '--agent',
        ...adminFlags,
      )
      agentKey = agent.key
      // The address of the bot is known once it runs: its secret comes first.
      const draft = await wcrm.webhooks.create({
        url: `${chat.url}/none`,
        event_types: ['approval.requested/1'],
      })
      endpointId = draft.endpoint.id!
      bot = startExample('approval-chat/approvals.mjs', {
        WCRM_URL: demo().url,
        PORT: '0',
        WEBHOOK_SECRET: draft.signing_secret!,
        SLACK_WEBHOOK_URL: chat.url,
        SLACK_SIGNING_SECRET: SIGNING_SECRET,
        KEYS: JSON.stringify({ U1: ownerKey }),
      })
      url = `http://127.0.0.1:${(await bot.line()).port}`
      await wcrm.webhooks.update({ endpoint_id: endpointId, url: `${url}/wcrm` })
    })
    after(async () => {
      await demo().wcrm.webhooks.delete({ endpoint_id: endpointId }, { confirm: 'delete' })
      await bot.kill('SIGTERM')
      await chat.close()
    })

    const ask = async (text: string): Promise<{ id: string; conversationId: string }> => {
      const { data } = await demo().wcrm.conversations.search({ state: 'open', limit: 20 })
      const { id: conversationId } = data.find((one: any) => one.can_reply)!
      const response = await fetch(`${demo().url}/v1/ops/messaging_send_reply`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${agentKey}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ conversation_id: conversationId, text, reason: 'She asked.' }),
      })
      const body: any = await response.json()
      assert.equal(response.status, 202, JSON.stringify(body))
      return { id: body.approval.id, conversationId }
    }
    const press = async (
      user: string,
      action: string,
      id: string,
      sign = SIGNING_SECRET,
    ): Promise<number> => {
      const payload = {
        type: 'block_actions',
        user: { id: user },
        actions: [{ action_id: action, value: id }],
        response_url: chat.url,
        message: { blocks: [{ type: 'section' }] },
      }
      const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
      const at = String(Math.floor(Date.now() / 1000))
      const signature = createHmac('sha256', sign).update(`v0:${at}:${body}`).digest('hex')
      const { status } = await fetch(`${url}/slack`, {
        method: 'POST',
        headers: { 'x-slack-request-timestamp': at, 'x-slack-signature': `v0=${signature}` },
        body,
      })
      return status
    }
    const statusOf = async (id: string) => (await demo().wcrm.approvals.get({ approval_id: id })).status

    it('posts what is needed to decide, and decides as the person who pressed', async () => {
      const { id } = await ask('It arrives <!channel> *today*.')
      const { blocks } = await nextPost()
      assert.equal(blocks[0].text.type, 'plain_text')
      assert.match(
        blocks[0].text.text,
        /Customer: [^]*Text: It arrives <!channel> \*today\*\.[^]*Reason of the agent: She asked\.[^]*Until /,
      )
      assert.deepEqual(
        blocks[1].elements.slice(0, 2).map((one: any) => [one.action_id, one.value]),
        [
          ['approve', id],
          ['decline', id],
        ],
      )
      assert.equal(await press('U1', 'approve', id, 'another secret'), 401)
      assert.equal(await press('U2', 'approve', id), 200)
      assert.match((await nextPost()).text, /^<@U2> has no key/)
      assert.equal(await statusOf(id), 'pending')
      assert.equal(await press('U1', 'approve', id), 200)
      assert.match((await nextPost()).text, /^Approved by <@U1>/)
      const approval = await demo().wcrm.approvals.get({ approval_id: id, wait_seconds: 20 })
      assert.deepEqual([approval.status, approval.decided_by?.id], ['done', '1'])
      assert.equal(await press('U1', 'decline', id), 200)
      assert.match((await nextPost()).text, /^Not done: /)
    })

    it('declines, and takes only what wcrm has signed', async () => {
      const { id } = await ask('No.')
      await nextPost()
      await press('U1', 'decline', id)
      assert.match((await nextPost()).text, /^Declined by <@U1>/)
      assert.equal(await statusOf(id), 'declined')
      const forged = await fetch(`${url}/wcrm`, { method: 'POST', body: '{"type":"approval.requested"}' })
      assert.equal(forged.status, 401)
    })
  })
}
