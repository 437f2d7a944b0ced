import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { checked, doorsOf, everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import {
  buildCustomerMessage,
  buildCustomerProfile,
  createCustomerFixture,
  createWamid,
  insertSentMessage,
} from '../provider/webhook-fixture.ts'
import {
  ADA,
  at,
  isoAt,
  reaction,
  deliver,
  createConversation,
  readRest,
  makeDue,
  newEvents,
} from './change-messages.ts'

everyDatabase('Reactions of customers', (server) => {
  it('a reaction hangs on the message it answers; a new emoji replaces it, none removes it', async () => {
    const scene = await createCustomerFixture(server())
    const { wamid, messageId, conversationId } = await createConversation(scene)
    const readReactions = async (): Promise<unknown> => {
      const answers = []
      for (const { call } of doorsOf(server().url, scene.workspace.owner.key).map(checked)) {
        const { body: one } = await call('messaging_get_message', { message_id: messageId })
        const { body: list } = await call('inbox_list_messages', { conversation_id: conversationId })
        assert.deepEqual(list.data, [one])
        answers.push(one.reactions)
      }
      for (const answer of answers) assert.deepEqual(answer, answers[0])
      return answers[0]
    }
    assert.deepEqual(await readReactions(), [])
    await deliver(scene, reaction(wamid, '👍', 10))
    assert.deepEqual(await readReactions(), [{ emoji: '👍', from: 'customer', at: isoAt(10) }])
    await deliver(scene, reaction(wamid, '👩‍👩‍👧‍👦', 20))
    assert.deepEqual(await readReactions(), [{ emoji: '👩‍👩‍👧‍👦', from: 'customer', at: isoAt(20) }])
    await deliver(scene, reaction(wamid, '', 30))
    assert.deepEqual(await readReactions(), [])
    await deliver(scene, reaction(wamid, '🎉', 40), reaction(wamid, undefined, 50))
    assert.deepEqual(await readReactions(), [])
  })

  it('a reaction has its own event, and changes nothing but the message', async () => {
    const scene = await createCustomerFixture(server())
    const { wamid, messageId, conversationId } = await createConversation(scene)
    const [rest, count] = [await readRest(scene), (await scene.events()).length]
    await deliver(scene, reaction(wamid, '👍', 90_000), reaction(wamid, '👍', 90_001))
    await deliver(
      scene,
      reaction(wamid, '❤️', 90_002),
      reaction(wamid, '', 90_003),
      reaction(wamid, '', 90_004),
    )
    assert.deepEqual(await readRest(scene), rest)
    const events = await newEvents(scene, count)
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['message']!['id'], data['reaction']]),
      [
        ['👍', null, 90_000],
        ['❤️', '👍', 90_002],
        [null, '❤️', 90_003],
      ].map(([emoji, previous, second]) => [
        'message.reaction_changed/1',
        messageId,
        { emoji, previous_emoji: previous, from: 'customer', at: isoAt(second as number) },
      ]),
    )
    const { data } = await scene.run('inbox_list_messages', { conversation_id: conversationId })
    assert.equal(data.length, 1)
  })

  it('a reaction opens no closed conversation; from a stranger it creates no contact', async () => {
    const scene = await createCustomerFixture(server())
    const { conversationId, wamid } = await createConversation(scene)
    await scene.run('inbox_close_conversation', { conversation_id: conversationId })
    const rest = await readRest(scene)
    await deliver(scene, reaction(wamid, '👍', 10))
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile('15550100099', 'Stranger', 'US.9')],
        messages: [reaction(wamid, '👎', 20, '15550100099')],
      }),
    )
    assert.deepEqual(await readRest(scene), rest)
    const { data } = await scene.run('inbox_list_messages', { conversation_id: conversationId })
    assert.deepEqual(
      data.flatMap((m: { reactions: { emoji: string }[] }) => m.reactions.map(({ emoji }) => emoji)),
      ['👍'],
    )
  })

  it('the order of arrival does not matter, nor how often, nor whether the message was there before', async () => {
    const changes = [
      ['👍', 10],
      ['❤️', 20],
      ['', 30],
      ['😂', 40],
      ['🎉', 50],
      ['', 60],
    ] as const
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...changes], { minLength: 1 }),
        fc.boolean(),
        fc.boolean(),
        async (order, messageLast, inOneBatch) => {
          const scene = await createCustomerFixture(server())
          const wamid = createWamid()
          const message = buildCustomerMessage(ADA, { id: wamid, timestamp: at(0) })
          const reactions = order.map(([emoji, second]) => reaction(wamid, emoji, second))
          const all = messageLast ? [...reactions, message] : [message, ...reactions]
          if (inOneBatch) await scene.deliver(scene.value({ messages: all }))
          else await deliver(scene, ...all)
          await deliver(scene, reactions[0]!)
          await makeDue(scene)
          const [last] = order.toSorted((a, b) => b[1] - a[1])
          const messageId = (await scene.messages())[0]!.id
          assert.deepEqual(
            (await scene.run('messaging_get_message', { message_id: messageId })).reactions,
            last![0] === '' ? [] : [{ emoji: last![0], from: 'customer', at: isoAt(last![1]) }],
          )
          assert.equal((await scene.messages()).length, 1)
          assert.ok((await scene.updates()).every((u) => u.state === 'done'))
        },
      ),
      { numRuns: runs(12, 100), examples: [[[changes[3], changes[0]], false, false]] },
    )
  })

  it('of two reactions in the same second the last to arrive counts', async () => {
    const scene = await createCustomerFixture(server())
    const { wamid, messageId } = await createConversation(scene)
    await scene.deliver(scene.value({ messages: [reaction(wamid, '👍', 10), reaction(wamid, '❤️', 10)] }))
    await deliver(scene, reaction(wamid, '🎉', 10))
    const { reactions } = await scene.run('messaging_get_message', { message_id: messageId })
    assert.deepEqual(
      reactions.map((r: { emoji: string }) => r.emoji),
      ['🎉'],
    )
  })

  it('reactions to sent messages count too; those to unknown and foreign messages are kept out, not lost', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, `+${ADA}`)
    const other = await insertSentMessage(scene, '+15550100077')
    await deliver(
      scene,
      reaction(sent.wamid, '👍', 10),
      reaction(other.wamid, '👎', 10),
      reaction('wamid.of.nobody', '👎', 10),
      buildCustomerMessage(ADA, { type: 'reaction', reaction: { emoji: '👎' } }),
      buildCustomerMessage(null, { type: 'reaction', reaction: { message_id: sent.wamid, emoji: '👎' } }),
    )
    for (let n = 0; n < 8; n++) await makeDue(scene)
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.payload !== null]),
      [
        ['done', false],
        ['unmatched', true],
        ['unmatched', true],
        ['unmatched', true],
        ['unmatched', true],
      ],
    )
    const { rows } = await sql<{ message_id: string; emoji: string }>`
      select message_id, emoji from message_reactions
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    assert.deepEqual([...rows], [{ message_id: sent.id, emoji: '👍' }])
    assert.equal((await scene.messages()).length, 2)
  })

  it('customers are recognized by user id too, and by another spelling of their number', async () => {
    const scene = await createCustomerFixture(server())
    const brazilian = await insertSentMessage(scene, '+55 11 98765-4321')
    await deliver(scene, reaction(brazilian.wamid, '👍', 10, '551187654321'))
    const wamid = createWamid()
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile(null, 'Ada', 'US.1349')],
        messages: [buildCustomerMessage(null, { from_user_id: 'US.1349', id: wamid })],
      }),
    )
    const byUserId = (userId: string, emoji: string) =>
      buildCustomerMessage(null, {
        from_user_id: userId,
        type: 'reaction',
        reaction: { message_id: wamid, emoji },
      })
    await deliver(scene, byUserId('US.1349', '❤️'), byUserId('US.1350', '👎'))
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'done', 'done', 'unmatched'],
    )
    const { rows } = await sql<{ emoji: string }>`
      select emoji from message_reactions where workspace_id = ${scene.workspace.id}
      order by message_id`.execute(server().db)
    assert.deepEqual(
      rows.map((row) => row.emoji),
      ['👍', '❤️'],
    )
  })
})
