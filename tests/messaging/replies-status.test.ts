import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { applyStatus, type MessageStatusUpdate } from '../../server/messaging/message-status.ts'
import type { TableRow } from '../../storage/database.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { inChangeContext, plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { summarizeReply } from './fixtures.ts'
import { createReplyScene } from './replies.ts'

/** Generates status updates of a message, in seconds around its creation. */
const createStatusUpdates = (providerId: string, at: (seconds: number) => string) => {
  const failure: MessageStatusUpdate = {
    providerId,
    status: 'failed',
    at: at(7),
    error: { code: 131026, title: 'Message undeliverable', details: null },
  }
  const update: fc.Arbitrary<MessageStatusUpdate> = fc.record({
    providerId: fc.constant(providerId),
    status: fc.constantFrom('sent' as const, 'delivered' as const, 'read' as const),
    at: fc.integer({ min: -5, max: 50 }).map(at),
  })
  return { update, failure }
}

const toFinalStatus = (statuses: readonly string[], fails: boolean): string => {
  if (statuses.includes('read')) return 'read'
  if (fails) return 'failed'
  return statuses.includes('delivered') ? 'delivered' : 'sent'
}

/** Asserts the status and the times of a message after all its updates. */
const assertFinalStatus = (
  row: TableRow<'messages'>,
  successes: readonly MessageStatusUpdate[],
  fails: boolean,
): void => {
  const statuses = successes.map(({ status }) => status)
  assert.equal(row.status, toFinalStatus(statuses, fails))
  assert.equal(row.delivered_at !== null, statuses.includes('read') || statuses.includes('delivered'))
  assert.equal(row.failed_at !== null, row.status === 'failed')
  for (const time of [row.delivered_at, row.read_at, row.sent_at])
    assert.ok(time === null || time >= row.created_at)
}

everyDatabase('Replies: window and status', (server) => {
  const createScene = () => createReplyScene(server())

  it('the window is corrected when the provider reports it closed, at once or with a status', async () => {
    for (const late of [false, true]) {
      const { reply, sandbox, phone, id, run } = await createScene()
      if (late) {
        const {
          body: { message },
        } = await reply({ text: 'Hi' })
        await sandbox.status(message.id, 'failed', 131047)
        const failed = await run('messaging_get_message', { message_id: message.id })
        assert.ok(failed.status === 'failed' && failed.failed_at !== null && failed.error.length > 10)
      } else {
        await sandbox.fault({ to: `+${phone}`, code: 131047 })
        const { status, body } = await reply({ text: 'Hi' })
        assert.deepEqual(
          [status, body.code, body.window.open, body.window.reason],
          [409, 'window_closed', false, 'expired'],
        )
        assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
      }
      const { window } = await run('inbox_get_conversation', { conversation_id: id })
      assert.deepEqual([window.open, window.reason], [false, 'expired'])
      assert.deepEqual(summarizeReply(await reply({ text: 'Hi', dry_run: true })), [409, 'window_closed'])
      await sandbox.say({ from: `+${phone}`, text: 'Here I am' })
      assert.equal((await reply({ text: 'Hi', dry_run: true })).status, 201)
    }
  })

  it('a reply is accepted exactly when the conversation shows an open window', async () => {
    const workspace = await makeWorkspace(server())
    const { db, app } = server()
    const { id } = await plantConversation(server(), workspace.id)
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const secondsAgo = fc.option(
      fc.oneof(
        fc.integer({ min: 0, max: 80 * 3600 }),
        fc.constantFrom(24, 48, 72).chain((h) => fc.integer({ min: h * 3600 - 2, max: h * 3600 + 2 })),
      ),
    )
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(secondsAgo, secondsAgo, secondsAgo, async (inbound, ad, corrected) => {
        const time = (seconds: number | null) =>
          seconds === null ? null : new Date(Date.parse(app.now()) - seconds * 1000).toISOString()
        await db
          .updateTable('conversations')
          .set({
            last_inbound_at: time(inbound),
            free_entry_at: time(ad),
            window_corrected_at: time(corrected),
          })
          .where('workspace_id', '=', workspace.id)
          .where('id', '=', id)
          .execute()
        const before = (await run('inbox_get_conversation', { conversation_id: id })).window
        const reply = await call('messaging_send_reply', { conversation_id: id, text: 'a', dry_run: true })
        const after = (await run('inbox_get_conversation', { conversation_id: id })).window
        // The window may close between the two reads; then either result is right.
        assert.ok(
          [before.open, after.open].includes(reply.status === 201),
          `${reply.text} ${JSON.stringify(before)}`,
        )
        if (reply.status !== 201) assert.deepEqual(summarizeReply(reply), [409, 'window_closed'])
        if (before.open === after.open && reply.status !== 201) assert.deepEqual(reply.body.window, after)
        seen.add(`${before.open} ${before.kind} ${before.reason}`)
      }),
      { numRuns: 60 },
    )
    assert.ok(
      seen.has('true service null') && seen.has('false service never_opened') && seen.size >= 4,
      [...seen].join('; '),
    )
  })

  it('the final status does not depend on the order of the updates', async () => {
    const { workspace, reply } = await createScene()
    const { message } = (await reply({ text: 'Hi' })).body
    await server().settle()
    const loadRow = () =>
      server()
        .db.selectFrom('messages')
        .selectAll()
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', message.id)
        .executeTakeFirstOrThrow()
    const sent = {
      ...(await loadRow()),
      status: 'sent' as const,
      delivered_at: null,
      read_at: null,
      failed_at: null,
      error: null,
      error_code: null,
    }
    const at = (seconds: number) => new Date(Date.parse(sent.created_at) + seconds * 1000).toISOString()
    const apply = (update: MessageStatusUpdate) =>
      inChangeContext(server(), workspace.id, at(100), (context) => applyStatus(context, update))
    const { update, failure } = createStatusUpdates(sent.provider_id!, at)
    await fc.assert(
      fc.asyncProperty(
        fc.array(update, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        fc.infiniteStream(fc.nat()),
        async (successes, fails, random) => {
          const updates = fails ? [...successes, failure] : successes
          const outcomes: Awaited<ReturnType<typeof loadRow>>[] = []
          for (const order of [
            updates,
            updates.toReversed(),
            updates.toSorted(() => (random.next().value! % 3) - 1),
          ]) {
            await server()
              .db.updateTable('messages')
              .set({ ...sent, content: null })
              .where('workspace_id', '=', workspace.id)
              .where('id', '=', message.id)
              .execute()
            for (const statusUpdate of order) await apply(statusUpdate)
            outcomes.push(await loadRow())
          }
          assert.deepEqual(outcomes[1], outcomes[0])
          assert.deepEqual(outcomes[2], outcomes[0])
          assertFinalStatus(await loadRow(), successes, fails)
        },
      ),
      { numRuns: 25 },
    )
    assert.equal(await apply({ providerId: 'wamid.unknown', status: 'read', at: at(0) }), 'unknown')
  })
})
