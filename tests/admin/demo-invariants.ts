/** The time at which the demo workspaces of the tests are created. */
export const DEMO_NOW = '2026-11-21T10:00:00.000Z'

const LATEST_CONVERSATION = 'where id = (select max(id) from conversations)'

/** A fact about every conversation of a demo workspace. */
export type Invariant = {
  name: string
  /** A query of the ids that violate it. */
  violations: string
  /** A statement that makes one row violate it, which proves that the query finds violations. */
  violate: string
}

/**
 * What is stored with conversations, compared with what follows from their messages, episodes and waits.
 */
export const invariants: readonly Invariant[] = [
  {
    name: 'the last message is the newest that is not a note, and the last activity is its time',
    violations: `
      select v.id from conversations v
      left join lateral (
        select m.id, m.created_at from messages m
        where m.workspace_id = v.workspace_id and m.conversation_id = v.id and not m.note
        order by m.created_at desc, m.id desc limit 1
      ) as l on true
      where v.last_message_id is distinct from l.id or v.last_activity_at is distinct from l.created_at`,
    violate: `update conversations set last_message_id = last_message_id - 1 ${LATEST_CONVERSATION}`,
  },
  {
    name: 'messages since the last reply or close are unread, and the status tells who wrote last (no failed reply)',
    violations: `
      select v.id from conversations v
      where (v.unread_count, v.reply_status) is distinct from (
        (select count(*)::integer from messages m
          where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'inbound'
            and m.created_at > greatest(
              (select max(o.created_at) from messages o
                where o.workspace_id = v.workspace_id and o.conversation_id = v.id
                  and o.direction = 'outbound'),
              (select max(e.closed_at) from conversation_episodes e
                where e.workspace_id = v.workspace_id and e.conversation_id = v.id),
              '-infinity')),
        (select case m.direction when 'inbound' then 'incoming_no_reply' else 'outgoing_no_response' end
          from messages m where m.workspace_id = v.workspace_id and m.conversation_id = v.id
            and not m.note and m.status <> 'failed' order by m.created_at desc, m.id desc limit 1))`,
    violate: `update conversations set unread_count = unread_count + 1 ${LATEST_CONVERSATION}`,
  },
  {
    name: 'the reply window begins with the last customer message, and lasts three days after an ad',
    violations: `
      select v.id from conversations v
      join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id,
      lateral (
        select max(created_at) as at, max(created_at) filter (where content ? 'ad') as ad
        from messages m
        where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'inbound'
      ) as i
      where v.last_inbound_at is distinct from i.at or v.free_entry_at is distinct from i.ad
        or v.window_expires_at is distinct from case when h.type = 'chatapp'
          then greatest(i.at + interval '24 hours', i.ad + interval '72 hours') end`,
    violate: `
      update conversations set last_inbound_at = created_at - interval '1 day' ${LATEST_CONVERSATION}`,
  },
  {
    name: 'the state is that of the latest episode, and episodes do not overlap',
    violations: `
      select v.id from conversations v
      left join lateral (
        select max(e.n) as n, min(e.opened_at) as opened,
          (array_agg(e.closed_at order by e.n desc))[1] as closed,
          bool_or(e.closed_at is null) as any_open, count(*) as episodes,
          bool_or(e.closed_at < e.opened_at
            or e.first_response_at not between e.opened_at and e.closed_at) as disorder
        from conversation_episodes e
        where e.workspace_id = v.workspace_id and e.conversation_id = v.id
      ) as e on true
      where v.episode is distinct from e.n or e.episodes <> e.n or v.created_at is distinct from e.opened
        or (v.state = 'closed') <> (e.closed is not null) or e.any_open <> (v.state = 'open')
        or e.disorder
      union
      select e.conversation_id from conversation_episodes e
      join conversation_episodes p on p.workspace_id = e.workspace_id
        and p.conversation_id = e.conversation_id and p.n = e.n - 1
      where p.closed_at is null or e.opened_at < p.closed_at`,
    violate: `
      update conversations set state = case state when 'open' then 'closed' else 'open' end
      ${LATEST_CONVERSATION}`,
  },
  {
    name: 'a customer waits until a reply, and each wait begins with a message',
    violations: `
      select v.id from conversations v
      left join reply_waits w on w.workspace_id = v.workspace_id and w.conversation_id = v.id
        and w.ended_at is null
      where (w.since is not null) <> (v.state = 'open' and v.reply_status = 'incoming_no_reply')
        or w.due_at is distinct from case when w.since is not null
          then coalesce(v.next_response_due_at, v.first_response_due_at) end
      union
      select w.conversation_id from reply_waits w
      where w.ended_at < w.since or not exists (
        select 1 from messages m
        where m.workspace_id = w.workspace_id and m.conversation_id = w.conversation_id
          and m.direction = 'inbound' and m.created_at = w.since and m.episode = w.episode)`,
    violate: 'delete from reply_waits where ended_at is null',
  },
  {
    name: 'who waits does so since the wait began, and the latest message to the customer failed or not',
    violations: `
      select w.conversation_id as id from reply_waits w
      join conversations v on v.workspace_id = w.workspace_id and v.id = w.conversation_id
      where w.ended_at is null and v.waiting_since is distinct from w.since
      union
      select v.id from conversations v
      where v.delivery_failed <> coalesce((
        select m.status = 'failed' from messages m
        where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'outbound'
        order by m.created_at desc, m.id desc limit 1), false)`,
    violate: 'update conversations set waiting_since = null',
  },
  {
    name: 'customers react to messages that they have read',
    violations: `
      select r.message_id as id from message_reactions r
      left join messages m on m.workspace_id = r.workspace_id and m.id = r.message_id
      where r.emoji is null or not coalesce(r.at >= m.read_at, false)`,
    violate: `
      insert into message_reactions (workspace_id, message_id, sender, emoji, at)
      select workspace_id, id, 'customer', '👍', created_at - interval '1 day' from messages limit 1
      on conflict (workspace_id, message_id, sender) do update set at = excluded.at`,
  },
  {
    name: 'open conversations have the deadlines of their policy, and a late reply is a breach',
    violations: `
      select v.id from conversations v
      left join sla_policies p on p.workspace_id = v.workspace_id and p.id = v.sla_policy_id
      join conversation_episodes e on e.workspace_id = v.workspace_id and e.conversation_id = v.id
        and e.n = v.episode
      where (v.state = 'closed' and coalesce(
          v.first_response_due_at, v.next_response_due_at, v.resolution_due_at) is not null)
        or (v.state = 'open' and v.resolution_due_at
          is distinct from e.opened_at + p.resolution_seconds * interval '1 second')
        or v.sla_breached <> (coalesce(e.closed_at > e.resolution_due_at, false) or exists (
          select 1 from reply_waits w
          where w.workspace_id = v.workspace_id and w.conversation_id = v.id
            and w.episode = v.episode and w.ended_at > w.due_at))`,
    violate: `update conversations set sla_breached = not sla_breached ${LATEST_CONVERSATION}`,
  },
  {
    name: 'nothing happens before its cause, before the contact existed, or in the future',
    violations: `
      select m.conversation_id as id from messages m
      join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
      join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
      where m.created_at < v.created_at or v.created_at < c.created_at
        or v.updated_at < v.last_activity_at
        or m.sent_at < m.created_at or m.delivered_at < m.sent_at or m.read_at < m.delivered_at
        or m.failed_at < m.sent_at
        or greatest(m.created_at, m.delivered_at, m.read_at, m.failed_at,
          v.updated_at, v.assigned_at) > '${DEMO_NOW}'
        or v.reminder_at < '${DEMO_NOW}'
        or m.episode > v.episode or m.channel_id is distinct from v.channel_id`,
    violate: `
      update messages set read_at = '${DEMO_NOW}'::timestamptz + interval '1 hour',
        delivered_at = '${DEMO_NOW}'::timestamptz + interval '1 hour'
      where id = (select max(id) from messages where status = 'read')`,
  },
  {
    name: 'each status has its times',
    violations: `
      select conversation_id as id from messages
      where (status, sent_at is not null, delivered_at is not null, read_at is not null,
          failed_at is not null) not in (
          ('received', false, false, false, false),
          ('system', false, false, false, false),
          ('sent', true, false, false, false),
          ('delivered', true, true, false, false),
          ('read', true, true, true, false),
          ('failed', true, false, false, true))
        or (status = 'failed') <> (error is not null)
        or (direction = 'inbound') <> (status = 'received')
        or (direction = 'system') <> note`,
    violate: `
      update messages set status = 'delivered'
      where id = (select max(id) from messages where status = 'read')`,
  },
  {
    name: 'assignees are enabled and may use the channel, and the time of the assignment is known',
    violations: `
      select v.id from conversations v
      left join staff s on s.workspace_id = v.workspace_id and s.id = v.assigned_staff_id
      where (v.assigned_at is null) <> (v.assigned_staff_id is null and v.assigned_team_id is null)
        or (v.assigned_staff_id is not null and v.assigned_team_id is not null)
        or (v.assigned_staff_id is not null and (s.id is null or not s.enabled
          or not v.channel_id = any(coalesce(s.channel_ids, array[v.channel_id]))))`,
    violate: `
      update conversations set assigned_at = case when assigned_at is null then now() end
      ${LATEST_CONVERSATION}`,
  },
  {
    name: "a contact's last activity is that of its conversations",
    violations: `
      select c.id from contacts c
      left join (
        select workspace_id, contact_id, max(last_activity_at) as at from conversations group by 1, 2
      ) as v on v.workspace_id = c.workspace_id and v.contact_id = c.id
      where c.last_activity_at is distinct from v.at`,
    violate: 'update contacts set last_activity_at = created_at where last_activity_at is not null',
  },
]
