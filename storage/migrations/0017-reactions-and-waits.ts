import { type Kysely, sql } from 'kysely'

/**
 * What customers do to messages that exist: reactions, edits and deletions. And what the list of conversations
 * filters and sorts by: who waits since when, whose last message failed, and whom it is assigned to.
 */
const statements = [
  // sender: one reaction of each person. emoji: null when it was removed, so that an older reaction that
  // arrives late does not show. update_id: orders reactions of the same second by their arrival.
  `create table message_reactions (
    workspace_id bigint not null, message_id bigint not null,
    sender text not null check (sender in ('customer', 'staff')),
    emoji text, at timestamptz(3) not null, update_id bigint not null default 0,
    primary key (workspace_id, message_id, sender)
  )`,
  `alter table messages add edited_at timestamptz(3), add deleted_at timestamptz(3)`,
  // Files of deleted messages, until the job of the files has removed them from the store.
  `create index media_erasable on media (workspace_id, message_id) where state = 'lost' and key is not null`,

  // waiting_since: when the customer's wait for a reply began. It counts only while the customer waits, so
  // that nothing has to clear it.
  `alter table conversations
    add waiting_since timestamptz(3), add delivery_failed boolean not null default false`,
  `update conversations v set waiting_since = w.since
    from (select workspace_id, conversation_id, min(since) as since from reply_waits
      where ended_at is null group by 1, 2) as w
    where v.workspace_id = w.workspace_id and v.id = w.conversation_id`,
  `create index conversations_waiting
    on conversations (workspace_id, (coalesce(waiting_since, activity_at)), id)
    where state = 'open' and reply_status = 'incoming_no_reply'`,
  `create index conversations_assignee
    on conversations (workspace_id, assigned_staff_id, facet, activity_at desc, id desc)
    where assigned_staff_id is not null`,
  `create index messages_pending on messages (workspace_id, conversation_id) where status = 'pending'`,

  // delivery_failed: whether the latest message to the customer failed. Many statements write messages; a
  // trigger keeps it, so that none can forget it. Whoever writes an outbound message has locked the
  // conversation. The direction is not compared by equality: that would allow for the index of all outbound
  // messages, which the planner prefers as long as its statistics know few.
  `create function renew_delivery_failed() returns trigger language plpgsql as $$
    declare m messages;
    begin
      -- A message that moves to another conversation concerns both.
      foreach m in array case tg_op when 'INSERT' then array[new] when 'DELETE' then array[old]
        else array[old, new] end
      loop
        update conversations v set delivery_failed = not v.delivery_failed
        where v.workspace_id = m.workspace_id and v.id = m.conversation_id
          and v.delivery_failed <> coalesce((select l.status = 'failed' from messages l
            where l.workspace_id = m.workspace_id and l.conversation_id = m.conversation_id
              and l.direction not in ('inbound', 'system')
            order by l.created_at desc, l.id desc limit 1), false);
      end loop;
      return null;
    end $$`,
  `create trigger messages_inserted after insert on messages for each row
    when (new.direction = 'outbound') execute function renew_delivery_failed()`,
  `create trigger messages_updated after update of status, conversation_id on messages for each row
    when (new.direction = 'outbound' and ((new.status = 'failed') <> (old.status = 'failed')
      or new.conversation_id <> old.conversation_id))
    execute function renew_delivery_failed()`,
  `create trigger messages_deleted after delete on messages for each row
    when (old.direction = 'outbound') execute function renew_delivery_failed()`,
  `update conversations v set delivery_failed = true
    from (select distinct workspace_id, conversation_id from messages
      where direction = 'outbound' and status = 'failed') as f
    where v.workspace_id = f.workspace_id and v.id = f.conversation_id
      and (select m.status = 'failed' from messages m
        where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'outbound'
        order by m.created_at desc, m.id desc limit 1)`,
  `create index conversations_failed on conversations (workspace_id, activity_at desc, id desc)
    where delivery_failed`,

  // Reactions used to be stored as texts that reply to the message. Those whose message is known move to it;
  // what they did to unread counts, waits and reports of the past stays.
  `create temporary table old_reactions on commit drop as
    select m.workspace_id, m.id, m.conversation_id, m.reply_to_id, m.text as emoji, m.created_at
    from messages m join messages t on t.workspace_id = m.workspace_id and t.id = m.reply_to_id
    where m.direction = 'inbound' and m.type = 'TEXT' and m.content->>'reaction' = m.text`,
  `insert into message_reactions (workspace_id, message_id, sender, emoji, at)
    select distinct on (workspace_id, reply_to_id) workspace_id, reply_to_id, 'customer', emoji, created_at
    from old_reactions order by workspace_id, reply_to_id, created_at desc, id desc`,
  `delete from messages m using old_reactions o where m.workspace_id = o.workspace_id and m.id = o.id`,
  `update messages m set reply_to_id = null from old_reactions o
    where m.workspace_id = o.workspace_id and m.reply_to_id = o.id`,
  `update conversations v set last_message_id = (
      select m.id from messages m
      where m.workspace_id = v.workspace_id and m.conversation_id = v.id
        and m.direction in ('inbound', 'outbound') and m.status <> 'pending'
      order by m.created_at desc, m.id desc limit 1)
    from old_reactions o where v.workspace_id = o.workspace_id and v.last_message_id = o.id`,
  `drop table old_reactions`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
