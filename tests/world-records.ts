import { sql } from 'kysely'
import { hashApiKey } from '../server/api-keys.ts'
import { insertSend } from '../storage/broadcasts/sends.ts'
import { insertJob, type NewJob, setJobState } from '../storage/work/bulk-jobs.ts'
import type { Db } from '../storage/database.ts'
import type { TestWorkspace } from './servers.ts'

/** Inserts first responses by the colleague, and a stored report of an earlier month. */
export const seedReports = async (
  db: Db,
  workspaceId: string,
  marker: string,
  now: string,
): Promise<void> => {
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, ended_at, ended_by)
    select v.workspace_id, v.id, v.created_at, 'first_response', 1,
      ${now}::timestamptz - interval '5 minutes', s.id
    from conversations v
    join staff s on s.workspace_id = v.workspace_id and s.name = ${`${marker} colleague`}
    where v.workspace_id = ${workspaceId}`.execute(db)
  await sql`
    insert into staff_reports (workspace_id, name, from_day, to_day, timezone, generated_at, rows)
    values (${workspaceId}, ${`${marker} report`}, '2026-01-01', '2026-01-31', 'UTC', ${now}, '[]')`.execute(
    db,
  )
}

/** Inserts two approval requests of an agent, and the times of its sends. */
export const seedApprovals = async (
  db: Db,
  { id, owner, key }: TestWorkspace,
  marker: string,
  now: string,
): Promise<void> => {
  const { keyId } = await key(owner.staffId, { agent: true })
  for (const n of [1, 2]) {
    const input = JSON.stringify({ name: `${marker} asked ${n}` })
    await sql`
      insert into approvals (workspace_id, key_id, staff_id, operation, input, digest, door, request_id, reason,
        asked_for, view, requested_at, expires_at)
      values (${id}, ${keyId}, ${owner.staffId}, 'crm_create_group', ${input}::jsonb,
        sha256(${input}::text::bytea), 'rest', 'req_00000000000000000000000000', ${`${marker} reason ${n}`},
        '{operation}', '{"fields": true, "channels": null}', ${now}::timestamptz,
        ${now}::timestamptz + interval '10 years')`.execute(db)
  }
  await sql`
    insert into agent_sends (workspace_id, key_id, sent_at)
    values (${id}, ${owner.keyId}, array[${now}::timestamptz])`.execute(db)
}

const request = { door: 'rest', client: null, request_id: 'req_00000000000000000000000000' } as const

/** Inserts a broadcast to nobody that starts in a month. */
export const seedScheduledBroadcast = async (
  db: Db,
  { id, owner }: TestWorkspace,
  marker: string,
  now: string,
): Promise<void> => {
  const channels = await db
    .selectFrom('channels')
    .select('id')
    .where('workspace_id', '=', id)
    .where('is_default', '=', true)
    .execute()
  const name = `${marker} scheduled broadcast`
  const input = {
    name,
    channel_id: channels[0]!.id,
    template: { name: 'order_update', language: 'en_US' },
    per_second: 1,
    stop_at_error_percent: 10,
  }
  const job: NewJob = {
    workspace_id: id,
    state: 'planned',
    operation: 'messaging_send_bulk',
    input,
    staff_id: owner.staffId,
    key_id: owner.keyId,
    ...request,
    created_at: now,
    total: 0,
  }
  const send = {
    name,
    scheduled_at: '2099-01-01T00:00:00.000Z',
    template_name: 'order_update',
    channel_id: input.channel_id,
    job_id: await insertJob(db, job, []),
    input,
    approved_by: null,
    left_out: [],
  }
  await insertSend(db, id, send, [], now)
}

/** Inserts a job that runs in the year 2999, and one that failed after it had changed something. */
export const seedJobs = async (
  db: Db,
  { id, owner }: TestWorkspace,
  marker: string,
  now: string,
): Promise<void> => {
  const contacts = await sql<{ ids: string; total: number }>`
    select array_agg(id order by id)::text as ids, count(*)::integer as total from contacts
    where workspace_id = ${id}`.execute(db)
  const { ids, total } = contacts.rows[0]!
  const job: NewJob = {
    workspace_id: id,
    state: 'planned',
    operation: 'crm_untag_contacts',
    input: { tags: [`${marker} none`] },
    staff_id: owner.staffId,
    key_id: owner.keyId,
    ...request,
    created_at: now,
    total,
  }
  await insertJob(db, job, [ids])
  await sql`
    update bulk_jobs set state = 'running' where workspace_id = ${id}`.execute(db)
  const failures = [1, 2].map((n) => ({ id: String(n), code: 'x', message: marker }))
  const failedId = await insertJob(db, job, [ids])
  await setJobState(
    db,
    { ...job, id: failedId },
    {
      state: 'failed',
      finished_at: now,
      problem: { code: 'not_found', detail: `${marker} problem` },
    },
  )
  await sql`
    update bulk_job_batches set failures = ${JSON.stringify(failures)}::text::jsonb,
      undo = jsonb_build_array(jsonb_build_object('operation', 'crm_tag_contacts', 'input',
        jsonb_build_object('contact_ids', to_jsonb(record_ids::text[]), 'tags', '[1]'::jsonb)))
    where workspace_id = ${id} and job_id = ${failedId}`.execute(db)
}

/** Inserts the record of contacts that the key of an AI agent read. */
export const seedContactViews = async (db: Db, { id, owner }: TestWorkspace, now: string): Promise<void> => {
  await sql`
    insert into contact_views (workspace_id, key_id, day, subject) values (${id}, ${owner.keyId}, ${now}, 0)`.execute(
    db,
  )
  await sql`
    insert into contact_budgets (workspace_id, key_id, day, used) values (${id}, ${owner.keyId}, ${now}, 1)`.execute(
    db,
  )
  await sql`
    insert into contact_reads (workspace_id, key_id, operation, hour, audit_id, calls, contacts)
    values (${id}, ${owner.keyId}, 'crm_get_contact', ${now}, 1, 1, '{0}')`.execute(db)
}

/** Inserts a grant of an OAuth client, and a login code. */
export const seedOauth = async (
  db: Db,
  { id, owner }: TestWorkspace,
  marker: string,
  now: string,
): Promise<void> => {
  const hash = hashApiKey(`${marker} ${id}`)
  await sql`
    insert into oauth_grants (workspace_id, key_id, grant_hash, client_id, created_at)
    values (${id}, ${owner.keyId}, ${hash}, ${`https://${marker}.example`}, ${now}::timestamptz)`.execute(db)
  await sql`
    insert into login_codes (workspace_id, hash, staff_id, scopes, created_at, expires_at)
    values (${id}, ${hash}, ${owner.staffId}, '{mcp:read}', ${now}::timestamptz,
      ${now}::timestamptz + interval '10 minutes')`.execute(db)
}
