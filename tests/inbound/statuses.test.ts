import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import {
  buildCustomerMessage,
  createCustomerFixture,
  createWamid,
  type WebhookPart,
  insertSentMessage,
  postWebhook,
  toUnixSeconds,
} from '../provider/webhook-fixture.ts'
import { types, countOf } from './events.ts'

everyDatabase('Message statuses', (server) => {
  // A repeat of a status has its time.
  const timestamp = toUnixSeconds(new Date().toISOString())
  const status = (id: string, name: string, more: WebhookPart = {}) => ({
    id,
    status: name,
    timestamp,
    recipient_id: '15550100042',
    ...more,
  })

  it('statuses in any order set the highest status and emit each event once', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, '+15550100042')
    for (const name of ['read', 'delivered', 'sent', 'read', 'delivered'])
      await scene.deliver(scene.value({ statuses: [status(sent.wamid, name)] }))
    const message = await scene.run('messaging_get_message', { message_id: sent.id })
    assert.equal(message.status, 'read')
    assert.ok(message.delivered_at && message.read_at)
    assert.equal(countOf(types(await scene.events()), 'message.read/1'), 1)
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'done', 'done'],
    )
  })

  it('a status as the provider documents it (A9) finds the message by its reference', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, '+972987654321', {
      providerId: null,
      status: 'pending',
      reference: `ref_${createWamid()}`,
    })
    const {
      rows: [{ reference }],
    } = (await sql<{
      reference: string
    }>`select reference from messages where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )) as unknown as { rows: [{ reference: string }] }
    const body = `{"object":"whatsapp_business_account","entry":[{"id":"5467539754836534","changes":[{
      "value":{"messaging_product":"whatsapp",
        "metadata":{"display_phone_number":"972123456789","phone_number_id":"${scene.number}"},
        "contacts":[{"profile":{"name":"Test Name"},"wa_id":"972987654321",
          "user_id":"US.13491208655302741918","parent_user_id":"US.ENT.11815799212886844830"}],
        "statuses":[{"id":"${sent.wamid}","status":"sent","timestamp":"1698266945",
          "recipient_id":"972987654321","biz_opaque_callback_data":"${reference}",
          "conversation":{"id":"7270...","expiration_timestamp":"1698339900","origin":{"type":"service"}},
          "pricing":{"billable":true,"pricing_model":"CBP","category":"service"}}]},
      "field":"messages"}]}]}`
    assert.equal((await postWebhook(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    assert.equal((await scene.run('messaging_get_message', { message_id: sent.id })).status, 'sent')
    assert.ok(types(await scene.events()).includes('message.sent/1'))
  })

  it('failures 131047 and 131050 correct the window and the opt-out', async () => {
    const scene = await createCustomerFixture(server())
    const failWith = async (code: number) => {
      const sent = await insertSentMessage(scene, '+15550100042')
      await scene.deliver(
        scene.value({
          statuses: [
            status(sent.wamid, 'failed', {
              errors: [
                {
                  code,
                  title: 'Re-engagement message',
                  error_data: { details: 'More than 24 hours have passed.' },
                },
              ],
            }),
          ],
        }),
      )
      return sent
    }
    const sent = await failWith(131047)
    const message = await scene.run('messaging_get_message', { message_id: sent.id })
    assert.deepEqual(
      [message.status, message.error],
      ['failed', 'Re-engagement message: More than 24 hours have passed.'],
    )
    const {
      rows: [row],
    } = await sql<{
      window_corrected_at: string | null
    }>`select window_corrected_at from conversations where id = ${sent.conversationId}`.execute(server().db)
    assert.ok(row!.window_corrected_at)
    assert.deepEqual(
      (await scene.contacts()).map((c) => c.dnd),
      [false],
    )
    await failWith(131050)
    const [contact] = await scene.contacts()
    assert.equal(contact!.dnd, true)
    // What staff turned on is theirs to turn off, and the opt-out is not.
    for (const dnd of [false, true]) await scene.run('crm_update_contact', { contact_id: contact!.id, dnd })
    await failWith(131050)
    const { data: consents } = await scene.run('crm_list_consents', { contact_id: contact!.id })
    assert.deepEqual(
      consents.map((consent: { state: string; source: string }) => [consent.state, consent.source]),
      [
        ['withdrawn', 'provider'],
        ['granted', 'staff'],
        ['withdrawn', 'provider'],
      ],
    )
  })

  it('what the customer wrote after the refused message opens the window, whenever it arrives', async () => {
    const scene = await createCustomerFixture(server())
    const minutesAgo = (minutes: number) =>
      new Date(Date.parse(server().app.now()) - minutes * 60_000).toISOString()
    const sent = await insertSentMessage(scene, '+15550100042', { createdAt: minutesAgo(8) })
    const customer = (minutes: number) =>
      buildCustomerMessage('15550100042', { timestamp: toUnixSeconds(minutesAgo(minutes)) })
    const findWindow = async () =>
      (await scene.run('inbox_get_conversation', { conversation_id: sent.conversationId })).window
    await scene.deliver(scene.value({ messages: [customer(10)] }))
    assert.equal((await findWindow()).open, true)
    const errors = [{ code: 131047, title: 'Re-engagement message' }]
    await scene.deliver(scene.value({ statuses: [status(sent.wamid, 'failed', { errors })] }))
    assert.equal((await findWindow()).open, false)
    await scene.deliver(scene.value({ messages: [customer(9)] }))
    assert.equal((await findWindow()).open, false, 'written before the refused message')
    await scene.deliver(scene.value({ messages: [customer(5)] }))
    assert.equal((await findWindow()).open, true)
  })

  it('a status waits for its message, and is unmatched when none comes', async () => {
    const scene = await createCustomerFixture(server())
    const early = createWamid()
    await scene.deliver(
      scene.value({ statuses: [status(early, 'delivered'), status(createWamid(), 'delivered')] }),
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.attempts]),
      [
        ['waiting', 1],
        ['waiting', 1],
      ],
    )
    const sent = await insertSentMessage(scene, '+15550100042')
    await sql`update messages set provider_id = ${early} where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )
    const makeDue = () =>
      sql`
        update provider_updates set next_attempt_at = now()
        where state = 'waiting' and subject = ${scene.number}`.execute(server().db)
    await makeDue()
    await server().app.jobs.job('provider-updates').runOnce()
    assert.equal((await scene.run('messaging_get_message', { message_id: sent.id })).status, 'delivered')
    for (let n = 0; n < 8; n++) {
      await makeDue()
      await server().app.jobs.job('provider-updates').runOnce()
    }
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'unmatched'],
    )
  })
})
