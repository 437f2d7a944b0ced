import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { mediaKey } from '../../server/media-store.ts'
import { callAs } from '../calls.ts'
import { checked, doorsOf, everyDatabase } from '../doors.ts'
import {
  buildCustomerMessage,
  createCustomerFixture,
  createWamid,
  insertSentMessage,
} from '../provider/webhook-fixture.ts'
import { loadWorkspaceRows } from '../world.ts'
import {
  ADA,
  at,
  isoAt,
  reaction,
  edit,
  textEdit,
  deletion,
  deliver,
  createConversation,
  readRest,
  makeDue,
  newEvents,
} from './change-messages.ts'
import { types } from './events.ts'

everyDatabase('Edits and deletions by customers', (server) => {
  it('an edit replaces the text, with an event, and changes nothing else', async () => {
    const scene = await createCustomerFixture(server())
    const { wamid, messageId, conversationId } = await createConversation(scene, {
      text: { body: 'Is it on its way?' },
    })
    const [rest, count] = [await readRest(scene), (await scene.events()).length]
    await deliver(scene, textEdit(wamid, 'Is 4711 on its way?', 60))
    assert.deepEqual(await readRest(scene), rest)
    const message = await scene.run('messaging_get_message', { message_id: messageId })
    assert.deepEqual(
      [message.text, message.edited_at, message.deleted_at, message.created_at, message.type],
      ['Is 4711 on its way?', isoAt(60), null, isoAt(0), 'TEXT'],
    )
    const conversation = await scene.run('inbox_get_conversation', { conversation_id: conversationId })
    assert.deepEqual([conversation.last_message.text, conversation.unread_count], ['Is 4711 on its way?', 1])
    const [event, ...others] = await newEvents(scene, count)
    assert.deepEqual(
      [event!.type, event!.data['message']!['text'], event!.data['previous_text'], others],
      ['message.edited/1', 'Is 4711 on its way?', 'Is it on its way?', []],
    )
  })

  it('edits in any order: the last one counts; a caption is edited like a text', async () => {
    const scene = await createCustomerFixture(server())
    const wamid = createWamid()
    await deliver(scene, textEdit(wamid, 'third', 30), textEdit(wamid, 'second', 20))
    await deliver(scene, buildCustomerMessage(ADA, { id: wamid, timestamp: at(0) }))
    await makeDue(scene)
    await deliver(scene, textEdit(wamid, 'first', 10))
    const image = createWamid()
    await deliver(
      scene,
      buildCustomerMessage(ADA, {
        id: image,
        timestamp: at(1),
        type: 'image',
        image: { id: '1', mime_type: 'image/jpeg', caption: 'Lok' },
      }),
      edit(image, { type: 'image', image: { id: '1', mime_type: 'image/jpeg', caption: 'Look' } }, 40),
    )
    assert.deepEqual(
      (await scene.messages()).map((m) => [m.type, m.text]),
      [
        ['TEXT', 'third'],
        ['IMAGE', 'Look'],
      ],
    )
    assert.ok((await scene.updates()).every((u) => u.state === 'done'))
  })

  it('a deletion erases text, reactions and file, with an event, and changes nothing else', async () => {
    const scene = await createCustomerFixture(server())
    const { db, app } = server()
    const { wamid, messageId, conversationId } = await createConversation(scene, {
      type: 'image',
      image: { id: '1', mime_type: 'image/jpeg', caption: 'My passport' },
    })
    await deliver(scene, reaction(wamid, '👍', 5))
    const key = mediaKey(scene.workspace.id, messageId)
    await app.media!.write(key, [Buffer.from('image')])
    await sql`
      update media set state = 'kept', key = ${key}, file_name = 'passport.jpg'
      where workspace_id = ${scene.workspace.id}`.execute(db)
    const media = await scene.run('messaging_get_media', { message_id: messageId })
    assert.equal((await fetch(media.url)).status, 200)
    const [rest, count] = [await readRest(scene), (await scene.events()).length]

    await deliver(scene, deletion(wamid, 60))
    assert.deepEqual(await readRest(scene), rest)
    for (const { call } of doorsOf(server().url, scene.workspace.owner.key).map(checked)) {
      const { body: message } = await call('messaging_get_message', { message_id: messageId })
      assert.deepEqual(
        [message.type, message.text, message.has_media, message.media, message.reactions, message.deleted_at],
        ['IMAGE', null, false, null, [], isoAt(60)],
      )
      const { body: conversation } = await call('inbox_get_conversation', { conversation_id: conversationId })
      const { last_message: last } = conversation
      assert.deepEqual(
        [last.id, last.text, last.has_media, last.deleted_at, conversation.unread_count],
        [messageId, null, false, isoAt(60), 1],
      )
      const { status, body } = await call('messaging_get_media', { message_id: messageId })
      assert.deepEqual([status, body.reason], [404, 'media_lost'])
    }
    assert.equal((await fetch(media.url)).status, 404)
    await app.jobs.job('file-removal').runOnce()
    assert.equal(await app.media!.read(key), undefined)
    const [event, ...others] = await newEvents(scene, count)
    assert.deepEqual(
      [event!.type, event!.data['message']!['text'], event!.data['message']!['has_media'], others],
      ['message.deleted/1', null, false, []],
    )
    const stored = JSON.stringify((await loadWorkspaceRows(db, scene.workspace.id))['messages'])
    assert.ok(!stored.includes('passport'))
    const [file] = (await loadWorkspaceRows(db, scene.workspace.id))['media']!
    assert.ok(!file!.includes('passport') && !file!.includes(key))
  })

  it('nothing brings a deleted message back', async () => {
    const scene = await createCustomerFixture(server())
    const wamid = createWamid()
    await deliver(scene, deletion(wamid, 30), textEdit(wamid, 'edited', 20), reaction(wamid, '👍', 40))
    await deliver(scene, buildCustomerMessage(ADA, { id: wamid, timestamp: at(0) }))
    await makeDue(scene)
    await deliver(scene, textEdit(wamid, 'edited again', 50), deletion(wamid, 60))
    const { id } = (await scene.messages())[0]!
    const message = await scene.run('messaging_get_message', { message_id: id })
    assert.deepEqual([message.text, message.deleted_at, message.reactions], [null, isoAt(30), []])
    const all = types(await scene.events())
    assert.equal(all.filter((type) => type === 'message.deleted/1').length, 1)
    assert.ok((await scene.updates()).every((u) => u.state === 'done'))
  })

  it('customers change only their own messages, and only in a way that is understood', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, `+${ADA}`)
    const { wamid } = await createConversation(scene)
    const count = (await scene.updates()).length
    await deliver(
      scene,
      textEdit(sent.wamid, 'hacked', 10),
      deletion(sent.wamid, 10),
      deletion(wamid, 10, '15550100077'),
      edit(wamid, { type: 'hologram' }, 10),
      edit(wamid, {}, 10),
      buildCustomerMessage(ADA, { type: 'revoke', revoke: {} }),
    )
    assert.deepEqual((await scene.messages()).map((m) => m.text).toSorted(), ['hello', 'hi'])
    assert.deepEqual(
      (await scene.updates()).slice(count).map((u) => u.state),
      Array(6).fill('unmatched'),
    )
  })

  it('staff who may not see the channel see neither the message nor its events', async () => {
    const scene = await createCustomerFixture(server())
    const { wamid, messageId } = await createConversation(scene)
    await deliver(scene, reaction(wamid, '👍', 10), textEdit(wamid, 'new', 20), deletion(wamid, 30))
    const call = callAs(server(), (await scene.workspace.staff({ channel_ids: [] })).key)
    assert.equal((await call('messaging_get_message', { message_id: messageId })).status, 404)
    const { data } = (await call('events_list', { limit: 100 })).body
    assert.deepEqual(
      types(data).filter((type) => type.startsWith('message.')),
      [],
    )
    const own = await scene.run('events_list', { limit: 100 })
    assert.deepEqual(own.data.map((e: { type: string }) => e.type).slice(-3), [
      'message.reaction_changed/1',
      'message.edited/1',
      'message.deleted/1',
    ])
  })
})
