import fc from 'fast-check'
import type { MessageStatus } from '../../storage/database.ts'

/**
 * Time zones with a current time near a difficult day: clock changes of an hour and of half an hour, some of
 * them at midnight; offsets of half and quarter hours.
 */
const timeZoneCases = [
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

/** Returns how many milliseconds before now each of the last 41 days began in the time zone. */
const listDayStarts = (zone: string, now: string): number[] => {
  const today = Temporal.Instant.from(now).toZonedDateTimeISO(zone).toPlainDate()
  return Array.from(
    { length: 41 },
    (_, days) => Date.parse(now) - today.subtract({ days }).toZonedDateTime(zone).epochMilliseconds,
  )
}

/**
 * Milliseconds before now: mostly near the start of a day or a bound of the waiting time buckets, where an
 * error of one millisecond changes a count.
 */
const timeAgo = ([zone, now]: (typeof timeZoneCases)[number]) =>
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .record({
          edge: fc.constantFrom(...listDayStarts(zone, now)),
          offset: fc.constantFrom(-1, 0, 0, 1, -HOUR / 2, HOUR / 2),
        })
        .map(({ edge, offset }) => Math.max(0, edge + offset)),
    },
    {
      weight: 1,
      arbitrary: fc
        .record({ hours: fc.constantFrom(0, 1, 4, 24), offset: fc.constantFrom(-1, 0, 1) })
        .map(({ hours, offset }) => Math.max(0, hours * HOUR + offset)),
    },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 45 * DAY }) },
  )
const duration = fc.oneof(fc.integer({ min: 0, max: 3 * DAY }), fc.constantFrom(0, 1, 1000, HOUR, DAY))
/** Null in this many of ten cases. */
const nullable = <T>(value: fc.Arbitrary<T>, nulls: number) =>
  fc.oneof({ weight: 10 - nulls, arbitrary: value }, { weight: nulls, arbitrary: fc.constant(null) })

/** A clock that is due at this very moment. */
const NOW = 'now'

/** Returns when a clock is due that started at `startedAt`; null without a target. Milliseconds. */
export const toDueAt = (due: number | typeof NOW | null, startedAt: number, now: number): number | null =>
  due === null ? null : due === NOW ? now : startedAt + due

const statuses: MessageStatus[] = ['pending', 'sent', 'delivered', 'read', 'failed']
/** Index into the list of staff members; null: none. */
const staff = nullable(fc.nat(2), 3)
const recipient = fc.record({
  status: fc.constantFrom('pending', 'sent', 'delivered', 'read', 'failed'),
  opted_out: fc.boolean(),
})
const mostlyTrue = fc.nat(3).map((n) => n > 0)
const policy = fc.record({
  enabled: mostlyTrue,
  channels: fc.constantFrom(null, 'existing', 'deleted', 'both', 'none'),
  target: mostlyTrue,
  hours: fc.constantFrom(null, 'some', 'empty'),
})

const createHistory = (zoneCase: (typeof timeZoneCases)[number]) => {
  const ago = timeAgo(zoneCase)
  const due = nullable(fc.oneof(duration, ago, fc.constant(NOW)), 4)
  const message = fc.record({
    ago,
    status: fc.constantFrom(...statuses),
    kind: fc.constantFrom('outbound', 'outbound', 'outbound', 'inbound', 'note'),
    staff,
  })
  const wait = fc.record({
    ago,
    due,
    duration: nullable(duration, 4),
    kind: fc.constantFrom('first_response', 'next_response'),
    staff,
  })
  const episode = fc.record({
    ago,
    duration: fc.oneof(duration, ago),
    openedBy: staff,
    closedBy: staff,
    reason: nullable(fc.constantFrom('solved', 'spam'), 5),
    responseDelay: nullable(duration, 3),
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
    timezone: fc.constant(zoneCase[0]),
    now: fc.constant(zoneCase[1]),
    conversations: fc.array(conversation, { minLength: 1, maxLength: 8 }),
    contacts: fc.array(ago, { minLength: 3, maxLength: 6 }),
    broadcasts: fc.array(
      fc.record({ started: nullable(ago, 3), recipients: fc.array(recipient, { maxLength: 3 }) }),
      { maxLength: 3 },
    ),
    policies: fc.array(policy, { maxLength: 3 }),
  })
}

/** What happened in a workspace, in milliseconds before `now`. */
export const workspaceHistory = fc.constantFrom(...timeZoneCases).chain(createHistory)
export type WorkspaceHistory = typeof workspaceHistory extends fc.Arbitrary<infer T> ? T : never

/** The inserted rows: the only input of the oracles. Times are milliseconds since 1970. */
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
  policies: { enabled: boolean; effective: boolean }[]
}
