import { addToClockOffset, listClockOffsets, resetClockOffset } from '../storage/workspace/clock.ts'
import type { Db } from '../storage/database.ts'
import type { Signals } from './signals.ts'

/** The minute of the day of a time `HH:MM`. */
export const toMinuteOfDay = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

/** Business time is at most this far ahead of real time: enough for every window and report. */
export const MAX_CLOCK_OFFSET_MS = 400 * 24 * 60 * 60 * 1000

/**
 * How far business time is ahead of real time, in milliseconds, by workspace. Only the sandbox moves it, so
 * it stays empty where a real provider is configured.
 */
type ClockOffsets = Map<string, number>

/** The app whose clocks they are. */
type ClockOwner = { readonly db: Db; readonly clockOffsets: ClockOffsets; readonly signals: Signals }

/** Loads the offsets, which another server may have changed. */
export const refreshClocks = async ({ db, clockOffsets }: Omit<ClockOwner, 'signals'>): Promise<void> => {
  const stored = await listClockOffsets(db)
  for (const workspaceId of clockOffsets.keys())
    if (!stored.has(workspaceId)) clockOffsets.delete(workspaceId)
  for (const [workspaceId, offset] of stored) clockOffsets.set(workspaceId, offset)
}

/**
 * Advances a workspace's business time on every server, on this one at once. Returns false when it would be
 * too far ahead.
 */
export const advanceClock = async (
  { db, clockOffsets, signals }: ClockOwner,
  workspaceId: string,
  ms: number,
): Promise<boolean> => {
  const offset = await addToClockOffset(db, workspaceId, ms, MAX_CLOCK_OFFSET_MS)
  if (offset !== undefined) clockOffsets.set(workspaceId, offset)
  signals.send('clocks')
  return offset !== undefined
}

/** Sets a workspace's business time back to real time. */
export const resetClock = async (
  { db, clockOffsets, signals }: ClockOwner,
  workspaceId: string,
): Promise<void> => {
  await resetClockOffset(db, workspaceId)
  clockOffsets.delete(workspaceId)
  signals.send('clocks')
}

/** The clocks of an app: real time, and what the workspaces add to it. */
export type Clocks = { readonly now: () => string; readonly clockOffsets: ClockOffsets }

/** Returns the business time of a workspace at a real time, ISO 8601 UTC. */
export const toBusinessTime = ({ clockOffsets }: Clocks, workspaceId: string, realTime: string): string => {
  const offset = clockOffsets.get(workspaceId)
  return offset === undefined ? realTime : new Date(Date.parse(realTime) + offset).toISOString()
}

/** Returns the time that the workspace's records show now. What expires uses `app.now()`. */
export const businessTime = (clocks: Clocks, workspaceId: string): string =>
  toBusinessTime(clocks, workspaceId, clocks.now())
