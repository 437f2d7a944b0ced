import { type Kysely, sql } from 'kysely'

const statements = [
  // Replaced signing secrets, newest first: [{secret, until}]. Each signs until its own promised time.
  `alter table webhook_endpoints add column old_secrets jsonb not null default '[]'`,
  `update webhook_endpoints set old_secrets = jsonb_build_array(jsonb_build_object('secret', old_secret, 'until',
      to_char(old_secret_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
    where old_secret is not null and old_secret_until > clock_timestamp()`,
  `alter table webhook_endpoints drop column old_secret, drop column old_secret_until`,

  // Credentials of an account at the provider in place of the server's own. Sealed: token, app_secret,
  // verify_token. An account is of one workspace.
  `create table provider_accounts (
    workspace_id bigint not null, account_id text collate "C" not null, name text,
    token text not null, app_secret text, verify_token text, app_id text,
    created_at timestamptz(3) not null, updated_at timestamptz(3) not null,
    primary key (workspace_id, account_id)
  )`,
  `create unique index provider_accounts_account on provider_accounts (account_id)`,

  // What is wrong with a channel at the provider; a channel without a row has no known problem. since:
  // business time; until: real time, when a problem that passes by itself has passed.
  `create table channel_health (
    workspace_id bigint not null, channel_id bigint not null,
    status text not null default 'ok' check (status in ('ok', 'limited', 'restricted', 'disconnected')),
    reason text, provider_code integer, since timestamptz(3), until timestamptz(3),
    previous_status text, messaging_limit text, strikes smallint not null default 0,
    primary key (workspace_id, channel_id)
  )`,
  `create index channel_health_until on channel_health (until) where until is not null`,

  // When the provider is next asked about an account; real time. While a server asks, the time is that at
  // which another may take over.
  `create table provider_account_checks (
    workspace_id bigint not null, account_id text collate "C" not null,
    next_at timestamptz(3) not null, failures smallint not null default 0,
    primary key (workspace_id, account_id)
  )`,
  `create index provider_account_checks_due on provider_account_checks (next_at)`,

  // The sandbox's side: what it shows of a number.
  `alter table sandbox_numbers add column messaging_limit text not null default 'TIER_1K'`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
