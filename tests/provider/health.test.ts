import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { noticeSlowClock, setClockAhead } from '../slow-clock.ts'
import { type Graph, startGraph } from './graph.ts'
import { everyDatabase, everyDoor, runCli } from '../doors.ts'
import { createSandboxCli } from '../sandbox/cli-fixture.ts'
import { createCustomerFixture, type WebhookPart } from './webhook-fixture.ts'

type ChannelEvent = {
  status: string
  previous_status: string
  health: { status: string; reason: string | null }
}

/** The channels of the events that tell of their state, oldest first. */
const listChannelEvents = async ({ db }: TestServer, workspaceId: string): Promise<ChannelEvent[]> => {
  const rows = await db
    .selectFrom('events')
    .select('data')
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'channel.status_changed/1')
    .orderBy('id')
    .execute()
  return rows.map(({ data }) => (data as { channel: ChannelEvent }).channel)
}

/** Lets the time pass until the account is checked, and problems that pass by themselves have passed. */
const letChecksBeDue = async ({ db }: TestServer, workspaceId: string): Promise<void> => {
  await sql`
    insert into runs (workspace_id, kind, subject, run_after)
    select workspace_id, 'account_checks', account_id, '2020-01-01' from channels
    where workspace_id = ${workspaceId} and is_default
    on conflict (workspace_id, kind, subject) do update set run_after = excluded.run_after`.execute(db)
  await sql`
    update channel_health set until = '2020-01-01'
    where workspace_id = ${workspaceId} and until is not null`.execute(db)
}

for (const database of databases)
  describe(`Health at a true provider (${database})`, () => {
    let graph: Graph
    let server: TestServer
    before(async () => {
      graph = await startGraph()
      server = await startServer(database, { provider: graph.config })
    })
    after(async () => {
      await server.close()
      await graph.close()
    })
    const setUp = async () => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const number = `88${workspace.id}`
      graph.numbers.set(number, {
        account: `77${workspace.id}`,
        display_phone_number: '+1 555-010-0001',
        status: 'CONNECTED',
        quality_rating: 'GREEN',
        messaging_limit_tier: 'TIER_1K',
      })
      const { id } = await plantConversation(server, workspace.id)
      const reply = () =>
        callAs(server, workspace.owner.key)(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi' },
          { confirm: 'send' },
        )
      const channel = async () => (await doAs(server, workspace.owner.key)('workspace_channels')).data[0]
      return {
        workspace,
        number,
        reply,
        channel,
        state: async () => {
          const { status, health } = await channel()
          return [status, health.status, health.reason]
        },
        check: async () => {
          await letChecksBeDue(server, workspace.id)
          await server.app.jobs.job('provider-health').runOnce()
        },
        events: async () =>
          (await listChannelEvents(server, workspace.id)).map(({ status, health }) => [
            status,
            health.status,
            health.reason,
          ]),
      }
    }
    const refuse = async (code: number, status: number, work: () => Promise<void>) => {
      graph.refusals.set('messages', { code, status })
      await work()
      graph.refusals.delete('messages')
    }

    it('a revoked token disconnects all channels of the account, once, and a check brings them back', async () => {
      const scene = await setUp()
      const { workspace, reply, state, events, check } = scene
      const second = await createChannel(
        server.db,
        workspace.id,
        {
          type: 'chatapp',
          name: 'Second',
          status: 'connected',
          account_id: `77${workspace.id}`,
          provider_phone_number_id: `89${workspace.id}`,
        },
        server.app.now(),
      )
      graph.revoked.add(graph.config.providerToken)
      try {
        const refused = await reply()
        assert.deepEqual([refused.status, refused.body.reason], [502, 'provider_access'])
        assert.deepEqual(await state(), ['disconnected', 'disconnected', 'token_revoked'])
        const { data, warnings } = await doAs(server, workspace.owner.key)('workspace_channels')
        assert.deepEqual(
          data.map((one: any) => [one.id === second.id, one.status, one.health.provider_code]),
          [
            [false, 'disconnected', 190],
            [true, 'disconnected', 190],
          ],
        )
        assert.ok(
          warnings.some((text: string) => /Second .*access token; an administrator/.test(text)),
          warnings,
        )
        const asked = graph.calls.length
        const next = await reply()
        assert.deepEqual(
          [next.status, next.body.reason, next.body.channel_health],
          [409, 'channel_not_connected', 'token_revoked'],
        )
        assert.match(next.body.detail, /refuses the access token; an administrator must renew it/)
        assert.equal(graph.calls.length, asked, 'a token that is known to be refused is not tried again')
        await check()
        assert.deepEqual(await state(), ['disconnected', 'disconnected', 'token_revoked'])
        assert.equal((await events()).length, 2, 'one event for each channel')
      } finally {
        graph.revoked.clear()
      }
      graph.numbers.set(`89${workspace.id}`, { ...graph.numbers.get(scene.number) })
      await check()
      assert.deepEqual(await state(), ['connected', 'ok', null])
      assert.deepEqual((await events()).slice(2), [
        ['connected', 'ok', null],
        ['connected', 'ok', null],
      ])
      assert.equal((await reply()).status, 201)
      assert.equal((await events()).length, 4)
    })

    it('a rate limit is shown, sends are still tried, and it passes by itself', async () => {
      const { reply, state, events, check, channel } = await setUp()
      await refuse(130429, 429, async () => {
        for (let n = 0; n < 3; n++) assert.equal((await reply()).status, 503)
      })
      assert.deepEqual(await state(), ['connected', 'limited', 'throughput'])
      assert.ok(Date.parse((await channel()).health.until) > Date.now())
      assert.equal((await reply()).status, 201)
      assert.deepEqual(await events(), [['connected', 'limited', 'throughput']])
      await check()
      assert.deepEqual(await state(), ['connected', 'ok', null])
      assert.deepEqual((await events()).at(-1), ['connected', 'ok', null])
    })

    it('a problem passes by the clock of the database, where that of the server is slow', async (test) => {
      const { workspace, reply, state } = await setUp()
      await refuse(130429, 429, async () => {
        for (let n = 0; n < 3; n++) assert.equal((await reply()).status, 503)
      })
      const until = new Date(Date.now() - 1000).toISOString()
      await server.db
        .updateTable('channel_health')
        .set({ until })
        .where('workspace_id', '=', workspace.id)
        .execute()
      await noticeSlowClock(test, server)
      assert.deepEqual(await state(), ['connected', 'ok', null])
    })

    it('a restricted account is shown, and a message that is accepted ends it', async () => {
      for (const [code, reason] of [
        [131031, 'account_locked'],
        [368, 'policy_block'],
        [131042, 'payment_missing'],
      ] as const) {
        const { reply, state, events } = await setUp()
        await refuse(code, 403, async () => {
          assert.equal((await reply()).status, 502)
        })
        assert.deepEqual(await state(), ['connected', 'restricted', reason])
        assert.equal((await reply()).status, 201)
        assert.deepEqual(await state(), ['connected', 'ok', null])
        assert.equal((await events()).length, 2)
      }
    })

    it('what concerns one customer says nothing about the channel', async () => {
      const { reply, state, events } = await setUp()
      for (const code of [131026, 131047, 131049, 131050, 131030, 132000])
        await refuse(code, 400, async () => {
          await reply()
        })
      assert.deepEqual([await state(), await events()], [['connected', 'ok', null], []])
    })

    it('state, quality and limit are those that the provider shows; what is first learnt is no event', async () => {
      const { number, state, events, check, channel } = await setUp()
      await check()
      const { quality_rating: quality, health } = await channel()
      assert.deepEqual([quality, health.messaging_limit], ['GREEN', 'TIER_1K'])
      assert.deepEqual(await events(), [])
      const row = graph.numbers.get(number)!
      Object.assign(row, { quality_rating: 'RED', messaging_limit_tier: 'TIER_250' })
      await check()
      assert.deepEqual([(await channel()).quality_rating, (await events()).length], ['RED', 1])
      row['status'] = 'RESTRICTED'
      await check()
      await check()
      assert.deepEqual(await state(), ['disconnected', 'disconnected', 'number_restricted'])
      row['status'] = 'CONNECTED'
      await check()
      assert.deepEqual(await state(), ['connected', 'ok', null])
      assert.equal((await events()).length, 3)
    })

    it('what an administrator has set stays when a problem ends', async () => {
      const { workspace, reply, state, check } = await setUp()
      await refuse(190, 401, async () => {
        await reply()
      })
      await server.db
        .updateTable('channels')
        .set({ status: 'unknown' })
        .where('workspace_id', '=', workspace.id)
        .execute()
      await check()
      assert.deepEqual(await state(), ['unknown', 'ok', null])
    })

    it('a channel that was turned off before a problem of its account is off again when it ends', async () => {
      const { workspace, reply, check } = await setUp()
      const { id } = await createChannel(
        server.db,
        workspace.id,
        { type: 'chatapp', status: 'inactive', account_id: `77${workspace.id}` },
        server.app.now(),
      )
      const statusOfOther = async () =>
        (await doAs(server, workspace.owner.key)('workspace_channels')).data.find((one: any) => one.id === id)
          .status
      await refuse(190, 401, async () => {
        await reply()
      })
      assert.equal(await statusOfOther(), 'disconnected')
      await check()
      assert.equal(await statusOfOther(), 'inactive')
    })

    it('a provider that is down is no problem of a channel, and checks are repeated later and later', async () => {
      const { workspace, state, events, check } = await setUp()
      graph.refusals.set('phone_numbers', { code: 2, status: 503 })
      for (let n = 0; n < 3; n++) await check()
      graph.refusals.delete('phone_numbers')
      const { run_after: next, attempts: failures } = await server.db
        .selectFrom('runs')
        .select(['run_after', 'attempts'])
        .where('workspace_id', '=', workspace.id)
        .where('kind', '=', 'account_checks')
        .executeTakeFirstOrThrow()
      assert.equal(failures, 3)
      const seconds = (Date.parse(next) - Date.now()) / 1000
      assert.ok(seconds > 60 && seconds < 130, `${seconds}`)
      assert.deepEqual([await state(), await events()], [['connected', 'ok', null], []])
    })

    it('a server whose clock is ahead delays no check of the others', async (test) => {
      const { workspace, check } = await setUp()
      setClockAhead(test, 180)
      await check()
      test.mock.timers.reset()
      const { run_after: next } = await server.db
        .selectFrom('runs')
        .select('run_after')
        .where('workspace_id', '=', workspace.id)
        .where('kind', '=', 'account_checks')
        .executeTakeFirstOrThrow()
      const minutes = (Date.parse(next) - Date.now()) / 60_000
      assert.ok(minutes > 10 && minutes <= 15, `${minutes}`)
    })

    it('of many sends that fail at once, one event tells', async () => {
      const { reply, events } = await setUp()
      await refuse(131048, 429, async () => {
        await Promise.all(Array.from({ length: 10 }, reply))
      })
      assert.deepEqual(await events(), [['connected', 'limited', 'spam_rate_limit']])
    })
  })

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
