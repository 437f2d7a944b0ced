import { usageError } from './error.ts'
import type { Io } from './io.ts'
import type { CommandSpec, Field } from './manifest.ts'
import { callOperation, type ServerClock, type ServerConnection } from './remote.ts'
import { formatWallTime, parseTimePhrase } from './time-phrase.ts'

const EXAMPLES = {
  time:
    'now, +1d, -90m, "tomorrow 9:00", "monday 14:30" or "2026-11-30 9:00", or a time with its zone: ' +
    '2026-11-30T09:00:00+01:00.',
  day: 'today, yesterday, -7d, "last monday" or 2026-11-30.',
}

/** True for text that is not a phrase: a time with its zone, or a date where a date is expected. */
const isAbsolute = (text: string, kind: 'time' | 'day'): boolean =>
  kind === 'time'
    ? /^\d{4}-\d{2}-\d{2}t\d{2}:\d{2}\S*(?:z|[+-]\d{2}:?\d{2})$/i.test(text)
    : /^\d{4}-\d{2}-\d{2}$/.test(text)

/** The server takes the years 1 to 9999, which ISO 8601 writes without a sign. */
const formatTime = (instant: number | undefined): string | undefined => {
  const date = new Date(instant ?? Number.NaN)
  if (!Number.isFinite(date.getTime())) return undefined
  const text = date.toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text : undefined
}

/** Asks the server for its time and the workspace's zone: those of this machine may differ. */
export const readServerClock = async (to: ServerConnection): Promise<ServerClock> => {
  const { clock } = await callOperation(to, 'workspace_whoami', {})
  return clock ?? { zone: 'UTC', now: Date.now() }
}

const resolvePhrase = (io: Io, field: Field, text: string, clock: ServerClock): string => {
  const instant = parseTimePhrase(text, clock)
  const time = formatTime(instant)
  if (instant === undefined || time === undefined) {
    const kind = field.time!
    const wrong =
      instant !== undefined ? 'is too far away' : kind === 'day' ? 'is not a day' : 'is not a time'
    throw usageError(`${field.flag} ${wrong}: "${text}".`, field.flag, `For example ${EXAMPLES[kind]}`)
  }
  const local = formatWallTime(instant, clock.zone)
  if (io.stderr.isTTY) io.stderr.write(`${field.flag}: ${local} ${clock.zone} (${time})\n`)
  return field.time === 'day' ? local.slice(0, 10) : time
}

/** Replaces phrases such as `tomorrow 9:00` by the times that they mean in the workspace's zone. */
export const resolveTimes = async (
  to: ServerConnection,
  spec: CommandSpec,
  given: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> => {
  const { io } = to
  const resolved: Record<string, unknown> = {}
  let clock: ServerClock | undefined
  for (const field of spec.fields) {
    const text = given[field.name]
    if (!field.time || typeof text !== 'string' || isAbsolute(text.trim(), field.time)) continue
    clock ??= await readServerClock(to)
    resolved[field.name] = resolvePhrase(io, field, text, clock)
  }
  return resolved
}
