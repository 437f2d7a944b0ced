import { sql } from 'kysely'
import { createChannel, createStaff } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { findOrInsertBroadcast } from '../../storage/demo/broadcasts.ts'
import { plantContact } from '../calls.ts'
import { type HistoryRows, toDueAt, type WorkspaceHistory } from './history.ts'

const HOUR = 3_600_000

const toIso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** Inserts a history into a workspace and returns its rows. */
export const insertHistory = async (
  db: Db,
  workspaceId: string,
  { now: currentTime, ...history }: WorkspaceHistory,
): Promise<HistoryRows> => {
  const now = Date.parse(currentTime)
  const members: string[] = []
  for (const n of [1, 2, 3])
    members.push(
      (await createStaff(db, workspaceId, { name: `Member ${n}`, role: 'agent' }, [], currentTime)).id,
    )
  const { id: channelId } = await createChannel(
    db,
    workspaceId,
    { type: 'web', name: 'Reported', identifier: 'reported.example', status: 'connected' },
    currentTime,
  )
  for (const [n, time] of history.contacts.entries()) {
    await plantContact(
      db,
      workspaceId,
      { name: 'Customer', phone: `1555010${1000 + n}`, email: null, attrs: {}, tagIds: [], groupIds: [] },
      toIso(now - time)!,
    )
  }
  const rows: HistoryRows = {
    now,
    staff: members,
    contacts: history.contacts.map((time) => ({ created_at: now - time })),
    ...createConversationRows(now, members, history.conversations),
    broadcasts: history.broadcasts.map(({ started, recipients }) => ({
      started_at: started === null ? null : now - started,
      recipients,
    })),
    policies: history.policies.map(({ enabled, channels, target, hours }) => ({
      enabled,
      effective:
        target && (channels === null || channels === 'existing' || channels === 'both') && hours !== 'empty',
    })),
  }
  await insertConversations(db, workspaceId, channelId, rows)
  await insertBroadcasts(db, workspaceId, rows, currentTime)
  for (const policy of history.policies) await insertPolicy(db, workspaceId, channelId, policy, currentTime)
  return rows
}

const insertPolicy = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  { enabled, channels, target, hours }: WorkspaceHistory['policies'][number],
  now: string,
): Promise<void> => {
  const ids = { existing: [channelId], deleted: ['999999999'], both: [channelId, '999999999'], none: [] }
  const channelIds = channels === null ? null : ids[channels]
  const businessHours =
    hours === null ? null : JSON.stringify({ days: hours === 'some' ? { mon: [['09:00', '18:00']] } : {} })
  await sql`
    insert into sla_policies (
      workspace_id, name, enabled, channel_ids, resolution_seconds, hours, created_at)
    values (${workspaceId}, 'Policy', ${enabled}, ${channelIds}::bigint[], ${target ? 3600 : null},
      ${businessHours}::text::jsonb, ${now})`.execute(db)
}

type ConversationRows = Pick<HistoryRows, 'messages' | 'conversations' | 'episodes' | 'waits'>

/** Conversation ids are unique across all histories of a process. */
let nextId = 5_000_000

const createConversationRows = (
  now: number,
  members: readonly string[],
  conversations: WorkspaceHistory['conversations'],
): ConversationRows => {
  const rows: ConversationRows = { messages: [], conversations: [], episodes: [], waits: [] }
  const toStaffId = (index: number | null): string | null => (index === null ? null : members[index]!)
  for (const conversation of conversations) {
    const id = String(nextId++)
    const openedAts = conversation.episodes.map((e) => now - e.ago).toSorted((a, b) => a - b)
    conversation.episodes.forEach((e, i) => {
      const last = i === conversation.episodes.length - 1
      const open = last && conversation.open
      const openedAt = openedAts[i]!
      // An episode ends before the next one starts, and not in the future.
      const closedAt = open ? null : Math.min(openedAt + e.duration, last ? now : openedAts[i + 1]!)
      rows.episodes.push({
        conversation_id: id,
        n: i + 1,
        opened_at: openedAt,
        opened_by: toStaffId(e.openedBy),
        closed_at: closedAt,
        closed_by: open ? null : toStaffId(e.closedBy),
        close_reason: open ? null : e.reason,
        first_response_at:
          e.responseDelay === null ? null : Math.min(openedAt + e.responseDelay, closedAt ?? now),
        resolution_due_at: toDueAt(e.due, openedAt, now),
      })
    })
    const startTimes = new Set<number>()
    for (const [i, { ago, due, duration, kind, staff }] of conversation.waits.entries()) {
      const startedAt = now - ago
      if (startTimes.has(startedAt)) continue
      startTimes.add(startedAt)
      // Only an open conversation has a running wait, and only one.
      const running = duration === null && conversation.open && i === 0
      rows.waits.push({
        conversation_id: id,
        since: startedAt,
        kind,
        episode: 1,
        due_at: toDueAt(due, startedAt, now),
        ended_at: running ? null : Math.max(startedAt, Math.min(now, startedAt + (duration ?? HOUR))),
        ended_by: running ? null : toStaffId(staff),
      })
    }
    for (const { ago, status, kind, staff } of conversation.messages) {
      const direction = kind === 'note' ? 'system' : kind
      rows.messages.push({
        conversation_id: id,
        direction,
        note: kind === 'note',
        status: kind === 'inbound' ? 'received' : kind === 'note' ? 'system' : status,
        staff_id: kind === 'inbound' ? null : toStaffId(staff),
        created_at: now - ago,
      })
    }
    rows.conversations.push({
      id,
      state: conversation.open ? 'open' : 'closed',
      reply_status: conversation.reply,
      assigned_staff_id: conversation.team ? null : toStaffId(conversation.assigned),
      assigned_team_id: conversation.team ? '7' : null,
      created_at: openedAts[0]!,
      window_expires_at: now + (conversation.windowExpired ? -1 : 1) * HOUR,
      last_inbound_at: now - (conversation.windowExpired ? 25 : 23) * HOUR,
    })
  }
  return rows
}

/** Returns the rows as JSON with ISO 8601 times. */
const toJson = (rows: readonly object[]): string =>
  JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          /_at$|^since$/.test(name) && typeof value === 'number' ? toIso(value) : (value as unknown),
        ]),
      ),
    ),
  )

/** Inserts rows; `fixed` are the columns with the same SQL expression in all rows. */
const insertRows = async (
  db: Db,
  table: string,
  fixed: Record<string, string>,
  columns: string,
  rows: readonly object[],
): Promise<void> => {
  const names = columns
    .split(',')
    .map((column) => column.trim().split(' ')[0])
    .join(', ')
  await sql`
    insert into ${sql.table(table)} (${sql.raw([...Object.keys(fixed), names].join(', '))})
    select ${sql.raw([...Object.values(fixed), names].join(', '))}
    from jsonb_to_recordset(${toJson(rows)}::text::jsonb) as r (${sql.raw(columns)})`.execute(db)
}

const insertConversations = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  rows: HistoryRows,
): Promise<void> => {
  const workspace = { workspace_id: workspaceId }
  await insertRows(
    db,
    'conversations',
    { ...workspace, channel_id: channelId, updated_at: 'created_at' },
    `id bigint, state text, reply_status text, assigned_staff_id bigint, assigned_team_id bigint,
    created_at timestamptz, window_expires_at timestamptz, last_inbound_at timestamptz`,
    rows.conversations,
  )
  await insertRows(
    db,
    'conversation_episodes',
    workspace,
    `conversation_id bigint, n integer, opened_at timestamptz, opened_by bigint, closed_at timestamptz,
    closed_by bigint, close_reason text, first_response_at timestamptz, resolution_due_at timestamptz`,
    rows.episodes,
  )
  await insertRows(
    db,
    'reply_waits',
    workspace,
    `conversation_id bigint, since timestamptz, kind text, episode integer, due_at timestamptz,
    ended_at timestamptz, ended_by bigint`,
    rows.waits,
  )
  await insertRows(
    db,
    'messages',
    { ...workspace, channel_id: channelId, type: `'TEXT'`, text: `'Hello'` },
    `conversation_id bigint, direction text, note boolean, status text, staff_id bigint,
    created_at timestamptz`,
    rows.messages,
  )
}

const insertBroadcasts = async (
  db: Db,
  workspaceId: string,
  rows: HistoryRows,
  now: string,
): Promise<void> => {
  const contacts = (
    await db
      .selectFrom('contacts')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .orderBy('id')
      .execute()
  ).map((row) => row.id)
  for (const [n, { started_at, recipients }] of rows.broadcasts.entries()) {
    const { id } = await findOrInsertBroadcast(db, workspaceId, {
      name: `Broadcast ${n}`,
      status: started_at === null ? 'scheduled' : 'completed',
      template_name: 'offer',
      channel_id: null,
      scheduled_at: now,
      started_at: toIso(started_at),
      created_at: now,
    })
    await insertRows(
      db,
      'broadcast_recipients',
      { workspace_id: workspaceId, broadcast_id: id },
      'contact_id bigint, status text, opted_out boolean',
      recipients.map((row, i) => ({ ...row, contact_id: contacts[i] })),
    )
  }
}
