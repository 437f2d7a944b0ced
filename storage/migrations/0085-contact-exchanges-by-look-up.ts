import { type Kysely, sql } from 'kysely'

/** Whether a message `m` reached the customer, as far as is known; the conditions of migration 0067. */
const isStanding = (m: string) =>
  `(${m}.direction = 'outbound' and ${m}.status in ('sent', 'delivered', 'read'))`
const isPersons = (m: string) =>
  `(${m}.key_id is null or ${m}.approved_by is not null or not exists (
    select 1 from api_keys k where k.workspace_id = ${m}.workspace_id and k.id = ${m}.key_id and k.agent))`
const counts = (m: string) => `(${m}.direction = 'inbound' or ${isStanding(m)})`
/** For a query of messages: without an equality, which would allow for the index of all outbound messages. */
const isStandingRow = `(n.direction not in ('inbound', 'system') and n.status in ('sent', 'delivered', 'read'))`

/** Sets a time of the row where it may be that of the message `m`: to that of the next message of its kind. */
const without = (column: string, isOfKind: string, condition: string, order: '' | 'desc') => `
  ${column} = case when ${isOfKind} and x.${column} ${order === 'desc' ? '<=' : '>='} m.created_at then (
    select n.created_at from messages n
    where n.workspace_id = m.workspace_id and n.conversation_id = m.conversation_id and ${condition}
      and n.created_at ${order === 'desc' ? '<=' : '>='} m.created_at
    order by n.created_at ${order}, n.id ${order} limit 1) else x.${column} end`

const statements = [
  // A message that stops counting changes a time only where that was its own: the next one of its kind is looked up
  // from there on. Conversations of hundreds of thousands of messages were read in full.
  `create function leave_contact_exchange(m messages) returns void language plpgsql set enable_sort = off as $$
    declare
      was_inbound boolean := m.direction = 'inbound';
      was_standing boolean := ${isStanding('m')};
      left_row contact_exchanges;
    begin
      update contact_exchanges x set
        ${[
          without('first_inbound_at', 'was_inbound', `n.direction = 'inbound'`, ''),
          without('last_inbound_at', 'was_inbound', `n.direction = 'inbound'`, 'desc'),
          without('last_outbound_at', 'was_standing', isStandingRow, 'desc'),
          without('last_answer_at', 'was_standing', `${isStandingRow} and ${isPersons('n')}`, 'desc'),
        ].join(',')}
      where x.workspace_id = m.workspace_id and x.conversation_id = m.conversation_id
      returning x.* into left_row;
      if not found then
        perform recount_exchange(m.workspace_id, m.conversation_id);
      elsif left_row.first_inbound_at is null and left_row.last_outbound_at is null then
        delete from contact_exchanges x
        where x.workspace_id = m.workspace_id and x.conversation_id = m.conversation_id;
      end if;
    end $$`,
  `create or replace function renew_contact_exchange() returns trigger language plpgsql as $$
    declare
      inbound timestamptz := case when tg_op <> 'DELETE' and new.direction = 'inbound' then new.created_at end;
      outbound timestamptz := case when tg_op <> 'DELETE' and ${isStanding('new')} then new.created_at end;
      answer timestamptz := case when outbound is not null
        and ${isPersons('new')} then outbound end;
    begin
      if tg_op <> 'INSERT' and ${counts('old')} then
        perform leave_contact_exchange(old);
      end if;
      if inbound is null and outbound is null then
        return null;
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
]

/** docs/decisions/0066-filters-for-the-work.md says what the table is for. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
