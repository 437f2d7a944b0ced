import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { importContacts, MANY, runJobs } from './many.ts'

everyDoor('Fields of many contacts', (test) => {
  const wanted = { attributes: { plan: 'pro', city: null }, dnd: true }

  test('are set by a job, and each contact gets back what it had', async ({ call, server, workspace }) => {
    for (const key of ['plan', 'city']) await call('crm_create_custom_field', { key, type: 'text' })
    await importContacts(call, MANY, (n) => ({
      name: `Ada ${n}`,
      // Every third has all of it already.
      attributes:
        n % 3 === 0 ? { plan: 'pro' } : { plan: `p${n % 5}`, ...(n % 2 === 0 ? { city: 'Rome' } : {}) },
      dnd: n % 3 === 0,
    }))
    const readAll = async () => {
      const { rows } = await sql<{ id: string }>`
        select c.id, c.name, c.dnd, f.attrs from contacts c
        left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
        where c.workspace_id = ${workspace.id} order by c.id`.execute(server.db)
      return rows
    }
    const before = await readAll()
    const input = { filter: { name: { contains: 'Ada' } }, ...wanted }
    const rehearsed = (await call('crm_update_contacts', { ...input, dry_run: true }, { plan: 'show' })).body
    const same = before.length - Math.floor((MANY * 2) / 3)
    assert.deepEqual([rehearsed.matched, rehearsed.unchanged], [MANY, same])
    assert.deepEqual(await readAll(), before)
    const { body } = await call('crm_update_contacts', input, { plan: rehearsed.plan.token })
    await runJobs(server)
    const job = (await call('jobs_get', { job_id: body.job.id })).body
    assert.deepEqual([job.state, job.changed, job.failed], ['done', rehearsed.would_change, 0])
    assert.deepEqual(job.input, wanted)
    const count = async (filter: object) => (await call('crm_count_contacts', { filter })).body.count
    assert.equal(await count({ dnd: { eq: true } }), MANY)
    assert.equal(
      await count({ attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { eq: 'pro' } } } }),
      MANY,
    )

    // What somebody changed since stays.
    const [, changed, ...rest] = before
    await call('crm_update_contact', { contact_id: changed!.id, attributes: { plan: 'own' } })
    await call('jobs_undo', { job_id: job.id })
    await runJobs(server)
    const [, own, ...others] = await readAll()
    assert.deepEqual(others, rest)
    const { body: kept } = await call('crm_get_contact', { contact_id: own!.id })
    assert.equal(kept.dnd, false)
    assert.match(JSON.stringify(kept.attributes), /"own"/)
    const undo = (await call('jobs_list', { state: 'done' })).body.data[0]
    assert.deepEqual([undo.undo_of_job_id, undo.changed], [job.id, rehearsed.would_change])
  })

  test('are set at once where they are few, and refused where nothing or a wrong value is given', async ({
    call,
  }) => {
    await importContacts(call, 3, (n) => ({ name: `Ada ${n}` }))
    const { data } = (await call('crm_search_contacts')).body
    const ids = data.map((one: { id: string }) => one.id)
    const done = await call('crm_update_contacts', { contact_ids: [...ids, '999999'], starred: true })
    assert.deepEqual(
      [done.status, done.body.succeeded, done.body.failures[0].id],
      [200, 3, '999999'],
      done.text,
    )
    const refuse = async (input: object) => {
      const { status, body } = await call('crm_update_contacts', { contact_ids: ids, ...input })
      return [status, body.errors?.[0].pointer]
    }
    assert.deepEqual(await refuse({}), [400, '#/attributes'])
    assert.deepEqual(await refuse({ attributes: {} }), [400, '#/attributes'])
    assert.deepEqual(await refuse({ attributes: { none: 1 } }), [400, '#/attributes/none'])
    const everybody = { filter: {}, all: true, starred: false }
    const tried = await call('crm_update_contacts', { ...everybody, dry_run: true })
    assert.deepEqual([tried.body.would_change, tried.body.unchanged], [3, 0])
    const all = await call('crm_update_contacts', everybody)
    assert.deepEqual([all.status, all.body.matched], [200, 3])
    assert.equal((await call('crm_count_contacts', { filter: { starred: { eq: true } } })).body.count, 0)
  })
})

everyDatabase('Hidden phones in fields of many contacts', (server) => {
  it('count as changed whoever had them, when a job sets them and when that is undone', async () => {
    const workspace = await makeWorkspace(server())
    const owner = callAs(server(), workspace.owner.key)
    await owner('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const guess = '+15550107777'
    await importContacts(owner, MANY, (n) => ({ name: 'Ada', attributes: n < 5 ? { mobile: guess } : {} }))
    const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const run = doAs(server(), agent.key)
    const filter = { name: { contains: 'Ada' } }
    const { job } = await run('crm_update_contacts', { filter, attributes: { mobile: guess } })
    await runJobs(server())
    const undo = await run('jobs_undo', { job_id: job.id })
    await runJobs(server())
    for (const id of [job.id, undo.job.id]) {
      const { state, changed } = await run('jobs_get', { job_id: id })
      assert.deepEqual([state, changed], ['done', MANY])
    }
  })
})
