import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { type Call, importContacts, MANY, runJobs } from './many.ts'

const confirm = { confirm: 'delete' }
const count = async (call: Call): Promise<number> => (await call('crm_count_contacts')).body.count

everyDoor('Deletion of many contacts', (test) => {
  test('deletes those of a filter at once where they are few, as one by one', async ({
    call,
    door,
    server,
    workspace,
  }) => {
    const owner = callAs(server, workspace.owner.key)
    await importContacts(call, 9, (n) => ({ name: n < 4 ? `Ada ${n}` : `Bob ${n}`, tags: ['VIP'] }))
    const input = { filter: { name: { contains: 'Ada' } } }
    const rehearsed = (await call('crm_delete_contacts', { ...input, dry_run: true }, { plan: 'show' })).body
    assert.deepEqual(
      [rehearsed.matched, rehearsed.would_change, rehearsed.unchanged, rehearsed.samples.length],
      [4, 4, 0, 4],
    )
    assert.equal(await count(call), 9)
    const unconfirmed = await owner('crm_delete_contacts', input)
    assert.deepEqual([unconfirmed.status, unconfirmed.body.code], [428, 'confirm_required'])
    const nobody = await owner('crm_delete_contacts', { filter: {} }, confirm)
    assert.deepEqual([nobody.status, nobody.body.errors[0].pointer], [400, '#/filter'])

    const planned = { ...confirm, plan: rehearsed.plan.token }
    const deleted = await call('crm_delete_contacts', input, planned)
    if (!door.confirms) {
      assert.equal(deleted.status, 428)
      return
    }
    assert.deepEqual([deleted.status, deleted.body.matched, deleted.body.succeeded], [200, 4, 4])
    assert.equal(await count(call), 5)
    assert.equal((await call('crm_list_tags')).body.data[0].contacts_count, 5)
    const { rows } = await sql<{ data: { contact: { id: string } } }>`
      select data from events where workspace_id = ${workspace.id} and type = 'contact.deleted/1'`.execute(
      server.db,
    )
    assert.deepEqual(
      rows.map(({ data }) => data.contact.id).toSorted(),
      rehearsed.samples.map((one: { contact_id: string }) => one.contact_id).toSorted(),
    )
    const [{ contact_id: gone }] = rehearsed.samples
    const [{ id }] = (await call('crm_search_contacts')).body.data
    const byIds = await call('crm_delete_contacts', { contact_ids: [gone, id, id] }, confirm)
    assert.deepEqual(
      [byIds.body.requested, byIds.body.succeeded, byIds.body.failures],
      [2, 1, [{ id: gone, code: 'not_found', message: `No contact with the id ${gone}.` }]],
    )
  })

  test('deletes many by a job, which nothing takes back', async ({ call, door, server, workspace }) => {
    if (!door.confirms) return
    const owner = callAs(server, workspace.owner.key)
    await importContacts(call, MANY + 1, (n) => ({ name: n === 0 ? 'Bob' : `Ada ${n}`, tags: ['VIP'] }))
    const filter = { name: { contains: 'Ada' } }
    const rehearsed = (await call('crm_delete_contacts', { filter, dry_run: true }, { plan: 'show' })).body
    assert.deepEqual([rehearsed.matched, rehearsed.would_change], [MANY, MANY])
    await owner('crm_delete_contact', { contact_id: rehearsed.samples[0].contact_id }, confirm)
    const { body } = await call('crm_delete_contacts', { filter }, { ...confirm, plan: rehearsed.plan.token })
    assert.deepEqual([body.job.state, body.job.total], ['running', MANY])
    await runJobs(server)
    const job = (await call('jobs_get', { job_id: body.job.id })).body
    assert.deepEqual([job.state, job.done, job.changed, job.failed], ['done', MANY, MANY - 1, 1])
    assert.equal(await count(call), 1)
    assert.equal((await call('crm_list_tags')).body.data[0].contacts_count, 1)
    const undone = await call('jobs_undo', { job_id: job.id })
    assert.deepEqual([undone.status, undone.body.reason], [409, 'not_undoable'])
  })
})

everyDatabase('Deletion of many contacts by an AI agent', (server) => {
  it('deletes those that a person saw, whatever matches when they agree', async () => {
    const scene = await createAgentScene(server())
    await importContacts(scene.person, 3, (n) => ({ name: `Cid ${n}` }))
    const input = { filter: { name: { contains: 'Cid' } } }
    const asked = await scene.ask('crm_delete_contacts', input)
    assert.equal(asked.status, 202, asked.text)
    const { id } = asked.body.approval
    await scene.person('crm_upsert_contact', { phone: '+15559999999', name: 'Cid Late' })
    assert.equal((await scene.ask('crm_delete_contacts', input)).body.approval.id, id)
    // Longer than a plan of one's own lasts.
    await sql`
      update bulk_jobs set created_at = created_at - interval '10 hours'
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    await server().app.jobs.job('bulk-job-retention').runOnce()
    const approved = await scene.person('approvals_approve', { approval_id: id })
    assert.equal(approved.status, 200, approved.text)
    await scene.work()
    const ended = (await scene.ask('approvals_get', { approval_id: id, wait_seconds: 3 })).body
    assert.equal(ended.status, 'done', JSON.stringify(ended))
    assert.deepEqual([ended.status, ended.outcome.status], ['done', 200], JSON.stringify(ended))
    const left = (await scene.person('crm_search_contacts', { query: 'Cid' })).body.data
    assert.deepEqual(
      left.map((one: { name: string }) => one.name),
      ['Cid Late'],
    )
  })
})
