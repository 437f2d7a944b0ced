import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../../storage/workspace/admin.ts'
import { insertSearchData } from '../../inbox/search-model.ts'
import { at, idsOf } from '../../inbox/inbox-rows.ts'
import { doorsOf, everyDatabase } from '../../doors.ts'
import { makeWorkspace } from '../../servers.ts'
import {
  createEndpoint,
  createGroups,
  type DeliveryRow,
  listDeliveries,
  setDeliveryStatus,
} from '../../webhooks/delivery-log-fixture.ts'

// The tests of 2026-10-01 for what a later version changed, as they were: callers of that version see nothing of it.

const version = '2026-10-01'

everyDatabase('API version 2026-10-01', (server) => {
  /** Calls through the two doors that have versions. */
  const callersOf = (key: string) =>
    doorsOf(server().url, key)
      .slice(0, 2)
      .map(({ call }) => async (op: string, input: Record<string, unknown> = {}) => {
        const { status, text, body } = await call(op, input, { version })
        assert.ok(status < 300, text)
        return body
      })

  it('waiting_minutes: those who have waited for at least as long', async () => {
    const data = await insertSearchData(server())
    const now = () => Date.parse(server().app.now())
    const waits = data.rows.filter((row) => row.waitingSince !== null)
    const minutes = Math.floor((now() - Date.parse(at(-3))) / 60_000) + 1
    const listWaiting = (time: number) =>
      waits.filter((row) => Date.parse(row.waitingSince!) <= time - minutes * 60_000).map((row) => row.id)
    for (const run of callersOf(data.key)) {
      // The call is made between the two times.
      const before = listWaiting(now())
      const found = idsOf(await run('inbox_queue', { waiting_minutes: minutes, limit: 100 }))
      const after = listWaiting(now())
      assert.ok(before.every((id) => found.includes(id)) && found.every((id) => after.includes(id)))
      assert.deepEqual((await run('inbox_queue', { waiting_minutes: 5_000_000 })).data, [])
    }
  })

  it('a delivery shows every attempt', async () => {
    const workspace = await makeWorkspace(server())
    const scene = { server: server(), workspace }
    const id = await createEndpoint(scene, '*')
    await createGroups(scene, 'A')
    const [{ id: delivery_id }] = (await listDeliveries(scene, id)) as [DeliveryRow]
    await setDeliveryStatus(scene, delivery_id, 'dead')
    for (const run of callersOf(workspace.owner.key)) {
      const body = await run('webhooks_get_delivery', { delivery_id })
      const [refused] = body.attempts_made
      assert.deepEqual(
        { ...refused, started_at: 0 },
        {
          number: 1,
          started_at: 0,
          duration_ms: 5,
          error: 'The connection was refused.',
          trigger: 'scheduled',
        },
      )
      assert.equal('attempt_history' in body, false)
    }
  })

  it('a channel has its health', async () => {
    const workspace = await makeWorkspace(server())
    const fields = { type: 'chatapp', name: null, identifier: '15550100002', status: 'inactive' } as const
    const number = {
      provider_channel_id: `p${workspace.id}`,
      provider_phone_number_id: `n${workspace.id}`,
      quality_rating: 'GREEN',
    }
    await createChannel(server().db, workspace.id, { ...fields, ...number }, server().app.now())
    for (const run of callersOf(workspace.owner.key))
      assert.deepEqual((await run('workspace_channels')).data[1].health, {
        status: 'ok',
        reason: null,
        provider_code: null,
        quality: 'GREEN',
        messaging_limit: null,
        since: null,
        until: null,
      })
  })
})
