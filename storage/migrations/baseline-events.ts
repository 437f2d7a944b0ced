/**
 * The event log, webhooks, and the audit trail. Events, audit rows and attempts are in partitions by their ids, which
 * begin with the time: storage/migrations/partitions.ts makes them (docs/decisions/0025-partitions.md).
 */
export const events = `
  -- Positions of events follow the statements that write them, not the begins of their transactions, so that events of
  -- one record are in the order of its changes (docs/decisions/0012-the-event-log.md). Readers stop below
  -- pg_snapshot_xmin, so that they never skip an event that is committed later. Volatile, so that it sees what was
  -- committed while the statement waited for a lock.
  create function event_position() returns xid8 language plpgsql volatile as $$
    declare
      own bigint := pg_current_xact_id()::text::bigint;
      taken pg_snapshot := pg_current_snapshot();
      ended bigint := pg_snapshot_xmax(taken)::text::bigint - 1;
      running int;
    begin
      if own > ended then
        return (own << 14)::text::xid8;
      end if;
      running := cardinality(string_to_array(split_part(taken::text, ':', 3), ','));
      return ((ended << 14) + 16383 - least(running, 16382))::text::xid8;
    end $$;
  create table events (
    workspace_id bigint not null, id text collate "C" not null, type text not null,
    xid xid8 not null default event_position(), occurred_at timestamptz(3) not null, data jsonb not null,
    primary key (workspace_id, id)
  ) partition by range (id);
  create index events_order on events (workspace_id, xid, id);
  -- Events are stored nearly in order of time, so the smallest kind of index finds the blocks of a time range, and
  -- costs writers next to nothing.
  create index events_time on events using brin (occurred_at) with (pages_per_range = 32);
  -- How far somebody has handled the event log. event_id: the event may be deleted since. is_incomplete: events after
  -- it were deleted before they were acknowledged. agent_staff_id: the staff member whose agent made the consumer;
  -- null where a key of a person made it. Both times are business time.
  create table event_consumers (
    workspace_id bigint not null, name text not null, event_id text not null,
    acknowledged_at timestamptz(3) not null, created_at timestamptz(3) not null,
    is_incomplete boolean not null default false, agent_staff_id bigint,
    primary key (workspace_id, name)
  );

  -- Secrets and header values are sealed. The row of a deleted endpoint is kept for its log. for_agents: an agent
  -- gave its address, so that it is sent no names of manager-only fields. old_secrets: replaced signing secrets,
  -- newest first: [{secret, until}]; each signs until its own promised time. resumed_at: since when deliveries that
  -- were to be attempted later are being made due; real time.
  create table webhook_endpoints (
    workspace_id bigint not null, id text collate "C" not null, url text not null, description text,
    status text not null default 'active' check (status in ('active', 'disabled', 'paused')),
    payload_format text not null default 'envelope' check (payload_format in ('envelope', 'data')),
    custom_headers text not null, signing_secret text not null,
    consecutive_failures integer not null default 0, failing_since timestamptz,
    warned smallint not null default 0, next_probe_at timestamptz,
    disabled_at timestamptz(3), disabled_reason text,
    created_at timestamptz(3) not null, updated_at timestamptz(3) not null, deleted_at timestamptz(3),
    for_agents boolean not null default false, old_secrets jsonb not null default '[]',
    version integer not null default 1, resumed_at timestamptz,
    primary key (workspace_id, id)
  );
  create index webhook_endpoints_resumed on webhook_endpoints (workspace_id, id) where resumed_at is not null;
  create trigger webhook_endpoints_changed before update of updated_at on webhook_endpoints
    for each row execute function raise_version();
  -- An endpoint that fails for long is paused or disabled without a change of its time.
  create trigger webhook_endpoints_status before update of status on webhook_endpoints
    for each row when (old.status <> new.status) execute function raise_version();
  create table webhook_subscriptions (
    workspace_id bigint not null, endpoint_id text collate "C" not null, event_type text collate "C" not null,
    active boolean not null default true, created_at timestamptz(3) not null,
    primary key (workspace_id, endpoint_id, event_type)
  );
  create index webhook_subscriptions_type on webhook_subscriptions (workspace_id, event_type) where active;
  -- Both the outbox and the log. Workers find due deliveries of all workspaces, endpoint by endpoint, by the index
  -- webhook_deliveries_open. No index has the lease, so that claiming a delivery writes to none. payload: only of a
  -- test event, which is not in the event log. next_attempt_at, lease_until: real time.
  create table webhook_deliveries (
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
    autovacuum_vacuum_insert_scale_factor = 0.02);
  create unique index webhook_deliveries_event on webhook_deliveries (workspace_id, endpoint_id, event_id);
  create index webhook_deliveries_log
    on webhook_deliveries (workspace_id, endpoint_id, created_at desc, id desc);
  create index webhook_deliveries_failures
    on webhook_deliveries (workspace_id, endpoint_id, created_at desc, id desc) where status in ('dead', 'failed');
  create index webhook_deliveries_open
    on webhook_deliveries (workspace_id, endpoint_id, next_attempt_at) where status in ('pending', 'failed');
  -- The unfinished deliveries that need an event.
  create index webhook_deliveries_needs on webhook_deliveries (workspace_id, event_id)
    where status in ('pending', 'failed');
  create index webhook_deliveries_old on webhook_deliveries (created_at)
    where status in ('delivered', 'dead', 'skipped');
  create table webhook_attempts (
    workspace_id bigint not null, delivery_id text collate "C" not null, number smallint not null,
    started_at timestamptz(3) not null, duration_ms integer not null, response_status smallint,
    response_excerpt text, error text, trigger text not null,
    primary key (workspace_id, delivery_id, number)
  ) partition by range (delivery_id);

  -- The id contains the time: milliseconds since 1970 in its upper bits, and below them a number that never repeats
  -- within a millisecond. Every index that ends in the id is therefore sorted by time and serves time ranges, and no
  -- further index on the time must be written with each change. approved_by: the staff member who approved the call.
  create sequence audit_ids as bigint minvalue 0 maxvalue 262143 cycle;
  create table audit_log (
    workspace_id bigint not null, id bigint not null, staff_id bigint not null, key_id bigint not null,
    door text collate "C" not null check (door in ('rest', 'ops', 'mcp', 'cli')), client text,
    operation text collate "C" not null, target_type text collate "C", target_id text collate "C",
    outcome text collate "C" not null check (outcome in ('done', 'refused', 'failed')), code text collate "C",
    dry_run boolean not null, confirmed boolean not null, changes json, request_id text collate "C" not null,
    approved_by bigint,
    primary key (workspace_id, id)
  ) partition by range (id);
  -- Serves look-ups by staff member too, one key after the other: each change writes one index less.
  create index audit_log_key on audit_log (workspace_id, key_id, id);
  create index audit_log_operation on audit_log (workspace_id, operation, id);
  create index audit_log_door on audit_log (workspace_id, door, id);
  create index audit_log_target on audit_log (workspace_id, target_id, id) where target_id is not null;
  -- Almost all entries have the outcome done; those are found by the primary key.
  create index audit_log_outcome on audit_log (workspace_id, outcome, id) where outcome <> 'done';
`
