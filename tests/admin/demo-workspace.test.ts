import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createDemo, type Demo } from '../../server/demo/demo.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import type { TestServer } from '../servers.ts'
import { requireReadableExamples } from './demo-examples.ts'

type RunOperation = ReturnType<typeof doAs>

type ListedConversation = {
  id: string
  channel: { type: string }
  contact: { id: string; name: string }
  window: { open: boolean; kind: string }
}

/** Replies in every open reply window, and sends templates; all of them must be delivered. */
const requireDeliveredMessages = async (server: TestServer, run: RunOperation): Promise<void> => {
  const { data } = (await run('inbox_search_conversations', { state: 'open', limit: 100 })) as {
    data: ListedConversation[]
  }
  const open = data.filter(({ channel, window }) => channel.type === 'chatapp' && window.open)
  assert.ok(
    open.some(({ window }) => window.kind === 'free_entry') && open.length > 1,
    JSON.stringify(open.map(({ window }) => window)),
  )
  const sent: string[] = []
  for (const { id } of open)
    sent.push((await run('messaging_send_reply', { conversation_id: id, text: 'Hello from us' })).message.id)
  for (const { contact } of data.slice(0, 3)) {
    const { message } = await run('messaging_send_template', {
      contact_id: contact.id,
      template: { name: 'order_update', language: 'en_US', body: [contact.name] },
    })
    sent.push(message.id)
  }
  await server.settle()
  for (const id of sent)
    assert.equal((await run('messaging_get_message', { message_id: id })).status, 'delivered')
}

type ListedShortLink = {
  id: string
  url: string
  qr_image_url: string | null
  qr_image_format: string | null
  message: string
  channel: { phone: string }
}

/** Short links open the server's page, their QR images load, and they can be deleted. */
const requireWorkingShortLinks = async (run: RunOperation): Promise<void> => {
  const links = (await run('messaging_list_short_links')).data as ListedShortLink[]
  assert.deepEqual(
    [
      links.length,
      [...new Set(links.map((link) => link.qr_image_format))].toSorted(),
      new Set(links.map((link) => link.channel.phone)).size,
    ],
    [4, ['PNG', 'SVG', null], 2],
  )
  for (const { url, message, qr_image_url: image, qr_image_format: format } of links) {
    assert.ok((await (await fetch(url)).text()).includes(encodeURIComponent(message)), url)
    if (image !== null)
      assert.equal(
        (await fetch(image)).headers.get('content-type'),
        format === 'PNG' ? 'image/png' : 'image/svg+xml',
      )
  }
  assert.equal((await run('messaging_delete_short_link', { short_link_id: links[0]!.id })).deleted, true)
}

const requireQuickMessages = async (run: RunOperation): Promise<void> => {
  const { data } = (await run('messaging_list_quick_messages', { limit: 100 })) as {
    data: { code: string; favorite: boolean }[]
  }
  assert.deepEqual(
    data.filter(({ favorite }) => favorite).map(({ code }) => code),
    ['hello', 'hours'],
  )
}

const requireBroadcasts = async (run: RunOperation): Promise<void> => {
  const { data } = (await run('messaging_list_broadcasts')) as {
    data: { status: string; totals: Record<string, number> }[]
  }
  assert.deepEqual([...new Set(data.map(({ status }) => status))].toSorted(), [
    'cancelled',
    'completed',
    'running',
    'scheduled',
  ])
  const large = data.map(({ totals }) => totals).find((totals) => totals['recipients']! > 30)!
  for (const status of ['sent', 'delivered', 'read', 'responded']) assert.ok(large[status]! > 0, status)
}

everyDatabase(
  'admin demo: workspace',
  (server) => {
    let demo: Demo

    it('every GET of the OpenAPI document answers its examples, as its schema says', async () => {
      demo = (await createDemo(server().db, server().app.now(), {
        publicUrl: server().url,
        webhookSealer: server().app.webhookSealer,
      }))!
      await server().sync(demo.workspaceId)
      await requireReadableExamples(server().url, demo.apiKey)
    })

    it('replies work in open windows, and templates for everyone', async () => {
      const run = doAs(server(), demo.apiKey)
      await requireDeliveredMessages(server(), run)
      await requireWorkingShortLinks(run)
      await requireQuickMessages(run)
      await requireBroadcasts(run)
    })
  },
  // The demo is created on a database that has no workspace yet.
  { dedicated: true },
)
