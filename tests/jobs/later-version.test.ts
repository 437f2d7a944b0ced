import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { it } from 'node:test'
import { sql } from 'kysely'
import { erasuresJob } from '../../server/domains/erasures/run.ts'
import { steps } from '../../server/domains/erasures/steps.ts'
import { createLogger } from '../../server/logger.ts'
import { insertJob } from '../../storage/work/bulk-jobs.ts'
import { insertErasure } from '../../storage/privacy/erasures.ts'
import { createAgentScene, markApproved } from '../approvals/scene.ts'
import { runJobs } from '../bulk-jobs/many.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { finishErasures } from '../person.ts'
import { makeWorkspace } from '../servers.ts'

/** Of an operation that only a later version has. */
const UNKNOWN = 'crm_of_a_later_version'

const lines: string[] = []
const log = createLogger('warn', {
  destination: new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().trim().split('\n'))
      done()
    },
  }),
})

// In a rolling upgrade servers of two versions take work from the same tables.
everyDatabase(
  'What a server of a later version began',
  (server) => {
    it('is no job of this one, unless nobody takes it for a day', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { db, app } = server()
      const { contact } = await run('crm_upsert_contact', { phone: '+15550104789', tags: ['VIP'] })
      const id = await insertJob(
        db,
        {
          workspace_id: workspace.id,
          operation: UNKNOWN,
          input: { tags: ['VIP'] },
          staff_id: workspace.owner.staffId,
          key_id: workspace.owner.keyId,
          door: 'ops',
          client: null,
          request_id: 'req_test',
          created_at: app.now(),
          total: 1,
          state: 'running',
        },
        [`{${contact.id}}`],
      )
      const set = (operation: string, dueFor: string) =>
        sql`
        with job as (update bulk_jobs set operation = ${operation} where workspace_id = ${workspace.id})
        update runs set needs_version = ${operation}, run_after = clock_timestamp() - ${dueFor}::interval
        where workspace_id = ${workspace.id}`.execute(db)
      const readState = async () => {
        await runJobs(server())
        return (
          await db.selectFrom('bulk_jobs').select('state').where('id', '=', id).executeTakeFirstOrThrow()
        ).state
      }
      assert.equal(await readState(), 'running')
      await set(UNKNOWN, '25 hours')
      assert.equal(await readState(), 'failed')
      await set('crm_untag_contacts', '0 s')
      await run('jobs_resume', { job_id: id })
      assert.equal(await readState(), 'done')
      assert.deepEqual((await run('crm_get_contact', { contact_id: contact.id })).tags, [])
    })

    it('is approved, and run by a server that has its operation', async () => {
      const scene = await createAgentScene(server())
      const { db } = server()
      const approve = async (phone: string): Promise<string> => {
        const { contact } = (await scene.person('crm_upsert_contact', { phone })).body
        const { approval } = (await scene.ask('crm_delete_contact', { contact_id: contact.id })).body
        await sql`
        update approvals set operation = ${UNKNOWN}
        where workspace_id = ${scene.workspace.id} and id = ${approval.id}`.execute(db)
        await markApproved({ db, workspace: scene.workspace }, approval.id)
        return approval.id
      }
      const read = async (id: string) => (await scene.ask('approvals_get', { approval_id: id })).body
      const id = await approve('+15550104787')
      await scene.work()
      assert.equal((await read(id)).status, 'approved')
      await sql`
      with call as (update approvals set operation = 'crm_delete_contact'
        where workspace_id = ${scene.workspace.id} and id = ${id})
      update runs set needs_version = 'crm_delete_contact'
      where workspace_id = ${scene.workspace.id} and subject = ${id}`.execute(db)
      await scene.work()
      assert.equal((await read(id)).status, 'done')

      const late = await approve('+15550104788')
      await sql`
      with call as (update approvals set run_until = clock_timestamp() - interval '1 second'
        where workspace_id = ${scene.workspace.id} and id = ${late})
      update runs set run_after = clock_timestamp() - interval '12 hours 1 second'
      where workspace_id = ${scene.workspace.id} and subject = ${late}`.execute(db)
      await scene.work()
      const ended = await read(late)
      assert.deepEqual([ended.status, ended.outcome.reason], ['failed', 'expired'])
    })

    it('is no erasure that this one ends, which would leave out the steps that it lacks', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { db, app } = server()
      const id = await insertErasure(db, {
        workspace_id: workspace.id,
        contact_id: '1',
        staff_id: workspace.owner.staffId,
        created_at: app.now(),
        counts: {},
        subject: {
          contactIds: [],
          conversationIds: [],
          phones: [],
          texts: [],
          names: [],
          lastUpdateId: '0',
        },
        needs_version: `${steps.length + 1} steps`,
      })
      const readState = async () => (await run('crm_get_erasure', { erasure_id: id })).state
      lines.length = 0
      const hasWarned = () =>
        lines.some((line) => /"level":40,.*"count":1,.*that a later version began/.test(line))
      await app.jobs.job('erasures').runOnce()
      assert.deepEqual([await readState(), hasWarned()], ['running', false])
      await sql`
      update runs set run_after = clock_timestamp() - interval '6 minutes'
      where workspace_id = ${workspace.id} and kind = 'erasures'`.execute(db)
      // The job does not look at them in each run.
      await erasuresJob(app).run(new AbortController().signal)
      assert.deepEqual([await readState(), hasWarned()], ['running', true])
      await sql`
      update runs set needs_version = ${`${steps.length} steps`}
      where workspace_id = ${workspace.id} and kind = 'erasures'`.execute(db)
      await finishErasures(server(), workspace.id)
      assert.equal(await readState(), 'done')
    })
  },
  { dedicated: true, log },
)
