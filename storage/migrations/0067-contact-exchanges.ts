import { type Kysely, sql } from 'kysely'

/** Whether a message `m` reached the customer, as far as is known. */
const isStanding = (m: string) =>
  `(${m}.direction = 'outbound' and ${m}.status in ('sent', 'delivered', 'read'))`
/** Messages of agents' keys are a machine's, unless a person approved them. */
const isPersons = (m: string) =>
  `(${m}.key_id is null or ${m}.approved_by is not null or not exists (
    select 1 from api_keys k where k.workspace_id = ${m}.workspace_id and k.id = ${m}.key_id and k.agent))`
const counts = (m: string) => `(${m}.direction = 'inbound' or ${isStanding(m)})`

const COLUMNS = `workspace_id, conversation_id, contact_id, channel_id, first_inbound_at, last_inbound_at,
  last_outbound_at, last_answer_at`

const statements = [
  // Two tables are locked. Whoever waits for one of them while it holds the other is let through before the database
  // takes both for a deadlock.
  `set local lock_timeout = '500ms'`,
  // When customers wrote in a conversation, and were written to: times of messages, by which filters of contacts find
  // theirs. A row exists where there is such a message. last_answer_at: the last one that a person wrote, or approved,
  // or a system by the API; last_outbound_at: by whomever, agents' keys too.
  `create table contact_exchanges (
    workspace_id bigint not null, conversation_id bigint not null, contact_id bigint, channel_id bigint,
    first_inbound_at timestamptz(3), last_inbound_at timestamptz(3), last_outbound_at timestamptz(3),
    last_answer_at timestamptz(3), primary key (workspace_id, conversation_id)
  ) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)`,
  `create index contact_exchanges_contact on contact_exchanges (workspace_id, contact_id)`,
  `create index contact_exchanges_inbound
    on contact_exchanges (workspace_id, last_inbound_at) include (contact_id, channel_id)`,
  `create index contact_exchanges_outbound
    on contact_exchanges (workspace_id, last_outbound_at) include (contact_id, channel_id)`,
  `create index contact_exchanges_unanswered on contact_exchanges (workspace_id, contact_id) include (channel_id)
    where first_inbound_at > coalesce(last_answer_at, '-infinity'::timestamptz)`,
  // The same as the table, from the messages. The direction is not compared by equality outside of the filters: that
  // would allow for the index of all outbound messages.
  `create view computed_exchanges as
    select v.workspace_id, v.id as conversation_id, v.contact_id, v.channel_id, m.*
    from conversations v cross join lateral (
      select min(m.created_at) filter (where m.direction = 'inbound') as first_inbound_at,
        max(m.created_at) filter (where m.direction = 'inbound') as last_inbound_at,
        max(m.created_at) filter (where ${isStanding('m')}) as last_outbound_at,
        max(m.created_at) filter (where ${isStanding('m')}
          and ${isPersons('m')}) as last_answer_at
      from messages m where m.workspace_id = v.workspace_id and m.conversation_id = v.id) as m
    where m.first_inbound_at is not null or m.last_outbound_at is not null`,
  `create function recount_exchange(workspace bigint, conversation bigint) returns void language plpgsql as $$
    begin
      insert into contact_exchanges (${COLUMNS})
      select ${COLUMNS} from computed_exchanges r where r.workspace_id = workspace and r.conversation_id = conversation
      on conflict (workspace_id, conversation_id) do update set contact_id = excluded.contact_id,
        channel_id = excluded.channel_id, first_inbound_at = excluded.first_inbound_at,
        last_inbound_at = excluded.last_inbound_at, last_outbound_at = excluded.last_outbound_at,
        last_answer_at = excluded.last_answer_at;
      if not found then
        delete from contact_exchanges x where x.workspace_id = workspace and x.conversation_id = conversation;
      end if;
    end $$`,
  // Many statements write messages, and servers of the version before do: triggers keep the table, so that none can
  // forget it. Whoever writes a message has locked the conversation. Each leaves a row, also where the job that fills
  // the table has not come by: it may be about to insert what it read before.
  `create function renew_contact_exchange() returns trigger language plpgsql as $$
    declare
      inbound timestamptz := case when tg_op <> 'DELETE' and new.direction = 'inbound' then new.created_at end;
      outbound timestamptz := case when tg_op <> 'DELETE' and ${isStanding('new')} then new.created_at end;
      answer timestamptz := case when outbound is not null
        and ${isPersons('new')} then outbound end;
    begin
      if tg_op = 'DELETE' then
        perform recount_exchange(old.workspace_id, old.conversation_id);
        return null;
      end if;
      if tg_op = 'UPDATE' then
        if new.conversation_id <> old.conversation_id then
          perform recount_exchange(old.workspace_id, old.conversation_id);
        elsif not ${isStanding('new')} then
          perform recount_exchange(new.workspace_id, new.conversation_id);
          return null;
        end if;
      end if;
      update contact_exchanges x set first_inbound_at = least(x.first_inbound_at, inbound),
        last_inbound_at = greatest(x.last_inbound_at, inbound),
        last_outbound_at = greatest(x.last_outbound_at, outbound),
        last_answer_at = greatest(x.last_answer_at, answer)
      where x.workspace_id = new.workspace_id and x.conversation_id = new.conversation_id;
      if not found then
        perform recount_exchange(new.workspace_id, new.conversation_id);
      end if;
      return null;
    end $$`,
  `create trigger messages_exchange_inserted after insert on messages for each row
    when ${counts('new')} execute function renew_contact_exchange()`,
  `create trigger messages_exchange_updated after update of status, conversation_id on messages for each row
    when (${counts('new')} <> ${counts('old')}
      or (${counts('new')} and new.conversation_id <> old.conversation_id))
    execute function renew_contact_exchange()`,
  `create trigger messages_exchange_deleted after delete on messages for each row
    when ${counts('old')} execute function renew_contact_exchange()`,
  `create function renew_exchange_contact() returns trigger language plpgsql as $$
    begin
      update contact_exchanges x set contact_id = new.contact_id, channel_id = new.channel_id
      where x.workspace_id = new.workspace_id and x.conversation_id = new.id;
      if not found then
        perform recount_exchange(new.workspace_id, new.id);
      end if;
      return null;
    end $$`,
  `create trigger conversations_exchange_contact after update of contact_id, channel_id on conversations for each row
    when (new.contact_id is distinct from old.contact_id or new.channel_id is distinct from old.channel_id)
    execute function renew_exchange_contact()`,
  // Conversations with ids up to filled_from are read by a job, from the newest on; 0: all are.
  `create table contact_exchange_progress (
    only_row boolean primary key default true check (only_row), filled_from bigint not null
  )`,
  // After the triggers: whoever was writing messages has ended.
  `insert into contact_exchange_progress (filled_from)
    select case when is_called then last_value else 0 end from conversations_id_seq`,
]

/** When customers wrote and were answered. docs/decisions/0066-filters-for-the-work.md says why it is so. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
