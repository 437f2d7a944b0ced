import { type Kysely, sql } from 'kysely'

/**
 * Bridged channels: replies are delivered to the channel's URL, and its bridge posts what customers
 * write. All times here are real times.
 */
const statements = [
  `alter table channels add column url text`,
  // signing_secrets: sealed JSON, the current one first, the others until their time.
  `create table channel_secrets (
    workspace_id bigint not null, channel_id bigint not null, signing_secrets text not null,
    primary key (workspace_id, channel_id)
  )`,
  `create table channel_tokens (
    workspace_id bigint not null, channel_id bigint not null, hash bytea not null, valid_until timestamptz,
    primary key (workspace_id, channel_id, hash)
  )`,
  // A token is looked up before the workspace is known.
  `create unique index channel_tokens_hash on channel_tokens (hash)`,
  // How a bridge names the customers of its channel.
  `create table channel_customers (
    workspace_id bigint not null, channel_id bigint not null, customer_id text collate "C" not null,
    contact_id bigint not null, seen_at timestamptz(3) not null,
    primary key (workspace_id, channel_id, customer_id)
  )`,
  `create index channel_customers_contact on channel_customers (workspace_id, contact_id, channel_id)`,
  // Replies that no bridge has taken yet. body: the bytes that every attempt sends.
  `create table channel_deliveries (
    workspace_id bigint not null, message_id bigint not null,
    channel_id bigint not null, conversation_id bigint not null,
    body text not null, attempts smallint not null default 0, error text,
    next_attempt_at timestamptz not null, lease_until timestamptz, expires_at timestamptz not null,
    primary key (workspace_id, message_id)
  )`,
  `create index channel_deliveries_due on channel_deliveries (next_attempt_at)`,
  `create index channel_deliveries_order on channel_deliveries (workspace_id, conversation_id, message_id)`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
