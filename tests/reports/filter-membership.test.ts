import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

/** Runs the job. Returns the count of records that it made for the workspace. */
const record = async (server: TestServer, workspaceId: string): Promise<number> => {
  const count = async (): Promise<number> =>
    (
      await sql<{ last: number }>`
      select coalesce(max(id), 0)::int as last from filter_memberships
      where workspace_id = ${workspaceId}`.execute(server.db)
    ).rows[0]!.last
  const before = await count()
  await server.app.jobs.job('filter-membership').runOnce()
  return (await count()) > before ? 1 : 0
}

/** Moves all that was recorded into the past. */
const age = async (server: TestServer, workspaceId: string, days: number): Promise<void> => {
  await sql`
    update filter_memberships set recorded_at = recorded_at - ${days}::integer * interval '1 day'
    where workspace_id = ${workspaceId}`.execute(server.db)
}

const TAGGED = { tags: { some: { name: { eq: 'VIP' } } } }

everyDoor('The membership of a saved filter', (test) => {
  test('is recorded and compared', async ({ server, workspace, call, door }) => {
    const make = async (phone: string, tags: string[]): Promise<string> =>
      (await call('crm_upsert_contact', { phone, tags })).body.contact.id
    const stays = await make('+15550100001', ['VIP'])
    const goes = await make('+15550100002', ['VIP'])
    const comes = await make('+15550100003', ['Other'])
    const saved = await call('crm_create_saved_filter', { name: 'VIPs', filter: TAGGED })
    const id = saved.body.saved_filter.id
    const report = (more: object = {}) =>
      call('reports_filter_membership', { saved_filter_id: id, since: '-1d', ...more })
    const early = await report()
    assert.equal(early.status, 409, early.text)
    assert.equal(early.body.reason, 'filter_not_tracked')

    const rehearsed = await call('crm_track_saved_filter', {
      saved_filter_id: id,
      tracked: true,
      dry_run: true,
    })
    assert.equal(rehearsed.body.tracked, true)
    assert.equal(await record(server, workspace.id), 0)
    const tracked = await call('crm_track_saved_filter', { saved_filter_id: id, tracked: true })
    assert.equal(tracked.status, 200, tracked.text)
    assert.ok(tracked.body.tracked_since)
    assert.equal(await record(server, workspace.id), 1)
    assert.equal(await record(server, workspace.id), 0)

    const first = (await report()).body
    assert.deepEqual(
      [first.complete, first.entered, first.left, first.from, first.data],
      [false, 0, 0, first.to, []],
    )
    await age(server, workspace.id, 3)
    await call('crm_tag_contacts', { contact_ids: [comes], tags: ['VIP'] })
    if (door.confirms) await call('crm_delete_contact', { contact_id: goes }, { confirm: 'delete' })
    else await call('crm_untag_contacts', { contact_ids: [goes], tags: ['VIP'] })
    assert.equal(await record(server, workspace.id), 1)
    const { body } = await report()
    assert.deepEqual(
      [body.complete, body.from.members, body.to.members, body.entered, body.left, body.next_cursor],
      [true, 2, 2, 1, 1, null],
    )
    const none = { merged_into_id: null }
    assert.deepEqual(body.data, [
      { contact_id: goes, change: 'left', contact: door.confirms ? 'deleted' : 'exists', ...none },
      { contact_id: comes, change: 'entered', contact: 'exists', ...none },
    ])
    const page = (await report({ limit: 1 })).body
    const rest = (await report({ limit: 1, cursor: page.next_cursor })).body
    assert.deepEqual([...page.data, ...rest.data], body.data)
    assert.deepEqual([rest.entered, rest.left, rest.next_cursor], [1, 1, null])
    assert.ok(!JSON.stringify(body).includes(stays === '1' ? '"never"' : `"${stays}"`))
    assert.equal((await report({ since: 'soon' })).status, 400)

    await call('crm_track_saved_filter', { saved_filter_id: id, tracked: false })
    await age(server, workspace.id, 1)
    assert.equal(await record(server, workspace.id), 0)
    assert.equal((await report({ since: '-7d' })).body.complete, false)
  })
})

everyDatabase('Records of the members of saved filters', (server) => {
  const createScene = async (filter: object) => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const id: string = (await run('crm_create_saved_filter', { name: 'Saved', filter })).saved_filter.id
    await run('crm_track_saved_filter', { saved_filter_id: id, tracked: true })
    const report = () => run('reports_filter_membership', { saved_filter_id: id, since: '-1d' })
    return { workspace, run, id, report }
  }

  it('begin anew when the filter changes, and go with it', async () => {
    const { workspace, run, id, report } = await createScene({ starred: { eq: true } })
    await run('crm_upsert_contact', { phone: '+15550100001', starred: true })
    await record(server(), workspace.id)
    await age(server(), workspace.id, 3)
    await run('crm_update_saved_filter', { saved_filter_id: id, filter: { starred: { eq: false } } })
    await assert.rejects(report(), /filter_not_tracked/)
    assert.equal(await record(server(), workspace.id), 1)
    const body = await report()
    assert.deepEqual([body.complete, body.to.members, body.entered], [false, 0, 0])
    await run('crm_delete_saved_filter', { saved_filter_id: id })
    const { rows } = await sql`
      select workspace_id from tracked_filters where workspace_id = ${workspace.id}
      union all select workspace_id from filter_memberships where workspace_id = ${workspace.id}
      union all select workspace_id from filter_members where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    assert.deepEqual(rows, [])
  })

  it('are kept for 35 days, without those who were erased', async () => {
    const { workspace, run, report } = await createScene({ starred: { eq: true } })
    const make = async (phone: string): Promise<string> =>
      (await run('crm_upsert_contact', { phone, starred: true })).contact.id
    const [first, second] = [await make('+15550100001'), await make('+15550100002')]
    await record(server(), workspace.id)
    await age(server(), workspace.id, 2)
    await run('crm_merge_contacts', { contact_id: first, other_contact_id: second })
    await record(server(), workspace.id)
    const { data } = await report()
    assert.deepEqual(data, [{ contact_id: second, change: 'left', contact: 'merged', merged_into_id: first }])
    await run('crm_erase_contact', { contact_id: first })
    await server().settle()
    const { rows } = await sql`
      select 1 from filter_members where workspace_id = ${workspace.id}
        and contact_ids && ${[first, second]}::bigint[]`.execute(server().db)
    assert.deepEqual(rows, [])
    await age(server(), workspace.id, 36)
    await record(server(), workspace.id)
    const { rows: kept } = await sql<{ n: number }>`
      select count(*)::int as n from filter_memberships where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    assert.deepEqual(kept, [{ n: 1 }])
  })

  it('are refused to those who would find others by the filter, or may not see what it tests', async () => {
    const { workspace, run, id, report } = await createScene({
      conversations: { some: { state: { eq: 'open' } } },
    })
    const shop = await createChannel(
      server().db,
      workspace.id,
      { type: 'web', name: 'Shop' },
      server().app.now(),
    )
    await plantConversation(server(), workspace.id, { name: 'Ada', channelId: shop.id })
    await record(server(), workspace.id)
    assert.equal((await report()).to.members, 1)
    const limited = await workspace.staff({ channel_ids: [shop.id] })
    const ask = (key: string, filterId: string) =>
      callAs(server(), key)('reports_filter_membership', { saved_filter_id: filterId, since: '-1d' })
    const refused = await ask(limited.key, id)
    assert.deepEqual([refused.status, refused.body.reason], [403, 'channels_limited'])
    const phones = (
      await run('crm_create_saved_filter', { name: 'P', filter: { phoneNumber: { startsWith: '1' } } })
    ).saved_filter.id
    await run('crm_track_saved_filter', { saved_filter_id: phones, tracked: true })
    await record(server(), workspace.id)
    const masked = await workspace.staff({ hide_phone_numbers: true })
    const hidden = await ask(masked.key, phones)
    assert.deepEqual([hidden.status, hidden.body.reason], [403, 'phone_hidden'])
    assert.equal((await ask(masked.key, id)).status, 200)
    const notOwner = await callAs(server(), masked.key)('crm_track_saved_filter', {
      saved_filter_id: id,
      tracked: false,
    })
    assert.deepEqual([notOwner.status, notOwner.body.reason], [403, 'not_owner'])
    const starred = (await run('crm_create_saved_filter', { name: 'S', filter: { starred: { eq: true } } }))
      .saved_filter.id
    await run('crm_track_saved_filter', { saved_filter_id: starred, tracked: true })
    await record(server(), workspace.id)
    assert.equal((await ask(limited.key, starred)).status, 200)
  })

  it('are of ten filters at most', async () => {
    const { workspace, run } = await createScene({ starred: { eq: true } })
    const call = callAs(server(), workspace.owner.key)
    const statuses: number[] = []
    for (let n = 0; n < 10; n++) {
      const { saved_filter: saved } = await run('crm_create_saved_filter', { name: `F${n}`, filter: {} })
      statuses.push(
        (await call('crm_track_saved_filter', { saved_filter_id: saved.id, tracked: true })).status,
      )
    }
    assert.deepEqual(statuses, [...Array(9).fill(200), 409])
  })
})
