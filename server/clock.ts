import type { Db } from '../storage/database.ts'
import { addToSetting, findSetting, upsertSetting } from '../storage/settings.ts'

/**
 * How far business time is ahead of real time, in milliseconds; kept in the database, so that it is the
 * same on every server.
 */
const KEY = 'clock_offset_ms'
/** Ten years: dates stay within the range of everything downstream. */
const MAX_OFFSET_MS = 10 * 365 * 24 * 60 * 60 * 1000

/** The app whose clock it is. */
type ClockOwner = { readonly db: Db; readonly clock: { offsetMs: number } }

/** Loads the offset, which another server may have advanced. */
export const refreshClock = async ({ db, clock }: ClockOwner): Promise<void> => {
  clock.offsetMs = Number((await findSetting(db, KEY)) ?? 0)
}

/**
 * Advances business time on every server, on this one at once. Returns the new offset in milliseconds;
 * undefined when business time would be more than ten years ahead.
 */
export const advanceClock = async ({ db, clock }: ClockOwner, ms: number): Promise<number | undefined> => {
  const offset = await addToSetting(db, KEY, ms, MAX_OFFSET_MS)
  if (offset !== undefined) clock.offsetMs = offset
  return offset
}

/** Returns the clock in the form that the sandbox uses. */
export const createSandboxClock = ({ db, clock }: ClockOwner) => ({
  offsetMs: (): number => clock.offsetMs,
  setOffset: async (ms: number): Promise<void> => {
    await upsertSetting(db, KEY, String(ms))
    clock.offsetMs = ms
  },
})
