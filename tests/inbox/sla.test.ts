import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toSla } from '../../server/domains/inbox/sla.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import {
  deleteSlaPolicy,
  insertSlaPolicy,
  type SlaPolicyFields,
  updateSlaPolicy,
} from '../../storage/conversations/sla.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { plantConversation, receiveMessage, sendReply } from './conversations.ts'
import { createBridgeScene } from '../channels/bridge.ts'

describe('SLA of a conversation', () => {
  const noClocks = {
    sla_policy_name: 'Standard',
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
    sla_breached: false,
  }
  const now = '2026-11-02T10:00:00.000Z'
  it('status and next due time follow from the due times', () => {
    assert.equal(toSla({ ...noClocks, sla_policy_name: null, resolution_due_at: now }, now), null)
    assert.deepEqual(toSla(noClocks, now), {
      status: 'met',
      next_due_at: null,
      next_due_metric: null,
      policy: 'Standard',
    })
    assert.deepEqual(toSla({ ...noClocks, sla_breached: true }, now)!.status, 'breached')
    const first = { ...noClocks, first_response_due_at: now, resolution_due_at: '2026-11-02T18:00:00.000Z' }
    assert.deepEqual(toSla(first, now), {
      status: 'running',
      next_due_at: now,
      next_due_metric: 'first_response',
      policy: 'Standard',
    })
    assert.deepEqual(toSla(first, '2026-11-02T10:00:00.001Z')!.status, 'breached')
    assert.deepEqual(
      toSla({ ...first, first_response_due_at: null, next_response_due_at: '2026-11-02T19:00:00.000Z' }, now)!
        .next_due_metric,
      'resolution',
    )
  })
})

export let time = '2026-11-02T10:00:00.000Z'

const today = (clock: string): string => `2026-11-02T${clock}.000Z`

everyDatabase(
  'SLA clocks',
  (server) => {
    const setUp = async (policy: Partial<SlaPolicyFields> = {}, timezone = 'UTC') => {
      time = today('10:00:00')
      const workspace = await makeWorkspace(server(), { timezone })
      const run = doAs(server(), workspace.owner.key)
      const add = (fields: Partial<SlaPolicyFields>) =>
        insertSlaPolicy(
          server().db,
          workspace.id,
          {
            name: 'Standard',
            enabled: true,
            channel_ids: null,
            first_response_seconds: 1800,
            next_response_seconds: 600,
            resolution_seconds: 8 * 3600,
            hours: null,
            ...fields,
          },
          time,
        )
      const first = await add(policy)
      /** Returns the SLA of a conversation at a time: status, metric, due time and policy. */
      const sla = async (id: string, at: string) => {
        time = at
        const { sla: view } = await run('inbox_get_conversation', { conversation_id: id })
        return view && [view.status, view.next_due_metric, view.next_due_at, view.policy]
      }
      const callAt = async (op: string, id: string, at: string) => {
        time = at
        await run(op, { conversation_id: id })
      }
      return { workspace, add, policy: first, sla, callAt }
    }

    it('first response, next response and resolution run in turn', async () => {
      const { workspace, sla, callAt } = await setUp()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      assert.deepEqual(await sla(id, today('10:00:00')), [
        'running',
        'first_response',
        today('10:30:00'),
        'Standard',
      ])
      await receiveMessage(server(), workspace.id, id, { at: today('10:05:00') })
      assert.deepEqual(
        await sla(id, today('10:30:00')),
        ['running', 'first_response', today('10:30:00'), 'Standard'],
        'a second message does not move the due time',
      )
      await sendReply(server(), workspace.id, id, { at: today('10:30:00') })
      assert.deepEqual(await sla(id, today('10:31:00')), [
        'running',
        'resolution',
        today('18:00:00'),
        'Standard',
      ])
      await receiveMessage(server(), workspace.id, id, { at: today('11:00:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('11:09:00') })
      assert.deepEqual(await sla(id, today('11:09:30')), [
        'running',
        'next_response',
        today('11:10:00'),
        'Standard',
      ])
      await sendReply(server(), workspace.id, id, { at: today('11:10:00') })
      await callAt('inbox_close_conversation', id, today('18:00:00'))
      assert.deepEqual(await sla(id, today('23:00:00')), ['met', null, null, 'Standard'])
    })

    it('a breach lasts for the whole episode', async () => {
      const { workspace, sla, callAt } = await setUp()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      assert.deepEqual(await sla(id, today('10:30:01')), [
        'breached',
        'first_response',
        today('10:30:00'),
        'Standard',
      ])
      await sendReply(server(), workspace.id, id, { at: today('10:31:00') })
      assert.deepEqual(await sla(id, today('10:32:00')), [
        'breached',
        'resolution',
        today('18:00:00'),
        'Standard',
      ])
      await callAt('inbox_close_conversation', id, today('11:00:00'))
      assert.deepEqual(await sla(id, today('11:01:00')), ['breached', null, null, 'Standard'])
      await receiveMessage(server(), workspace.id, id, { at: today('12:00:00') })
      assert.deepEqual(
        await sla(id, today('12:01:00')),
        ['running', 'first_response', today('12:30:00'), 'Standard'],
        'a new episode starts new clocks',
      )
    })

    for (const [name, closes, status] of [
      ['in time', '18:00:00', 'met'],
      ['too late', '18:00:01', 'breached'],
    ] as const) {
      it(`closed ${name}`, async () => {
        const { workspace, sla, callAt } = await setUp()
        const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
        await sendReply(server(), workspace.id, id, { at: today('10:01:00') })
        await callAt('inbox_close_conversation', id, today(closes))
        assert.deepEqual(await sla(id, today('20:00:00')), [status, null, null, 'Standard'])
      })
    }

    it('reopened by staff: resolution starts again, and next response when nobody replied', async () => {
      const { workspace, sla, callAt } = await setUp()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      await callAt('inbox_close_conversation', id, today('10:10:00'))
      await callAt('inbox_reopen_conversation', id, today('12:00:00'))
      assert.deepEqual(await sla(id, today('12:00:00')), [
        'running',
        'next_response',
        today('12:10:00'),
        'Standard',
      ])
      await sendReply(server(), workspace.id, id, { at: today('12:05:00') })
      assert.deepEqual(await sla(id, today('12:06:00')), [
        'running',
        'resolution',
        today('20:00:00'),
        'Standard',
      ])
    })

    it('a conversation opened by staff has no first response target', async () => {
      const { workspace, sla } = await setUp()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: null })
      assert.deepEqual(await sla(id, today('10:00:00')), [
        'running',
        'resolution',
        today('18:00:00'),
        'Standard',
      ])
      await sendReply(server(), workspace.id, id, { at: today('10:00:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('11:00:00') })
      assert.deepEqual(await sla(id, today('11:00:00')), [
        'running',
        'next_response',
        today('11:10:00'),
        'Standard',
      ])
    })

    it('a reply overtaken by a message ends only the earlier wait', async () => {
      const { workspace, sla } = await setUp()
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('10:20:01') })
      await sendReply(server(), workspace.id, id, { at: today('10:20:00') })
      assert.deepEqual(await sla(id, today('10:20:02')), [
        'running',
        'next_response',
        today('10:30:01'),
        'Standard',
      ])
    })

    it('the enabled policy with the fewest channels applies', async () => {
      const { workspace, add, sla } = await setUp({ name: 'All' })
      const channel = async (n: number) =>
        (
          await createChannel(
            server().db,
            workspace.id,
            { type: 'custom', name: `Line ${n}`, identifier: `line-${n}`, status: 'connected' },
            time,
          )
        ).id
      const [one, two, three] = [await channel(1), await channel(2), await channel(3)]
      await add({ name: 'Two', channel_ids: [one, two] })
      await add({ name: 'One', channel_ids: [one], resolution_seconds: null, first_response_seconds: 60 })
      await add({ name: 'Later', channel_ids: [one] })
      await add({ name: 'Off', channel_ids: [two], enabled: false })
      const names = []
      for (const channelId of [one, two, three])
        names.push(
          await sla(
            (await plantConversation(server(), workspace.id, { channelId, inboundAt: time })).id,
            time,
          ),
        )
      assert.deepEqual(names, [
        ['running', 'first_response', today('10:01:00'), 'One'],
        ['running', 'first_response', today('10:30:00'), 'Two'],
        ['running', 'first_response', today('10:30:00'), 'All'],
      ])
    })

    it("business hours are in the workspace's time zone unless the policy has its own", async () => {
      const days = { mon: [['09:00', '11:15']], tue: [['09:00', '17:00']] }
      const { workspace, add, sla } = await setUp({ name: 'Berlin', hours: { days } }, 'Europe/Berlin')
      const ownHoursChannel = (
        await createChannel(
          server().db,
          workspace.id,
          { type: 'custom', name: 'Own', identifier: 'own', status: 'connected' },
          time,
        )
      ).id
      await add({
        name: 'New York',
        channel_ids: [ownHoursChannel],
        hours: { days, timezone: 'America/New_York' },
      })
      const berlin = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      assert.deepEqual(await sla(berlin.id, today('10:00:00')), [
        'running',
        'first_response',
        '2026-11-03T08:15:00.000Z',
        'Berlin',
      ])
      const newYork = await plantConversation(server(), workspace.id, {
        channelId: ownHoursChannel,
        inboundAt: today('10:00:00'),
      })
      assert.deepEqual(await sla(newYork.id, today('10:00:00')), [
        'running',
        'first_response',
        today('14:30:00'),
        'New York',
      ])
    })

    it('a policy without targets, disabled or deleted starts no clock', async () => {
      const { workspace, policy, sla } = await setUp({
        resolution_seconds: null,
        next_response_seconds: null,
      })
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: today('10:00:00') })
      await sendReply(server(), workspace.id, id, { at: today('10:01:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('10:02:00') })
      assert.deepEqual(await sla(id, today('10:03:00')), ['met', null, null, 'Standard'])
      await updateSlaPolicy(server().db, workspace.id, policy.id, {
        enabled: false,
        next_response_seconds: 60,
      })
      await sendReply(server(), workspace.id, id, { at: today('10:04:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('10:05:00') })
      assert.deepEqual(await sla(id, today('10:06:00')), ['met', null, null, 'Standard'])
      assert.equal(
        await sla((await plantConversation(server(), workspace.id, { inboundAt: time })).id, time),
        null,
      )
      assert.equal(await deleteSlaPolicy(server().db, workspace.id, policy.id), true)
      assert.equal(await sla(id, today('10:07:00')), null)
      await sendReply(server(), workspace.id, id, { at: today('10:08:00') })
      await receiveMessage(server(), workspace.id, id, { at: today('10:09:00') })
      assert.equal(await sla(id, today('10:10:00')), null)
    })
  },
  { now: () => time },
)

everyDatabase(
  'Waits for replies',
  (server) => {
    it('all count where several begin in one second', async () => {
      const scene = await createBridgeScene(server())
      const { workspace, inbound, reply, deliver } = scene
      const second = Math.floor(Date.parse(server().app.now()) / 1000) * 1000 - 3_600_000
      const listWaits = async () =>
        (
          await server()
            .db.selectFrom('reply_waits')
            .select('since')
            .where('workspace_id', '=', workspace.id)
            .orderBy('since')
            .execute()
        ).map(({ since }) => Date.parse(since) - second)
      const waits: number[][] = []
      for (const [n, ms] of [999, 999, 0, 0].entries()) {
        const { body } = await inbound({
          id: `m${n}`,
          from: { id: 'v' },
          text: 'Hello',
          at: new Date(second + ms).toISOString(),
        })
        waits.push(await listWaits())
        assert.equal((await reply(body.conversation_id)).status, 201)
        await deliver()
      }
      await scene.bridge.close()
      assert.deepEqual(waits, [[999], [999, 1000], [0, 999, 1000], [0, 1, 999, 1000]])
    })
  },
  { ownJobs: true },
)
