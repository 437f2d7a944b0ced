import { eventTypes } from '../../catalog/events.ts'
import { type LoggedEvent, type Position, positionOf, scanEvents, type Shown } from '../../storage/events.ts'
import type { Actor } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'
import { unknownEventType } from '../webhooks/event-types.ts'
import { showEvent } from './view.ts'

const ids = Object.keys(eventTypes)
const types = [...new Set(ids.map((id) => id.slice(0, id.indexOf('/'))))]

/** The event type ids that are meant; throws 400 for one that does not exist. */
const typesOf = (given: readonly string[] | undefined): string[] | undefined =>
  given?.flatMap((name, i) => {
    const meant = ids.filter((id) => id === name || id.startsWith(`${name}/`))
    if (meant.length > 0) return meant
    throw unknownEventType('types', name, [i], name.includes('/') ? ids : types)
  })

/**
 * What a reader is shown: the types asked for, of conversations and messages those of the channels that the
 * staff member may use.
 */
export const wantedOf = (actor: Actor, given: readonly string[] | undefined): Shown => ({
  types: typesOf(given),
  channels: actor.staff.channelIds ?? undefined,
})

/**
 * Events that are looked through at a time, and altogether for one page: a rare type in a long log takes
 * several pages, and no call takes long.
 */
const SCANNED = 1000
const MOST_SCANS = 50

export const listEvents: Handler<InputOf<'events_list'>, OutputOf<'events_list'>> = async (
  { tx, actor },
  input,
) => {
  const wanted = wantedOf(actor, input.types)
  const workspaceId = actor.workspace.id
  let after: Position | undefined
  if (input.after !== undefined && !(after = await positionOf(tx, workspaceId, input.after)))
    throw notFound('event', input.after)
  const found: LoggedEvent[] = []
  const most = wanted.types || wanted.channels ? SCANNED : input.limit + 1
  let more = true
  for (let scans = 0; more && scans < MOST_SCANS && found.length <= input.limit; scans++) {
    const scan = await scanEvents(tx, workspaceId, after, wanted, most)
    found.push(...scan.events)
    after = scan.last ?? after
    more = scan.more
  }
  const data = found.slice(0, input.limit)
  return {
    data: data.map((event) => showEvent(actor, event)),
    next_cursor: found.length > input.limit ? data.at(-1)!.id : more ? after!.id : null,
  }
}
