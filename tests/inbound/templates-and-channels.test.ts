import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createCustomerFixture, type WebhookPart, postWebhook } from '../provider/webhook-fixture.ts'

everyDatabase('Template and channel updates', (server) => {
  const insertTemplate = async (
    workspaceId: string,
    account: string,
    providerId: string | null,
    status = 'PENDING',
  ) => {
    const now = server().app.now()
    await sql`
      insert into templates (workspace_id, account_id, provider_id, name, language, category, status,
        components, created_at, updated_at)
      values (${workspaceId}, ${account}, ${providerId}, 'abandoned_cart', 'en', 'MARKETING', ${status},
        '[]', ${now}, ${now})`.execute(server().db)
  }
  const templates = async (workspaceId: string) =>
    (
      await sql<WebhookPart>`
        select provider_id, status, category, rejection_reason, quality_rating, meta_errors from templates
        where workspace_id = ${workspaceId}`.execute(server().db)
    ).rows

  it('a rejection as the provider documents it (A10) is stored verbatim', async () => {
    const scene = await createCustomerFixture(server())
    await insertTemplate(scene.workspace.id, scene.account, null)
    const reason =
      'Your template has parameters placed next to each other (like {{1}}{{2}}) ' +
      'without text or punctuation between them.'
    const recommendation =
      'Separate parameters with descriptive text and ensure each parameter is clearly contextualized.'
    const body = `{"object":"whatsapp_business_account","entry":[{"id":"${scene.account}","time":1751247548,
      "changes":[{"field":"message_template_status_update","value":{"event":"REJECTED",
        "message_template_id":1689556908129835,"message_template_name":"abandoned_cart",
        "message_template_language":"en","reason":"INVALID_FORMAT",
        "message_template_category":"MARKETING",
        "rejection_info":{"reason":"${reason}","recommendation":"${recommendation}"}}}]}]}`
    for (let n = 0; n < 2; n++) assert.equal((await postWebhook(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    const [template] = await templates(scene.workspace.id)
    assert.deepEqual(
      [
        template!['provider_id'],
        template!['status'],
        template!['rejection_reason'],
        (template!['meta_errors'] as WebhookPart)['reason'],
      ],
      ['1689556908129835', 'REJECTED', reason, 'INVALID_FORMAT'],
    )
    const [event, ...others] = await scene.events()
    assert.deepEqual(
      [
        event!.type,
        event!.data['template']!['status'],
        event!.data['template']!['previous_status'],
        event!.data['template']!['rejection_reason'],
        others.length,
      ],
      ['template.status_changed/1', 'REJECTED', 'PENDING', reason, 0],
    )
  })

  it('template statuses are applied by their time, not by arrival', async () => {
    const scene = await createCustomerFixture(server())
    await insertTemplate(scene.workspace.id, scene.account, '9007199254740993')
    const entry = (time: number, event: string, more: WebhookPart = {}) => ({
      id: scene.account,
      time,
      changes: [
        {
          field: 'message_template_status_update',
          value: {
            event,
            message_template_id: 'LONG',
            message_template_name: 'abandoned_cart',
            message_template_language: 'en',
            reason: 'NONE',
            ...more,
          },
        },
      ],
    })
    const say = async (...entries: WebhookPart[]) => {
      // JavaScript would round this integer.
      assert.equal(
        (
          await postWebhook(
            server(),
            JSON.stringify({ object: 'whatsapp_business_account', entry: entries }).replaceAll(
              '"LONG"',
              '9007199254740993',
            ),
          )
        ).status,
        200,
      )
      await server().app.jobs.job('provider-updates').runOnce()
      return (await templates(scene.workspace.id))[0]!
    }
    assert.equal(
      (await say(entry(200, 'PAUSED', { other_info: { title: 'FIRST_PAUSE', description: 'Low quality' } })))[
        'rejection_reason'
      ],
      'Low quality',
    )
    assert.equal((await say(entry(100, 'APPROVED')))['status'], 'PAUSED')
    assert.deepEqual(await say(entry(300, 'APPROVED')), {
      provider_id: '9007199254740993',
      status: 'APPROVED',
      category: 'MARKETING',
      rejection_reason: null,
      quality_rating: null,
      meta_errors: null,
    })
    assert.equal((await say(entry(500, 'APPROVED'), entry(400, 'DISABLED')))['status'], 'APPROVED')
    assert.equal(
      (
        await say({
          id: scene.account,
          time: 600,
          changes: [
            {
              field: 'template_category_update',
              value: { message_template_id: 'LONG', previous_category: 'MARKETING', new_category: 'UTILITY' },
            },
          ],
        })
      )['category'],
      'UTILITY',
    )
    const quality = { previous_quality_score: 'GREEN', new_quality_score: 'RED' }
    const rated = {
      field: 'message_template_quality_update',
      value: { message_template_id: 'LONG', ...quality },
    }
    const { status, quality_rating: rating } = await say({ id: scene.account, time: 650, changes: [rated] })
    assert.deepEqual([status, rating], ['APPROVED', 'RED'])
    // An update for another account changes nothing.
    await say({ ...entry(700, 'REJECTED'), id: '1' })
    assert.equal((await templates(scene.workspace.id))[0]!['status'], 'APPROVED')
  })

  it('changes of kinds that this version does not know are accepted, whatever they are called', async () => {
    const scene = await createCustomerFixture(server())
    for (const field of ['a_future_update', 'constructor', '__proto__']) {
      const entry = { id: scene.account, time: 100, changes: [{ field, value: { event: 'NEW' } }] }
      const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [entry] })
      assert.equal((await postWebhook(server(), body)).status, 200, field)
    }
  })

  it('quality flags, bans and reinstatements are shown on the channel', async () => {
    const scene = await createCustomerFixture(server())
    const channel = async () => {
      const [first] = (await scene.run('workspace_channels')).data
      return [first.status, first.quality_rating]
    }
    let time = 100
    const say = async (field: string, value: WebhookPart) => {
      assert.equal(
        (
          await postWebhook(
            server(),
            JSON.stringify({
              object: 'whatsapp_business_account',
              entry: [{ id: scene.account, time: time++, changes: [{ field, value }] }],
            }),
          )
        ).status,
        200,
      )
      await server().app.jobs.job('provider-updates').runOnce()
      return await channel()
    }
    assert.deepEqual(
      await say('phone_number_quality_update', {
        display_phone_number: '+1 555-010-0001',
        event: 'FLAGGED',
        current_limit: 'TIER_1K',
      }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      await say('account_update', {
        event: 'DISABLED_UPDATE',
        ban_info: { waba_ban_state: 'DISABLE', waba_ban_date: 'today' },
      }),
      ['disconnected', 'RED'],
    )
    assert.deepEqual(
      await say('account_update', { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'REINSTATE' } }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      await say('phone_number_quality_update', { display_phone_number: '15550109999', event: 'UNFLAGGED' }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      (await scene.events()).map((e) => [
        e.type,
        e.data['channel']!['status'],
        e.data['channel']!['previous_status'],
        e.data['channel']!['quality_rating'],
      ]),
      [
        ['channel.status_changed/1', 'connected', 'connected', 'RED'],
        ['channel.status_changed/1', 'disconnected', 'connected', 'RED'],
        ['channel.status_changed/1', 'connected', 'disconnected', 'RED'],
      ],
    )
  })
})
