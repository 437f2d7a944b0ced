import { type Kysely, sql } from 'kysely'

/**
 * OAuth for hosted clients (docs/oauth.md).
 *
 * `oauth_records` holds what the protocol keeps between requests: clients, sign-ins that wait for consent,
 * codes and tokens. Ids that are credentials are stored as hashes. Most rows exist before anybody has signed
 * in, so they belong to no workspace. `oauth_grants` ties a consent to the API key that acts for it.
 */
const statements = [
  `create table oauth_records (
    kind text not null,
    hash bytea not null,
    grant_hash bytea,
    scopes text[],
    network text,
    payload text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    consumed_at timestamptz,
    primary key (kind, hash)
  )`,
  `create index oauth_records_grant on oauth_records (grant_hash) where grant_hash is not null`,
  `create index oauth_records_expiry on oauth_records (expires_at)`,
  `create index oauth_records_network on oauth_records (kind, network, created_at) where network is not null`,
  `create table oauth_grants (
    workspace_id bigint not null,
    key_id bigint not null,
    grant_hash bytea not null,
    client_id text not null,
    created_at timestamptz not null,
    primary key (workspace_id, key_id)
  )`,
  `create unique index oauth_grants_hash on oauth_grants (grant_hash)`,
  `create table login_codes (
    workspace_id bigint not null,
    hash bytea not null,
    staff_id bigint not null,
    scopes text[] not null,
    key_expires_at timestamptz,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (workspace_id, hash)
  )`,
  `create unique index login_codes_hash on login_codes (hash)`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
