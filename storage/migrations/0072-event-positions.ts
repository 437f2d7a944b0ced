import { type Kysely, sql } from 'kysely'

// Positions of events follow the statements that write them, not the begins of their transactions, so that events of
// one record are in the order of its changes (docs/decisions/0012-the-event-log.md). Volatile, so that it sees what
// was committed while the statement waited for a lock. Positions of before are smaller than all that it returns.
const statements = [
  `create function event_position() returns xid8 language plpgsql volatile as $$
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
    end $$`,
  `alter table events alter column xid set default event_position()`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
