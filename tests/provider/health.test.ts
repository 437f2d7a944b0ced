import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'
import { noticeSlowClock, setClockAhead } from '../slow-clock.ts'
import { type Graph, startGraph } from './graph.ts'
import { letChecksBeDue, listChannelEvents } from './health-fixture.ts'

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
      const { next_at: next, failures } = await server.db
        .selectFrom('provider_account_checks')
        .select(['next_at', 'failures'])
        .where('workspace_id', '=', workspace.id)
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
      const { next_at: next } = await server.db
        .selectFrom('provider_account_checks')
        .select('next_at')
        .where('workspace_id', '=', workspace.id)
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
