import { type Kysely, sql } from 'kysely'

/**
 * Who approved what an AI agent did, how many contacts its key may see in a day, and which ones it saw. The columns
 * are null for what was there before, so that no row is rewritten.
 */
const statements = [
  // The staff member who approved the call that wrote it.
  `alter table messages add column approved_by bigint`,
  `alter table audit_log add column approved_by bigint`,
  // Null: the server's default.
  `alter table api_keys add column contacts_per_day integer`,

  // What an agent's key saw of contacts on a day, which begins at midnight in the workspace's time zone, by real
  // time. subject: the id of a contact, or below zero the digest of a question about contacts.
  `create table contact_views (
    workspace_id bigint not null, key_id bigint not null, day timestamptz(3) not null, subject bigint not null,
    primary key (workspace_id, key_id, day, subject)
  )`,
  `create table contact_budgets (
    workspace_id bigint not null, key_id bigint not null, day timestamptz(3) not null, used integer not null,
    primary key (workspace_id, key_id, day)
  )`,

  // Reads of contacts by agents' keys in an hour of real time, each in one row of the audit trail.
  `create table contact_reads (
    workspace_id bigint not null, key_id bigint not null, operation text not null, hour timestamptz(3) not null,
    audit_id bigint not null, calls integer not null, contacts bigint[] not null,
    primary key (workspace_id, key_id, operation, hour)
  )`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
