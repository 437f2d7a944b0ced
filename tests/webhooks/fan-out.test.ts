import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eventTypes } from '../../catalog/events.ts'
import { createEventId } from '../../server/ids.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { type Door, everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import {
  type OwnedServer,
  callAsOwner,
  createEndpoint,
  listDeliveries,
  createGroups,
} from './delivery-log-fixture.ts'

everyDatabase('Webhook fan-out', (server) => {
  const scene = async (): Promise<OwnedServer> => ({
    server: server(),
    workspace: await makeWorkspace(server()),
  })

  it('one delivery per endpoint that is subscribed to the type or to all types', async () => {
    const at = await scene()
    const named = await createEndpoint(at, 'group.created/1')
    const all = await createEndpoint(at, '*')
    const both = await createEndpoint(at, 'group.created/1', 'group.deleted/1')
    await sql`
      insert into webhook_subscriptions (workspace_id, endpoint_id, event_type, created_at)
      values (${at.workspace.id}, ${both}, '*', now())`.execute(at.server.db)
    const others = [await createEndpoint(at, 'group.deleted/1'), await createEndpoint(at)]
    const paused = await createEndpoint(at, '*')
    await sql`
      update webhook_endpoints set status = 'paused'
      where workspace_id = ${at.workspace.id} and id = ${paused}`.execute(at.server.db)
    const disabled = await createEndpoint(at, '*')
    await callAsOwner(at)('webhooks_disable_endpoint', { endpoint_id: disabled })
    await callAsOwner(at)('webhooks_delete_endpoint', { endpoint_id: await createEndpoint(at, '*') })
    const inactive = await createEndpoint(at, 'group.created/1')
    await sql`
      update webhook_subscriptions set active = false
      where workspace_id = ${at.workspace.id} and endpoint_id = ${inactive}`.execute(at.server.db)
    const before = (await callAsOwner(at)('events_list')).data.at(-1).id
    await createGroups(at, 'A')
    const [event] = (await callAsOwner(at)('events_list', { after: before })).data
    for (const id of [named, all, both, paused]) {
      const made = (await listDeliveries(at, id)).filter((d) => d.event_type_id === 'group.created/1')
      assert.equal(made.length, 1)
      assert.deepEqual(
        [made[0]!.event_id, made[0]!.status, made[0]!.attempts, made[0]!.created_at],
        [event.id, 'pending', 0, event.occurred_at],
      )
      assert.match(made[0]!.id, new RegExp(`^dlv_${event.id.slice(4, 14)}[0-9A-HJKMNP-TV-Z]{16}$`))
      assert.ok(Math.abs(Date.parse(made[0]!.next_attempt_at!) - Date.now()) < 60_000)
    }
    for (const id of [...others, disabled, inactive])
      assert.deepEqual(
        (await listDeliveries(at, id)).filter((d) => d.event_type_id === 'group.created/1'),
        [],
      )
  })

  it('deliveries are committed with the change; a dry run creates none', async () => {
    const at = await scene()
    const id = await createEndpoint(at, '*')
    await callAsOwner(at)('crm_create_group', { name: 'A', dry_run: true })
    await createGroups(at, 'B')
    await at.server.db
      .transaction()
      .execute(async (tx) => {
        await insertEvents(tx, at.workspace.id, [
          { id: createEventId(), type: 'group.created/1', occurred_at: at.server.app.now(), data: {} },
        ])
        throw new Error('roll back')
      })
      .catch((error: Error) => {
        assert.equal(error.message, 'roll back')
      })
    assert.equal((await listDeliveries(at, id)).length, 1)
  })

  it('events of other workspaces create no delivery', async () => {
    const [one, other] = [await scene(), await scene()]
    const id = await createEndpoint(one, '*')
    await createGroups(other, 'A')
    assert.deepEqual(await listDeliveries(one, id), [])
  })
})

everyDoor('Webhook event types', (test) => {
  test('listed in pages with schema, sample and operations', async ({ call }) => {
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const { body }: Awaited<ReturnType<Door['call']>> = await call('webhooks_list_event_types', {
        limit: 10,
        ...(cursor ? { cursor } : {}),
      })
      seen.push(...body.data.map((t: { id: string }) => t.id))
      cursor = body.next_cursor as string | null
    } while (cursor !== null)
    assert.deepEqual(seen, Object.keys(eventTypes).toSorted())
    const {
      body: {
        data: [type],
      },
    } = await call('webhooks_list_event_types', { search: 'Group.Deleted' })
    assert.deepEqual(
      [type.id, type.operations, type.sample],
      ['group.deleted/1', ['crm_delete_group'], { group: { id: '3', name: 'VIP', emoji: '⭐' } }],
    )
    assert.deepEqual(type.schema.properties.group.required, ['id', 'name', 'emoji'])
    assert.deepEqual((await call('webhooks_list_event_types', { search: '%' })).body.data, [])
  })
})
