import type { Handler } from '../../handler.ts'
import { NOW } from '../../../catalog/event-log.ts'
import { eventTypes } from '../../../catalog/events.ts'
import type { Db } from '../../../storage/database.ts'
import {
  type LoggedEvent,
  type EventPosition,
  findEventPosition,
  findLatestPosition,
  findPositionSince,
  scanEvents,
  type EventFilter,
} from '../../../storage/events/events.ts'
import type { Actor } from '../../kernel/context.ts'
import { findConsumerStart } from './consumers.ts'
import { invalidField, notFound, type Problem } from '../../kernel/problem.ts'
import { toReader } from '../../visibility/approvals.ts'
import { toReader as toJobReader } from '../bulk-jobs/view.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'
import { matchEventTypes, unknownEventTypeProblem } from '../webhooks/event-types.ts'
import { showEvents } from './view.ts'

const ids = Object.keys(eventTypes)
const types = [...new Set(ids.map((id) => id.slice(0, id.indexOf('/'))))]

/** Returns the ids of event types given with or without version. Throws 400 for one that does not exist. */
const resolveEventTypes = (given: readonly string[] | undefined): string[] | undefined =>
  given?.flatMap((name, i) => {
    const matching = matchEventTypes(name)
    if (matching.length > 0) return matching
    throw unknownEventTypeProblem('types', name, [i], name.includes('/') ? ids : types)
  })

/** Whose approvals an actor may know of; undefined: everybody's. */
const toAsker = (actor: Actor): EventFilter['asker'] => {
  const { familyId, staffId } = toReader(actor)
  return familyId === null ? (staffId === null ? undefined : { staffId }) : { familyId }
}

/**
 * Limits events to the requested types, those of channels to the channels that the actor may see, those of
 * approvals to the ones that `approvals_list` shows, and those of jobs to the ones that `jobs_list` shows.
 */
export const toEventFilter = (actor: Actor, given: readonly string[] | undefined): EventFilter => {
  const channels = listVisibleChannels(actor)
  const jobs = toJobReader(actor)
  return {
    types: resolveEventTypes(given),
    channels: channels === null ? undefined : { ids: channels, staffId: actor.staff.id },
    asker: toAsker(actor),
    jobs: jobs.staffId === null && channels === null ? undefined : jobs,
  }
}

/**
 * Events of one scan, and scans of one page: a rare type in a long log takes several pages, and no call
 * takes long.
 */
const SCAN_SIZE = 1000
const MAX_SCANS = 50

/** Returns the event to begin after: `cursor` and `after` are two names of it. */
const getStart = ({ after, cursor }: { after?: string | undefined; cursor?: string | undefined }) => {
  if (after !== undefined && cursor !== undefined && after !== cursor)
    throw invalidField('cursor', 'contradiction', 'and after name different events', {
      fix: 'Send `next_cursor` as one of them.',
    })
  return cursor ?? after
}

const invalidCursorProblem = (): Problem =>
  invalidField('cursor', 'cursor_invalid', 'is not an event of the log', {
    reason: 'cursor_invalid',
    fix: 'Pass next_cursor unchanged, or omit cursor to start with the oldest event.',
  })

/**
 * Returns the position to begin after: of an event, of the newest one that `visible` lets through for `now`, or before
 * those that happened since a time; undefined for the beginning of the log. Null when there is no such event.
 */
export const findStart = async (
  db: Db,
  workspaceId: string,
  { start, from, visible }: { start: string | undefined; from: string | undefined; visible: EventFilter },
): Promise<EventPosition | undefined | null> => {
  if (start === NOW) return await findLatestPosition(db, workspaceId, visible)
  if (start !== undefined) return (await findEventPosition(db, workspaceId, start)) ?? null
  return from === undefined ? undefined : await findPositionSince(db, workspaceId, from)
}

export const listEvents: Handler<'events_list'> = async ({ tx, actor }, input) => {
  const filter = toEventFilter(actor, input.types)
  const workspaceId = actor.workspace.id
  const start = getStart(input)
  if (start !== undefined && input.from !== undefined)
    throw invalidField('from', 'contradiction', 'cannot stand beside after or cursor', {
      fix: 'Send from with the first request, and next_cursor alone with the others.',
    })
  // The pages after the first go on where that ended.
  const consumer = input.cursor === undefined ? input.consumer : undefined
  const kept = consumer === undefined ? null : await findConsumerStart(tx, workspaceId, consumer)
  const visible = { ...filter, types: undefined }
  let after = kept === null ? await findStart(tx, workspaceId, { start, from: input.from, visible }) : kept
  if (after === null) throw input.cursor === undefined ? notFound('event', start!) : invalidCursorProblem()
  if (start === NOW && kept === null) return { data: [], next_cursor: after?.id ?? null }
  const found: LoggedEvent[] = []
  const scanSize = Object.values(filter).some((part) => part !== undefined) ? SCAN_SIZE : input.limit + 1
  let more = true
  for (let scans = 0; more && scans < MAX_SCANS && found.length <= input.limit; scans++) {
    const scan = await scanEvents(tx, workspaceId, after, filter, scanSize)
    found.push(...scan.events)
    after = scan.last ?? after
    more = scan.more
  }
  const data = found.slice(0, input.limit)
  return {
    data: await showEvents(tx, actor, data),
    next_cursor: found.length > input.limit ? data.at(-1)!.id : more ? after!.id : null,
  }
}
