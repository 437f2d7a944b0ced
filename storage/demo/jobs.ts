import { sql } from 'kysely'
import { insertJob, type NewJob, setJobState } from '../work/bulk-jobs.ts'
import type { Db } from '../database.ts'

type By = Pick<NewJob, 'workspace_id' | 'staff_id' | 'key_id'>

/**
 * Inserts a job that tagged the contacts of a tag, but for one that is gone, another that is paused, and that of the
 * scheduled broadcast, which is paused too: its template was rejected.
 */
export const insertDemoJobs = async (tx: Db, by: By, now: string): Promise<void> => {
  const made = {
    ...by,
    state: 'running',
    door: 'rest',
    client: null,
  } as const
  const tagged = await sql<{ id: string; ids: string; total: number }>`
    select t.id, array_agg(l.contact_id order by l.contact_id)::text as ids, count(*)::integer as total
    from tags t join contact_tags l on l.workspace_id = t.workspace_id and l.tag_id = t.id
    where t.workspace_id = ${by.workspace_id} group by t.id order by t.id limit 1`.execute(tx)
  const [tag] = tagged.rows
  if (!tag) return
  const done = await insertJob(
    tx,
    {
      ...made,
      operation: 'crm_tag_contacts',
      input: { tags: [Number(tag.id)] },
      request_id: 'req_00000000000000000000000001',
      created_at: now,
      total: tag.total + 1,
    },
    [tag.ids],
  )
  await sql`
    with b as (
      update bulk_job_batches set is_done = true,
        failures = '[{"id": "999999", "code": "not_found", "message": "No contact with the id 999999."}]',
        undo = jsonb_build_array(jsonb_build_object('operation', 'crm_untag_contacts', 'input',
          jsonb_build_object('contact_ids', to_jsonb(record_ids::text[]),
            'tags', jsonb_build_array(${tag.id}::bigint))))
      where workspace_id = ${by.workspace_id} and job_id = ${done}
    )
    update bulk_jobs set state = 'done', finished_at = created_at, done = total, changed = total - 1, failed = 1,
      ran_ms = 1000
    where workspace_id = ${by.workspace_id} and id = ${done}`.execute(tx)
  const paused = await insertJob(
    tx,
    {
      ...made,
      operation: 'crm_untag_contacts',
      input: { tags: [Number(tag.id)] },
      request_id: 'req_00000000000000000000000002',
      created_at: now,
      total: tag.total,
    },
    [tag.ids],
  )
  await sql`
    update bulk_jobs set state = 'paused' where workspace_id = ${by.workspace_id} and id = ${paused}`.execute(
    tx,
  )
  await insertDemoSend(tx, { ...made, created_at: now })
}

const insertDemoSend = async (
  tx: Db,
  made: Omit<NewJob, 'operation' | 'input' | 'request_id' | 'total'>,
): Promise<void> => {
  const { rows } = await sql<{ id: string; input: Record<string, unknown>; total: number }>`
    select b.id, jsonb_build_object('name', b.name, 'channel_id', b.channel_id::text, 'per_second', 80,
        'stop_at_error_percent', 10, 'template', jsonb_build_object('name', b.template_name, 'language', 'en_US',
          'body', '[{"field": "name", "fallback": "there"}]'::jsonb)) as input,
      (select count(*)::integer from broadcast_recipients r
        where r.workspace_id = b.workspace_id and r.broadcast_id = b.id) as total
    from broadcasts b where b.workspace_id = ${made.workspace_id} and b.status = 'scheduled' limit 1`.execute(
    tx,
  )
  const [send] = rows
  if (!send) return
  const { id, input, total } = send
  const job = { ...made, operation: 'messaging_send_bulk', input, total }
  const jobId = await insertJob(tx, { ...job, request_id: 'req_00000000000000000000000003' }, [])
  await setJobState(tx, { ...job, id: jobId }, { state: 'paused' })
  await sql`
    insert into broadcast_sends (workspace_id, broadcast_id, job_id, input, left_out)
    values (${made.workspace_id}, ${id}, ${jobId}, ${JSON.stringify(input)}::text::jsonb, '[]')`.execute(tx)
}
