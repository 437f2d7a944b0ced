import { type Kysely, sql } from 'kysely'

const statuses = ['pending', 'sent', 'delivered', 'read', 'failed']
const counted = [...statuses, 'responded', 'opted_out']
const tally = (where: string) => `coalesce(sum(n) filter (where ${where}), 0)`
const sums = [
  ...statuses.map((status) => tally(`status = '${status}'`)),
  tally('responded'),
  tally('opted_out'),
]

const selectRecipients = (table: string, n: 1 | -1) =>
  `select workspace_id, broadcast_id, status, responded, opted_out, ${n} as n from ${table}`

/**
 * As before (0005), but each connection adds to a row of its own: a transaction that changes several recipients one
 * after another locks one row, so that two of them never deadlock. A change that moves nobody writes nothing.
 */
const countRows = (rows: string) => `
  insert into broadcast_counts (workspace_id, broadcast_id, shard, ${counted.join(', ')})
  select workspace_id, broadcast_id, pg_backend_pid() % 32, ${sums.join(', ')}
  from (${rows}) as r group by workspace_id, broadcast_id
  having ${sums.map((sum) => `${sum} <> 0`).join(' or ')} order by workspace_id, broadcast_id
  on conflict (workspace_id, broadcast_id, shard) do update set
    ${counted.map((c) => `${c} = broadcast_counts.${c} + excluded.${c}`).join(', ')};`

const triggers = [
  ['insert', selectRecipients('added', 1)],
  ['delete', selectRecipients('removed', -1)],
  ['update', `${selectRecipients('added', 1)} union all ${selectRecipients('removed', -1)}`],
] as const

const statements = [
  // What a job sends to the recipients of a broadcast. job_id: until it is deleted. approved_by: who approved the call
  // of an agent. left_out: how many of those who matched are no recipients, by the reason. tried_before,
  // errors_before: where the error rate is counted from. waiting: what it waits for.
  `create table broadcast_sends (
    workspace_id bigint not null, broadcast_id bigint not null, job_id bigint not null, input jsonb not null,
    approved_by jsonb, left_out jsonb not null, tried_before integer not null default 0,
    errors_before integer not null default 0, waiting jsonb, primary key (workspace_id, broadcast_id)
  )`,
  `create unique index broadcast_sends_job on broadcast_sends (workspace_id, job_id)`,
  // message_id: of the message that was written for the recipient, which is never sent again. country: by which the
  // hours are kept. retry_at: the provider takes none before, in business time. attempts: those that it put off.
  `alter table broadcast_recipients add column message_id bigint, add column country text,
    add column retry_at timestamptz(3), add column attempts smallint not null default 0,
    add column error_code text, add column error text`,
  ...triggers.map(
    ([
      event,
      rows,
    ]) => `create or replace function count_recipients_on_${event}() returns trigger language plpgsql as $$
      begin ${countRows(rows)} return null; end $$`,
  ),
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
