import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { it } from 'node:test'
import { attemptChannelDelivery } from '../../server/domains/channels/send.ts'
import { deliverDueReplies } from '../deliver-due.ts'
import { updateChannel } from '../../storage/workspace/admin.ts'
import { findChannelDelivery } from '../../storage/channels/deliveries.ts'
import { claimRuns } from '../../storage/work/runs.ts'
import { doAs } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { createOwnChannel, makeDue, type OwnChannel } from './bridge.ts'

type Example = { url: string; stop: () => Promise<void> }

/** Starts examples/web-chat-bridge as its first lines say. */
const startExample = async (server: TestServer, channel: OwnChannel, folder: string): Promise<Example> => {
  const child: ChildProcess = spawn(process.execPath, ['examples/web-chat-bridge/bridge.mjs'], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      WCRM_URL: server.url,
      CHANNEL_ID: channel.id,
      CHANNEL_TOKEN: channel.token,
      CHANNEL_SECRET: channel.secret,
      BRIDGE_FILE: join(folder, 'chat.jsonl'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string]
  return {
    url: (JSON.parse(line) as { url: string }).url,
    stop: async () => {
      child.kill()
      await exited
    },
  }
}

/** A visitor's browser: it opens the page, writes, and reads the replies that are streamed to it. */
const openBrowser = async ({ url }: Example, visitor?: string) => {
  const page = await fetch(url, visitor === undefined ? {} : { headers: { cookie: visitor } })
  assert.match(await page.text(), /<title>Chat<\/title>/)
  const cookie = page.headers.get('set-cookie')!.split(';')[0]!
  const closing = new AbortController()
  const stream = await fetch(`${url}/events`, { headers: { cookie }, signal: closing.signal })
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
  let received = ''
  const replies = (): any[] =>
    [...received.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!) as unknown)
  return {
    cookie,
    replies,
    /** Waits until so many replies were shown. */
    until: async (count: number): Promise<any[]> => {
      while (replies().length < count) {
        const { value, done } = await reader.read()
        assert.ok(!done, 'the stream ended')
        received += value
      }
      return replies()
    },
    post: async (path: string, body: object): Promise<number> =>
      (await fetch(`${url}${path}`, { method: 'POST', headers: { cookie }, body: JSON.stringify(body) }))
        .status,
    close: () => closing.abort(),
  }
}

everyDatabase(
  'The example bridge',
  (server) => {
    it('a visitor writes on the web page, staff reply from the terminal, and the visitor sees it once', async () => {
      const { app, db } = server()
      await app.jobs.job('channel-deliveries').stop()
      const workspace = await makeWorkspace(server())
      const channel = await createOwnChannel(server(), workspace.id, null, 'web')
      const folder = mkdtempSync(join(tmpdir(), 'wcrm-bridge-'))
      let example = await startExample(server(), channel, folder)
      await updateChannel(db, workspace.id, channel.id, { url: `${example.url}/replies` })
      const run = doAs(server(), workspace.owner.key)
      try {
        const browser = await openBrowser(example)
        const hello = { id: 'first', text: 'Is the shop open?', name: 'Ada' }
        assert.equal(await browser.post('/messages', hello), 204)
        // The page repeats what it does not know to have arrived.
        assert.equal(await browser.post('/messages', hello), 204)
        const [conversation, ...others] = (await run('inbox_search_conversations')).data
        assert.deepEqual([conversation.contact.name, others.length], ['Ada', 0])
        assert.deepEqual([conversation.unread_count, conversation.last_message.text], [1, hello.text])

        const cli = doorsOf(server().url, workspace.owner.key)[3]!
        const input = { conversation_id: conversation.id, text: 'Until eight.' }
        const reply = await cli.call('messaging_send_reply', input, { confirm: 'send' })
        assert.equal(reply.exit, 0, reply.text)
        // A server sends it and is killed before it notes that; another one sends it again.
        const [claimed] = await claimRuns(db, { kind: 'channel_deliveries', leaseSeconds: 30, limit: 64 })
        const delivery = (await findChannelDelivery(db, claimed!))!
        assert.deepEqual(await attemptChannelDelivery(app, { ...delivery, attempts: 0 }), {
          outcome: 'taken',
        })
        await makeDue(server(), workspace.id)
        await deliverDueReplies(app)
        await run('messaging_send_reply', { ...input, text: 'See you.' })
        await deliverDueReplies(app)
        assert.deepEqual(
          (await browser.until(2)).map(({ from, text }) => [from, text]),
          [
            ['Owner', 'Until eight.'],
            ['Owner', 'See you.'],
          ],
        )
        const messageId = reply.body.message.id
        assert.equal(await browser.post('/read', { id: messageId }), 204)
        const statusOf = async () => (await run('messaging_get_message', { message_id: messageId })).status
        while ((await statusOf()) !== 'read') await new Promise((resolve) => setImmediate(resolve))
        browser.close()

        // Nothing is forgotten when the bridge is restarted, and others see nothing of it.
        await example.stop()
        example = await startExample(server(), channel, folder)
        const later = await openBrowser(example, browser.cookie)
        assert.equal(later.cookie, browser.cookie)
        assert.equal((await later.until(2)).length, 2)
        const stranger = await openBrowser(example)
        assert.deepEqual(stranger.replies(), [])
        const forged = await fetch(`${example.url}/replies`, { method: 'POST', body: '{}' })
        assert.equal(forged.status, 401)
        later.close()
        stranger.close()
      } finally {
        await example.stop()
        rmSync(folder, { recursive: true, force: true })
      }
    })
  },
  { ownJobs: true },
)
