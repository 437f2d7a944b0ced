import fc from 'fast-check'
import { sql } from 'kysely'
import { createChannel, createStaff } from '../../storage/admin.ts'
import type { Db, MessageStatus } from '../../storage/database.ts'
import { findOrInsertBroadcast } from '../../storage/demo.ts'
import { plantContact } from '../calls.ts'

/**
 * A moment near which a history plays, and where: changes of the clocks by an hour and by half an hour, at
 * midnight; offsets of half and quarter hours.
 */
export const timeZoneScenes = [
  ['Europe/Berlin', '2026-03-30T09:15:00.000Z'],
  ['Europe/Berlin', '2026-10-25T23:30:00.000Z'],
  ['America/New_York', '2026-03-08T07:00:00.000Z'],
  ['America/New_York', '2026-11-02T04:59:59.999Z'],
  ['Australia/Lord_Howe', '2026-04-05T20:00:00.000Z'],
  ['Australia/Lord_Howe', '2026-10-04T13:29:59.999Z'],
  ['Africa/Cairo', '2026-04-24T06:00:00.000Z'],
  ['America/Santiago', '2026-09-06T12:00:00.000Z'],
  ['Asia/Kolkata', '2026-06-30T18:30:00.000Z'],
  ['Asia/Kathmandu', '2026-01-01T03:00:00.000Z'],
  ['America/St_Johns', '2026-03-09T01:00:00.000Z'],
  ['Pacific/Chatham', '2026-04-05T10:45:00.000Z'],
  ['Pacific/Kiritimati', '2026-03-01T10:00:00.000Z'],
  ['UTC', '2024-03-01T00:00:00.000Z'],
] as const

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Milliseconds before now of the beginnings of the last days there. */
const midnights = (zone: string, now: string): number[] => {
  const today = Temporal.Instant.from(now).toZonedDateTimeISO(zone).toPlainDate()
  return Array.from(
    { length: 41 },
    (_, days) => Date.parse(now) - today.subtract({ days }).toZonedDateTime(zone).epochMilliseconds,
  )
}

/**
 * How long before now something happened: mostly about the beginnings of days, where an error of a
 * millisecond shows, and about hours of waiting.
 */
const agoIn = ([zone, now]: (typeof timeZoneScenes)[number]) =>
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .record({
          edge: fc.constantFrom(...midnights(zone, now)),
          off: fc.constantFrom(-1, 0, 0, 1, -HOUR / 2, HOUR / 2),
        })
        .map(({ edge, off }) => Math.max(0, edge + off)),
    },
    {
      weight: 1,
      arbitrary: fc
        .record({ hours: fc.constantFrom(0, 1, 4, 24), off: fc.constantFrom(-1, 0, 1) })
        .map(({ hours, off }) => Math.max(0, hours * HOUR + off)),
    },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 45 * DAY }) },
  )
const after = fc.oneof(fc.integer({ min: 0, max: 3 * DAY }), fc.constantFrom(0, 1, 1000, HOUR, DAY))
/** Absent in so many of ten. */
const maybe = <T>(value: fc.Arbitrary<T>, absent: number) =>
  fc.oneof({ weight: 10 - absent, arbitrary: value }, { weight: absent, arbitrary: fc.constant(null) })

/** When a clock runs out: so long after it began, or just now. */
const NOW = 'now'
const dueAt = (due: number | typeof NOW | null, begun: number, now: number): number | null =>
  due === null ? null : due === NOW ? now : begun + due

const statuses: MessageStatus[] = ['pending', 'sent', 'delivered', 'read', 'failed']
/** `staff`: the place in the list of staff members; null: nobody. */
const staff = maybe(fc.nat(2), 3)
const recipient = fc.record({
  status: fc.constantFrom('pending', 'sent', 'delivered', 'read', 'failed'),
  opted_out: fc.boolean(),
})
const mostly = fc.nat(3).map((n) => n > 0)
const policy = fc.record({
  enabled: mostly,
  channels: fc.constantFrom(null, 'there', 'gone', 'both', 'none'),
  target: mostly,
  hours: fc.constantFrom(null, 'some', 'empty'),
})

const historyOf = (scene: (typeof timeZoneScenes)[number]) => {
  const ago = agoIn(scene)
  const due = maybe(fc.oneof(after, ago, fc.constant(NOW)), 4)
  const message = fc.record({
    ago,
    status: fc.constantFrom(...statuses),
    kind: fc.constantFrom('outbound', 'outbound', 'outbound', 'inbound', 'note'),
    staff,
  })
  const wait = fc.record({
    ago,
    due,
    lasts: maybe(after, 4),
    kind: fc.constantFrom('first_response', 'next_response'),
    staff,
  })
  const episode = fc.record({
    ago,
    lasts: fc.oneof(after, ago),
    openedBy: staff,
    closedBy: staff,
    reason: maybe(fc.constantFrom('solved', 'spam'), 5),
    answered: maybe(after, 3),
    due,
  })
  const conversation = fc.record({
    episodes: fc.array(episode, { minLength: 1, maxLength: 3 }),
    open: fc.boolean(),
    reply: fc.constantFrom(null, 'incoming_no_reply', 'outgoing_no_response'),
    assigned: staff,
    team: fc.nat(4).map((n) => n === 0),
    windowExpired: fc.boolean(),
    messages: fc.array(message, { maxLength: 8 }),
    waits: fc.array(wait, { maxLength: 3 }),
  })
  return fc.record({
    scene: fc.constant(scene),
    conversations: fc.array(conversation, { minLength: 1, maxLength: 8 }),
    contacts: fc.array(ago, { minLength: 3, maxLength: 6 }),
    broadcasts: fc.array(
      fc.record({ started: maybe(ago, 3), recipients: fc.array(recipient, { maxLength: 3 }) }),
      { maxLength: 3 },
    ),
    policies: fc.array(policy, { maxLength: 3 }),
  })
}

/** What happened in a workspace, in times before now. */
export const workspaceHistory = fc.constantFrom(...timeZoneScenes).chain(historyOf)
export type WorkspaceHistory = typeof workspaceHistory extends fc.Arbitrary<infer T> ? T : never

/** Rows as they are written, which are all that an oracle may look at. Times are milliseconds since 1970. */
export type HistoryRows = {
  now: number
  staff: string[]
  messages: {
    conversation_id: string
    direction: string
    note: boolean
    status: string
    staff_id: string | null
    created_at: number
  }[]
  conversations: {
    id: string
    state: string
    reply_status: string | null
    assigned_staff_id: string | null
    assigned_team_id: string | null
    created_at: number
    window_expires_at: number | null
    last_inbound_at: number | null
  }[]
  episodes: {
    conversation_id: string
    n: number
    opened_at: number
    opened_by: string | null
    closed_at: number | null
    closed_by: string | null
    close_reason: string | null
    first_response_at: number | null
    resolution_due_at: number | null
  }[]
  waits: {
    conversation_id: string
    since: number
    kind: string
    episode: number
    due_at: number | null
    ended_at: number | null
    ended_by: string | null
  }[]
  contacts: { created_at: number }[]
  broadcasts: { started_at: number | null; recipients: { status: string; opted_out: boolean }[] }[]
  policies: { enabled: boolean; works: boolean }[]
}

const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** Writes the history into a workspace of its own and answers its rows. */
export const insertHistory = async (
  db: Db,
  workspaceId: string,
  { scene: [, at], ...history }: WorkspaceHistory,
): Promise<HistoryRows> => {
  const now = Date.parse(at)
  const members: string[] = []
  for (const n of [1, 2, 3])
    members.push((await createStaff(db, workspaceId, { name: `Member ${n}`, role: 'agent' }, [], at)).id)
  const { id: channelId } = await createChannel(
    db,
    workspaceId,
    { type: 'web', name: 'Reported', identifier: 'reported.example', status: 'connected' },
    at,
  )
  for (const [n, time] of history.contacts.entries()) {
    await plantContact(
      db,
      workspaceId,
      { name: 'Somebody', phone: `1555010${1000 + n}`, email: null, attrs: {}, tagIds: [], groupIds: [] },
      iso(now - time)!,
    )
  }
  const raw: HistoryRows = {
    now,
    staff: members,
    contacts: history.contacts.map((time) => ({ created_at: now - time })),
    ...conversationRows(now, members, history.conversations),
    broadcasts: history.broadcasts.map(({ started, recipients }) => ({
      started_at: started === null ? null : now - started,
      recipients,
    })),
    policies: history.policies.map(({ enabled, channels, target, hours }) => ({
      enabled,
      works:
        target && (channels === null || channels === 'there' || channels === 'both') && hours !== 'empty',
    })),
  }
  await writeConversations(db, workspaceId, channelId, raw)
  await writeBroadcasts(db, workspaceId, raw, at)
  for (const { enabled, channels, target, hours } of history.policies) {
    const ids = { there: [channelId], gone: ['999999999'], both: [channelId, '999999999'], none: [] }
    const spans = hours === null ? null : { days: hours === 'some' ? { mon: [['09:00', '18:00']] } : {} }
    await sql`
      insert into sla_policies (workspace_id, name, enabled, channel_ids, resolution_seconds, hours, created_at)
      values (${workspaceId}, 'Promise', ${enabled}, ${channels === null ? null : ids[channels as keyof typeof ids]}::bigint[], ${target ? 3600 : null}, ${spans === null ? null : JSON.stringify(spans)}::text::jsonb, ${at})`.execute(
      db,
    )
  }
  return raw
}

type Talks = Pick<HistoryRows, 'messages' | 'conversations' | 'episodes' | 'waits'>

/** Ids of conversations are made to be no other history's. */
let nextId = 5_000_000

const conversationRows = (
  now: number,
  members: readonly string[],
  talks: WorkspaceHistory['conversations'],
): Talks => {
  const rows: Talks = { messages: [], conversations: [], episodes: [], waits: [] }
  const member = (place: number | null): string | null => (place === null ? null : members[place]!)
  for (const talk of talks) {
    const id = String(nextId++)
    const opened = talk.episodes.map((e) => now - e.ago).toSorted((a, b) => a - b)
    talk.episodes.forEach((e, i) => {
      const last = i === talk.episodes.length - 1
      const open = last && talk.open
      const at = opened[i]!
      // Closed before it was opened again, and not in time to come.
      const closed = open ? null : Math.min(at + e.lasts, last ? now : opened[i + 1]!)
      rows.episodes.push({
        conversation_id: id,
        n: i + 1,
        opened_at: at,
        opened_by: member(e.openedBy),
        closed_at: closed,
        closed_by: open ? null : member(e.closedBy),
        close_reason: open ? null : e.reason,
        first_response_at: e.answered === null ? null : Math.min(at + e.answered, closed ?? now),
        resolution_due_at: dueAt(e.due, at, now),
      })
    })
    const since = new Set<number>()
    for (const [i, { ago, due, lasts, kind, staff: by }] of talk.waits.entries()) {
      const begun = now - ago
      if (since.has(begun)) continue
      since.add(begun)
      // One waits at most, and only in an open conversation.
      const running = lasts === null && talk.open && i === 0
      rows.waits.push({
        conversation_id: id,
        since: begun,
        kind,
        episode: 1,
        due_at: dueAt(due, begun, now),
        ended_at: running ? null : Math.max(begun, Math.min(now, begun + (lasts ?? HOUR))),
        ended_by: running ? null : member(by),
      })
    }
    for (const { ago, status, kind, staff: by } of talk.messages) {
      const direction = kind === 'note' ? 'system' : kind
      rows.messages.push({
        conversation_id: id,
        direction,
        note: kind === 'note',
        status: kind === 'inbound' ? 'received' : kind === 'note' ? 'system' : status,
        staff_id: kind === 'inbound' ? null : member(by),
        created_at: now - ago,
      })
    }
    rows.conversations.push({
      id,
      state: talk.open ? 'open' : 'closed',
      reply_status: talk.reply,
      assigned_staff_id: talk.team ? null : member(talk.assigned),
      assigned_team_id: talk.team ? '7' : null,
      created_at: opened[0]!,
      window_expires_at: now + (talk.windowExpired ? -1 : 1) * HOUR,
      last_inbound_at: now - (talk.windowExpired ? 25 : 23) * HOUR,
    })
  }
  return rows
}

/** Rows with their times as the database takes them. */
const stored = (rows: readonly object[]): string =>
  JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          /_at$|^since$/.test(name) && typeof value === 'number' ? iso(value) : (value as unknown),
        ]),
      ),
    ),
  )

const insert = async (
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
    select ${sql.raw([...Object.values(fixed), names].join(', '))} from jsonb_to_recordset(${stored(rows)}::text::jsonb) as r (${sql.raw(columns)})`.execute(
    db,
  )
}

const writeConversations = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  raw: HistoryRows,
): Promise<void> => {
  const own = { workspace_id: workspaceId }
  await insert(
    db,
    'conversations',
    { ...own, channel_id: channelId, updated_at: 'created_at' },
    'id bigint, state text, reply_status text, assigned_staff_id bigint, assigned_team_id bigint, created_at timestamptz, window_expires_at timestamptz, last_inbound_at timestamptz',
    raw.conversations,
  )
  await insert(
    db,
    'conversation_episodes',
    own,
    `conversation_id bigint, n integer, opened_at timestamptz, opened_by bigint, closed_at timestamptz, closed_by bigint, close_reason text,
    first_response_at timestamptz, resolution_due_at timestamptz`,
    raw.episodes,
  )
  await insert(
    db,
    'reply_waits',
    own,
    'conversation_id bigint, since timestamptz, kind text, episode integer, due_at timestamptz, ended_at timestamptz, ended_by bigint',
    raw.waits,
  )
  await insert(
    db,
    'messages',
    { ...own, channel_id: channelId, type: `'TEXT'`, text: `'Hello'` },
    'conversation_id bigint, direction text, note boolean, status text, staff_id bigint, created_at timestamptz',
    raw.messages,
  )
}

const writeBroadcasts = async (db: Db, workspaceId: string, raw: HistoryRows, at: string): Promise<void> => {
  const contacts = (
    await db
      .selectFrom('contacts')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .orderBy('id')
      .execute()
  ).map((row) => row.id)
  for (const [n, { started_at, recipients }] of raw.broadcasts.entries()) {
    const { id } = await findOrInsertBroadcast(db, workspaceId, {
      name: `Broadcast ${n}`,
      status: started_at === null ? 'scheduled' : 'completed',
      template_name: 'offer',
      channel_id: null,
      scheduled_at: at,
      started_at: iso(started_at),
      created_at: at,
    })
    await insert(
      db,
      'broadcast_recipients',
      { workspace_id: workspaceId, broadcast_id: id },
      'contact_id bigint, status text, opted_out boolean',
      recipients.map((row, i) => ({ ...row, contact_id: contacts[i] })),
    )
  }
}
