import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createDemo } from '../../server/demo/demo.ts'
import { generateContacts } from '../../server/demo/generate.ts'
import { createChannel, createStaff, createTeam, createWorkspace } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { migrate } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { databases, onEmptyDatabase } from '../databases.ts'

const now = '2026-11-21T10:00:00.000Z'

/**
 * What a conversation says of itself, worked out anew from its messages, episodes and waits. Each is a
 * query of the conversations of which it is not so;
 * `spoil` makes one such, to prove that the query finds it.
 */
const truths: readonly { name: string; wrong: string; spoil: string }[] = [
  {
    name: 'the last message is the newest that is no note, and the activity is its time',
    wrong: `select v.id from conversations v left join lateral (
        select m.id, m.created_at from messages m where m.workspace_id = v.workspace_id and m.conversation_id = v.id and not m.note order by m.created_at desc, m.id desc limit 1) as l on true
      where v.last_message_id is distinct from l.id or v.last_activity_at is distinct from l.created_at`,
    spoil:
      'update conversations set last_message_id = last_message_id - 1 where id = (select max(id) from conversations)',
  },
  {
    name: 'unread are the messages since the last answer or close, and the reply status says who spoke last',
    wrong: `select v.id from conversations v where (v.unread_count, v.reply_status) is distinct from (
        (select count(*)::integer from messages m where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'inbound' and m.created_at > greatest(
          (select max(o.created_at) from messages o where o.workspace_id = v.workspace_id and o.conversation_id = v.id and o.direction = 'outbound'),
          (select max(e.closed_at) from conversation_episodes e where e.workspace_id = v.workspace_id and e.conversation_id = v.id), '-infinity')),
        (select case m.direction when 'inbound' then 'incoming_no_reply' else 'outgoing_no_response' end from messages m where m.workspace_id = v.workspace_id and m.id = v.last_message_id))`,
    spoil:
      'update conversations set unread_count = unread_count + 1 where id = (select max(id) from conversations)',
  },
  {
    name: "the window runs from the customer's last message, three days from an ad",
    wrong: `select v.id from conversations v join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id, lateral (
        select max(created_at) as at, max(created_at) filter (where content ? 'ad') as ad from messages m where m.workspace_id = v.workspace_id and m.conversation_id = v.id and m.direction = 'inbound') as i
      where v.last_inbound_at is distinct from i.at or v.free_entry_at is distinct from i.ad
        or v.window_expires_at is distinct from case when h.type = 'chatapp' then greatest(i.at + interval '24 hours', i.ad + interval '72 hours') end`,
    spoil:
      "update conversations set last_inbound_at = created_at - interval '1 day' where id = (select max(id) from conversations)",
  },
  {
    name: 'the state is that of the latest episode, and episodes follow each other',
    wrong: `select v.id from conversations v left join lateral (
        select max(e.n) as n, min(e.opened_at) as opened, (array_agg(e.closed_at order by e.n desc))[1] as closed, bool_or(e.closed_at is null) as any_open, count(*) as episodes,
          bool_or(e.closed_at < e.opened_at or e.first_response_at not between e.opened_at and e.closed_at) as disorder
        from conversation_episodes e where e.workspace_id = v.workspace_id and e.conversation_id = v.id) as e on true
      where v.episode is distinct from e.n or e.episodes <> e.n or v.created_at is distinct from e.opened or (v.state = 'closed') <> (e.closed is not null) or e.any_open <> (v.state = 'open') or e.disorder
      union select e.conversation_id from conversation_episodes e join conversation_episodes p on p.workspace_id = e.workspace_id and p.conversation_id = e.conversation_id and p.n = e.n - 1
      where p.closed_at is null or e.opened_at < p.closed_at`,
    spoil:
      "update conversations set state = case state when 'open' then 'closed' else 'open' end where id = (select max(id) from conversations)",
  },
  {
    name: 'a customer waits while no answer came, and each wait began with a message',
    wrong: `select v.id from conversations v left join reply_waits w on w.workspace_id = v.workspace_id and w.conversation_id = v.id and w.ended_at is null
      where (w.since is not null) <> (v.state = 'open' and v.reply_status = 'incoming_no_reply')
        or w.due_at is distinct from case when w.since is not null then coalesce(v.next_response_due_at, v.first_response_due_at) end
      union select w.conversation_id from reply_waits w where w.ended_at < w.since or not exists (
        select 1 from messages m where m.workspace_id = w.workspace_id and m.conversation_id = w.conversation_id and m.direction = 'inbound' and m.created_at = w.since and m.episode = w.episode)`,
    spoil: 'delete from reply_waits where ended_at is null',
  },
  {
    name: 'clocks run in open conversations by the policy, and a late answer breaks it',
    wrong: `select v.id from conversations v left join sla_policies p on p.workspace_id = v.workspace_id and p.id = v.sla_policy_id
        join conversation_episodes e on e.workspace_id = v.workspace_id and e.conversation_id = v.id and e.n = v.episode
      where (v.state = 'closed' and coalesce(v.first_response_due_at, v.next_response_due_at, v.resolution_due_at) is not null)
        or (v.state = 'open' and v.resolution_due_at is distinct from e.opened_at + p.resolution_seconds * interval '1 second')
        or v.sla_breached <> (coalesce(e.closed_at > e.resolution_due_at, false) or exists (
          select 1 from reply_waits w where w.workspace_id = v.workspace_id and w.conversation_id = v.id and w.episode = v.episode and w.ended_at > w.due_at))`,
    spoil:
      'update conversations set sla_breached = not sla_breached where id = (select max(id) from conversations)',
  },
  {
    name: 'nothing happens before its cause, before the contact was there, or in the future',
    wrong: `select m.conversation_id as id from messages m join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
      where m.created_at < v.created_at or v.created_at < c.created_at or v.updated_at < v.last_activity_at or m.sent_at < m.created_at or m.delivered_at < m.sent_at or m.read_at < m.delivered_at
        or m.failed_at < m.sent_at or greatest(m.created_at, m.delivered_at, m.read_at, m.failed_at, v.updated_at, v.assigned_at) > '${now}' or v.reminder_at < '${now}'
        or m.episode > v.episode or m.channel_id is distinct from v.channel_id`,
    spoil: `update messages set read_at = '${now}'::timestamptz + interval '1 hour', delivered_at = '${now}'::timestamptz + interval '1 hour' where id = (select max(id) from messages where status = 'read')`,
  },
  {
    name: 'a status has the times that led to it',
    wrong: `select conversation_id as id from messages where (status, sent_at is not null, delivered_at is not null, read_at is not null, failed_at is not null) not in (
        ('received', false, false, false, false), ('system', false, false, false, false), ('sent', true, false, false, false), ('delivered', true, true, false, false), ('read', true, true, true, false),
        ('failed', true, false, false, true)) or (status = 'failed') <> (error is not null) or (direction = 'inbound') <> (status = 'received') or (direction = 'system') <> note`,
    spoil:
      "update messages set status = 'delivered' where id = (select max(id) from messages where status = 'read')",
  },
  {
    name: 'assignees are enabled, may use the channel, and have it since a time',
    wrong: `select v.id from conversations v left join staff s on s.workspace_id = v.workspace_id and s.id = v.assigned_staff_id
      where (v.assigned_at is null) <> (v.assigned_staff_id is null and v.assigned_team_id is null) or (v.assigned_staff_id is not null and v.assigned_team_id is not null)
        or (v.assigned_staff_id is not null and (s.id is null or not s.enabled or not v.channel_id = any(coalesce(s.channel_ids, array[v.channel_id]))))`,
    spoil:
      'update conversations set assigned_at = case when assigned_at is null then now() end where id = (select max(id) from conversations)',
  },
  {
    name: "a contact's activity is that of its conversations",
    wrong: `select c.id from contacts c left join (select workspace_id, contact_id, max(last_activity_at) as at from conversations group by 1, 2) as v on v.workspace_id = c.workspace_id and v.contact_id = c.id
      where c.last_activity_at is distinct from v.at`,
    spoil: 'update contacts set last_activity_at = created_at where last_activity_at is not null',
  },
]

/** Every sentence holds; and each of them can be found broken. */
const requireTruths = async (db: Db): Promise<void> => {
  const broken = async (query: string) =>
    (await sql.raw<{ id: string }>(`select id from (${query}) as wrong (id) limit 3`).execute(db)).rows.map(
      (row) => row.id,
    )
  for (const { name, wrong } of truths) assert.deepEqual(await broken(wrong), [], name)
  for (const { name, wrong, spoil } of truths) {
    const tx = await db.startTransaction().execute()
    await sql.raw(spoil).execute(tx)
    const { rows } = await sql.raw(`select id from (${wrong}) as wrong (id) limit 1`).execute(tx)
    await tx.rollback().execute()
    assert.equal(rows.length, 1, `it would not be seen whether ${name}`)
  }
}

for (const database of databases)
  describe(`admin demo: generated conversations (${database})`, () => {
    it('the demo workspace is consistent with its history', () =>
      onEmptyDatabase(database, async (db) => {
        await migrate(db)
        await createDemo(db, now)
        await requireTruths(db)
      }))

    it('the demo workspace covers every feature', () =>
      onEmptyDatabase(database, async (db) => {
        await migrate(db)
        await createDemo(db, now)
        const all = async <T>(query: string): Promise<T[]> => (await sql.raw<T>(query).execute(db)).rows
        const column = async (query: string): Promise<string[]> =>
          (await all<{ x: string }>(query)).map((row) => row.x)
        // On each of the last 30 days customers write, staff answer and close.
        const days = await all<{ day: number; received: number; sent: number; closed: number }>(`
      select day, (select count(*)::int from messages where direction = 'inbound' and created_at::date = d) as received,
        (select count(*)::int from messages where direction = 'outbound' and staff_id is not null and created_at::date = d) as sent, (select count(*)::int from conversation_episodes where closed_at::date = d) as closed
      from (select day, ('${now}'::date - day) as d from generate_series(0, 29) as day) as days`)
        for (const { day, ...counts } of days)
          for (const [what, n] of Object.entries(counts)) assert.ok(n > 0, `nothing ${what} ${day} days ago`)
        assert.deepEqual(await column('select distinct type as x from messages order by 1'), [
          'AUDIO',
          'DOCUMENT',
          'IMAGE',
          'LOCATION',
          'TEMPLATE',
          'TEXT',
        ])
        assert.deepEqual(await column('select distinct status as x from messages order by 1'), [
          'delivered',
          'failed',
          'read',
          'received',
          'sent',
          'system',
        ])
        assert.deepEqual(
          await column(
            "select distinct reply_status as x from conversations where state = 'open' order by 1",
          ),
          ['incoming_no_reply', 'outgoing_no_response'],
        )
        for (const open of [
          'assigned_staff_id is null and assigned_team_id is null',
          'assigned_staff_id is not null',
          'assigned_team_id is not null',
          'reminder_at is not null',
          'sla_breached',
          `window_expires_at > '${now}'`,
          `window_expires_at < '${now}'`,
          `last_inbound_at < '${now}'::timestamptz - interval '24 hours' and free_entry_at > '${now}'::timestamptz - interval '72 hours'`,
          'unread_count > 1',
          'exists (select 1 from conversation_tags t where t.conversation_id = v.id)',
          `last_activity_at > '${now}'::timestamptz - interval '1 hour'`,
        ])
          assert.ok(
            (await all(`select id from conversations v where state = 'open' and ${open}`)).length > 0,
            open,
          )
        assert.ok(
          (await all("select 1 from conversations where episode > 1 and state = 'closed'")).length > 0,
        )
        assert.equal(
          (
            await all(
              "select 1 from conversations v join channels h on h.id = v.channel_id where state = 'open' and h.status <> 'connected'",
            )
          ).length,
          0,
        )
        // The template that anybody can try: one variable in its body, and nothing else to fill.
        const [plain] = await all<{ components: { type: string; text: string }[] }>(
          "select components from templates where name = 'order_update' and language = 'en_US' and category = 'UTILITY' and status = 'APPROVED'",
        )
        assert.deepEqual(
          plain!.components.map((c) => [c.type, c.text.match(/\{\{\d+\}\}/g)]),
          [['BODY', ['{{1}}']]],
        )
        assert.deepEqual(await column('select distinct status as x from templates order by 1'), [
          'APPROVED',
          'PAUSED',
          'PENDING',
          'REJECTED',
        ])
        assert.deepEqual(
          await column("select distinct category as x from templates where status = 'APPROVED' order by 1"),
          ['AUTHENTICATION', 'MARKETING', 'UTILITY'],
        )
        assert.equal(
          (
            await all(
              "select 1 from templates where (rejection_reason is not null) <> (status in ('REJECTED', 'PAUSED'))",
            )
          ).length,
          0,
        )
        assert.equal(
          (
            await all(
              'select 1 from templates t where not exists (select 1 from channels h where h.account_id = t.account_id)',
            )
          ).length,
          0,
        )
        assert.deepEqual(await column('select distinct visibility as x from quick_messages order by 1'), [
          'company',
          'private',
          'team',
        ])
        assert.deepEqual(await column('select distinct type as x from quick_messages order by 1'), [
          'DOCUMENT',
          'IMAGE',
          'TEMPLATE',
          'TEXT',
          'VIDEO',
        ])
        assert.equal(
          (await all("select 1 from quick_messages where (team_id is not null) <> (visibility = 'team')"))
            .length,
          0,
        )
        assert.deepEqual(
          await column('select distinct staff_id is not null as x from quick_message_favorites'),
          [true],
        )
        assert.equal(
          (await all('select 1 from short_links')).length,
          0,
          'without an address of the server there are no links to it',
        )
        assert.equal(
          (await all("select 1 from messages where text ~ '[{}]'")).length,
          0,
          'every gap is filled',
        )
      }))

    it('thousands of contacts are consistent with their history', () =>
      onEmptyDatabase(database, async (db) => {
        await migrate(db)
        const { id } = await createWorkspace(db, { name: 'Many' }, now)
        const channel = await createChannel(
          db,
          id,
          { type: 'chatapp', name: 'Line', status: 'connected', is_default: true },
          now,
        )
        await createStaff(db, id, { name: 'Some', role: 'agent', channel_ids: [channel.id] }, [], now)
        await createTeam(db, id, 'Team', now)
        await createChannel(db, id, { type: 'web', name: 'Site', status: 'connected' }, now)
        await generateContacts(db, id, { contacts: 2500, seed: 3, now })
        assert.equal(
          (await sql`select 1 from conversations where last_message_id is null`.execute(db)).rows.length,
          0,
        )
        assert.equal((await sql`select 1 from conversations`.execute(db)).rows.length, 5000)
        await requireTruths(db)
        assert.equal((await generateContacts(db, id, { contacts: 10, seed: 3, now })).created, 10)
      }))
  })

everyDatabase('admin demo: workspace', (server) => {
  it('replies work in open windows, and templates for everyone', async () => {
    const demo = (await createDemo(server().db, server().app.now(), server().url))!
    const run = doAs(server(), demo.apiKey)
    await server().sync(demo.workspaceId)
    const { data } = await run('inbox_search_conversations', { state: 'open', limit: 100 })
    const open = data.filter(
      (c: { channel: { type: string }; window: { open: boolean } }) =>
        c.channel.type === 'chatapp' && c.window.open,
    )
    assert.ok(
      open.some((c: { window: { kind: string } }) => c.window.kind === 'free_entry') && open.length > 1,
      JSON.stringify(open.map((c: { window: unknown }) => c.window)),
    )
    const sent: string[] = []
    for (const { id } of open)
      sent.push(
        (await run('messaging_send_reply', { conversation_id: id, text: 'Hello from us' })).message.id,
      )
    for (const { contact } of data.slice(0, 3)) {
      sent.push(
        (
          await run('messaging_send_template', {
            contact_id: contact.id,
            template: { name: 'order_update', language: 'en_US', body: [contact.name] },
          })
        ).message.id,
      )
    }
    await server().settle()
    for (const id of sent)
      assert.equal((await run('messaging_get_message', { message_id: id })).status, 'delivered')

    // Short links lead here, show their images, and can be given up.
    const links = (await run('messaging_list_short_links')).data as {
      id: string
      url: string
      qr_image_url: string | null
      qr_image_format: string | null
      message: string
      channel: { phone: string }
    }[]
    assert.deepEqual(
      [
        links.length,
        [...new Set(links.map((link) => link.qr_image_format))].toSorted(),
        new Set(links.map((link) => link.channel.phone)).size,
      ],
      [4, ['PNG', 'SVG', null], 2],
    )
    for (const { url, message, qr_image_url: image, qr_image_format: format } of links) {
      assert.ok((await (await fetch(url)).text()).includes(encodeURIComponent(message)), url)
      if (image !== null)
        assert.equal(
          (await fetch(image)).headers.get('content-type'),
          format === 'PNG' ? 'image/png' : 'image/svg+xml',
        )
    }
    assert.equal((await run('messaging_delete_short_link', { short_link_id: links[0]!.id })).deleted, true)
    const quick = (await run('messaging_list_quick_messages', { limit: 100 })).data as {
      code: string
      favorite: boolean
    }[]
    assert.deepEqual(
      quick.filter((one) => one.favorite).map((one) => one.code),
      ['hello', 'hours'],
    )
    const broadcasts = (await run('messaging_list_broadcasts')).data as {
      status: string
      totals: Record<string, number>
    }[]
    assert.deepEqual([...new Set(broadcasts.map((one) => one.status))].toSorted(), [
      'cancelled',
      'completed',
      'running',
      'scheduled',
    ])
    const far = broadcasts.map(({ totals }) => totals).find((totals) => totals['recipients']! > 30)!
    for (const status of ['sent', 'delivered', 'read', 'responded']) assert.ok(far[status]! > 0, status)
  })
})
