import { type Kysely, sql } from 'kysely'

const statements = [
  // Saved filters whose members are recorded each day.
  `create table tracked_filters (
    workspace_id bigint not null, saved_filter_id bigint not null, tracked_at timestamptz(3) not null,
    primary key (workspace_id, saved_filter_id)
  )`,
  // Who matched a saved filter at a time. digest: of what it meant then; only records of the same are compared.
  `create table filter_memberships (
    workspace_id bigint not null, id bigint generated always as identity not null, saved_filter_id bigint not null,
    digest text not null, recorded_at timestamptz(3) not null, members integer not null,
    primary key (workspace_id, id)
  )`,
  `create index filter_memberships_filter on filter_memberships (workspace_id, saved_filter_id, recorded_at)`,
  // contact_ids: the members with ids from id_range * 2000 on, sorted, so that equal parts of two records are equal.
  `create table filter_members (
    workspace_id bigint not null, membership_id bigint not null, id_range bigint not null,
    contact_ids bigint[] not null, primary key (workspace_id, membership_id, id_range)
  )`,
]

/** Who matches saved filters, day by day. docs/decisions/0067-membership-of-filters.md says why it is so. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
