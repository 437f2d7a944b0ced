import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createChannel, createTeam } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { type Call, importContacts, MANY, runJobs } from './many.ts'

type Scene = { shop: string; store: string; agent: string; team: string }

/** Makes two channels, an agent, a team, and a conversation for each of `count` contacts, every fifth in the store. */
const seed = async (
  { db, app }: TestServer,
  workspace: TestWorkspace,
  call: Call,
  count: number,
): Promise<Scene> => {
  const make = async (name: string) =>
    (await createChannel(db, workspace.id, { type: 'web', name, status: 'connected' }, app.now())).id
  const [shop, store] = [await make('Shop'), await make('Store')]
  const { staffId: agent } = await workspace.staff({ role: 'agent', name: 'Grace' })
  const { id: team } = await createTeam(db, workspace.id, 'Sales', app.now())
  await importContacts(call, count, (n) => ({ name: n % 2 === 0 ? `Ada ${n}` : `Bob ${n}` }))
  await sql`
    with v as (
      insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at)
      select workspace_id, id, case when (row_number() over (order by id)) % 5 = 0 then ${store}::bigint
        else ${shop}::bigint end, 'open', created_at, created_at
      from contacts where workspace_id = ${workspace.id} order by id returning workspace_id, id, created_at
    )
    insert into conversation_episodes (workspace_id, conversation_id, n, opened_at)
    select workspace_id, id, 1, created_at from v`.execute(db)
  return { shop, store, agent, team }
}

const readAll = async ({ db }: TestServer, { id }: TestWorkspace) =>
  await db
    .selectFrom('conversations')
    .select(['id', 'state', 'assigned_staff_id', 'assigned_team_id', 'episode'])
    .where('workspace_id', '=', id)
    .orderBy('id')
    .execute()

const count = async (server: TestServer, workspace: TestWorkspace, test: (row: any) => boolean) =>
  (await readAll(server, workspace)).filter(test).length

everyDoor('Many conversations', (test) => {
  test('are assigned at once where they are few, and rehearsed with samples', async (world) => {
    const { call, server, workspace } = world
    const scene = await seed(server, workspace, call, 20)
    const filter = { state: 'open', channel_id: scene.shop, contact: { name: { startsWith: 'Ada' } } }
    const input = { filter, staff_id: scene.agent }
    const dry = { ...input, dry_run: true }
    const rehearsed = (await call('inbox_assign_conversations', dry, { plan: 'show' })).body
    assert.deepEqual([rehearsed.matched, rehearsed.would_change, rehearsed.unchanged], [8, 8, 0])
    assert.match(rehearsed.samples[0].contact_name, /^Ada \d+$/)
    assert.deepEqual([rehearsed.samples.length, rehearsed.samples[0].channel], [8, 'Shop'])
    assert.equal(await count(server, workspace, (row) => row.assigned_staff_id !== null), 0)
    const done = await call('inbox_assign_conversations', input, { plan: rehearsed.plan.token })
    assert.deepEqual([done.status, done.body.matched, done.body.succeeded], [200, 8, 8], done.text)
    assert.equal(await count(server, workspace, (row) => row.assigned_staff_id === scene.agent), 8)
    const again = (await call('inbox_assign_conversations', { ...input, dry_run: true })).body
    assert.deepEqual([again.would_change, again.unchanged], [0, 8])

    // Those that are assigned are failures of their own.
    const rest = { filter: { query: 'ada' }, team_id: scene.team, only_if_unassigned: true }
    const tried = (await call('inbox_assign_conversations', { ...rest, dry_run: true })).body
    assert.deepEqual([tried.matched, tried.would_change, tried.failed], [10, 2, 8])
    const claimed = (await call('inbox_assign_conversations', rest)).body
    assert.deepEqual([claimed.succeeded, claimed.failed, claimed.failures[0].code], [2, 8, 'conflict'])
    assert.equal(await count(server, workspace, (row) => row.assigned_team_id === scene.team), 2)

    const ids = (await readAll(server, workspace)).slice(0, 2).map(({ id }) => id)
    const closed = (
      await call('inbox_close_conversations', { conversation_ids: [...ids, '999999'], reason: 'Done' })
    ).body
    assert.deepEqual(
      [closed.requested, closed.succeeded, closed.failures],
      [3, 2, [{ id: '999999', code: 'not_found', message: 'No conversation with the id 999999.' }]],
    )
    const all = (await call('inbox_close_conversations', { filter: {}, all: true, dry_run: true })).body
    assert.deepEqual([all.matched, all.would_change, all.unchanged], [20, 18, 2])
  })

  test('are those of contacts that match a saved filter', async ({ call, server, workspace }) => {
    await seed(server, workspace, call, 20)
    const saved = { name: 'Bobs', filter: { name: { startsWith: 'Bob' } } }
    const { id } = (await call('crm_create_saved_filter', saved)).body.saved_filter
    const close = { saved_filter_id: id, reason: 'Delivered' }
    const dry = { ...close, dry_run: true }
    const planned = (await call('inbox_close_conversations', dry, { plan: 'show' })).body
    assert.deepEqual([planned.matched, planned.would_change], [10, 10])
    const done = (await call('inbox_close_conversations', close, { plan: planned.plan.token })).body
    assert.deepEqual([done.matched, done.succeeded], [10, 10])
    assert.equal(await count(server, workspace, (row) => row.state === 'closed'), 10)
    const filter = { state: 'open', contact: { savedFilter: { eq: id } } }
    const open = await call('inbox_close_conversations', { filter, dry_run: true })
    assert.equal(open.body.matched, 0, open.text)
    assert.equal((await call('inbox_close_conversations', { saved_filter_id: '999999' })).status, 404)
  })

  test('are found by their age, as in the search and the queue', async ({ call, server, workspace }) => {
    await seed(server, workspace, call, 4)
    const ids = (await readAll(server, workspace)).map(({ id }) => id)
    const ago = (hours: number): string =>
      new Date(Date.parse(server.app.now()) - hours * 3_600_000).toISOString()
    const set = (id: string, times: object) =>
      server.db
        .updateTable('conversations')
        .set({ reply_status: 'incoming_no_reply', ...times })
        .where('id', '=', id)
        .execute()
    await set(ids[0]!, { last_activity_at: ago(73), last_inbound_at: ago(73), waiting_since: ago(80) })
    await set(ids[1]!, { last_activity_at: ago(71), last_inbound_at: ago(73), waiting_since: ago(71) })
    await set(ids[2]!, { last_activity_at: ago(1), last_inbound_at: ago(71), waiting_since: ago(73) })
    await set(ids[3]!, { last_activity_at: ago(73), last_inbound_at: null, reply_status: null })
    for (const [filter, found] of [
      [{ last_message_before: '-3d' }, [0, 3]],
      [{ last_customer_message_before: '-3d' }, [0, 1]],
      [{ waiting_longer_than: '-3d' }, [0, 2]],
      [{ waiting_longer_than: '-80h', last_message_before: 'yesterday' }, [0]],
      [{ waiting_longer_than: '-1mo' }, []],
    ] as const) {
      const wanted = found.map((n) => ids[n]!)
      const search = await call('inbox_search_conversations', { ...filter, limit: 10 })
      assert.deepEqual(search.body.data.map(({ id }: any) => id).toSorted(), wanted, JSON.stringify(filter))
      const queue = await call('inbox_queue', { ...filter, limit: 10 })
      assert.deepEqual(
        queue.body.data.map(({ id }: any) => id).toSorted(),
        wanted.filter((id) => id !== ids[3]),
      )
      const closed = await call('inbox_close_conversations', { filter, dry_run: true })
      assert.deepEqual(
        closed.body.samples.map((one: any) => one.conversation_id),
        wanted,
      )
    }
    const refuse = async (op: string, input: Record<string, unknown>) =>
      (await call(op, input)).body.errors[0]
    const filter = { last_message_before: '3d' }
    const { pointer, code, fix } = await refuse('inbox_close_conversations', { filter })
    assert.deepEqual(
      [pointer, code, fix],
      ['#/filter/last_message_before', 'invalid_date', 'Did you mean -3d?'],
    )
    const alone = await refuse('inbox_queue', { waiting_longer_than: 'long' })
    assert.equal(alone.code, 'invalid_date')
    assert.match(alone.pointer ?? alone.parameter, /waiting_longer_than$/)
    const stale = { filter: { last_message_before: '-3d', state: 'open' }, reason: 'Stale' }
    const { matched, succeeded } = (await call('inbox_close_conversations', stale)).body
    assert.deepEqual([matched, succeeded], [2, 2])
    assert.equal(await count(server, workspace, (row) => row.state === 'closed'), 2)
  })

  test('are refused where the input is wrong', async ({ call, server, workspace }) => {
    const { agent, team } = await seed(server, workspace, call, 2)
    const refuse = async (input: Record<string, unknown>, op = 'inbox_assign_conversations') => {
      const { status, body } = await call(op, input)
      return [status, body.errors?.[0].pointer ?? body.reason ?? body.code]
    }
    const open = { filter: { state: 'open' } }
    assert.deepEqual(await refuse(open), [400, '#/staff_id'])
    assert.deepEqual(await refuse({ ...open, staff_id: agent, team_id: team }), [400, '#/team_id'])
    assert.deepEqual(await refuse({ ...open, staff_id: '999999' }), [404, 'not_found'])
    assert.deepEqual(await refuse({ filter: {} }, 'inbox_close_conversations'), [400, '#/filter'])
    assert.deepEqual(await refuse({}, 'inbox_close_conversations'), [400, '#/conversation_ids'])
    assert.deepEqual(await refuse({ filter: { stat: 'open' } }, 'inbox_close_conversations'), [
      400,
      '#/filter/stat',
    ])
    assert.deepEqual(
      await refuse({ filter: { contact: { nam: { eq: 'x' } } } }, 'inbox_close_conversations'),
      [400, '#/filter/contact/nam'],
    )
    await server.db.updateTable('staff').set({ enabled: false }).where('id', '=', agent).execute()
    assert.deepEqual(await refuse({ ...open, staff_id: agent }), [403, 'assignee_disabled'])
  })

  test('are closed and assigned by jobs, and given back where nobody changed them', async (world) => {
    const { call, server, workspace } = world
    const scene = await seed(server, workspace, call, MANY)
    await server.db
      .updateTable('staff')
      .set({ channel_ids: [scene.shop] })
      .where('id', '=', scene.agent)
      .execute()
    const inStore = Math.floor(MANY / 5)
    const assign = { filter: { state: 'open' }, staff_id: scene.agent }
    const dry = { ...assign, dry_run: true }
    const rehearsed = (await call('inbox_assign_conversations', dry, { plan: 'show' })).body
    assert.deepEqual([rehearsed.matched, rehearsed.would_change], [MANY, MANY - inStore])
    const { body } = await call('inbox_assign_conversations', assign, { plan: rehearsed.plan.token })
    await runJobs(server)
    const assigned = (await call('jobs_get', { job_id: body.job.id })).body
    assert.deepEqual(
      [assigned.state, assigned.changed, assigned.failed],
      ['done', MANY - inStore, inStore],
      JSON.stringify(assigned),
    )
    const { data } = (await call('jobs_list_failures', { job_id: body.job.id, limit: 2 })).body
    assert.deepEqual([data.length, data[0].code], [2, 'forbidden'])

    const closing = (await call('inbox_close_conversations', { filter: { state: 'open' }, reason: 'Done' }))
      .body
    await runJobs(server)
    assert.equal(await count(server, workspace, (row) => row.state === 'closed'), MANY)
    // One of which somebody has opened and closed again since stays as it is, and one that went to the team.
    const [first, second] = (await readAll(server, workspace)).map(({ id }) => id)
    await call('inbox_reopen_conversation', { conversation_id: first })
    await call('inbox_close_conversation', { conversation_id: first })
    await call('inbox_assign_conversation', { conversation_id: second, team_id: scene.team })
    for (const id of [closing.job.id, body.job.id]) {
      const { job } = (await call('jobs_undo', { job_id: id })).body
      await runJobs(server)
      assert.equal((await call('jobs_get', { job_id: job.id })).body.state, 'done')
    }
    const rows = await readAll(server, workspace)
    assert.deepEqual(
      rows.filter(({ state }) => state === 'closed').map(({ id }) => id),
      [first],
    )
    assert.equal(rows.filter((row) => row.assigned_staff_id !== null).length, 0)
    assert.deepEqual(
      rows.filter((row) => row.assigned_team_id !== null).map(({ id }) => id),
      [second],
    )
  })
})

everyDatabase('Many conversations, and who sees them', (server) => {
  it('are those of the channels of the viewer, also in counts, samples and jobs', async () => {
    const workspace = await makeWorkspace(server())
    const owner: Call = callAs(server(), workspace.owner.key)
    const scene = await seed(server(), workspace, owner, 20)
    const limited = await workspace.staff({ role: 'agent', channel_ids: [scene.store] })
    const manager = await workspace.staff({ role: 'manager', channel_ids: [scene.store] })
    const call = callAs(server(), limited.key)
    const all = { filter: {}, all: true, dry_run: true }
    const rehearsed = (await call('inbox_close_conversations', all)).body
    assert.deepEqual([rehearsed.matched, rehearsed.would_change], [4, 4])
    assert.deepEqual([...new Set(rehearsed.samples.map((one: any) => one.channel))], ['Store'])
    const hidden = { ...all, filter: { channel_id: scene.shop }, all: undefined }
    assert.equal((await call('inbox_close_conversations', hidden)).body.matched, 0)
    const id = (await readAll(server(), workspace))[0]!.id
    const byId = (await call('inbox_close_conversations', { conversation_ids: [id] })).body
    assert.deepEqual([byId.succeeded, byId.failures[0].code], [0, 'not_found'])

    // A job of somebody else would tell how many there are.
    await importContacts(owner, MANY, (n) => ({ name: `Cid ${n}` }))
    await sql`
      insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at)
      select workspace_id, id, ${scene.shop}::bigint, 'open', created_at, created_at from contacts
      where workspace_id = ${workspace.id} and id not in (
        select contact_id from conversations where workspace_id = ${workspace.id})`.execute(server().db)
    const admin = await workspace.staff({ role: 'manager' })
    const begin = callAs(server(), admin.key)
    const { job } = (await begin('inbox_close_conversations', { filter: { query: 'cid' } })).body
    assert.equal(job.total, MANY)
    const other = callAs(server(), manager.key)
    assert.equal((await other('jobs_get', { job_id: job.id })).status, 404)
    assert.deepEqual((await other('jobs_list')).body.data, [])
    assert.equal((await other('jobs_list_failures', { job_id: job.id })).status, 404)
    // Of a plan, what its maker may not see any more does not match.
    const again = { filter: { query: 'cid', state: 'closed' } }
    await runJobs(server())
    const dry = { ...again, dry_run: true }
    const planned = (await begin('inbox_close_conversations', dry, { plan: 'show' })).body
    assert.deepEqual([planned.matched, planned.unchanged], [MANY, MANY])
    await server()
      .db.updateTable('staff')
      .set({ channel_ids: [scene.store] })
      .where('id', '=', admin.staffId)
      .execute()
    const { key } = await workspace.key(admin.staffId)
    const late = callAs(server(), key)('inbox_close_conversations', again, { plan: planned.plan.token })
    assert.equal((await late).body.reason, 'plan_changed')
  })

  it('are found by digits of a phone only by those who see phones', async () => {
    const workspace = await makeWorkspace(server())
    const owner: Call = callAs(server(), workspace.owner.key)
    await seed(server(), workspace, owner, 3)
    const { key } = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const call = callAs(server(), key)
    const close = (filter: object) => call('inbox_close_conversations', { filter, dry_run: true })
    assert.equal((await close({ query: '1555' })).body.reason, 'phone_hidden')
    assert.equal((await close({ contact: { phoneNumber: { startsWith: '1' } } })).body.reason, 'phone_hidden')
    assert.equal((await close({ query: 'ada' })).body.matched, 2)
  })

  it("are changed by an agent's key that is bound to its own only after a person agrees", async () => {
    const workspace = await makeWorkspace(server())
    const owner: Call = callAs(server(), workspace.owner.key)
    await seed(server(), workspace, owner, 3)
    const { key } = await workspace.key(workspace.owner.staffId, {
      agent: true,
      policy: { verbs: {}, operations: {}, bounds: { assigned: true } },
    } as never)
    const asked = await callAs(server(), key)('inbox_close_conversations', { filter: { state: 'open' } })
    assert.deepEqual([asked.status, asked.body.approval?.status], [202, 'pending'], asked.text)
  })
})
