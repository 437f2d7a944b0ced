import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, runCli } from '../doors.ts'
import { createSandboxCli } from '../sandbox/cli-fixture.ts'
import { makeWorkspace, type TestWorkspace } from '../servers.ts'
import { letChecksBeDue, listChannelEvents } from './health-fixture.ts'
import { createCustomerFixture, type WebhookPart } from './webhook-fixture.ts'

everyDatabase('Health by webhooks', (server) => {
  const setUp = async () => {
    const scene = await createCustomerFixture(server())
    const account = (field: string, value: WebhookPart) => scene.deliver({ field, value })
    const state = async () => {
      const { status, health, quality_rating } = (await scene.run('workspace_channels')).data[0]
      return [status, health.status, health.reason, quality_rating, health.messaging_limit]
    }
    return { ...scene, account, state }
  }

  it('a ban, a restriction and the removal of the app are shown until they are lifted', async () => {
    const { account, state } = await setUp()
    await account('account_update', { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE' } })
    assert.deepEqual(await state(), ['disconnected', 'disconnected', 'account_banned', null, null])
    await account('account_update', { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'REINSTATE' } })
    assert.deepEqual(await state(), ['connected', 'ok', null, null, null])
    await account('account_update', {
      event: 'ACCOUNT_RESTRICTION',
      restriction_info: [
        {
          restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING',
          expiration: Math.floor(Date.now() / 1000) + 86_400,
        },
      ],
    })
    assert.deepEqual((await state()).slice(0, 3), ['connected', 'restricted', 'account_restricted'])
    await account('account_update', { event: 'PARTNER_REMOVED' })
    assert.deepEqual((await state()).slice(0, 3), ['disconnected', 'disconnected', 'account_removed'])
    await account('account_update', { event: 'ACCOUNT_RECONNECTED' })
    assert.deepEqual((await state()).slice(0, 3), ['connected', 'ok', null])
  })

  it('a restriction of what is not messages, or one that is over, says nothing', async () => {
    const { account, state, events } = await setUp()
    await account('account_update', {
      event: 'ACCOUNT_RESTRICTION',
      restriction_info: [{ restriction_type: 'RESTRICTED_ADD_PHONE_NUMBER_ACTION' }],
    })
    await account('account_update', {
      event: 'ACCOUNT_RESTRICTION',
      restriction_info: [
        { restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING', expiration: 1_600_000_000 },
      ],
    })
    assert.deepEqual([(await state())[1], (await events()).length], ['ok', 0])
  })

  it('changes of quality and limits are shown and told', async () => {
    const { account, state, events } = await setUp()
    const number = { display_phone_number: '15550100001' }
    await account('phone_number_quality_update', { ...number, event: 'FLAGGED', current_limit: 'TIER_1K' })
    assert.deepEqual((await state()).slice(3), ['RED', 'TIER_1K'])
    await account('phone_number_quality_update', {
      ...number,
      event: 'DOWNGRADE',
      current_limit: 'TIER_250',
      max_daily_conversations_per_business: 'TIER_250',
    })
    await account('phone_number_quality_update', {
      ...number,
      event: 'THROUGHPUT_UPGRADE',
      current_limit: 'TIER_UNLIMITED',
    })
    assert.deepEqual((await state()).slice(3), ['RED', 'TIER_250'])
    await account('business_capability_update', { max_daily_conversation_per_phone: 10_000 })
    assert.deepEqual((await state()).slice(3), ['RED', 'TIER_10K'])
    await account('business_capability_update', { max_daily_conversation_per_phone: -1 })
    assert.deepEqual((await state()).slice(3), ['RED', 'TIER_UNLIMITED'])
    assert.equal((await events()).length, 4)
  })

  it('a message that fails later, because the account is locked, shows it on the channel', async () => {
    const workspace = await makeWorkspace(server())
    const cli = createSandboxCli(server(), workspace.owner.key)
    await cli('say', '--from', '+1 555 010 0061', 'Hello')
    await server().settle()
    const run = doAs(server(), workspace.owner.key)
    const { data } = await run('inbox_search_conversations')
    const { message } = await run('messaging_send_reply', { conversation_id: data[0].id, text: 'Hi' })
    assert.equal((await cli('status', message.id, 'failed', '--code', '131031')).exit, 0)
    await server().settle()
    const [channel] = (await run('workspace_channels')).data
    assert.deepEqual([channel.health.status, channel.health.reason], ['restricted', 'account_locked'])
    assert.deepEqual(
      (await listChannelEvents(server(), workspace.id)).map(({ health }) => health.reason),
      ['account_locked'],
    )
  })
})

everyDatabase('Health in the sandbox', (server) => {
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const cli = createSandboxCli(server(), workspace.owner.key)
    await cli('say', '--from', '+1 555 010 0062', 'Hello')
    await server().settle()
    const run = doAs(server(), workspace.owner.key)
    const { data } = await run('inbox_search_conversations')
    const reply = () =>
      callAs(server(), workspace.owner.key)(
        'messaging_send_reply',
        { conversation_id: data[0].id, text: 'Hi' },
        { confirm: 'send' },
      )
    return {
      workspace,
      reply,
      account: async (...words: string[]) => {
        const { exit, problem } = await cli('account', ...words)
        await server().settle()
        return [exit, problem?.errors?.[0]?.code]
      },
      channel: async () => (await run('workspace_channels')).data[0],
      check: async () => {
        await letChecksBeDue(server(), workspace.id)
        await server().app.jobs.job('provider-health').runOnce()
      },
    }
  }
  const doctor = async (workspace: TestWorkspace) => {
    const { exit, stdout } = await runCli(['doctor', '--json'], {
      WCRM_URL: server().url,
      WCRM_API_KEY: workspace.owner.key,
      XDG_CONFIG_HOME: '/nonexistent',
    })
    const { findings } = JSON.parse(stdout) as {
      findings: { check: string; status: string; detail: string }[]
    }
    return [exit, findings.find(({ check }) => check === 'channel')]
  }

  it('account revoke-token and restore can be rehearsed; the doctor shows both', async () => {
    const { workspace, reply, account, channel, check } = await setUp()
    await account('revoke-token')
    assert.equal((await reply()).status, 502)
    assert.equal((await channel()).status, 'disconnected')
    const [exit, line] = (await doctor(workspace)) as [
      number,
      { status: string; detail: string; fix: string },
    ]
    assert.deepEqual([exit, line.status], [1, 'problem'])
    assert.match(line.detail, /disconnected at the provider: token_revoked; since/)
    assert.match(line.fix, /wcrm admin accounts update/)
    await check()
    assert.equal((await channel()).status, 'disconnected')
    await account('restore')
    await check()
    assert.deepEqual([(await channel()).status, (await reply()).status], ['connected', 201])
    assert.equal((await doctor(workspace))[0], 0)
  })

  it('account restrict, ban, quality and limit show on the channel', async () => {
    const { reply, account, channel } = await setUp()
    await account('restrict')
    assert.deepEqual([(await channel()).health.reason, (await reply()).status], ['account_restricted', 502])
    await account('restore')
    assert.deepEqual([(await channel()).health.status, (await reply()).status], ['ok', 201])
    await account('ban')
    assert.deepEqual([(await channel()).status, (await reply()).status], ['disconnected', 409])
    await account('restore')
    assert.equal((await channel()).status, 'connected')
    await account('quality', 'RED')
    await account('limit', 'TIER_250')
    const { health, quality_rating } = await channel()
    assert.deepEqual([quality_rating, health.messaging_limit], ['RED', 'TIER_250'])
    assert.deepEqual(await account('quality', 'PURPLE'), [2, 'invalid_value'])
    assert.deepEqual(await account('ban', 'RED'), [2, 'unexpected'])
  })

  it('staff with some channels see the health of these alone', async () => {
    const { workspace, account } = await setUp()
    const other = await createChannel(
      server().db,
      workspace.id,
      {
        type: 'chatapp',
        name: 'Theirs',
        identifier: '15550100009',
        status: 'connected',
        account_id: `76${workspace.id}`,
        provider_phone_number_id: `86${workspace.id}`,
      },
      server().app.now(),
    )
    await account('ban')
    const agent = await workspace.staff({ role: 'agent', channel_ids: [other.id] })
    const { data, warnings } = await doAs(server(), agent.key)('workspace_channels')
    assert.deepEqual(
      data.map((one: { id: string }) => one.id),
      [other.id],
    )
    assert.ok(!JSON.stringify(warnings).includes('Main line'))
    const events = (await doAs(server(), agent.key)('events_list', { types: ['channel.status_changed/1'] }))
      .data
    assert.deepEqual(
      new Set(events.map((event: { data: { channel: { id: string } } }) => event.data.channel.id)),
      new Set([other.id]),
    )
  })
})

everyDoor('Channel health', (test) => {
  test('is in the list of channels; a channel without a number at the provider has none', async ({
    call,
    server,
    workspace,
  }) => {
    await createChannel(
      server.db,
      workspace.id,
      { type: 'web', name: 'Shop', status: 'connected' },
      server.app.now(),
    )
    const { body } = await call('workspace_channels')
    assert.deepEqual(
      body.data.map((one: { health: { status: string } | null }) => one.health?.status ?? null),
      ['ok', null],
    )
  })
})
