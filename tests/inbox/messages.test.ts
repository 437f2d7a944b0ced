import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { clipText } from '../../server/domains/messaging/view.ts'
import { everyPage } from '../calls.ts'
import { everyDoor } from '../doors.ts'
import type { TestServer } from '../servers.ts'
import {
  at,
  insertContact,
  insertConversation,
  insertMessage,
  insertChannel,
  idsOf,
  type Owned,
} from './inbox-rows.ts'

/** Inserts a message of each kind. Returns the ids in the order of the messages, oldest first. */
const insertSixMessages = async (
  { server: { db }, workspace }: Owned,
  conversationId: string,
  channelId: string,
  firstText: string,
): Promise<string[]> => {
  const ids: string[] = []
  for (const message of [
    { created_at: at(1), text: firstText },
    {
      created_at: at(2),
      direction: 'outbound',
      status: 'read',
      type: 'TEMPLATE',
      text: 'Hi',
      template_name: 'hello',
      template_language: 'en',
      staff_id: workspace.owner.staffId,
    },
    {
      created_at: at(2),
      direction: 'outbound',
      status: 'sent',
      type: 'IMAGE',
      media: { state: 'linked', url: 'https://example.com/a.png' },
    },
    {
      created_at: at(2),
      direction: 'system',
      status: 'system',
      note: true,
      text: 'Note',
      staff_id: workspace.owner.staffId,
    },
    {
      created_at: at(3),
      type: 'DOCUMENT',
      text: null,
      media: { state: 'kept', content_type: 'application/pdf', file_name: 'a.pdf', size: 123 },
    },
    { created_at: at(4), type: 'VIDEO', media: { state: 'lost', content_type: 'video/mp4' } },
  ] as const)
    ids.push(
      await insertMessage(db, workspace.id, {
        conversation_id: conversationId,
        channel_id: channelId,
        ...message,
      }),
    )
  await db
    .updateTable('messages')
    .set({ delivered_at: at(5), read_at: at(6) })
    .where('workspace_id', '=', workspace.id)
    .where('id', '=', ids[1]!)
    .execute()
  return ids
}

/** Returns the document, the note and the template of `insertSixMessages` as the API should show them. */
const toExpectedMessages = (
  server: TestServer,
  ids: readonly string[],
  conversationId: string,
  staffId: string,
) => {
  const shared = {
    conversation_id: conversationId,
    reply_to_id: null,
    error: null,
    text_truncated: false,
    failed_at: null,
    external_id: null,
    content: null,
    delivered_at: null,
    read_at: null,
    template: null,
    note: false,
    reactions: [],
    edited_at: null,
    deleted_at: null,
  }
  const owner = { staff_id: staffId, name: 'Owner' }
  // Which key it was is not known.
  const actor = { staff: { id: staffId, name: 'Owner' }, key: null, agent: false, approved_by: null }
  return {
    document: {
      ...shared,
      id: ids[4],
      type: 'DOCUMENT',
      direction: 'inbound',
      status: 'received',
      text: null,
      has_media: true,
      from: null,
      actor: null,
      created_at: at(3),
      media: {
        content_type: 'application/pdf',
        file_name: 'a.pdf',
        size: 123,
        url: `${server.url}/v1/messages/${ids[4]}/media`,
      },
    },
    note: {
      ...shared,
      id: ids[3],
      type: 'TEXT',
      direction: 'system',
      status: 'system',
      text: 'Note',
      has_media: false,
      from: owner,
      actor,
      created_at: at(2),
      media: null,
      note: true,
    },
    template: {
      ...shared,
      id: ids[1],
      type: 'TEMPLATE',
      direction: 'outbound',
      status: 'read',
      text: 'Hi',
      has_media: false,
      from: owner,
      actor,
      created_at: at(2),
      media: null,
      template: { name: 'hello', language: 'en' },
      delivered_at: at(5),
      read_at: at(6),
    },
  }
}

everyDoor('Messages of a conversation', (test) => {
  test('messages and notes are listed newest first, and read one by one', async ({
    server,
    workspace,
    call,
  }) => {
    const { db } = server
    const [channel, other] = [
      await insertChannel(server, workspace, 'Shop'),
      await insertChannel(server, workspace, 'Elsewhere'),
    ]
    const conversation = await insertConversation(db, workspace.id, {
      contact_id: await insertContact(db, workspace.id, 'Ada', '15550100042'),
      channel_id: channel,
    })
    const otherConversation = await insertConversation(db, workspace.id, {
      contact_id: null,
      channel_id: other,
    })
    const long = 'é'.repeat(4000)
    const ids = await insertSixMessages({ server, workspace }, conversation, channel, long)
    await insertMessage(db, workspace.id, {
      conversation_id: otherConversation,
      channel_id: other,
      created_at: at(9),
    })
    const all = (await call('inbox_list_messages', { conversation_id: conversation })).body
    assert.deepEqual(idsOf(all), [...ids].reverse())
    assert.equal(all.next_cursor, null)
    const [lost, kept, note, linked, template, text] = all.data
    assert.deepEqual(lost.media, { content_type: 'video/mp4', file_name: null, size: null, url: null })
    const expected = toExpectedMessages(server, ids, conversation, workspace.owner.staffId)
    assert.deepEqual([kept, note, template], [expected.document, expected.note, expected.template])
    assert.deepEqual(
      [linked.media.url, linked.from],
      ['https://example.com/a.png', { staff_id: null, name: null }],
    )
    assert.equal(text.text, long)
    for (const message of all.data)
      assert.deepEqual((await call('messaging_get_message', { message_id: message.id })).body, message)
  })

  test('messages are paged, and only visible to staff of the channel', async ({
    server,
    workspace,
    call,
    as,
  }) => {
    const { db } = server
    const [channel, other] = [
      await insertChannel(server, workspace, 'Shop'),
      await insertChannel(server, workspace, 'Elsewhere'),
    ]
    const conversation = await insertConversation(db, workspace.id, { contact_id: null, channel_id: channel })
    const otherConversation = await insertConversation(db, workspace.id, {
      contact_id: null,
      channel_id: other,
    })
    const ids = await insertSixMessages({ server, workspace }, conversation, channel, 'Hello')
    await insertMessage(db, workspace.id, {
      conversation_id: otherConversation,
      channel_id: other,
      created_at: at(9),
    })
    const all = (await call('inbox_list_messages', { conversation_id: conversation })).body
    for (const limit of [1, 2, 4]) {
      const pages = await everyPage(
        async (op, input) => (await call(op, input)).body,
        'inbox_list_messages',
        { conversation_id: conversation },
        [limit],
      )
      assert.deepEqual(
        pages.flatMap((page) => page.data as unknown[]),
        all.data,
      )
    }
    const cursor = (await call('inbox_list_messages', { conversation_id: conversation, limit: 1 })).body
      .next_cursor
    assert.equal(
      (await call('inbox_list_messages', { conversation_id: otherConversation, cursor })).body.reason,
      'cursor_invalid',
    )
    const agent = as((await workspace.staff({ channel_ids: [other] })).key)
    assert.equal((await agent('messaging_get_message', { message_id: ids[0] })).status, 404)
    assert.equal((await agent('inbox_list_messages', { conversation_id: conversation })).status, 404)
    assert.equal(
      (await agent('inbox_list_messages', { conversation_id: otherConversation })).body.data.length,
      1,
    )
  })
})

it('clipText cuts between grapheme clusters', () => {
  const texts = fc.array(
    fc.constantFrom('a', ' ', 'é', 'e\u0301', '👨‍👩‍👧', '🇩🇪', '😀', '한', '\r\n', '\ud800'),
    { maxLength: 60 },
  )
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
  fc.assert(
    fc.property(texts, fc.integer({ min: 20, max: 50 }), (parts, maxLength) => {
      const full = parts.join('')
      const { text, truncated } = clipText(full, maxLength)
      assert.ok(full.startsWith(text))
      assert.equal(truncated, text !== full)
      assert.ok([...text].length <= maxLength)
      if (!truncated) return
      assert.ok(
        [...segmenter.segment(full)].some(({ index }) => index === text.length),
        'cut within a cluster',
      )
      const next = segmenter.segment(full).containing(text.length)!
      assert.ok([...(text + next.segment)].length > maxLength, 'one more cluster would fit')
    }),
    { numRuns: 1000 },
  )
  assert.deepEqual(clipText(`a${'\u0301'.repeat(900)}`, 500), {
    text: `a${'\u0301'.repeat(499)}`,
    truncated: true,
  })
})
