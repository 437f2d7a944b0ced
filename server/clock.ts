import type { Db } from '../storage/database.ts'
import { addToSetting, readSetting } from '../storage/settings.ts'
import type { App } from './app.ts'

/** How far business time is ahead of real time, in milliseconds; kept in the database, so that it is the same on every server. */
const KEY = 'clock_offset_ms'
/** Ten years: dates stay within what everything downstream can hold. */
const MOST_MS = 10 * 365 * 24 * 60 * 60 * 1000

/** The offset as the database has it. */
export const storedOffset = async (db: Db): Promise<number> => Number((await readSetting(db, KEY)) ?? 0)

/** Takes over what another server advanced. */
export const refreshClock = async (app: App): Promise<void> => {
  app.clock.offsetMs = await storedOffset(app.db)
}

/** Advances business time on every server, on this one at once. Undefined when it would be ten years ahead. */
export const advanceClock = async (app: App, ms: number): Promise<number | undefined> => {
  const offset = await addToSetting(app.db, KEY, ms, MOST_MS)
  if (offset !== undefined) app.clock.offsetMs = offset
  return offset
}
