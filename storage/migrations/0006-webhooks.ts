import { type Kysely, sql } from 'kysely'

/**
 * Webhook endpoints, their subscriptions and deliveries. The deliveries are both the outbox and the log.
 * Workers find due deliveries of all workspaces, endpoint by endpoint, by the index
 * `webhook_deliveries_open`. No index has the lease, so that claiming a delivery writes to none.
 */
const statements = [
  // Secrets and header values are sealed. The row of a deleted endpoint is kept for its log.
  `create table webhook_endpoints (
    workspace_id bigint not null, id text collate "C" not null,
    url text not null, description text,
    status text not null default 'active' check (status in ('active', 'disabled', 'paused')),
    payload_format text not null default 'envelope' check (payload_format in ('envelope', 'data')),
    custom_headers text not null, signing_secret text not null, old_secret text, old_secret_until timestamptz,
    consecutive_failures integer not null default 0, failing_since timestamptz,
    warned smallint not null default 0, next_probe_at timestamptz,
    disabled_at timestamptz(3), disabled_reason text,
    created_at timestamptz(3) not null, updated_at timestamptz(3) not null, deleted_at timestamptz(3),
    primary key (workspace_id, id)
  )`,
  `create table webhook_subscriptions (
    workspace_id bigint not null, endpoint_id text collate "C" not null, event_type text collate "C" not null,
    active boolean not null default true, created_at timestamptz(3) not null,
    primary key (workspace_id, endpoint_id, event_type)
  )`,
  `create index webhook_subscriptions_type on webhook_subscriptions (workspace_id, event_type) where active`,
  // payload: only of a test event, which is not in the event log. next_attempt_at, lease_until: real time.
  `create table webhook_deliveries (
    workspace_id bigint not null, id text collate "C" not null,
    endpoint_id text collate "C" not null, event_id text collate "C" not null,
    event_type text collate "C" not null,
    status text not null default 'pending'
      check (status in ('pending', 'delivered', 'failed', 'dead', 'skipped')),
    trigger text not null default 'scheduled' check (trigger in ('scheduled', 'replay', 'recover', 'test')),
    attempts smallint not null default 0, failures smallint not null default 0, next_attempt_at timestamptz,
    lease_until timestamptz, last_response_status smallint,
    payload jsonb, created_at timestamptz(3) not null, delivered_at timestamptz(3),
    primary key (workspace_id, id)
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02)`,
  `create unique index webhook_deliveries_event on webhook_deliveries (workspace_id, endpoint_id, event_id)`,
  `create index webhook_deliveries_log
    on webhook_deliveries (workspace_id, endpoint_id, created_at desc, id desc)`,
  `create index webhook_deliveries_open
    on webhook_deliveries (workspace_id, endpoint_id, next_attempt_at) where status in ('pending', 'failed')`,
  `create index webhook_deliveries_old on webhook_deliveries (created_at)
    where status in ('delivered', 'dead', 'skipped')`,
  `create table webhook_attempts (
    workspace_id bigint not null, delivery_id text collate "C" not null, number smallint not null,
    started_at timestamptz(3) not null, duration_ms integer not null, response_status smallint,
    response_excerpt text, error text,
    trigger text not null,
    primary key (workspace_id, delivery_id, number)
  )`,
  // Events are stored nearly in order of time, so the smallest kind of index finds the blocks of a time
  // range, and costs writers next to nothing.
  `create index events_time on events using brin (occurred_at) with (pages_per_range = 32)`,
]

export const up = async (db: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
