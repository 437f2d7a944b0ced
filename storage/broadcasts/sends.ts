import { sql } from 'kysely'
import type { JobState } from '../work/bulk-jobs.ts'
import type { Db, TableRow } from '../database.ts'
import type { Sql } from '../filters/comparisons.ts'
import { fold } from '../values/text.ts'

/*
 * Broadcasts that a job sends. The recipients are fixed when the job is made, also where it starts later. The
 * transaction that writes the message of a recipient writes its id beside them: whoever has one, or is not pending, is
 * never taken again.
 */

/** `scheduled_at`: when it starts; null: at once. */
export type NewSend = {
  name: string
  scheduled_at: string | null
  template_name: string
  channel_id: string
  job_id: string
  input: Record<string, unknown>
  approved_by: TableRow<'broadcast_sends'>['approved_by']
  left_out: TableRow<'broadcast_sends'>['left_out']
}

/** `digest`: of the values that a person approved; null where the values are those of the time of sending. */
export type NewRecipient = { contactId: string; country: string | null; digest: string | null }

/** Rows that one statement inserts. */
const RECIPIENTS_AT_ONCE = 5000

/** Inserts a broadcast with its recipients, in business time. Returns its id. */
export const insertSend = async (
  tx: Db,
  workspaceId: string,
  send: NewSend,
  recipients: readonly NewRecipient[],
  now: string,
): Promise<string> => {
  const { id: broadcastId } = await tx
    .insertInto('broadcasts')
    .values({
      workspace_id: workspaceId,
      name: send.name,
      name_key: fold(send.name),
      status: send.scheduled_at === null ? 'running' : 'scheduled',
      template_name: send.template_name,
      channel_id: send.channel_id,
      scheduled_at: send.scheduled_at,
      started_at: send.scheduled_at === null ? now : null,
      created_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  await sql`
    insert into broadcast_sends (workspace_id, broadcast_id, job_id, input, approved_by, left_out)
    values (${workspaceId}, ${broadcastId}, ${send.job_id}, ${JSON.stringify(send.input)}::text::jsonb,
      ${send.approved_by && JSON.stringify(send.approved_by)}::text::jsonb,
      ${JSON.stringify(send.left_out)}::text::jsonb)`.execute(tx)
  for (let n = 0; n < recipients.length; n += RECIPIENTS_AT_ONCE) {
    const some = recipients.slice(n, n + RECIPIENTS_AT_ONCE)
    await sql`
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, country, values_digest)
      select ${workspaceId}::bigint, ${broadcastId}::bigint, r.id, 'pending', r.country, r.digest
      from unnest(${some.map(({ contactId }) => contactId)}::bigint[], ${some.map(({ country }) => country)}::text[],
        ${some.map(({ digest }) => digest)}::text[]) as r (id, country, digest)`.execute(tx)
  }
  return broadcastId
}

export type SendRow = TableRow<'broadcast_sends'> &
  Pick<TableRow<'broadcasts'>, 'status' | 'scheduled_at'> &
  Pick<TableRow<'bulk_jobs'>, 'total' | 'key_id' | 'door' | 'client' | 'request_id'>

/** Returns what a job sends. */
export const findSend = async (db: Db, workspaceId: string, jobId: string): Promise<SendRow | undefined> =>
  await db
    .selectFrom('broadcast_sends as s')
    .innerJoin('bulk_jobs as j', (join) =>
      join.onRef('j.workspace_id', '=', 's.workspace_id').onRef('j.id', '=', 's.job_id'),
    )
    .innerJoin('broadcasts as b', (join) =>
      join.onRef('b.workspace_id', '=', 's.workspace_id').onRef('b.id', '=', 's.broadcast_id'),
    )
    .selectAll('s')
    .select(['b.status', 'b.scheduled_at'])
    .select(['j.total', 'j.key_id', 'j.door', 'j.client', 'j.request_id'])
    .where('s.workspace_id', '=', workspaceId)
    .where('s.job_id', '=', jobId)
    .executeTakeFirst()

/**
 * Marks the recipient of the last broadcast that a contact got in the week before `at`, as the part `answered` of a
 * statement. `set`: what is marked. `channelId`: only of broadcasts on it.
 */
export const markLatestRecipient = (
  workspaceId: string,
  contactId: string,
  { at, set, channelId }: { at: string; set: Sql; channelId?: string | null },
): Sql => sql`answered as (
  update broadcast_recipients r set ${set}
  from (
    select x.broadcast_id from broadcast_recipients x
    join broadcasts b on b.workspace_id = x.workspace_id and b.id = x.broadcast_id
    where x.workspace_id = ${workspaceId} and x.contact_id = ${contactId}::bigint and x.message_id is not null
      and x.sent_at <= ${at}::timestamptz and x.sent_at > ${at}::timestamptz - interval '7 days'
      ${channelId === undefined ? sql`` : sql`and b.channel_id = ${channelId}::bigint`}
    order by x.sent_at desc limit 1) as l
  where r.workspace_id = ${workspaceId} and r.contact_id = ${contactId}::bigint and r.broadcast_id = l.broadcast_id)`

const isWaiting = sql`r.status = 'pending' and r.message_id is null`

/** The countries of recipients to whom nothing was sent yet. */
export const listWaitingCountries = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
): Promise<(string | null)[]> =>
  // One look into the index for each country, not a row for each recipient.
  (
    await sql<{ country: string | null }>`
    with recursive c as (
      (select country from broadcast_recipients r where r.workspace_id = ${workspaceId}
        and r.broadcast_id = ${broadcastId} and ${isWaiting} and country is not null order by country limit 1)
      union all
      select (select country from broadcast_recipients r where r.workspace_id = ${workspaceId}
        and r.broadcast_id = ${broadcastId} and ${isWaiting} and r.country > c.country order by r.country limit 1)
      from c where c.country is not null
    )
    select country from c where country is not null
    union all
    select null where exists (select from broadcast_recipients r where r.workspace_id = ${workspaceId}
      and r.broadcast_id = ${broadcastId} and ${isWaiting} and r.country is null)`.execute(db)
  ).rows.map(({ country }) => country)

/** A recipient whose turn it is. `digest`: of the values that a person approved, if one did. */
export type DueRow = { id: string; attempts: number; digest: string | null }

/**
 * Some of the recipients in these countries who may be sent their message at `now`. None waits for longer than
 * `maxWaitSeconds`: a retry that is later was planned before the clock was set back.
 */
export const listDueRecipients = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  {
    countries,
    now,
    limit,
    maxWaitSeconds,
  }: { countries: readonly (string | null)[]; now: string; limit: number; maxWaitSeconds: number },
): Promise<DueRow[]> =>
  (
    await sql<DueRow>`
    select contact_id as id, attempts, values_digest as digest from broadcast_recipients r
    where r.workspace_id = ${workspaceId} and r.broadcast_id = ${broadcastId} and ${isWaiting}
      and (r.country = any(${countries.filter((c) => c !== null)}::text[])
        or (r.country is null and ${countries.includes(null)}))
      and (r.retry_at is null or r.retry_at <= ${now}::timestamptz
        or r.retry_at > ${now}::timestamptz + ${maxWaitSeconds}::float8 * interval '1 second')
    limit ${limit}`.execute(db)
  ).rows

/** When the first of those who wait for the provider may be tried again; null when none does. */
export const findNextRetry = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
): Promise<string | null> =>
  (
    await sql<{ at: string | null }>`
    select min(retry_at) as at from broadcast_recipients r
    where r.workspace_id = ${workspaceId} and r.broadcast_id = ${broadcastId} and ${isWaiting}`.execute(db)
  ).rows[0]!.at

/** Whether a job may go on, until the end of this transaction: a pause waits for it. */
export const holdJob = async (tx: Db, workspaceId: string, jobId: string): Promise<boolean> =>
  (await holdJobState(tx, workspaceId, jobId)) === 'running'

/** Returns the state of a job, which stays so until the transaction ends. */
export const holdJobState = async (
  tx: Db,
  workspaceId: string,
  jobId: string,
): Promise<JobState | undefined> =>
  (
    await sql<{ state: JobState }>`
    select state from bulk_jobs where workspace_id = ${workspaceId} and id = ${jobId} for share`.execute(tx)
  ).rows[0]?.state

/** Whether a recipient waits for a message, whenever it is due. */
export const hasWaiting = async (tx: Db, workspaceId: string, broadcastId: string): Promise<boolean> =>
  (
    await sql`
    select from broadcast_recipients r
    where r.workspace_id = ${workspaceId} and r.broadcast_id = ${broadcastId} and ${isWaiting} limit 1`.execute(
      tx,
    )
  ).rows.length > 0

/** Writes the message of a recipient beside it; false when it has one, or is not waiting any more. */
export const takeRecipient = async (
  tx: Db,
  workspaceId: string,
  { broadcastId, contactId, messageId }: { broadcastId: string; contactId: string; messageId: string },
): Promise<boolean> =>
  (
    await sql`
    update broadcast_recipients r set message_id = ${messageId}, attempts = attempts + 1
    where r.workspace_id = ${workspaceId} and r.broadcast_id = ${broadcastId} and r.contact_id = ${contactId}
      and ${isWaiting} returning 1`.execute(tx)
  ).rows.length > 0

/** Lets a recipient whose message was certainly not sent wait again. `seconds`: before it is tried again. */
export const releaseRecipient = async (
  tx: Db,
  workspaceId: string,
  messageId: string,
  { now, seconds }: { now: string; seconds: number },
): Promise<void> => {
  await sql`
    update broadcast_recipients r set message_id = null,
      retry_at = ${now}::timestamptz + ${seconds}::float8 * interval '1 second'
    where r.workspace_id = ${workspaceId} and r.message_id = ${messageId} and r.status = 'pending'`.execute(
    tx,
  )
}

export type RecipientFailure = { code: string; error: string; now: string }

/** Fails the recipient of a message that was refused. */
export const failRecipientOfMessage = async (
  tx: Db,
  workspaceId: string,
  messageId: string,
  { code, error, now }: RecipientFailure,
): Promise<void> => {
  await sql`
    update broadcast_recipients r set status = 'failed', failed_at = ${now}, error_code = ${code}, error = ${error},
      message_id = null
    where r.workspace_id = ${workspaceId} and r.message_id = ${messageId} and r.status = 'pending'`.execute(
    tx,
  )
}

/** Fails a recipient for whom no message was written; false when one was. */
export const failRecipient = async (
  db: Db,
  workspaceId: string,
  { broadcastId, contactId }: { broadcastId: string; contactId: string },
  { code, error, now }: RecipientFailure,
): Promise<boolean> =>
  (
    await sql`
    update broadcast_recipients r set status = 'failed', failed_at = ${now}, error_code = ${code}, error = ${error}
    where r.workspace_id = ${workspaceId} and r.broadcast_id = ${broadcastId} and r.contact_id = ${contactId}
      and ${isWaiting} returning 1`.execute(db)
  ).rows.length > 0

/** How far a broadcast is. `open`: outcomes that are not known. `errors`: failures by others than the service. */
export type SendProgress = { pending: number; sent: number; failed: number; open: number; errors: number }

/** `own`: codes of failures that the service decided itself. */
export const readProgress = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  own: readonly string[],
): Promise<SendProgress> =>
  (
    await sql<SendProgress>`
    select k.*, o.open, x.errors from (
      select coalesce(sum(pending), 0)::int as pending, coalesce(sum(sent + delivered + read), 0)::int as sent,
        coalesce(sum(failed), 0)::int as failed
      from broadcast_counts where workspace_id = ${workspaceId} and broadcast_id = ${broadcastId}) as k,
    (select count(*)::int as open from broadcast_recipients r where r.workspace_id = ${workspaceId}
      and r.broadcast_id = ${broadcastId} and r.status = 'pending' and r.message_id is not null) as o,
    (select count(*)::int as errors from broadcast_recipients r where r.workspace_id = ${workspaceId}
      and r.broadcast_id = ${broadcastId} and r.status = 'failed'
      and (r.error_code is null or r.error_code <> all(${own}::text[]))) as x`.execute(db)
  ).rows[0]!

type Progressed = {
  done: number
  changed: number
  failed: number
  tookMs: number
}

/** Writes the progress of a job. Returns whether it goes on. */
export const writeProgress = async (
  db: Db,
  workspaceId: string,
  jobId: string,
  { done, changed, failed, tookMs }: Progressed,
): Promise<boolean> =>
  (
    await sql`
    update bulk_jobs set done = ${done}, changed = ${changed}, failed = ${failed},
      ran_ms = ran_ms + ${Math.round(tookMs)}::bigint
    where workspace_id = ${workspaceId} and id = ${jobId} and state = 'running' returning 1`.execute(db)
  ).rows.length > 0

/** Counts the error rate anew from here. */
export const setErrorBase = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  { tried, errors }: { tried: number; errors: number },
): Promise<void> => {
  await db
    .updateTable('broadcast_sends')
    .set({ tried_before: tried, errors_before: errors })
    .where('workspace_id', '=', workspaceId)
    .where('broadcast_id', '=', broadcastId)
    .execute()
}

/** Says what a job waits for; null: it goes on. */
export const setWaiting = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  waiting: SendRow['waiting'],
): Promise<void> => {
  await sql`
    update broadcast_sends set waiting = ${waiting && JSON.stringify(waiting)}::text::jsonb
    where workspace_id = ${workspaceId} and broadcast_id = ${broadcastId}
      and waiting is distinct from ${waiting && JSON.stringify(waiting)}::text::jsonb`.execute(db)
}

/** Changes when a broadcast starts; false when it has started, or was cancelled. */
export const rescheduleSend = async (
  tx: Db,
  workspaceId: string,
  broadcastId: string,
  scheduledAt: string,
): Promise<boolean> =>
  (
    await sql`
    update broadcasts set scheduled_at = ${scheduledAt} where workspace_id = ${workspaceId} and id = ${broadcastId}
      and status = 'scheduled' returning 1`.execute(tx)
  ).rows.length > 0

/** Starts a scheduled broadcast; false when it is not due, or its job does not go on. */
export const startSend = async (
  db: Db,
  workspaceId: string,
  { broadcastId, jobId, now }: { broadcastId: string; jobId: string; now: string },
): Promise<boolean> =>
  (
    await sql`
    with job as (
      select from bulk_jobs where workspace_id = ${workspaceId} and id = ${jobId} and state = 'running' for share
    )
    update broadcasts set status = 'running', started_at = ${now} where exists (select from job)
      and workspace_id = ${workspaceId} and id = ${broadcastId} and status = 'scheduled'
      and scheduled_at <= ${now}::timestamptz returning 1`.execute(db)
  ).rows.length > 0

export const setBroadcastStatus = async (
  tx: Db,
  workspaceId: string,
  jobId: string,
  status: TableRow<'broadcasts'>['status'],
): Promise<void> => {
  await sql`
    update broadcasts b set status = ${status} from broadcast_sends s
    where s.workspace_id = ${workspaceId} and s.job_id = ${jobId} and b.workspace_id = s.workspace_id
      and b.id = s.broadcast_id`.execute(tx)
}

/** The customers whom a number wrote to with templates since `since`, and the first time of that. */
export const countTemplateCustomers = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  since: string,
): Promise<{ customers: number; first: string | null }> =>
  (
    await sql<{ customers: number; first: string | null }>`
    select count(distinct conversation_id)::int as customers, min(created_at) as first from messages
    where workspace_id = ${workspaceId} and direction = 'outbound' and not note and created_at > ${since}
      and channel_id = ${channelId} and template_name is not null and status <> 'failed'`.execute(db)
  ).rows[0]!

/** Returns how many customers a channel may write to in a day, such as `TIER_1K`; null when that is not known. */
export const readMessagingLimit = async (
  db: Db,
  workspaceId: string,
  channelId: string,
): Promise<string | null> =>
  (
    await db
      .selectFrom('channel_health')
      .select('messaging_limit')
      .where('workspace_id', '=', workspaceId)
      .where('channel_id', '=', channelId)
      .executeTakeFirst()
  )?.messaging_limit ?? null
