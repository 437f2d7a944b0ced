import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { replaceKey, revokeKey } from '../../storage/access/admin-keys.ts'
import { insertJob } from '../../storage/work/bulk-jobs.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestWorkspace } from '../servers.ts'
import { type Call, importContacts, MANY, runJobs } from './many.ts'

const countTagged = async (call: Call, name: string): Promise<number> =>
  (await call('crm_count_contacts', { filter: { tags: { some: { name: { eq: name } } } } })).body.count

everyDoor('Contacts by filter', (test) => {
  test('are changed at once where they are few, and rehearsed with samples', async ({ call }) => {
    await importContacts(call, 30, (n) => ({
      name: n % 3 === 0 ? `Ada ${n}` : `Bob ${n}`,
      tags: n < 3 ? ['VIP'] : [],
    }))
    const input = { filter: { name: { startsWith: 'Ada' } }, tags: ['VIP', 'VlP '] }
    const rehearsed = (await call('crm_tag_contacts', { ...input, dry_run: true })).body
    assert.deepEqual(
      [
        rehearsed.matched,
        rehearsed.would_change,
        rehearsed.unchanged,
        rehearsed.samples.length,
        rehearsed.job,
      ],
      [10, 10, 0, 10, undefined],
    )
    assert.deepEqual(rehearsed.would_create, [{ name: 'VlP', nearest: 'VIP' }])
    assert.match(rehearsed.samples[0].name, /^Ada \d+$/)
    const single = { ...input, tags: ['VIP'] }
    const one = (await call('crm_tag_contacts', { ...single, dry_run: true }, { plan: 'show' })).body
    assert.deepEqual([one.would_change, one.unchanged, one.would_create], [9, 1, []])

    const plan = one.plan.token as string
    assert.match(one.plan.summary[0], /Add tags/)
    assert.equal((await call('crm_tag_contacts', { ...single, dry_run: true })).body.plan, undefined)
    for (const wrong of [input, { contact_ids: [one.samples[0].contact_id], tags: ['VIP'] }]) {
      const { status, body, text } = await call('crm_tag_contacts', wrong, { plan })
      assert.deepEqual([status, body.errors[0].header], [400, 'Api-Plan'], text)
    }
    // A contact that matches since is not of the plan.
    await call('crm_upsert_contact', { phone: '+15559999999', name: 'Ada Late' })
    const done = await call('crm_tag_contacts', single, { plan })
    assert.deepEqual([done.status, done.body.matched, done.body.succeeded], [200, 10, 10], done.text)
    assert.equal(await countTagged(call, 'VIP'), 12)
    const again = await call('crm_tag_contacts', single, { plan })
    assert.deepEqual([again.status, again.body.reason], [409, 'plan_unknown'])
    const rest = await call('crm_tag_contacts', single)
    assert.deepEqual([rest.status, rest.body.matched], [200, 11])
    const untagged = await call('crm_untag_contacts', {
      filter: { name: { contains: 'Late' } },
      tags: ['VIP', 'None'],
    })
    assert.deepEqual([untagged.status, untagged.body.matched], [200, 1])
    assert.equal(await countTagged(call, 'VIP'), 12)
  })

  test('are never everybody by mistake', async ({ call }) => {
    await importContacts(call, 3, (n) => ({ name: `Ada ${n}` }))
    const refuse = async (input: Record<string, unknown>) => {
      const { status, body } = await call('crm_tag_contacts', { tags: ['VIP'], ...input })
      return [status, body.errors?.[0].pointer]
    }
    assert.deepEqual(await refuse({ filter: {} }), [400, '#/filter'])
    assert.deepEqual(await refuse({ filter: { name: { contains: 'A' } }, all: true }), [400, '#/all'])
    assert.deepEqual(await refuse({ contact_ids: ['1'], filter: {} }), [400, '#/filter'])
    assert.deepEqual(await refuse({}), [400, '#/contact_ids'])
    assert.deepEqual(await refuse({ saved_filter_id: '999999' }), [404, '#/saved_filter_id'])
    assert.deepEqual(await refuse({ filter: { nam: { contains: 'A' } } }), [400, '#/filter/nam'])
    const all = await call('crm_tag_contacts', { tags: ['VIP'], filter: {}, all: true })
    assert.deepEqual([all.status, all.body.matched], [200, 3])
  })

  test('are changed by a job where they are many, exactly once, and back', async ({
    call,
    server,
    workspace,
  }) => {
    await importContacts(call, MANY, (n) => ({ name: `Ada ${n}`, tags: n < 7 ? ['Old'] : [] }))
    const input = { filter: { name: { contains: 'da' } }, tags: ['Old', 'New'] }
    const rehearsed = (await call('crm_tag_contacts', { ...input, dry_run: true }, { plan: 'show' })).body
    const plan = rehearsed.plan.token as string
    assert.deepEqual(
      [rehearsed.matched, rehearsed.would_change, rehearsed.samples.length, rehearsed.job],
      [MANY, MANY, 20, undefined],
    )
    assert.equal((await call('jobs_list')).body.data.length, 0)
    // One that is deleted after the plan, and one that matches since.
    const deleted = rehearsed.samples[0].contact_id
    await callAs(server, workspace.owner.key)(
      'crm_delete_contact',
      { contact_id: deleted },
      { confirm: 'delete' },
    )
    await call('crm_upsert_contact', { phone: '+15559999999', name: 'Ada Late' })
    const { body } = await call('crm_tag_contacts', input, { plan })
    assert.deepEqual(
      [body.matched, body.succeeded, body.job.state, body.job.total],
      [MANY, 0, 'running', MANY],
    )
    const again = await call('crm_tag_contacts', input, { plan })
    assert.deepEqual([again.status, again.body.reason], [409, 'plan_unknown'])
    const jobId = body.job.id
    await runJobs(server)
    const job = (await call('jobs_get', { job_id: jobId })).body
    const { data } = (await call('jobs_list_failures', { job_id: jobId })).body
    assert.deepEqual([job.state, job.done, job.changed, job.failed], ['done', MANY, MANY - 1, 1])
    assert.deepEqual(
      data.map((one: { id: string; code: string }) => [one.id, one.code]),
      [[deleted, 'not_found']],
    )
    assert.deepEqual([await countTagged(call, 'Old'), await countTagged(call, 'New')], [MANY - 1, MANY - 1])
    assert.equal((await call('jobs_resume', { job_id: jobId })).body.reason, 'job_state')

    const tried = await call('jobs_undo', { job_id: jobId, dry_run: true })
    assert.deepEqual([tried.body.job.id, tried.body.job.total], [null, MANY - 1], tried.text)
    const undone = await call('jobs_undo', { job_id: jobId })
    assert.deepEqual([undone.body.job.undo_of_job_id, undone.body.job.total], [jobId, MANY - 1], undone.text)
    assert.equal((await call('jobs_undo', { job_id: jobId })).body.reason, 'already_undone')
    await runJobs(server)
    assert.deepEqual([await countTagged(call, 'Old'), await countTagged(call, 'New')], [6, 0])
    const { data: jobs } = (await call('jobs_list', { state: 'done' })).body
    assert.deepEqual(
      jobs.map((one: { id: string }) => one.id),
      [undone.body.job.id, jobId],
    )
  })
})

everyDatabase('Jobs', (server) => {
  const make = async (): Promise<{ workspace: TestWorkspace; call: Call }> => {
    const workspace = await makeWorkspace(server())
    const call: Call = callAs(server(), workspace.owner.key)
    await importContacts(call, 5, (n) => ({ name: `Ada ${n}` }))
    return { workspace, call }
  }
  /** Inserts a job that nobody runs before it is resumed. */
  const insertWaiting = async (
    { id, owner }: TestWorkspace,
    { keyId = owner.keyId, missing = 0 } = {},
  ): Promise<string> => {
    const { db, app } = server()
    const contacts = await db.selectFrom('contacts').select('id').where('workspace_id', '=', id).execute()
    const jobId = await insertJob(
      db,
      {
        workspace_id: id,
        state: 'planned',
        operation: 'crm_tag_contacts',
        input: { tags: [await makeTag(id)] },
        staff_id: owner.staffId,
        key_id: keyId,
        door: 'rest',
        client: null,
        request_id: 'req_1',
        created_at: app.now(),
        total: contacts.length + missing,
      },
      [...contacts.map((contact) => `{${contact.id}}`), ...(missing > 0 ? [`{${none(missing)}}`] : [])],
    )
    await sql`update bulk_jobs set state = 'paused' where workspace_id = ${id} and id = ${jobId}`.execute(db)
    return jobId
  }
  /** Ids that no contact has. */
  const none = (count: number) => Array.from({ length: count }, (_, n) => String(900_000_000 + n))
  const makeTag = async (workspaceId: string): Promise<number> => {
    const { db, app } = server()
    const row = { workspace_id: workspaceId, name: 'VIP', name_key: 'vip', created_at: app.now() }
    return Number((await db.insertInto('tags').values(row).returning('id').executeTakeFirstOrThrow()).id)
  }

  it('are paused, resumed and cancelled', async () => {
    const { workspace, call } = await make()
    const id = await insertWaiting(workspace)
    await runJobs(server())
    assert.equal((await call('jobs_pause', { job_id: id })).body.job.done, 0)
    assert.equal((await call('jobs_undo', { job_id: id })).body.reason, 'job_state')
    assert.equal((await call('jobs_resume', { job_id: id, dry_run: true })).body.job.state, 'running')
    assert.equal((await call('jobs_resume', { job_id: id })).body.job.state, 'running')
    await runJobs(server())
    assert.deepEqual([await countTagged(call, 'VIP')], [5])
    const other = await make()
    const cancelled = await insertWaiting(other.workspace)
    assert.equal((await other.call('jobs_cancel', { job_id: cancelled })).body.job.state, 'cancelled')
    assert.equal((await other.call('jobs_cancel', { job_id: cancelled })).body.job.state, 'cancelled')
    assert.equal((await other.call('jobs_resume', { job_id: cancelled })).body.reason, 'job_state')
    assert.equal((await other.call('jobs_undo', { job_id: cancelled })).body.reason, 'nothing_to_undo')
    const { rows } = await sql<{ type: string }>`
      select type from events where workspace_id = ${other.workspace.id} and type like 'job.%'`.execute(
      server().db,
    )
    assert.deepEqual(rows, [{ type: 'job.finished/1' }])
  })

  it('stop where the key that began them may not go on, and go on with what is left', async () => {
    const { workspace, call } = await make()
    const key = await workspace.key(workspace.owner.staffId)
    const id = await insertWaiting(workspace, { keyId: key.keyId })
    await revokeKey(server().db, workspace.id, key.keyId, server().app.now())
    await call('jobs_resume', { job_id: id })
    await runJobs(server())
    const job = (await call('jobs_get', { job_id: id })).body
    assert.deepEqual([job.state, job.done, job.problem.code], ['failed', 0, 'forbidden'])
    await server()
      .db.updateTable('bulk_jobs')
      .set({ key_id: workspace.owner.keyId })
      .where('id', '=', id)
      .execute()
    await call('jobs_resume', { job_id: id })
    await runJobs(server())
    assert.deepEqual((await call('jobs_get', { job_id: id })).body.state, 'done')
  })

  it('go on with the key that replaced theirs, but not once theirs was revoked', async () => {
    const { db, app } = server()
    const states: string[] = []
    for (const isRevoked of [false, true]) {
      const { workspace, call } = await make()
      const { keyId } = await workspace.key(workspace.owner.staffId)
      const id = await insertWaiting(workspace, { keyId })
      const times = { oldUntil: app.now(), expiresAt: null, now: app.now() }
      await replaceKey(db, workspace.id, keyId, () => hashApiKey(createApiKey(false)), times)
      if (isRevoked) await revokeKey(db, workspace.id, keyId, app.now())
      await call('jobs_resume', { job_id: id })
      await runJobs(server())
      states.push((await call('jobs_get', { job_id: id })).body.state)
    }
    assert.deepEqual(states, ['done', 'failed'])
  })

  it('tell of every contact that failed, page by page', async () => {
    const { workspace, call } = await make()
    const id = await insertWaiting(workspace, { missing: 70 })
    await call('jobs_resume', { job_id: id })
    await runJobs(server())
    const job = (await call('jobs_get', { job_id: id })).body
    assert.deepEqual([job.done, job.changed, job.failed], [75, 5, 70])
    const failed: string[] = []
    let cursor: string | undefined
    do {
      const input = { job_id: id, limit: 30, ...(cursor ? { cursor } : {}) }
      const { body } = await call('jobs_list_failures', input)
      failed.push(...body.data.map((one: { id: string }) => one.id))
      cursor = body.next_cursor
    } while (cursor)
    assert.deepEqual(failed, none(70))
  })

  it('try again later what failed unexpectedly, however often it did', async () => {
    const { workspace, call } = await make()
    const id = await insertWaiting(workspace)
    const { db } = server()
    const setInput = (input: object) =>
      sql`
        with runs as (update runs set run_after = now() where workspace_id = ${workspace.id})
        update bulk_jobs set input = ${JSON.stringify(input)}::text::jsonb where id = ${id}`.execute(db)
    await setInput({})
    await call('jobs_resume', { job_id: id })
    await runJobs(server())
    const waiting = (await call('jobs_get', { job_id: id })).body
    assert.deepEqual([waiting.state, waiting.done], ['running', 0])
    await setInput({ tags: ['VIP'] })
    // The largest number of its column.
    await db.updateTable('runs').set({ attempts: 32_767 }).where('workspace_id', '=', workspace.id).execute()
    await runJobs(server())
    assert.equal((await call('jobs_get', { job_id: id })).body.state, 'done')
  })

  it('undo what can be undone, and tell what cannot', async () => {
    const { workspace, call } = await make()
    const id = await insertWaiting(workspace)
    await sql`
      insert into contact_tags (workspace_id, tag_id, contact_id)
      select workspace_id, (select max(id) from tags where workspace_id = ${workspace.id}), id from contacts
      where workspace_id = ${workspace.id}`.execute(server().db)
    await sql`update bulk_jobs set operation = 'crm_untag_contacts' where id = ${id}`.execute(server().db)
    await call('jobs_resume', { job_id: id })
    await runJobs(server())
    const [tag] = (await call('crm_list_tags')).body.data
    await callAs(server(), workspace.owner.key)('crm_delete_tag', { tag_id: tag.id }, { confirm: 'delete' })
    const undo = (await call('jobs_undo', { job_id: id })).body.job
    assert.equal(undo.total, 5)
    await runJobs(server())
    const job = (await call('jobs_get', { job_id: undo.id })).body
    const { data } = (await call('jobs_list_failures', { job_id: undo.id })).body
    assert.deepEqual([job.state, job.changed, job.failed, data[0].code], ['done', 0, 5, 'invalid_input'])
    // One that failed after some batches does not go on with the others once those are being taken back.
    await sql`update bulk_jobs set state = 'failed' where id = ${id}`.execute(server().db)
    const resumed = await call('jobs_resume', { job_id: id })
    assert.deepEqual([resumed.status, resumed.body.reason], [409, 'already_undone'])
  })

  it('begin with the most selective condition of a filter', async () => {
    const { call } = await make()
    const [{ id }] = (await call('crm_search_contacts')).body.data
    await call('crm_tag_contacts', { contact_ids: [id], tags: ['Only'] })
    const filter = { tags: { some: { name: { eq: 'Only' } } }, name: { contains: 'Ada' } }
    const { body } = await call('crm_tag_contacts', { filter, tags: ['VIP'], dry_run: true })
    assert.deepEqual(
      body.samples.map((one: { contact_id: string }) => one.contact_id),
      [id],
    )
    const nobody = { ...filter, name: { eq: 'Nobody' } }
    const none = (await call('crm_untag_contacts', { filter: nobody, tags: ['VIP'] })).body
    assert.deepEqual([none.matched, none.succeeded], [0, 0])
  })

  it('are seen by managers and by whoever began them', async () => {
    const { workspace } = await make()
    const id = await insertWaiting(workspace)
    const [agent, manager] = [
      await workspace.staff({ role: 'agent' }),
      await workspace.staff({ role: 'manager' }),
    ]
    const status = async (key: string) => (await callAs(server(), key)('jobs_get', { job_id: id })).status
    assert.deepEqual([await status(agent.key), await status(manager.key)], [404, 200])
    const pause = await callAs(server(), agent.key)('jobs_cancel', { job_id: id })
    assert.equal(pause.status, 404)
  })

  it('need the right to read for a filter, even in a dry run', async () => {
    const { workspace } = await make()
    const { key } = await workspace.key(workspace.owner.staffId, { scopes: ['crm:write'] })
    const input = { filter: { name: { contains: 'Ada' } }, tags: ['VIP'], dry_run: true }
    const { status, body } = await callAs(server(), key)('crm_tag_contacts', input)
    assert.deepEqual([status, body.code], [403, 'insufficient_scope'])
  })

  it('are refused where too much of their plan has changed', async () => {
    const { call } = await make()
    const input = { filter: { name: { contains: 'Ada' } }, tags: ['VIP'] }
    const { body } = await call('crm_tag_contacts', { ...input, dry_run: true }, { plan: 'show' })
    await call('crm_update_contact', { contact_id: body.samples[0].contact_id, name: 'Bob' })
    const refused = await call('crm_tag_contacts', input, { plan: body.plan.token })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'plan_changed'], refused.text)
  })

  it('forget plans, and what ended long ago', async () => {
    const { workspace, call } = await make()
    const input = { filter: { name: { contains: 'Ada' } }, tags: ['VIP'] }
    const { body } = await call('crm_tag_contacts', { ...input, dry_run: true }, { plan: 'show' })
    const id = await insertWaiting(workspace)
    await call('jobs_cancel', { job_id: id })
    await sql`
      update bulk_jobs set created_at = created_at - interval '40 days', finished_at = finished_at - interval '40 days',
        expires_at = expires_at - interval '40 days'
      where workspace_id = ${workspace.id}`.execute(server().db)
    const late = await call('crm_tag_contacts', input, { plan: body.plan.token })
    assert.deepEqual([late.status, late.body.reason], [409, 'plan_unknown'])
    await server().app.jobs.job('bulk-job-retention').runOnce()
    for (const table of ['bulk_jobs', 'bulk_job_batches'] as const) {
      const left = await server()
        .db.selectFrom(table)
        .selectAll()
        .where('workspace_id', '=', workspace.id)
        .execute()
      assert.deepEqual(left, [], table)
    }
  })
})
