import { type Kysely, sql } from 'kysely'

/**
 * The version of a record: it grows with each change that a client must not overwrite unseen. A trigger counts, so
 * that no statement can forget it, nor a server of the previous version; at most once in a statement. Each change that
 * a client sees sets `updated_at`, also of the tags, groups and values of a contact, and the subscriptions of an
 * endpoint. What only tells of use does not: the latest activity of a contact, failed attempts of deliveries.
 */
const versioned = ['contacts', 'templates', 'quick_messages', 'saved_filters', 'webhook_endpoints']

const statements = [
  `create function raise_version() returns trigger language plpgsql as $$
  begin
    if new.version = old.version then new.version := old.version + 1; end if;
    return new;
  end $$`,
  ...versioned.flatMap((table) => [
    `alter table ${table} add version integer not null default 1`,
    `create trigger ${table}_changed before update of updated_at on ${table}
      for each row execute function raise_version()`,
  ]),
  // An endpoint that fails for long is paused or disabled without a change of its time.
  `create trigger webhook_endpoints_status before update of status on webhook_endpoints
    for each row when (old.status <> new.status) execute function raise_version()`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
